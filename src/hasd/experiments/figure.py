"""The paper's figure: GD, AGD, LC and HASD on LogSumExp(Ax - b) + (mu/2)||x||^2, its stepsizes all tried.

sizes -> one run a (family, mu, method, stepsize) -> the best stepsize of each method, by the value after T iterations
and again by the value after T evaluations -> the curves of the tuned runs.

The methods are given L = 1/stepsize and mu = 0: the paper's do not use mu.  The published method asks for two
evaluations an iteration (at y and at x_{t+1}), the others for one; hence the second axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._minimize import minimize
from .experiment import Experiment, seed, size
from .figure_plot import PLOTS
from .figure_report import report
from .problems import is_unbounded, problem
from .reference import Reference, reference
from .style import AXES
from .tables import Rows, Tables, first_index
from .workers import Workers

RIDGES = (0.0, 1e-6, 1e-4, 1e-2)
"""The paper's mu."""
STEPSIZES = (*(float(f"{digit}e{power}") for power in range(-10, 0) for digit in (1, 2, 5)), 1.0)
"""The paper's 31 stepsizes."""
CONTENDERS: dict[str, tuple[float, dict[str, Any]]] = {
    "gradient-descent": (2.0, {}),
    "agd": (2.0, {}),
    "linear-coupling": (math.inf, {}),
    "hasd-paper": (math.inf, {}),
    "hasd": (math.inf, {"raise_L": False}),  # L is only a stepsize here, and need not be true
}
"""The methods with their norm and options; the last one is ours and not in the paper."""


@dataclass(frozen=True)
class FigureSizes:
    """The sizes of the experiment, which the paper does not give."""

    n: int = size(500, "rows of A")
    d: int = size(100, "columns of A")
    iterations: int = size(200, "T: iterations of every run, and the budget on the axis of evaluations")
    seed: int = seed()
    symmetric: bool = size(False, "add the second well-posed twin, the symmetric softmax on [A; -A]")

    stepsizes: tuple[float, ...] = STEPSIZES

    @property
    def families(self) -> tuple[str, ...]:
        """The published problem and its twins."""
        return ("published", "signs", "symmetric") if self.symmetric else ("published", "signs")


@dataclass(frozen=True)
class FigureRun:
    """One run to be made."""

    sizes: FigureSizes
    family: str
    mu: float
    method: str
    stepsize: float


@dataclass(frozen=True)
class MethodCurve:
    """The curve of a run: a point per iteration, from t = 0."""

    run: FigureRun
    nfev: np.ndarray
    fun: np.ndarray
    message: str

    def values_within(self, axis: str) -> np.ndarray:
        """f(x_t) for the iterates that the budget on that axis reaches."""
        return self.fun if axis == "iterations" else self.fun[self.nfev <= self.run.sizes.iterations]


def solve(run: FigureRun) -> MethodCurve:
    """Run a method with a stepsize, from x_0 = 0."""
    f = problem(run.family, run.sizes.n, run.sizes.d, run.sizes.seed, run.mu)
    p, options = CONTENDERS[run.method]
    res = minimize(
        f,
        np.zeros(run.sizes.d),
        method=run.method,
        p=p,
        L=1.0 / run.stepsize,
        mu=0.0,
        tol=0.0,
        maxiter=run.sizes.iterations,
        **options,
    )
    return MethodCurve(run, res.trace["nfev"], res.trace["fun"], res.message)


def optimum(task: tuple[FigureSizes, str, float]) -> Reference | None:
    """The reference optimum; None where the problem is unbounded below."""
    sizes, family, mu = task
    if is_unbounded(family, mu):
        return None
    return reference(partial(problem, family, sizes.n, sizes.d, sizes.seed), mu)


def has_diverged(values: np.ndarray) -> bool:
    """Whether a run diverged: it ends at NaN or infinity, or above its start."""
    return not (math.isfinite(values[-1]) and values[-1] <= values[0])


