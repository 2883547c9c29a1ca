"""The paper's appendix example: the geometry gain on the symmetric softmax, measured.

f(x) = alpha log sum_i (e^{x[i]/alpha} + e^{-x[i]/alpha}), alpha = 1.  From x_0 = (1, ..., 1) all coordinates of every
gradient are equal and G = d^{1/2 - 1/p} exactly; from a random start G is what it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._minimize import minimize
from .._plots import COLORS, MARKERS, legend_below
from ..objectives import SymmetricSoftmax
from ..theory import softmax_gain
from .experiment import Experiment, seed, size
from .tables import Rows, Tables, column, group, markdown
from .workers import Workers

METHODS = ("hasd-paper", "hasd")
EXPONENTS = (2.5, 3.0, 4.0, 10.0, math.inf)
AGREEMENT = 1e-9
"""How far, relatively, a measured G may be from the identity: rounding only."""


@dataclass(frozen=True)
class SoftmaxSizes:
    """How much to measure."""

    iterations: int = size(100, "iterations of every run")
    starts: int = size(5, "random starts, N(0, 1) in every coordinate")
    seed: int = seed()
    dimensions: tuple[int, ...] = (10, 100, 1000)


@dataclass(frozen=True)
class SoftmaxRun:
    """One run: start 0 is the vector of ones, the others are random."""

    sizes: SoftmaxSizes
    method: str
    p: float
    d: int
    start: int


def solve(run: SoftmaxRun) -> dict[str, Any]:
    """Measure the mean gain of a run."""
    f = SymmetricSoftmax(b=np.zeros(run.d))
    x0 = (
        np.random.default_rng([run.sizes.seed, run.start, run.d]).standard_normal(run.d)
        if run.start
        else np.ones(run.d)
    )
    res = minimize(f, x0, method=run.method, p=run.p, L=f.smoothness(run.p), tol=1e-12, maxiter=run.sizes.iterations)
    gains = res.trace["gain"][1:]
    return {
        "method": run.method,
        "p": run.p,
        "d": run.d,
        "start": "random" if run.start else "ones",
        "number": run.start,
        "iterations": res.nit,
        "gain": float(np.mean(gains)),
        "smallest": float(np.min(gains)),
        "largest": float(np.max(gains)),
        "limit": softmax_gain(run.d, run.p),
    }


def tables(sizes: SoftmaxSizes, workers: Workers) -> Tables:
    """A row a run."""
    runs = [
        SoftmaxRun(sizes, method, p, d, start)
        for method in METHODS
        for p in EXPONENTS
        for d in sizes.dimensions
        for start in range(sizes.starts + 1)
    ]
    return {"softmax": workers.map(solve, runs, "softmax")}


def deviation(rows: Rows) -> float:
    """The largest relative distance of G from d^{1/2 - 1/p} over the runs from the vector of ones."""
    return max(abs(row["gain"] / row["limit"] - 1.0) for row in rows if row["start"] == "ones")


def draw(figure: Any, tables: Tables) -> None:
    """Measured against predicted, a panel a method."""
    axes = figure.subplots(1, len(METHODS), sharey=True)
    for ax, ((method,), rows) in zip(axes, group(tables["softmax"], "method").items(), strict=True):
        limits = column(rows, "limit")
        ax.plot([1.0, limits.max()], [1.0, limits.max()], color="0.6", linewidth=1.0, label="G = d^(1/2 − 1/p)")
        for k, ((p,), mine) in enumerate(group(rows, "p").items()):
            for start, filled in (("ones", True), ("random", False)):
                chosen = [row for row in mine if row["start"] == start]
                ax.plot(
                    column(chosen, "limit"),
                    column(chosen, "gain"),
                    linestyle="none",
                    marker=MARKERS[k],
                    color=COLORS[k],
                    markersize=6.0 if filled else 4.0,
                    markerfacecolor=COLORS[k] if filled else "none",
                    label=f"p = {p:g}, {'x₀ = (1, …, 1)' if filled else 'random x₀'}",
                )
        ax.set(xscale="log", yscale="log", title=method, xlabel="largest possible gain, d^(1/2 − 1/p)")
    axes[0].set_ylabel("measured mean gain G")
    legend_below(figure, axes[0], 3)


def report(tables: Tables, sizes: SoftmaxSizes) -> str:
    """The identity, and the finding from random starts."""
    rows = tables["softmax"]
    worst = deviation(rows)
    lines = []
    for (method, p, d), mine in group([row for row in rows if row["start"] == "random"], "method", "p", "d").items():
        gains = column(mine, "gain")
        lines.append(
            [method, p, d, mine[0]["limit"], gains.mean(), gains.min(), gains.max(), gains.mean() / mine[0]["limit"]]
        )
    header = ["method", "p", "d", "d^(1/2 − 1/p)", "G, mean", "lowest", "highest", "share of the limit"]
    holds = "holds" if worst <= AGREEMENT else "DOES NOT HOLD"
    return f"""## The softmax example

Symmetric softmax with α = 1, declared L = f.smoothness(p), {sizes.iterations} iterations at most, seed {sizes.seed};
G is the mean of ‖g‖_p*/‖g‖₂ over the run, at x_t+1 for `hasd-paper` and at y_t for `hasd`.

From x₀ = (1, …, 1) the identity G = d^(1/2 − 1/p) {holds} to {AGREEMENT:g}: the largest relative deviation over
{len(METHODS)} methods, p in {", ".join(f"{p:g}" for p in EXPONENTS)} and d in {", ".join(map(str, sizes.dimensions))}
is {worst:.1e}.

From {sizes.starts} random starts, N(0, 1) in every coordinate, G is lower:

{markdown(header, lines)}
"""


EXPERIMENT = Experiment(
    name="softmax",
    summary="the appendix example: measured geometry gain on the symmetric softmax",
    sizes=SoftmaxSizes(),
    quick=SoftmaxSizes(iterations=10, starts=2, dimensions=(5, 20)),
    tables=tables,
    plots={"softmax": ((9.0, 4.8), draw)},
    report=report,
)
