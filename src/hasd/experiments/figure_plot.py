"""Drawing the paper's figure: a row of panels a family, a column a mu; on iterations and on evaluations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._plots import legend_below
from .problems import is_unbounded
from .style import AXES, METHODS
from .tables import Rows, Tables, column, group

TITLES = {
    "published": "as published",
    "signs": "A with random signs",
    "symmetric": "symmetric softmax",
}
LABELS = {"iterations": "iterations", "evaluations": "gradient evaluations"}


def draw(figure: Any, tables: Tables, axis: str) -> None:
    """All panels of one axis."""
    panels = group([row for row in tables["figure"] if row["tuned_on"] == axis], "family", "mu")
    families = list(dict.fromkeys(family for family, _ in panels))
    ridges = list(dict.fromkeys(mu for _, mu in panels))
    figure.set_size_inches(12.0, 0.8 + 2.7 * len(families))
    axes = figure.subplots(len(families), len(ridges), squeeze=False)
    for (family, mu), rows in panels.items():
        ax = axes[families.index(family), ridges.index(mu)]
        _panel(ax, rows, family, mu, axis)
        if ridges.index(mu) == 0:
            ax.set_ylabel("f(x)" if is_unbounded(family, mu) else "f(x) − f*")
        if family == families[-1]:
            ax.set_xlabel(LABELS[axis])
    figure.suptitle(
        f"Each method with the stepsize of the paper's list that is best for it at the right edge ({LABELS[axis]})"
    )
    legend_below(figure, axes[0, 0], len(METHODS))


def _panel(ax: Any, rows: Rows, family: str, mu: float, axis: str) -> None:
    """One (family, mu): gaps on a log axis, or where there is no optimum the values themselves."""
    title = f"{TITLES[family]}, μ = {mu:g}"
    no_optimum = is_unbounded(family, mu)
    for (method,), mine in group(rows, "method").items():
        ax.plot(column(mine, AXES[axis]), column(mine, "fun" if no_optimum else "gap"), **METHODS[method].keywords)
    if no_optimum:
        ax.set_title(f"{title}\nunbounded below: values, not gaps", color="#A00000")
        _values_scale(ax, column(rows, "fun"))
    else:
        ax.set_title(title)
        ax.set_yscale("log")
        lowest, highest = column(rows, "gap").min(), column(rows, "gap").max()
        ax.set_ylim(min(0.5 * lowest, 0.1 * highest), 2.0 * highest)  # a decade at least: labelled ticks


def _values_scale(ax: Any, values: np.ndarray) -> None:
    """Signed values over many decades: linear near the start's size, logarithmic beyond, few ticks."""
    start = max(float(values[0]), 1.0)
    ax.set_yscale("symlog", linthresh=start)
    lowest = int(np.floor(np.log10(max(-float(values.min()), 10.0 * start))))
    stride = max(1, lowest // 4)
    ax.set_yticks([0.0, *(-(10.0**k) for k in range(lowest, 0, -stride))])
    ax.minorticks_off()


PLOTS = {
    "figure": ((12.0, 6.2), partial(draw, axis="iterations")),
    "figure-evaluations": ((12.0, 6.2), partial(draw, axis="evaluations")),
}
