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


def draw_convergence(trace: Mapping[str, Any], lower: float, label: str, ax: Any = None) -> Any:
    """Plot how far a run's values were above the certified lower bound, or without one above the best value."""
    try:
        from matplotlib import pyplot, rc_context
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'hasd[plot]'") from error
    values = np.asarray(trace["fun"], dtype=float)
    certified = math.isfinite(lower)
    base = lower if certified else float(np.nanmin(values))
    steps = trace.get("iteration", np.arange(len(values)))
    above = np.where(values > base, values - base, np.nan)  # a distance of 0 has no logarithm
    with rc_context(RC):
        if ax is None:
            _, ax = pyplot.subplots(figsize=(4.5, 3.0), layout="constrained")
        ax.semilogy(steps, above, color=COLORS[0], marker=MARKERS[0] if len(values) < 30 else "", label=label or None)
        ax.set(xlabel="iteration" if "iteration" in trace else "row of the trace")
        ax.set(ylabel="fun - certified lower bound" if certified else "fun - lowest value")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if label:
            ax.legend()
    return ax
