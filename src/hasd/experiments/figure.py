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
from itertools import islice, product
from typing import Any

import numpy as np

from .._minimize import iterate
from .._plots import legend_below
from ..objectives import Affine
from .experiment import Experiment, exponent, size, sweep
from .families import is_unbounded, problem
from .figure_report import left_out_lines, report
from .reference import Reference, reference
from .style import AXES, METHODS, NORMED
from .tables import Row, Rows, Tables, column, first_index, group, select
from .workers import Workers

RIDGES = (0.0, 1e-6, 1e-4, 1e-2)
"""The paper's mu."""
STEPSIZES = (*(float(f"{digit}e{power}") for power in range(-10, 0) for digit in (1, 2, 5)), 1.0)
"""The paper's 31 stepsizes."""
TITLES = {"published": "as published", "signs": "A with random signs", "symmetric": "symmetric softmax"}


@dataclass(frozen=True)
class FigureSizes:
    """The sizes of the experiment, which the paper does not give."""

    n: int = size(500, "rows of A")
    d: int = size(100, "columns of A")
    p: float = exponent(math.inf, "exponent of the norm of LC and HASD, from 2 to inf")
    iterations: int = size(200, "T: iterations of every run, and the budget on the axis of evaluations")
    seed: int = 0
    symmetric: bool = size(False, "add the second well-posed twin, the symmetric softmax on [A; -A]")

    stepsizes: tuple[float, ...] = STEPSIZES

    @property
    def families(self) -> tuple[str, ...]:
        """The published problem and its twins."""
        return ("published", "signs", "symmetric") if self.symmetric else ("published", "signs")


@dataclass(frozen=True)
class MethodCurve:
    """The curve of a run: a point per iteration, from t = 0."""

    stepsize: float
    nfev: np.ndarray
    fun: np.ndarray  # f(x_t), also where the method itself does not evaluate it
    budget: int  # evaluations on their axis

    def values_within(self, axis: str) -> np.ndarray:
        """f(x_t) for the iterates that the budget on that axis reaches."""
        return self.fun if axis == "iterations" else self.fun[self.nfev <= self.budget]


def norm_of(method: str, p: float) -> float:
    """The exponent of the norm that a method steps in; GD and AGD are in l_2."""
    return p if method in NORMED else 2.0


def run(f: Affine, method: str, stepsize: float, T: int, p: float = math.inf) -> MethodCurve:
    """Run a method with a stepsize, from x_0 = 0, in its own norm; p is that of LC and HASD."""
    options: dict[str, Any] = {"method": method, "p": norm_of(method, p), "L": 1.0 / stepsize, "mu": 0.0}
    if method == "hasd":
        options["raise_L"] = False  # L is only a stepsize here, and need not be true
    states = islice(iterate(f, np.zeros(f.dimension), **options), T + 1)
    nfev, fun = np.transpose([(state.nfev, state.fun) for state in states])
    return MethodCurve(stepsize, nfev.astype(int), fun, T)


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
        return lost, math.inf if lost else float(gaps[-1]), arrived or 0, -curve.stepsize

    return min(curves, key=key)


def gaps_to(best: Reference | None, values: np.ndarray) -> np.ndarray:
    """f(x_t) - f*; NaN where there is no optimum."""
    return np.full(len(values), math.nan) if best is None else best.gap(values)


def ending(curve: MethodCurve, axis: str, chosen: bool, best: Reference | None) -> Row:
    """How a run ends on an axis."""
    values = curve.values_within(axis)
    row = {"fun": values[-1], "gap": gaps_to(best, values)[-1], "diverged": int(has_diverged(values))}
    return {f"{name}_{axis}": value for name, value in {**row, "chosen": int(chosen)}.items()}


def points(curve: MethodCurve, axis: str, best: Reference | None) -> Rows:
    """The iterates of a tuned run that the budget on that axis reaches."""
    values = curve.values_within(axis)
    return [
        {"stepsize": curve.stepsize, "tuned_on": axis, "iteration": t, "nfev": curve.nfev[t], "fun": fun, "gap": gap}
        for t, (fun, gap) in enumerate(zip(values, gaps_to(best, values), strict=True))
    ]


def solve(
    sizes: FigureSizes, optima: dict[tuple[str, float], Reference | None], family: str, mu: float, method: str
) -> Tables:
    """Run a method with every stepsize: how each run ends, and the curves of the best."""
    f, best = problem(family, sizes.n, sizes.d, sizes.seed, mu), optima[family, mu]
    curves = [run(f, method, stepsize, sizes.iterations, sizes.p) for stepsize in sizes.stepsizes]
    norm = {"p": norm_of(method, sizes.p)}
    tuned = {axis: tune(curves, axis, best) for axis in AXES}
    tuning = []
    for curve in curves:
        row = {"stepsize": curve.stepsize, "iterations": len(curve.fun) - 1, "evaluations": curve.nfev[-1]}
        for axis, chosen in tuned.items():
            row |= ending(curve, axis, curve is chosen, best)
        tuning.append(row)
    iterates = [{**norm, **row} for axis in AXES for row in points(tuned[axis], axis, best)]
    return {"figure": iterates, "figure-tuning": tuning}


