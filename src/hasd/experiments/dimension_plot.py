"""The pictures of the dimension: evaluations against d or nodes, on logarithmic axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._plots import legend_below
from .dimension_report import counts, panel
from .style import CURVES, NORMED
from .tables import Rows, Tables, column, select

TITLES = {"softmax": "Softmax, random starts", "graph": "ℓ∞ potentials on random graphs"}
LABELS = {"softmax": "dimension d", "graph": "nodes of the graph"}
CONSTANTS = {"declared": "L known", "found": "L found while running"}
HEIGHTS = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000]
"""Ticks of the evaluations."""


def draw(figure: Any, tables: Tables) -> None:
    """All methods in the first norm: a row a problem, a column for L declared and one for L found."""
    axes = figure.subplots(len(TITLES), len(CONSTANTS), sharey="row", squeeze=False)
    for line, problem in zip(axes, TITLES, strict=True):
        rows = select(tables["dimension"], problem=problem)
        p = _exponents(rows)[0]
        shown = [row for row in rows if row["p"] == p or row["method"] not in NORMED]
        for ax, constant in zip(line, CONSTANTS, strict=True):
            _lay_out(ax, shown, f"{TITLES[problem]}: {CONSTANTS[constant]}", LABELS[problem])
            for method, runs in panel(shown, problem, constant, p).items():
                _curve(ax, method, p, runs)
        line[0].set_ylabel("gradient evaluations")
    figure.suptitle("Gradients until the error f(x) − f* is a hundredth of that at the start", fontsize=11.0)
    legend_below(figure, axes[0, 1], 3)


def draw_exponents(figure: Any, tables: Tables) -> None:
    """The softmax in every norm: the methods that step in it, a line style for each exponent."""
    rows = select(tables["dimension"], problem="softmax")
    axes = figure.subplots(1, len(CONSTANTS), sharey=True)
    shown = [row for row in rows if row["method"] in NORMED]
    for ax, constant in zip(axes, CONSTANTS, strict=True):
        _lay_out(ax, shown, f"{TITLES['softmax']}: {CONSTANTS[constant]}", LABELS["softmax"])
        for k, p in enumerate(_exponents(rows)):
            for method, runs in panel(shown, "softmax", constant, p).items():
                _curve(ax, method, p, runs, linestyle=("-", "--")[k % 2])
    axes[0].set_ylabel("gradient evaluations")
    legend_below(figure, axes[0], 2)


def _exponents(rows: Rows) -> list[float]:
    """The exponents of our method, in order of appearance."""
    return list(dict.fromkeys(row["p"] for row in select(rows, method="hasd")))


def _curve(ax: Any, method: str, p: float, runs: dict[int, Rows], linestyle: Any = None) -> None:
    """The medians, with thin lines from the fewest evaluations to the most; open where the median run is capped."""
    sizes, medians = np.array(list(runs)), np.array(counts(runs))
    arrived = np.isfinite(medians)
    spent = [column(some, "spent").astype(float) for some in runs.values()]
    heights = np.where(arrived, medians, [some.max() for some in spent])
    curve = CURVES[method]
    style = curve.keywords(p, full=True, marker=curve.marker, markersize=5.0, linewidth=1.3)
    if method == "hasd":
        style |= {"linewidth": 2.4, "linestyle": "-", "markersize": 6.0, "zorder": 3.0}
    if linestyle is not None:
        style["linestyle"] = linestyle
    ax.plot(sizes, heights, **style)
    open_marks = {"markersize": style["markersize"], "markerfacecolor": "white", "zorder": 4.0}
    ax.plot(sizes[~arrived], heights[~arrived], curve.marker, color=curve.color, **open_marks)
    ax.vlines(sizes, [some.min() for some in spent], [some.max() for some in spent], color=curve.color, alpha=0.4)


def _lay_out(ax: Any, rows: Rows, title: str, label: str) -> None:
    """Logarithmic axes with plain numbers, and the cap where a run met it; `rows` are those of the whole line.

    The limits are set before anything is drawn, since matplotlib cannot find any for a single size.
    """
    sizes = sorted({row["size"] for row in rows})
    low, cap = min(row["spent"] for row in rows), max(row["spent"] for row in rows)
    limits = {"xlim": (0.7 * sizes[0], 1.4 * sizes[-1]), "ylim": (0.7 * low, 1.6 * cap)}
    ax.set(xscale="log", yscale="log", title=title, xlabel=label, **limits)
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ticks = [height for height in HEIGHTS if 0.7 * low <= height <= 1.6 * cap]
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    if any(math.isnan(row["evaluations"]) for row in rows):
        ax.axhline(cap, color="0.5", linewidth=0.8, linestyle=":")
        text = f"open markers: not reached within {cap:,}"
        ax.annotate(text, (sizes[0], cap), (0, 3), textcoords="offset points", color="0.4")
