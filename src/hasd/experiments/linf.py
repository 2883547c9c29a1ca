"""The l_inf regression min ||Ax - b||_inf over the box [-1, 1]^d: area convexity, HASD, the exchange and HiGHS.

dense    A_ij ~ N(0, 1)
sparse   three entries N(0, 1) in every row, in a random column of each third

b = A x + noise, with x uniform in the box and noise N(0, 1), divided by the power of two that brings the largest entry
of the minimiser without a box into [1/2, 1).  So the minimum is the same with and without the box, and all solve one
problem: `hasd.chebyshev` finds the minimiser and proves that no other x, in the box or not, is better.

Cost is counted in products with A, |A| and their transposes.  Every gap is that of a point in the box and of a lower
bound from the same run, both true for the numbers that A and b are, rounding counted: of the mean of points and of
multipliers for area convexity, of an evaluated point and the mean multipliers of the cuts for HASD, of the dual
solution for HiGHS, and of its own certificate for `hasd.chebyshev`.  The products of the means follow from those of
their terms, which have been counted; they are made anew, so that their rounding can be bounded, and not counted again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from .. import theory
from .._minimize import iterate
from .._run.record import State
from ..objectives import SymmetricSoftmax
from ..problems import chebyshev
from ..problems._matrices import power_of_two
from .box_duality import lower_value, upper_value
from .dual_extrapolation import Saddle, iterates
from .experiment import Experiment, size, sweep
from .linf_report import draw, report
from .tables import Row, Rows, Tables
from .workers import Workers

FAMILIES = ("dense", "sparse")
NONZEROS = 3
"""Entries in a row of a sparse A."""
SMALLER = {"alpha": 0.5, "kappa": 0.3, "error": math.inf}
"""Constants of area convexity that no theorem allows, and one round for each minimum."""
FIRST, LATER = 0.1, 0.25
"""HASD's smoothing: the first alpha ln 2n, as a part of the value at 0; the factor from one stage to the next."""
PACE = 1.1
"""By how much the products grow from one row of a curve to the next."""
ENOUGH = 1e-9
"""A run ends at this gap, as a part of its value."""


CLOSE = 1e-6
"""How close to the minimum the point must be that is known to be in the box, as a part of its value."""


@dataclass(frozen=True)
class LinfSizes:
    """How much to measure."""

    n: int = size(2000, "rows of A")
    d: int = size(200, "columns of A")
    products: int = size(30000, "products after which a run ends")
    seconds: bool = size(False, "also write the seconds that each run took, which no rerun repeats")
    seed: int = 0


class BoxProblem(NamedTuple):
    """A problem whose minimiser is inside the box."""

    A: Any
    b: np.ndarray
    minimum: float  # as `chebyshev` found it


def sparse_rows(n: int, d: int, rng: np.random.Generator) -> Any:
    """A with an entry N(0, 1) in each third of every row (in each column where there are fewer than three)."""
    ends = np.linspace(0, d, min(NONZEROS, d) + 1).astype(int)
    columns = rng.integers(ends[:-1], ends[1:], (n, ends.size - 1))
    starts = np.arange(0, columns.size + 1, ends.size - 1)
    return scipy.sparse.csr_array((rng.standard_normal(columns.size), columns.ravel(), starts), shape=(n, d))


def instance(sizes: LinfSizes, family: str) -> BoxProblem:
    """A, b and the minimum; it is checked that a minimiser is inside the box."""
    n, d, seed = sizes.n, sizes.d, sizes.seed
    if n <= d:
        raise ValueError(f"--n must be above --d, or Ax = b has a solution; got n = {n} and d = {d}")
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    A = rng.standard_normal((n, d)) if family == "dense" else sparse_rows(n, d, rng)
    b = A @ rng.uniform(-1.0, 1.0, d) + rng.standard_normal(n)
    res = chebyshev(A, b)
    scale = float(1.0 / power_of_two(np.abs(res.x).max()))  # a power of two: nothing is rounded
    if not (res.lower > 0.0 and res.gap <= CLOSE * res.fun and scale * np.abs(res.x).max() <= 1.0):
        raise ValueError(f"no minimiser in the box is known for {family} A with n = {n}, d = {d}, seed {seed}")
    return BoxProblem(A, scale * b, scale * float(res.fun))


