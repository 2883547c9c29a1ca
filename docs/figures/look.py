"""Colours that can be told apart without colour vision (Okabe and Ito), and what the figures share."""

from __future__ import annotations

import math

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#7F7F7F"
EXPONENTS = {2.0: (ORANGE, "-"), 3.0: (GREEN, "--"), 10.0: (PURPLE, "-."), math.inf: (BLUE, "-")}
"""Colour and line of each p."""
STYLE = {"font.size": 9.5, "axes.spines.top": False, "axes.spines.right": False}
"""Settings of matplotlib."""


def name_of(p: float) -> str:
    """P as a label."""
    return r"$p = \infty$" if math.isinf(p) else f"$p = {p:g}$"
