"""Whether a gradient fits the values of its function, and whether these have a kink: asked where a run is stuck.

It is asked of a user's function only.

The slope along a direction lies between the difference quotients to either side where f is convex, and within their
distance of them where f is smooth.  It is looked at along the gradient itself, where a wrong sign or size shows, and
along a fixed vector of signs, where a single wrong entry does.  Quotients of two step sizes to either side must agree
with each other far better than with the gradient, or the values are noisy; and rounding must not explain the misfit.
Slopes to either side that differ by as much at the shorter step are those of a kink, unless the values are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

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
KINK, KEPT = 0.1, 0.5
"""At a kink they differ by this part of the gradient or more, and it by this part or more of that difference, as it is
one of them; and they differ by this part or more of what they do at the longer step."""


class Findings(NamedTuple):
    """What is wrong, in words; empty where nothing is, or rounding hides it."""

    misfit: str = ""  # the first direction along which the gradient does not fit
    kink: str = ""


class Slopes(NamedTuple):
    """What is seen along a unit vector."""

    claimed: float  # the slope that the gradient predicts
    behind: float  # the slope of the values behind the point, at the shorter step
    ahead: float
    step: float  # that step
    fits: bool  # whether the gradient fits the values, or that cannot be told
    is_kink: bool


def check_gradient(value: Callable[[Array], float], e: Evaluation, bend: float) -> Findings:
    """What is wrong with the function where a run is stuck."""
    directions = {"the gradient": e.g / e.norm2, "a vector of signs": _signs(e.x)} if e.norm2 > 0.0 else {}
    kink = ""
    with np.errstate(all="ignore"):
        for name, direction in directions.items():
            seen = _slopes_along(direction, value, e, bend)
            if seen is None:
                continue
            if not seen.fits:
                misfit = (
                    f"In the direction of {name}, the gradient predicts the slope {seen.claimed:.3g}, but differences "
                    f"of function values give {0.5 * (seen.behind + seen.ahead):.3g}: check the code that computes the "
                    "gradient."
                )
                return Findings(misfit, "")
            if seen.is_kink and not kink:
                kink = (
                    f"In the direction of {name}, the slope of the function rises from {seen.behind:.3g} to "
                    f"{seen.ahead:.3g} within {seen.step:.2g} of x: it is noisy, or has a kink there or a bend as "
                    "sharp, and the methods need a smooth function."
                )
    return Findings("", kink)


def _slopes_along(direction: Array, value: Callable[[Array], float], e: Evaluation, bend: float) -> Slopes | None:
    """The slopes of the gradient and of the values along a unit vector; None where the values are too coarse to tell.

    Smoothness explains a change of the middle slope from one step to the shorter one, twice over.  A difference of the
    slopes to either side that does not shrink with the step is a kink, or noise.
    """
    middles, widths, change = [], [], 0.0
    for step in STEPS:
        t = step * e.eps ** (1.0 / 3.0) * max(1.0, norm2(e.x))
        ahead, behind = value(e.x + t * direction) - e.f, e.f - value(e.x - t * direction)
        if ahead == 0.0 or behind == 0.0:
            return None
        change = max(change, abs(ahead), abs(behind))
        middles.append(0.5 * (ahead + behind) / t)
        widths.append(abs(ahead - behind) / t)
    claimed, (wide, seen) = dot(e.g, direction), middles
    allowed = AGREED * (abs(wide - seen) + max(widths[1] - SHRUNK * widths[0], 0.0))
    # Values at the neighbours may be far larger than here, and are then less certain.
    neighbours = OPERATIONS * roundings(e.x.shape[0]) * e.eps * change
    noise = 4.0 * (e.df(bend) + neighbours) / t + e.dg(bend)
    # Where a value was not finite the comparison is with NaN, and nothing is reported.
    fits = not abs(claimed - seen) > allowed + noise
    # The curvature seen across a kink has no bound, so it does not tell what the values may be off by.
    jump, unsure = (ahead - behind) / t, 4.0 * (e.df() + neighbours) / t
    is_kink = jump > max(KINK * e.norm2, KEPT * widths[0], unsure) and e.norm2 > KINK * jump
    return Slopes(claimed, behind / t, ahead / t, t, fits, is_kink)


def _signs(x: Array) -> Array:
    """A unit vector with entries of one size and signs without a pattern, the same for every run."""
    places = np.arange(1, x.shape[0] + 1, dtype=np.uint64)
    scrambled = (places * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return convert_like(np.where(scrambled & np.uint64(1), 1.0, -1.0) / math.sqrt(x.shape[0]), x)
