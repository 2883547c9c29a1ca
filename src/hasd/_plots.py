"""One look for all figures: colour-blind safe (Okabe & Ito), every line also told apart by its dashes.

The experiments and ``hasd solve`` share it; it imports nothing of the package.
"""

from __future__ import annotations

from typing import Any

RC: dict[str, Any] = {
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
"""Used inside matplotlib's rc_context only: nobody else's settings change."""


COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def legend_below(figure: Any, axes: Any, columns: int) -> None:
    """One legend under all panels, where no line can run through it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