def tune(curves: list[MethodCurve], axis: str, best: Reference | None) -> MethodCurve:
    """The stepsize with the lowest value at the end of the budget.

    Among those that end at rounding level the first to arrive wins, then the larger stepsize.
    """

    def key(curve: MethodCurve) -> tuple[bool, float, int, float]:
        values = curve.values_within(axis)
        lost = has_diverged(values)
        gaps = values if best is None else best.gap(values)
        arrived = None if best is None else first_index(gaps <= best.floor)
        return lost, math.inf if lost else float(gaps[-1]), arrived or 0, -curve.run.stepsize

    return min(curves, key=key)


def tables(sizes: FigureSizes, workers: Workers) -> Tables:
    """The tuned curves, the tuning and the references."""
    places = [(sizes, family, mu) for family in sizes.families for mu in RIDGES]
    references = workers.map(optimum, places, "figure: reference optima")
    runs = [FigureRun(*place, method, s) for place in places for method in CONTENDERS for s in sizes.stepsizes]
    curves = workers.map(solve, runs, "figure: runs")
    out: Tables = {"figure": [], "figure-tuning": [], "figure-reference": []}
    for k, (place, best) in enumerate(zip(places, references, strict=True)):
        out["figure-reference"] += _reference_rows(place, best)
        for m in range(len(CONTENDERS)):
            first = (k * len(CONTENDERS) + m) * len(sizes.stepsizes)
            mine = curves[first : first + len(sizes.stepsizes)]
            tuned = {axis: tune(mine, axis, best) for axis in AXES}
            out["figure-tuning"] += _tuning_rows(mine, tuned, best)
            for axis, curve in tuned.items():
                out["figure"] += _curve_rows(curve, axis, best)
    return out


def _reference_rows(place: tuple[FigureSizes, str, float], best: Reference | None) -> Rows:
    _, family, mu = place
    if best is None:
        return []
    return [
        {
            "family": family,
            "mu": mu,
            "fun": best.fun,
            "radius": float(np.linalg.norm(best.x)),
            "grad_norm": best.grad_norm,
            "certificate": best.certificate,
            "decrement": best.decrement,
            "floor": best.floor,
            "newton_steps": best.steps,
        }
    ]


def _tuning_rows(curves: list[MethodCurve], tuned: dict[str, MethodCurve], best: Reference | None) -> Rows:
    rows = []
    for curve in curves:
        row = {**_head(curve), "iterations": len(curve.fun) - 1, "evaluations": int(curve.nfev[-1])}
        for axis in AXES:
            values = curve.values_within(axis)
            row[f"fun_{axis}"] = values[-1]
            row[f"gap_{axis}"] = math.nan if best is None else best.gap(values[-1:])[0]
            row[f"diverged_{axis}"] = int(has_diverged(values))
            row[f"chosen_{axis}"] = int(curve is tuned[axis])
        rows.append({**row, "message": curve.message})
    return rows


def _curve_rows(curve: MethodCurve, axis: str, best: Reference | None) -> Rows:
    values = curve.values_within(axis)
    gaps = np.full(len(values), math.nan) if best is None else best.gap(values)
    head = {**_head(curve), "tuned_on": axis}
    return [
        {**head, "iteration": t, "nfev": int(curve.nfev[t]), "fun": values[t], "gap": gaps[t]}
        for t in range(len(values))
    ]


def _head(curve: MethodCurve) -> dict[str, Any]:
    run = curve.run
    return {"family": run.family, "mu": run.mu, "method": run.method, "stepsize": run.stepsize}


EXPERIMENT = Experiment(
    name="figure",
    summary="the paper's figure: tuned GD, AGD, LC and HASD on LogSumExp, with well-posed twins",
    sizes=FigureSizes(),
    quick=FigureSizes(n=40, d=6, iterations=12, stepsizes=STEPSIZES[::3]),
    tables=tables,
    plots=PLOTS,
    report=report,
)