@dataclass
class Bracket:
    """The best value and the best lower bound of a run, and the rows of its curve."""

    problem: BoxProblem
    most: int  # products
    upper: float = math.inf
    lower: float = 0.0
    rows: Rows = field(default_factory=list)
    due: float = 0.0  # the products at which the next row is written

    @property
    def gap(self) -> float:
        """What the best value may be above the minimum."""
        return self.upper - self.lower

    @property
    def is_over(self) -> bool:
        """Whether the gap is closed, or the products are spent."""
        spent = self.rows[-1]["products"] if self.rows else 0
        return self.lower >= (1.0 - ENOUGH) * self.upper or spent >= self.most

    def see(self, products: float, iteration: int, x: np.ndarray, lower: float, bound: float = math.nan) -> None:
        """Take a point and a lower bound into account, and write a row; a point outside the box does not count."""
        if np.abs(x).max() <= 1.0:
            self.upper = min(self.upper, upper_value(self.problem.A, self.problem.b, x))
        self.lower = max(self.lower, lower)
        share = self.gap / self.problem.minimum
        row = {"products": products, "iteration": iteration, "upper": self.upper, "lower": self.lower, "share": share}
        self.rows.append({**row, "bound": bound / self.problem.minimum})
        self.due = min(PACE * products, self.most)


def follow_area(bracket: Bracket, constants: Mapping[str, float] = MappingProxyType({})) -> None:
    """Dual extrapolation; with the proven constants, the rows have its bound."""
    A, b, _ = bracket.problem
    saddle = Saddle(A, b, **constants)
    for state in iterates(saddle):
        if state.products >= bracket.due:
            bound = math.nan
            if not constants:
                bound = theory.area_convexity_bound(saddle.N, len(b), state.iteration, error=state.error)
            bracket.see(state.products, state.iteration, state.x, lower_value(A, b, state.u), bound)
        if bracket.is_over:
            return


