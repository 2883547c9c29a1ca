"""What a Dask cluster costs beside one process: ``python -m benchmarks.dask_blocks [--rows 20000] [--columns 1000]``.

The same blocks, the same plans and as many iterations of hasd-subspace in every place: one after the other in this
process, on a pool of two threads, and on a LocalCluster of two workers.  BLAS has one thread in each, but for the line
that says so.  Then what a round costs by the number of blocks, on blocks of ten rows; what it sends; and from these
figures the time of an iteration on more workers than there are here:

    T(W) = w + r (a + c W + W s / beta)

w: the work on one block, half of an iteration in one process;  r: rounds an iteration;  a: what a round on two blocks
takes beyond the work, less 2 c;  c: processor time of client and scheduler for one block more, by least squares (both
are in this process; what a worker does for its own block is in a, as workers do it side by side);  s: bytes a block
sends and receives in a round;  beta: bytes a second at the scheduler, through which all of them go.

That is the low estimate: it takes client and scheduler to have a processor of their own.  The high one puts the seconds
that a round on W blocks took here, where two workers and whatever else ran shared the processors, for a + c W.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

import hasd
import hasd.dask
from hasd.dask.blas import one_thread
from hasd.objectives.losses import LogisticLoss, LogSumExpLoss

BLOCKS = (2, 25, 50, 100)
"""Numbers of blocks on which rounds are timed."""
NETWORK = 125e6
"""Bytes a second that the model allows the scheduler: a network of 1 Gbit/s."""
WORKERS, TALLER = (2, 10, 100), (1, 10, 100)
"""For which the model is printed: so many workers, blocks so many times as tall."""
SIZES = (250, 1000, 5000, 20000)
"""Rows of A with which the thread pool is compared."""


class Timing(NamedTuple):
    """One run."""

    seconds: float  # an iteration
    rounds: float  # an iteration
    busy: float  # processor time of this process, an iteration


class Model(NamedTuple):
    """The formula above, without the work."""

    rounds: float  # r
    fixed: float  # a
    each: float  # c
    bytes: float  # s
    taken: Sequence[float]  # seconds of a round on so many BLOCKS

    def overhead(self, workers: int) -> tuple[float, float]:
        """Seconds an iteration beyond the work: the low and the high estimate."""
        low, high = self.fixed + self.each * workers, float(np.interp(workers, BLOCKS, self.taken))
        sent = workers * self.bytes / NETWORK
        return self.rounds * (low + sent), self.rounds * (max(low, high) + sent)


def maker(seed: int, rows: int, columns: int) -> Any:
    """A function that makes a block, with labels, on the worker."""

    def make() -> Any:
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((rows, columns))
        return A, np.where(A[:, :5].sum(axis=1) + rng.standard_normal(rows) > 0.0, 1.0, -1.0)

    return make


@contextmanager
def counting(f: Any) -> Iterator[Any]:
    """A copy on which a run counts its rounds where we can read them; afterwards it holds no reference to itself."""
    twin = f.with_own_counter()
    twin.with_own_counter = lambda: twin
    try:
        yield twin
    finally:
        vars(twin).clear()


def timed(objective: Any, iterations: int) -> Timing:
    """Some iterations, the start apart."""
    marks: list[tuple[float, int, float]] = []
    with counting(objective) as f:

        def mark(_: Any) -> None:
            marks.append((time.perf_counter(), f.rounds, time.process_time()))

        x0 = np.zeros(f.dimension)
        hasd.minimize(f, x0, method="hasd-subspace", tol=0.0, maxiter=iterations, callback=mark, trace=False)
    return Timing(*((end - start) / (len(marks) - 1) for start, end in zip(marks[0], marks[-1], strict=True)))


def traffic(objective: Any, iterations: int) -> tuple[float, float]:
    """Bytes a round, to a block and from a block, as they are pickled."""
    down: list[int] = []
    up: list[float] = []
    with counting(objective) as f:
        carry_out = f.round

        def noted(bundles: Any, plan: Any) -> Any:
            kept, told = carry_out(bundles, plan)
            down.append(len(pickle.dumps(plan)))
            up.append(statistics.mean(len(pickle.dumps(answer)) for answer in told))
            return kept, told

        f.round = noted
        x0 = np.zeros(f.dimension)
        hasd.minimize(f, x0, method="hasd-subspace", tol=0.0, maxiter=iterations, trace=False)
    return statistics.mean(down), statistics.mean(up)


def round_cost(client: Any, blocks: int, columns: int, repeats: int) -> tuple[float, float]:
    """Seconds of a round beyond the work, and this process's part of them: blocks of ten rows, less the same here."""
    makers = [maker(seed, 10, columns) for seed in range(blocks)]
    there, here = (hasd.dask.affine(LogisticLoss, makers, ridge=1e-3, **where) for where in ({"client": client}, {}))
    with one_thread():
        spread, alone = ([timed(f, 4) for _ in range(repeats)] for f in (there, here))
    rounds = spread[0].rounds
    return tuple(  # type: ignore[return-value]
        (min(getattr(run, name) for run in spread) - min(getattr(run, name) for run in alone)) / rounds
        for name in ("seconds", "busy")
    )


