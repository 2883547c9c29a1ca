"""Where our own time goes, and how it grows with the matrix."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import hasd
from benchmarks.extend import extend
from benchmarks.problems import Problem, log_sum_exp

PARTS = ("products", "phi", "images", "rest")
"""Products with A and A^T; evaluations of phi; other passes over cached images; everything else."""
LINEAR = 1.1
"""The power of nnz(A) up to which growth is called linear."""


@dataclass
class Stopwatch:
    """Seconds by part, each without the parts inside it."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    inside: list[str] = field(default_factory=lambda: ["rest"])
    since: float = 0.0

    def _charge(self) -> None:
        now = time.perf_counter()
        self.seconds[self.inside[-1]] += now - self.since
        self.since = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is done in here belongs to that part."""
        self._charge()
        self.inside.append(name)
        try:
            yield
        finally:
            self._charge()
            self.inside.pop()

    @contextmanager
    def running(self) -> Iterator[None]:
        """From here to there, every second belongs to some part."""
        self.since = time.perf_counter()
        yield
        self._charge()


class Timed:
    """Before anything: each of its functions is charged to a part."""

    def __init__(self, inner: Any, watch: Stopwatch, part: str):
        """Wrap it."""
        self._inner, self._watch, self._part = inner, watch, part

    def __getattr__(self, name: str) -> Any:
        """The attribute; where it is a function, timed."""
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self._watch.part(self._part):
                return found(*args, **kwargs)

        return timed


class TimedAffine:
    """Before an Affine: products, phi and images are charged to their parts."""

    watch: Stopwatch

    def forward(self, x: Any) -> Any:
        with self.watch.part("products"):
            return super().forward(x)  # type: ignore[misc]

    def adjoint(self, u: Any) -> Any:
        with self.watch.part("products"):
            return super().adjoint(u)  # type: ignore[misc]

    def sharpen(self, x: Any, at: Any) -> Any:
        with self.watch.part("products"):  # it is one in extended precision, and one with A^T
            return super().sharpen(x, at)  # type: ignore[misc]

    def images(self) -> Any:
        return Timed(super().images(), self.watch, "images")  # type: ignore[misc]


@dataclass(frozen=True)
class Split:
    """Where the seconds of a run went."""

    n: int
    d: int
    method: str
    iterations: int
    seconds: dict[str, float]

    def share(self, part: str) -> float:
        """Of all seconds."""
        return self.seconds[part] / sum(self.seconds.values())

    @property
    def outside(self) -> float:
        """What is neither a product nor a pass over phi."""
        return self.share("images") + self.share("rest")


def split(problem: Problem, iterations: int) -> Split:
    """Run our method for so many iterations with a stopwatch inside."""
    watch = Stopwatch()
    objective: Any = problem.objective
    timed = extend(objective, TimedAffine, watch=watch, loss=Timed(objective.loss, watch, "phi"))
    with watch.running():
        res = hasd.minimize(timed, problem.x0, tol=0.0, maxiter=iterations)
    n, d = problem.matrix.shape
    return Split(n, d, res.method, res.nit, watch.seconds)


@dataclass(frozen=True)
class Growth:
    """A row of the table of growth."""

    n: int
    d: int
    nnz: int
    iterations: int
    seconds: float  # an iteration
    product: float  # seconds of one product with A, alone


def growth(n: int, d: int, iterations: int, repeats: int = 3) -> list[Growth]:
    """The same problem with n, 4n and 16n rows, the least of a few runs."""
    rows = []
    for rows_of_A in (n, 4 * n, 16 * n):
        problem = log_sum_exp(rows_of_A, d, 1e-2, 0)
        A, x = problem.matrix, problem.x0 + 1.0
        runs = [_timed_run(problem, iterations) for _ in range(repeats)]
        product = least_seconds(partial(A.dot, x), 10)
        done = runs[0][1]
        rows.append(Growth(rows_of_A, d, problem.nnz, done, min(run[0] for run in runs) / done, product))
    return rows


def _timed_run(problem: Problem, iterations: int) -> tuple[float, int]:
    res = hasd.minimize(problem.objective, problem.x0, tol=0.0, maxiter=iterations)
    return float(res.trace["seconds"][-1]), res.nit


def least_seconds(function: Callable[[], Any], times: int) -> float:
    """The least of so many runs."""
    least = math.inf
    for _ in range(times):
        began = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - began)
    return least


def exponent(rows: Sequence[Growth], what: str = "seconds") -> float:
    """The power of nnz with which the seconds of an iteration, or of a product, grow from the first row to the last."""
    if len(rows) < 2:
        return math.nan
    first, last = (getattr(row, what) for row in (rows[0], rows[-1]))
    return math.log(last / first) / math.log(rows[-1].nnz / rows[0].nnz)
