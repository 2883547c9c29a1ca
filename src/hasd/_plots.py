"""One look for all figures: colour-blind safe (Okabe & Ito), every line also told apart by its dashes.

The experiments and ``hasd solve`` share it; it imports nothing of the package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

RC: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
}
"""Used inside matplotlib's rc_context only: nobody else's settings change.  Its stubs want the names spelled out."""


COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def legend_below(figure: Any, axes: Any, columns: int) -> None:
    """One legend under all panels, where no line can run through it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def load_matplotlib() -> Any:
    """matplotlib with pyplot, imported when something is drawn."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'hasd[plot]'") from error
    return matplotlib


def draw_convergence(trace: Mapping[str, Any], lower: float, label: str, ax: Any = None) -> Any:
    """Plot how far a run's values were above the certified lower bound, or without one above the best value."""
    matplotlib = load_matplotlib()
    values = np.asarray(trace["fun"], dtype=float)
    certified = math.isfinite(lower)
    base = lower if certified else float(np.nanmin(values))
    steps = trace.get("iteration", np.arange(len(values)))
    above = np.where(values > base, values - base, np.nan)  # a distance of 0 has no logarithm
    with matplotlib.rc_context(RC):
        if ax is None:
            _, ax = matplotlib.pyplot.subplots(figsize=(4.5, 3.0), layout="constrained")
        ax.semilogy(steps, above, color=COLORS[0], marker=MARKERS[0] if len(values) < 30 else "", label=label or None)
        ax.set(xlabel="iteration" if "iteration" in trace else "row of the trace")
        ax.set(ylabel="fun - certified lower bound" if certified else "fun - lowest value")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if label:
            ax.legend()
    return ax


Curve = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""What a run had spent at each point, how far its best value was above the floor, and its certified gaps or None."""


def draw_comparison(curves: Mapping[str, Curve], spent: str, above: str, ax: Any = None) -> Any:
    """Plot runs by label, each in its own colour and marker, with certified gaps dashed.

    What is not above 0 has no logarithm and is left out.  The legend is below a figure of its own, and inside axes that
    are given.
    """
    matplotlib, own = load_matplotlib(), ax is None
    with matplotlib.rc_context(RC):
        if own:
            _, ax = matplotlib.pyplot.subplots(figsize=(5.5, 4.0), layout="constrained")
        for k, (label, (x, y, _)) in enumerate(curves.items()):
            shown = y > 0.0
            apart = max(int(shown.sum()) // 8, 1)  # about eight markers, not at the same places for all
            style = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[(k + k // len(COLORS)) % len(MARKERS)]}
            ax.semilogy(x[shown], y[shown], **style, markersize=5, markevery=(k % apart, apart), label=label)
        dashed = {"linestyle": "--", "linewidth": 1.2}
        for k, (x, _, gap) in enumerate(curves.values()):
            if gap is not None and (shown := np.isfinite(gap) & (gap > 0.0)).any():
                ax.semilogy(x[shown], gap[shown], color=COLORS[k % len(COLORS)], **dashed)
        if any(gap is not None for _, _, gap in curves.values()):
            ax.plot([], [], color="0.4", **dashed, label="dashed: certified gap")
        ax.set(xlabel=spent, ylabel=above)
        if own:
            legend_below(ax.figure, ax, min(len(curves), 3))
        else:
            ax.legend()
    return ax
