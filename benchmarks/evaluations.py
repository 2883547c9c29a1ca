"""Evaluations that black-box methods need to reach relative gaps, on problems whose optimum another solver finds.

``python -m benchmarks.evaluations`` for this tree.  ``--source other/src --save old.json`` measures the package there;
``--against old.json`` then prints how many times fewer evaluations this tree needs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
BUDGET = 2400
"""Evaluations of a run; a target that it does not reach counts as so many."""
GRAPH = "l_inf potentials, graph of 2000 nodes"
WORSE = 1.2
"""A problem that takes so many times as many evaluations as before is named."""
LAST_TARGET = {GRAPH: 1e-3}
"""Where the comparison ends before 1e-6: below that, no method reaches it within the budget."""


class Case(NamedTuple):
    """A problem with its optimum."""

    name: str
    fun: Callable[[np.ndarray], tuple[float, np.ndarray]]
    x0: np.ndarray
    least: float


def six_cases(seed: int) -> Iterator[Case]:
    """Six problems of different kinds."""
    from benchmarks import problems
    from hasd.objectives import LogSumExp, SymmetricSoftmax

    rng = np.random.default_rng([seed, 6])
    A = rng.choice([-1.0, 1.0], (500, 100)) * (rng.random((500, 100)) < 0.8)
    lse = LogSumExp(A, rng.standard_normal(500))
    A, b = rng.standard_normal((2000, 100)), rng.standard_normal(2000)

    def ladder(make: Callable[[float], Any], last: float) -> Callable[[], Iterator[tuple[Any, float]]]:
        return lambda: ((make(last * 2.0**k), 1.0) for k in range(10, -1, -1))

    def potentials(alpha: float) -> Any:
        return SymmetricSoftmax(*graph(2000, seed), alpha=alpha)

    def dense(alpha: float) -> Any:
        return SymmetricSoftmax(A, b, alpha=alpha)

    made = {
        "LogSumExp 500x100, random signs": problems.Problem(lse, lambda: problems.alone(lse)),
        "smoothed l_inf 2000x100, alpha 0.02": problems.Problem(dense(0.02), ladder(dense, 0.02)),
        "transport dual 200x200, reg 0.01": problems.transport(200, 0.01, seed),
        "transport dual 200x200, reg 0.002": problems.transport(200, 0.002, seed),
        GRAPH: problems.Problem(potentials(0.01), ladder(potentials, 0.01)),
        "logistic, digits 8 against the rest": problems.logistic(*digits(), 1e-4),
    }
    for name, problem in made.items():
        yield _with_reference(name, problem)


def bench_cases(seed: int) -> Iterator[Case]:
    """The problems of ``make bench --quick``, as black boxes."""
    from benchmarks import problems

    for spec in problems.specs():
        if spec.quick:
            yield _with_reference(spec.name, spec.make(seed))


def cutest_cases(seed: int) -> Iterator[Case]:
    """The convex problems of CUTEst, which have no seed."""
    from benchmarks import cutest

    for entry in cutest.CONVEX if seed == 0 else ():
        problem = cutest.load(entry)
        yield Case(entry.name, problem.fun, problem.x0, problem.optimum)


SETS = {"six": six_cases, "bench": bench_cases, "cutest": cutest_cases}


def _with_reference(name: str, problem: Any) -> Case:
    """The problem with the optimum that Newton's method finds."""
    from benchmarks.reference import find

    return Case(name, problem.objective.value_and_grad, problem.x0, find(problem).fun)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's digits with pixels from 0 to 1: eights against the rest."""
    from sklearn.datasets import load_digits

    A, digit = load_digits(return_X_y=True)
    return A / 16.0, np.where(digit == 8, 1.0, -1.0)


def graph(nodes: int, seed: int, degree: int = 3) -> tuple[Any, np.ndarray]:
    """A random graph with `degree` edges drawn a node, as rows x_i - x_j, and a normal b."""
    rng = np.random.default_rng([seed, nodes])
    tail = np.repeat(np.arange(nodes), degree)
    head = (tail + rng.integers(1, nodes, tail.size)) % nodes
    rows = np.arange(tail.size)
    signs = np.concatenate((np.ones(tail.size), -np.ones(tail.size)))
    A = scipy.sparse.csr_matrix((signs, (np.tile(rows, 2), np.concatenate((tail, head)))), shape=(tail.size, nodes))
    return A, rng.standard_normal(tail.size)


class Counter:
    """The function as a black box: value and gradient in one call, every call counted, the best value noted."""

    def __init__(self, case: Case, targets: Sequence[float]):
        """Nothing is evaluated yet."""
        self.case, self.calls, self.iterations = case, 0, 0
        start = case.fun(case.x0)[0]
        self.left = [case.least + gap * (start - case.least) for gap in targets]
        self.counts: list[int] = []

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """One evaluation; ends the run where nothing is left to reach, or the budget is spent."""
        if not self.left or self.calls == BUDGET:
            raise StopIteration
        self.calls += 1
        f, g = self.case.fun(np.asarray(x))
        while self.left and f <= self.left[0]:
            self.left.pop(0)
            self.counts.append(self.calls)
        return f, g


Solver = Callable[[Counter], Any]