class RecordedSoftmax:
    """The smoothed problem as a function that remembers the multipliers of its last evaluations."""

    def __init__(self, problem: BoxProblem, alpha: float) -> None:
        """Nothing is evaluated yet."""
        self.f = SymmetricSoftmax(problem.A, problem.b, alpha=alpha)
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; two products."""
        value, u = self.f.loss.value_and_slope(self.f.image(x))
        self.seen = [*self.seen[-7:], (x.copy(), u)]
        return value, self.f.adjoint(u)

    def multipliers(self, x: np.ndarray) -> np.ndarray | None:
        """Those of the evaluation at x, if it was one of the last."""
        return next((u for point, u in reversed(self.seen) if np.array_equal(point, x)), None)


def stage(function: RecordedSoftmax, x: np.ndarray) -> Iterator[tuple[State, np.ndarray]]:
    """HASD's states at one smoothing, with the multipliers of its cuts in the mean that its weights make.

    Any mean of multipliers is one, so the few that are missing, and weights that change, do no harm.
    """
    mean, weight = None, 0.0
    for state in iterate(function, x, jac=True, method="hasd", p=math.inf):
        u = function.multipliers((getattr(state, "cut", None) or state.at).x)
        if u is not None:
            begins = mean is None or weight == 0.0 or state.weight <= weight
            mean = u if begins else mean + (u - mean) * ((state.weight - weight) / state.weight)
            weight = state.weight
        if mean is not None:
            yield state, mean


def follow_hasd(bracket: Bracket) -> None:
    """HASD in l_inf with less and less smoothing; a stage ends where the gap is what its smoothing may account for.

    The last stage is the first whose smoothing is no obstacle to the gap at which runs end.
    """
    A, b, minimum = bracket.problem
    best, x, spent, iterations = math.inf, np.zeros(A.shape[1]), 0, 0
    error = FIRST * float(np.abs(b).max())
    while not bracket.is_over and error > LATER**2 * ENOUGH * minimum:
        function = RecordedSoftmax(bracket.problem, error / math.log(2 * len(b)))
        for state, u in stage(function, x):
            products = spent + function.f.nprod
            if products >= bracket.due:
                bracket.see(products, iterations + state.iteration, state.at.x, lower_value(A, b, u))
                if bracket.upper < best:
                    best, x = bracket.upper, state.at.x
                if bracket.is_over or bracket.gap <= error:
                    break
        spent, iterations, error = products, iterations + state.iteration, LATER * error


def follow_exchange(bracket: Bracket) -> None:
    """`hasd.chebyshev`, with two products for each iteration on the smoothed problem; linear programs are none."""
    A, b, _ = bracket.problem
    res = chebyshev(A, b)
    bracket.see(res.nprod + 2 * res.nit, res.nlp, res.x, res.lower)


def follow_program(bracket: Bracket) -> None:
    """The linear program in HiGHS: min t, |Ax - b| <= t, x in the box.  It has no products."""
    A, b, _ = bracket.problem
    n, d = A.shape
    stack = scipy.sparse.vstack if scipy.sparse.issparse(A) else np.vstack
    below = np.full((2 * n, 1), -1.0)
    rows = stack((A, -A))
    rows = scipy.sparse.hstack((rows, below), format="csr") if scipy.sparse.issparse(A) else np.hstack((rows, below))
    bounds = [(-1.0, 1.0)] * d + [(0.0, None)]
    res = linprog(np.eye(d + 1)[d], A_ub=rows, b_ub=np.concatenate((b, -b)), bounds=bounds, method="highs")
    if not res.success:
        raise ValueError(f"HiGHS did not solve the linear program: {res.message}")
    u = res.ineqlin.marginals[n:] - res.ineqlin.marginals[:n]
    bracket.see(math.nan, res.nit, np.clip(res.x[:d], -1.0, 1.0), lower_value(A, b, u))


RUNS: dict[str, Callable[[Bracket], None]] = {
    "area-proven": follow_area,
    "area-smaller": partial(follow_area, constants=SMALLER),
    "hasd": follow_hasd,
    "chebyshev": follow_exchange,
    "highs": follow_program,
}
"""What is compared, by the names in the tables."""


def solve(sizes: LinfSizes, problems: Mapping[str, BoxProblem], family: str, method: str) -> Tables:
    """One run: its curve, and how it ended."""
    bracket = Bracket(problems[family], sizes.products)
    began = time.perf_counter()
    RUNS[method](bracket)
    taken = {"seconds": time.perf_counter() - began} if sizes.seconds else {}
    last = bracket.rows[-1]
    end: Row = {"minimum": bracket.problem.minimum, **{name: last[name] for name in last if name != "bound"}}
    return {"linf": bracket.rows, "linf-ends": [end | taken]}


def tables(sizes: LinfSizes, workers: Workers) -> Tables:
    """The curves and the ends of all runs."""
    made = workers.map(partial(instance, sizes), FAMILIES, "linf: data")
    problems = dict(zip(FAMILIES, made, strict=True))
    return sweep(workers, "linf: runs", partial(solve, sizes, problems), family=FAMILIES, method=RUNS)


EXPERIMENT = Experiment(
    name="linf",
    summary="l_inf regression over the box: area convexity, HASD, the exchange and HiGHS, all with certified gaps",
    sizes=LinfSizes(),
    quick=LinfSizes(n=60, d=6, products=600),
    tables=tables,
    plots={"linf": ((10.0, 5.4), draw)},
    report=report,
)
