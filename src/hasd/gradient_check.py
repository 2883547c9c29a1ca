"""Whether a gradient fits the values of its function: asked where a run is stuck, and for a user's function only.

The slope along a direction lies between the difference quotients to either side where f is convex, and within their
distance of them where f is smooth.  It is looked at along the gradient itself, where a wrong sign or size shows, and
along a fixed vector of signs, where a single wrong entry does.  An accusation takes both of two step sizes, and more
than the rounding of the values explains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .arrays import Array, like
from .geometry import dot, norm2
from .oracle import Evaluation

STEPS = (1.0, 0.125)
"""In units of eps^(1/3) times the size of x: where rounding and curvature spoil a quotient least."""


class Misfit(NamedTuple):
    """A direction along which the gradient does not fit."""

    name: str
    claimed: float  # <g, direction>
    seen: float  # the slope of the values

    def __str__(self) -> str:
        return (
            f"Along {self.name} the gradient gives the slope {self.claimed:.3g}, where the values of the function give "
            f"{self.seen:.3g}: check the code that computes it."
        )


def find_misfit(value: Callable[[Array], float], e: Evaluation, bend: float) -> Misfit | None:
    """The first direction along which the gradient does not fit; None where it fits, or rounding hides it."""
    directions = {"itself": e.g / e.norm2, "a vector of signs": _signs(e.x)} if e.norm2 > 0.0 else {}
    with np.errstate(all="ignore"):
        for name, direction in directions.items():
            quotients = [_quotients(value, e, direction, step, bend) for step in STEPS]
            claimed = dot(e.g, direction)
            if all(not low <= claimed <= high for low, high, _ in quotients):
                return Misfit(name, claimed, quotients[-1][2])
    return None


def _signs(x: Array) -> Array:
    """A unit vector with entries of one size and signs without a pattern, the same for every run."""
    places = np.arange(1, x.shape[0] + 1, dtype=np.uint64)
    scrambled = (places * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return like(np.where(scrambled & np.uint64(1), 1.0, -1.0) / math.sqrt(x.shape[0]), x)


def _quotients(
    value: Callable[[Array], float], e: Evaluation, direction: Array, step: float, bend: float
) -> tuple[float, float, float]:
    """The least and the largest slope that the values to either side allow, and the slope in the middle."""
    t = step * e.eps ** (1.0 / 3.0) * max(1.0, norm2(e.x))
    ahead, behind = value(e.x + t * direction), value(e.x - t * direction)
    forward, backward = (ahead - e.f) / t, (e.f - behind) / t
    if not (math.isfinite(forward) and math.isfinite(backward)):
        return -math.inf, math.inf, math.nan
    # values at the neighbours are as uncertain as here; the points themselves are rounded, too
    blur = 4.0 * e.df(bend) / t + e.dg(bend) + abs(forward - backward)
    return min(forward, backward) - blur, max(forward, backward) + blur, 0.5 * (forward + backward)