def optimum(sizes: FigureSizes, place: tuple[str, float]) -> Reference | None:
    """The reference optimum; None where the problem is unbounded below, and where a twin has no minimiser."""
    family, mu = place
    if is_unbounded(family, mu):
        return None
    try:
        return reference(partial(problem, family, sizes.n, sizes.d, sizes.seed), mu)
    except ValueError:
        if family == "published" or mu > 0.0:  # a minimiser exists there
            raise
        return None


def tables(sizes: FigureSizes, workers: Workers) -> Tables:
    """The tuned curves, the tuning and the references."""
    places = list(product(sizes.families, RIDGES))
    optima = dict(zip(places, workers.map(partial(optimum, sizes), places, "figure: reference optima"), strict=True))
    measure = partial(solve, sizes, optima)
    families = [family for family in sizes.families if family == "published" or optima[family, 0.0] is not None]
    out = sweep(workers, "figure: runs", measure, family=families, mu=RIDGES, method=METHODS)
    names = ("mu", "fun", "radius", "grad_norm", "certificate", "decrement", "floor", "newton_steps")
    known = [(family, best) for (family, _), best in optima.items() if family in families and best is not None]
    rows = [{"family": family, **{name: getattr(best, name) for name in names}} for family, best in known]
    return {**out, "figure-reference": rows}


def draw(figure: Any, tables: Tables, axis: str, label: str) -> None:
    """All panels of one axis: a row a family, a column a mu."""
    panels = group(select(tables["figure"], tuned_on=axis), "family", "mu")
    families = len(panels) // len(RIDGES)
    figure.set_size_inches(12.0, 0.8 + 2.7 * families)
    axes = figure.subplots(families, len(RIDGES), squeeze=False)
    for ax, ((family, mu), rows) in zip(axes.flat, panels.items(), strict=True):
        _panel(ax, rows, family, mu, AXES[axis])
    for ax in axes[-1]:
        ax.set_xlabel(label)
    title = "Each method with the stepsize of the paper's list that is best for it at the right edge"
    figure.suptitle(f"{title} ({label})")
    legend_below(figure, axes[0, 0], len(METHODS))


def _panel(ax: Any, rows: Rows, family: str, mu: float, counter: str) -> None:
    """One (family, mu): gaps on a log axis, or where there is no optimum the values themselves."""
    title = f"{TITLES[family]}, μ = {mu:g}"
    name, label = ("fun", "f(x)") if is_unbounded(family, mu) else ("gap", "f(x) − f*")
    for (method,), mine in group(rows, "method").items():
        ax.plot(column(mine, counter), column(mine, name), **METHODS[method].keywords(mine[0]["p"]))
    if mu == RIDGES[0]:
        ax.set_ylabel(label)
    values = column(rows, name)
    if name == "fun":
        ax.set_title(f"{title}\nunbounded below: values, not gaps", color="#A00000")
        _values_scale(ax, values)
    else:
        ylim = min(0.5 * values.min(), 0.1 * values.max()), 2.0 * values.max()  # a decade at least: labelled ticks
        ax.set(title=title, yscale="log", ylim=ylim)


def _values_scale(ax: Any, values: np.ndarray) -> None:
    """Signed values over many decades: linear near the start's size, logarithmic beyond, few ticks."""
    start = max(float(values[0]), 1.0)
    ax.set_yscale("symlog", linthresh=start)
    lowest = int(np.floor(np.log10(max(-float(values.min()), 10.0 * start))))
    stride = max(1, lowest // 4)
    ax.set_yticks([0.0, *(-(10.0**k) for k in range(lowest, 0, -stride))])
    ax.minorticks_off()


EXPERIMENT = Experiment(
    name="figure",
    summary="the paper's figure: tuned GD, AGD, LC and HASD on LogSumExp, with well-posed twins",
    sizes=FigureSizes(),
    quick=FigureSizes(n=40, d=6, iterations=12, stepsizes=STEPSIZES[::3]),
    tables=tables,
    plots={
        "figure": ((12.0, 6.2), partial(draw, axis="iterations", label="iterations")),
        "figure-evaluations": ((12.0, 6.2), partial(draw, axis="evaluations", label="gradient evaluations")),
    },
    report=report,
    remarks=left_out_lines,
)