def solvers(hasd: Any) -> dict[str, Solver]:
    """The methods that are compared."""

    def ours(method: str, p: float | None) -> Solver:
        def solve(f: Counter) -> Any:
            def count(x: np.ndarray) -> None:
                f.iterations += 1

            settings = {"tol": 0.0, "maxiter": BUDGET, "trace": False, "callback": count}
            return hasd.minimize(f, f.case.x0, jac=True, method=method, p=p, **settings)

        return solve

    def peer(f: Counter) -> Any:
        settings = {"maxfun": BUDGET, "maxiter": BUDGET, "ftol": 0.0, "gtol": 0.0, "maxcor": 10}
        return scipy.optimize.minimize(f, f.case.x0, jac=True, method="L-BFGS-B", options=settings)

    return {
        "L-BFGS-B": peer,
        "hasd p=2": ours("hasd", 2.0),
        "hasd p=inf": ours("hasd", math.inf),
        "hasd-qn": ours("hasd-qn", None),
    }


def measure(hasd: Any, cases: Iterator[Case], seed: int, only: str) -> dict[str, dict[str, list[int]]]:
    """Evaluations to each target, by problem and solver; the budget where it is not reached."""
    table: dict[str, dict[str, list[int]]] = {}
    for case in cases:
        if only not in case.name:
            continue
        table[case.name] = {}
        print(f"{case.name}, seed {seed}")
        for name, solve in solvers(hasd).items():
            counter = Counter(case, TARGETS)
            with suppress(StopIteration):
                solve(counter)
            counts = counter.counts + [BUDGET] * (len(TARGETS) - len(counter.counts))
            table[case.name][name] = counts
            each = f"   {counter.calls / counter.iterations:.2f} an iteration" if counter.iterations else ""
            print(f"  {name:12}" + "".join(f"{c:>7}" if c < BUDGET else f"{'-':>7}" for c in counts) + each, flush=True)
    return table


def print_weights(hasd: Any, seed: int) -> None:
    """Print how the weights of `hasd` with a declared L compare with p* (sum of min(s, r^2/s))^2/(4 L)."""
    for case in list(six_cases(seed))[:4]:
        for p in (2.0, 3.0, math.inf):
            L = float(case.fun.__self__.smoothness(p))  # type: ignore[attr-defined]
            states = list(islice(hasd.iterate(case.fun.__self__, case.x0, method="hasd", p=p, L=L, mu=0.0), 201))
            total = 0.0
            for state in states[:-1]:
                gain = _gain(hasd, state.at, p)
                guess = 1.0 / math.sqrt(state.rho) if state.weight else gain
                total += hasd.theory.optimised_step(guess, gain)
            T = len(states) - 1
            ratio = states[-1].weight / hasd.theory.optimised_weight_bound(L, p, total / T, T)
            print(f"{case.name}, p = {p:g}, L declared: A_T is {ratio:.2f} times its bound after {T} iterations")


def _gain(hasd: Any, e: Any, p: float) -> float:
    """The gain of the gradient at an evaluation, at least 1."""
    return max(1.0, hasd.Lp(p).dual_norm(e.g) / float(np.linalg.norm(e.g)))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(float(np.mean(np.log(ratios))))


def compare(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Print how many times fewer evaluations the new table has than the old, and where it has more."""
    for solver in ("hasd p=2", "hasd p=inf"):
        ratios = []
        for key, row in new.items():
            last = LAST_TARGET.get(key.split(" | ")[0], TARGETS[-1])
            both = zip(old[key][solver], row[solver], TARGETS, strict=True)
            here = [before / now for before, now, target in both if target >= last]
            ratios += here
            if here[-1] < 1.0 / WORSE:
                print(f"{solver}: {1.0 / here[-1]:.2f} times as many to {last:g} on {key}")
        mean = geometric_mean(ratios)
        print(f"{solver}: {mean:.2f} times fewer evaluations in geometric mean, least {min(ratios):.2f}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the counts."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.evaluations", description=(__doc__ or "").split("\n")[0]
    )
    options.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src", help="the folder above hasd")
    options.add_argument("--set", choices=SETS, default="six", help="which problems")
    options.add_argument("--seeds", type=int, default=3, help="instances of each problem")
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument(
        "--weights", action="store_true", help="only compare the weights of runs with L with their bound"
    )
    options.add_argument("--only", default="", help="problems whose name contains this")
    options.add_argument("--save", type=Path, help="write the counts to this file")
    options.add_argument("--against", type=Path, help="counts of another version")
    given = options.parse_args(argv)
    sys.path.insert(0, str(given.source.resolve()))
    import hasd

    if given.weights:
        print_weights(hasd, given.first)
        return 0
    print(f"evaluations to relative gaps {' '.join(f'{t:g}' for t in TARGETS)}, L found, at most {BUDGET}")
    table: dict[str, Any] = {}
    for seed in range(given.first, given.first + given.seeds):
        rows = measure(hasd, SETS[given.set](seed), seed, given.only)
        table |= {f"{name} | {seed}": row for name, row in rows.items()}
    for solver in table[next(iter(table))]:
        counts = [c for row in table.values() for c in row[solver]]
        print(f"{solver:12} geometric mean {geometric_mean(counts):.1f}")
    if given.save:
        given.save.write_text(json.dumps(table, indent=1))
    if given.against:
        compare(table, json.loads(given.against.read_text()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
