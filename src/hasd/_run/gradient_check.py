"""Whether a gradient fits the values of its function: asked where a run is stuck, and for a user's function only.

The slope along a direction lies between the difference quotients to either side where f is convex, and within their
distance of them where f is smooth.  It is looked at along the gradient itself, where a wrong sign or size shows, and
along a fixed vector of signs, where a single wrong entry does.  Quotients of two step sizes to either side must agree
with each other far better than with the gradient, or the values are noisy; and rounding must not explain the misfit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._math.arrays import Array, convert_like
from .._math.doubt import OPERATIONS, roundings
from .._math.evaluation import Evaluation
from .._math.geometry import dot, norm2

STEPS = (1.0, 0.125)
"""Step sizes in units of eps^(1/3) times the size of x, where rounding and curvature spoil a quotient least."""

AGREED = 4.0
"""How many times farther from the gradient's slope than from each other the quotients must be."""
SHRUNK = 0.25
"""With an eighth of the step, slopes to either side of a smooth function differ by about an eighth."""


def find_misfit(value: Callable[[Array], float], e: Evaluation, bend: float) -> str:
    """The first direction along which the gradient does not fit, in words; empty where it fits or rounding hides it."""
    directions = {"the gradient": e.g / e.norm2, "a vector of signs": _signs(e.x)} if e.norm2 > 0.0 else {}
    with np.errstate(all="ignore"):
        for name, direction in directions.items():
            if (slopes := _misfit_along(direction, value, e, bend)) is not None:
                return (
                    f"In the direction of {name}, the gradient predicts the slope {slopes[0]:.3g}, but differences of "
                    f"function values give {slopes[1]:.3g}: check the code that computes the gradient."
                )
    return ""


def _misfit_along(
    direction: Array, value: Callable[[Array], float], e: Evaluation, bend: float
) -> tuple[float, float] | None:
    """The slopes of the gradient and of the values along a unit vector, where they do not fit.

    Smoothness explains a change of the middle slope from one step to the shorter one, twice over.  A difference of the
    slopes to either side that does not shrink with the step is a kink, or noise.
    """
    middles, widths, change = [], [], 0.0
    for step in STEPS:
        t = step * e.eps ** (1.0 / 3.0) * max(1.0, norm2(e.x))
        ahead, behind = value(e.x + t * direction) - e.f, e.f - value(e.x - t * direction)
        if ahead == 0.0 or behind == 0.0:  # the values are too coarse to tell
            return None
        change = max(change, abs(ahead), abs(behind))
        middles.append(0.5 * (ahead + behind) / t)
        widths.append(abs(ahead - behind) / t)
    claimed, (wide, seen) = dot(e.g, direction), middles
    allowed = AGREED * (abs(wide - seen) + max(widths[1] - SHRUNK * widths[0], 0.0))
    # Values at the neighbours may be far larger than here, and are then less certain.
    neighbours = OPERATIONS * roundings(e.x.shape[0]) * e.eps * change
    noise = 4.0 * (e.df(bend) + neighbours) / t + e.dg(bend)
    # Where a value was not finite the comparison is with NaN, and no misfit is reported.
    return (claimed, seen) if abs(claimed - seen) > allowed + noise else None


def _signs(x: Array) -> Array:
    """A unit vector with entries of one size and signs without a pattern, the same for every run."""
    places = np.arange(1, x.shape[0] + 1, dtype=np.uint64)
    scrambled = (places * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return convert_like(np.where(scrambled & np.uint64(1), 1.0, -1.0) / math.sqrt(x.shape[0]), x)
