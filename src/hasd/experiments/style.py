"""How the experiments draw and call the methods, in the look of all figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._plots import COLORS, MARKERS, RC

__all__ = ["AXES", "METHODS", "RC", "Curve", "mark"]


@dataclass(frozen=True)
class Curve:
    """How a method is drawn and called."""

    short: str  # in tables
    label: str  # in legends
    color: str
    dashes: Any  # a matplotlib linestyle

    @property
    def keywords(self) -> dict[str, Any]:
        """For ``ax.plot``."""
        return {"color": self.color, "linestyle": self.dashes, "label": self.label}


METHODS = {
    "gradient-descent": Curve("GD", "GD", "#999999", ":"),
    "agd": Curve("AGD", "AGD", "#0072B2", "--"),
    "linear-coupling": Curve("LC", "LC, ℓ∞", "#009E73", "-."),
    "hasd-paper": Curve("HASD", "HASD, ℓ∞ (the paper's)", "#D55E00", "-"),
    "hasd": Curve("HASD tight (ours)", "HASD, tight form (ours, not in the paper)", "black", (0, (6, 1, 1, 1, 1, 1))),
}
"""The methods of the figure; the last one is ours and not in the paper."""
AXES = {"iterations": "iteration", "evaluations": "nfev"}
"""What a budget is counted in, and the column that counts it."""


def mark(k: int, **others: Any) -> dict[str, Any]:
    """Colour and marker of the k-th curve, and other keywords for ``ax.plot``."""
    return {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)], **others}
