"""scikit-learn's LogisticRegression: it cannot be watched, so it is run at several tolerances and its answers judged.

C = 1/(n mu) and no intercept make its problem ours, but for a factor.  Its products are not counted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from benchmarks.oracle import History
from benchmarks.problems import Problem
from benchmarks.solvers import Run, Solver
from hasd.objectives import Logistic

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10)
DENSE = 2000
"""newton-cholesky writes out the Hessian: only up to this dimension."""
UNCOUNTED = -1
"""In place of a count."""


def sklearn_solver(solver: str, problem: Problem, goal: float, cap: float) -> Run:
    """A history with one entry a tolerance, the seconds being those of that run alone, tightening until the goal."""
    from sklearn.linear_model import LogisticRegression

    f = problem.objective.with_own_counter()
    assert isinstance(f, Logistic)
    y = f.loss.y  # type: ignore[attr-defined]
    history, started, capped = History(), time.perf_counter(), False
    for tol in TOLERANCES:
        model = LogisticRegression(
            C=1.0 / (len(y) * f.ridge), solver=solver, tol=tol, max_iter=10**6, fit_intercept=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            model.fit(f.A, y)
            seconds = time.perf_counter() - began
        history.add(f(model.coef_.ravel()), UNCOUNTED, seconds)
        capped = time.perf_counter() - started > cap
        if capped or history.values[-1] <= goal:
            break
    return Run(history, capped)


def sklearn_solvers(problem: Problem) -> Iterator[tuple[str, Solver]]:
    """Those that can be run on the problem; none where scikit-learn is missing."""
    f = problem.objective
    if not isinstance(f, Logistic) or problem.black_box or f.ridge == 0.0 or find_spec("sklearn") is None:
        return
    for solver in ("lbfgs", "newton-cg", "liblinear", "newton-cholesky"):
        if solver != "newton-cholesky" or problem.x0.size <= DENSE:
            yield f"sklearn {solver}", partial(sklearn_solver, solver)
