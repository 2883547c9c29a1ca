"""The paper's appendix example: the geometry gain on the symmetric softmax, measured.

f(x) = alpha log sum_i (e^{x[i]/alpha} + e^{-x[i]/alpha}), alpha = 1.  From x_0 = (1, ..., 1) all coordinates of every
gradient are equal and G = d^{1/2 - 1/p} exactly; from a random start G is what it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._minimize import minimize
from .._plots import legend_below
from ..objectives import SymmetricSoftmax
from ..theory import softmax_gain
from .experiment import Experiment, decades, exponent, size, sweep
from .style import mark
from .tables import Rows, Tables, column, group, markdown, section, select
from .workers import Workers

METHODS = ("hasd-paper", "hasd")
EXPONENTS = (2.5, 3.0, 4.0, 10.0, math.inf)
AGREEMENT = 1e-9
"""How far, relatively, a measured G may be from the identity: rounding only."""


@dataclass(frozen=True)
class SoftmaxSizes:
    """How much to measure."""

    d: int = size(1000, "the largest d; the others are 10, 100, ... below it")
    p: float | None = exponent(None, f"one exponent instead of {', '.join(f'{p:g}' for p in EXPONENTS)}")
    iterations: int = size(100, "iterations of every run")
    starts: int = size(5, "random starts, N(0, 1) in every coordinate")
    seed: int = 0

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Every d."""
        return decades(10, self.d)

    @property
    def exponents(self) -> tuple[float, ...]:
        """Every p."""
        return EXPONENTS if self.p is None else (self.p,)


def solve(sizes: SoftmaxSizes, method: str, p: float, d: int) -> Tables:
    """Measure the mean gain from every start: number 0 is the vector of ones, the others are random."""
    f = SymmetricSoftmax(b=np.zeros(d))
    rows = []
    for number in range(sizes.starts + 1):
        x0 = np.random.default_rng([sizes.seed, number, d]).standard_normal(d) if number else np.ones(d)
        res = minimize(f, x0, method=method, p=p, L=f.smoothness(p), tol=1e-12, maxiter=sizes.iterations)
        gains = res.trace["gain"][1:]
        row = {"start": "random" if number else "ones", "number": number, "iterations": res.nit}
        row |= {"gain": gains.mean(), "smallest": gains.min(), "largest": gains.max(), "limit": softmax_gain(d, p)}
        rows.append(row)
    return {"softmax": rows}


def tables(sizes: SoftmaxSizes, workers: Workers) -> Tables:
    """A row a run."""
    return sweep(workers, "softmax", partial(solve, sizes), method=METHODS, p=sizes.exponents, d=sizes.dimensions)


def deviation(rows: Rows) -> float:
    """The largest relative distance of G from d^{1/2 - 1/p} over the runs from the vector of ones."""
    return max(abs(row["gain"] / row["limit"] - 1.0) for row in select(rows, start="ones"))


def draw(figure: Any, tables: Tables) -> None:
    """Measured against predicted, a panel a method."""
    axes = figure.subplots(1, len(METHODS), sharey=True)
    for ax, ((method,), rows) in zip(axes, group(tables["softmax"], "method").items(), strict=True):
        limits = column(rows, "limit")
        ax.plot([1.0, limits.max()], [1.0, limits.max()], color="0.6", linewidth=1.0, label="G = d^(1/2 − 1/p)")
        for k, ((p,), mine) in enumerate(group(rows, "p").items()):
            full = mark(k, markersize=6.0, label=f"p = {p:g}, x₀ = (1, …, 1)")
            hollow = mark(k, markersize=4.0, label=f"p = {p:g}, random x₀", markerfacecolor="none")
            for start, style in (("ones", full), ("random", hollow)):
                chosen = select(mine, start=start)
                ax.plot(column(chosen, "limit"), column(chosen, "gain"), linestyle="none", **style)
        ax.set(xscale="log", yscale="log", title=method, xlabel="largest possible gain, d^(1/2 − 1/p)")
    axes[0].set_ylabel("measured mean gain G")
    legend_below(figure, axes[0], 3)


def report(tables: Tables, sizes: SoftmaxSizes) -> str:
    """The identity, and the finding from random starts."""
    rows = tables["softmax"]
    worst = deviation(rows)
    lines = []
    for key, mine in group(select(rows, start="random"), "method", "p", "d", "limit").items():
        gains = column(mine, "gain")
        lines.append([*key, gains.mean(), gains.min(), gains.max(), gains.mean() / mine[0]["limit"]])
    header = ["method", "p", "d", "d^(1/2 − 1/p)", "G, mean", "lowest", "highest", "share of the limit"]
    holds = "holds" if worst <= AGREEMENT else "DOES NOT HOLD"
    setting = f"""\
Symmetric softmax with α = 1, declared L = f.smoothness(p), {sizes.iterations} iterations at most, seed {sizes.seed};
G is the mean of ‖g‖_p*/‖g‖₂ over the run, at x_t+1 for `hasd-paper` and at y_t for `hasd`."""
    identity = f"""\
From x₀ = (1, …, 1) the identity G = d^(1/2 − 1/p) {holds} to {AGREEMENT:g}: the largest relative deviation over
{len(METHODS)} methods, p in {", ".join(f"{p:g}" for p in sizes.exponents)} and
d in {", ".join(map(str, sizes.dimensions))} is {worst:.1e}."""
    random = f"From {sizes.starts} random starts, N(0, 1) in every coordinate, G is what it is:"
    return section("## The softmax example", setting, identity, random, markdown(header, lines))


EXPERIMENT = Experiment(
    name="softmax",
    summary="the appendix example: measured geometry gain on the symmetric softmax",
    sizes=SoftmaxSizes(),
    quick=SoftmaxSizes(d=20, iterations=10, starts=2),
    tables=tables,
    plots={"softmax": ((9.0, 4.8), draw)},
    report=report,
)
