"""How the experiments draw and call the methods, in the look of all figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._plots import COLORS, MARKERS, RC

__all__ = ["AXES", "CURVES", "METHODS", "NORMED", "RC", "Curve", "mark", "norm_name"]

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def norm_name(p: float) -> str:
    """The name of the l_p norm.

    >>> norm_name(math.inf), norm_name(4.0), norm_name(2.5)
    ('ℓ∞', 'ℓ₄', 'ℓ_2.5')
    """
    if math.isinf(p):
        return "ℓ∞"
    return f"ℓ{p:g}".translate(SUBSCRIPTS) if p.is_integer() else f"ℓ_{p:g}"


@dataclass(frozen=True)
class Curve:
    """How a method is drawn and called."""

    short: str  # in tables
    label: str  # in legends; {norm} stands for the name of the norm
    color: str
    dashes: Any  # a matplotlib linestyle
    marker: str = ""  # where points are marked
    full: str = ""  # the label where there is room

    def keywords(self, p: float, full: bool = False, **others: Any) -> dict[str, Any]:
        """For ``ax.plot``, of a run in l_p."""
        label = (self.full if full else self.label).format(norm=norm_name(p))
        return {"color": self.color, "linestyle": self.dashes, "label": label, **others}


CURVES = {
    "gradient-descent": Curve("GD", "GD", "#999999", ":"),
    "agd": Curve("AGD", "AGD", "#0072B2", "--", "^", "accelerated gradient descent, ℓ₂"),
    "linear-coupling": Curve("LC", "LC, {norm}", "#009E73", "-.", "D", "linear coupling, {norm}"),
    "steepest-descent": Curve(
        "steepest descent", "steepest descent, {norm}", "#CC79A7", (0, (4, 2)), "v", "steepest descent, {norm}"
    ),
    "nemirovskii-nesterov": Curve(
        "NN", "NN, {norm}", "#882255", (0, (8, 2)), "*", "Nemirovskii–Nesterov, {norm}, best T"
    ),
    "hasd-paper": Curve("HASD", "HASD, {norm} (the paper's)", "#D55E00", "-", "s", "HASD as published, {norm}"),
    "hasd": Curve(
        "HASD optimised (ours)",
        "HASD, {norm}, optimised form (ours, not in the paper)",
        "black",
        (0, (6, 1, 1, 1, 1, 1)),
        "o",
        "HASD, our optimised form, {norm}",
    ),
    "L-BFGS-B": Curve("L-BFGS-B", "L-BFGS-B", "#E69F00", (0, (3, 1, 1, 1)), "P", "L-BFGS-B (SciPy)"),
    "hasd-qn": Curve("hasd-qn (ours)", "hasd-qn", "#56B4E9", (0, (1, 1)), "X", "hasd-qn (ours, quasi-Newton)"),
}
"""All that are compared."""
METHODS = {name: CURVES[name] for name in ("gradient-descent", "agd", "linear-coupling", "hasd-paper", "hasd")}
"""The methods of the figure; the last one is ours and not in the paper."""
NORMED = ("hasd-paper", "hasd", "linear-coupling", "steepest-descent", "nemirovskii-nesterov")
"""The methods that take steps in the l_p norm of an experiment; the others are in l_2."""
AXES = {"iterations": "iteration", "evaluations": "nfev"}
"""What a budget is counted in, and the column that counts it."""


def mark(k: int, **others: Any) -> dict[str, Any]:
    """Colour and marker of the k-th curve, and other keywords for ``ax.plot``."""
    return {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)], **others}