def bandwidth(client: Any, size: int = 32_000_000) -> float:
    """Bytes a second from a worker to this process."""
    seconds = []
    for _ in range(5):
        future = client.submit(np.ones, size // 8, pure=False)
        while not future.done():
            time.sleep(0.001)
        start = time.perf_counter()
        future.result()
        seconds.append(time.perf_counter() - start)
    return size / statistics.median(seconds)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print it as Markdown."""
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def places(client: Any, given: argparse.Namespace) -> tuple[Timing, Timing, tuple[float, float]]:
    """Print an iteration in every place; that in one process, that on two workers, and the bytes, of logistic loss."""
    makers = [maker(seed, given.rows, given.columns) for seed in (0, 1)]
    losses = {"log-sum-exp": LogSumExpLoss(1.0), "logistic": LogisticLoss}
    runs: dict[tuple[str, str], tuple[Any, Any]] = {}
    for name, loss in losses.items():
        one, two, spread = (
            hasd.dask.affine(loss, makers, ridge=1e-3, **where)
            for where in ({"threads": 1}, {"threads": 2}, {"client": client})
        )
        runs[name, "one process"] = one, one_thread
        runs[name, "one process, BLAS with its own threads"] = one, nullcontext
        runs[name, "pool of two threads"] = two, nullcontext
        runs[name, "two workers"] = spread, nullcontext
    best = dict.fromkeys(runs, Timing(math.inf, math.nan, math.nan))
    for _ in range(given.repeats):  # in turns: whatever else the machine does meets all of them
        for run, (f, held) in runs.items():
            with held():
                best[run] = min(best[run], timed(f, given.iterations))
    rows = []
    for (name, place), seen in best.items():
        over = seen.seconds - best[name, "one process"].seconds / 2
        rows.append((name, place, f"{1e3 * seen.seconds:.1f}", f"{seen.rounds:.2f}", f"{1e3 * over:.1f}"))
    table(("loss", "place", "ms an iteration", "rounds an iteration", "ms beyond half of the work"), rows)
    alone, spread = best["logistic", "one process"], best["logistic", "two workers"]
    return alone, spread, traffic(runs["logistic", "one process"][0], given.iterations)


def pool_of_threads(columns: int, repeats: int) -> None:
    """Print what the pool gains by size: the default of ``affine`` rests on this."""
    rows = []
    for count in SIZES:
        A, y = maker(0, count, columns)()
        alone, pool = (hasd.dask.affine(LogisticLoss(y), A, ridge=1e-3, threads=threads) for threads in (1, 2))
        best = [math.inf] * 3
        for _ in range(repeats):
            with one_thread():
                best[0] = min(best[0], timed(alone, 10).seconds)
            best[1:] = [min(old, timed(f, 10).seconds) for old, f in zip(best[1:], (alone, pool), strict=True)]
        rows.append((f"{A.size:.1e}", *(f"{1e3 * seconds:.1f}" for seconds in best)))
    head = "one thread", "one thread, BLAS with its own", "pool of two threads"
    table(("entries of A", *(f"{what}: ms an iteration" for what in head)), rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20000, help="of each of the two blocks")
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=4, help="the best of so many counts")
    given = parser.parse_args()
    from distributed import Client, LocalCluster

    print(
        f"2 blocks of {given.rows} x {given.columns}, {given.iterations} iterations, best of {given.repeats}, "
        f"{os.cpu_count()} processors with a load of {os.getloadavg()[0]:.1f}"
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=folder
        ) as cluster,
        Client(cluster) as client,
    ):
        alone, spread, (down, up) = places(client, given)
        costs = [round_cost(client, blocks, given.columns, given.repeats) for blocks in BLOCKS]
        speed = bandwidth(client)
    pool_of_threads(given.columns, given.repeats)
    head = ("blocks", "ms a round beyond the work", "of it processor time of client and scheduler")
    table(head, [(n, *(f"{1e3 * part:.1f}" for part in cost)) for n, cost in zip(BLOCKS, costs, strict=True)])
    each, _ = np.polyfit(BLOCKS, [busy for _, busy in costs], 1)
    fixed = costs[0][0] - BLOCKS[0] * each
    model, work = Model(spread.rounds, fixed, each, down + up, [taken for taken, _ in costs]), alone.seconds / 2
    inputs = [
        ("w, ms of work on a block an iteration", f"{1e3 * work:.1f}"),
        ("r, rounds an iteration", f"{model.rounds:.2f}"),
        ("a, ms a round", f"{1e3 * fixed:.1f}"),
        ("c, ms a round and block", f"{1e3 * each:.2f}"),
        ("s, bytes a round to a block", f"{down:.0f}"),
        ("s, bytes a round from a block", f"{up:.0f}"),
        ("beta, MB/s assumed", f"{NETWORK / 1e6:.0f}"),
        ("loopback here, MB/s", f"{speed / 1e6:.0f}"),
    ]
    table(("input of the model", "logistic loss"), inputs)
    modelled = []
    for taller in TALLER:
        for workers in WORKERS:
            over = model.overhead(workers)
            total = [taller * work + rounds for rounds in over]
            gains = [workers * taller * work / seconds for seconds in reversed(total)]
            cells = (f"{1e3 * taller * work:.0f}", _range(1e3 * t for t in over), _range(1e3 * t for t in total))
            modelled.append((workers, f"{taller * given.rows} x {given.columns}", *cells, _range(gains, 1)))
    head = ("workers", "block", "ms of work", "ms of rounds", "ms an iteration", "times as fast as one process")
    table(head, modelled)
    said = _range(1e3 * (work + rounds) for rounds in model.overhead(2))
    print(f"\nOn two workers the model predicts {said} ms an iteration; {1e3 * spread.seconds:.0f} ms were measured.")


def _range(numbers: Iterable[float], digits: int = 0) -> str:
    """Low and high."""
    return " to ".join(f"{number:.{digits}f}" for number in numbers)


if __name__ == "__main__":
    main()
