"""The implicit search: find u > 0 whose residual c(u) lies in a window.

In HASD u is rho and c(rho) = rho r(rho)^2, where r is the geometry gain at the point that rho leads to.  Because
1 <= r <= d^{1/2-1/p}, c runs from 0 to infinity with u, and u/c(u) changes slowly: the proposal u * target / c(u)
lands in the window at once when the search starts from the last rho.  The bracket guards it: a residual that jumps
over the window (p = inf, Algorithm 1) shrinks it to machine resolution, and then the upper side is taken, where
c >= window: that side keeps the recurrence.  The search always ends, with a value or with a status.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

NONFINITE_LIMIT = 20
"""Non-finite trials in a row after which a search gives up."""
FIXED_POINT_TRIALS = 3
"""After so many fixed-point proposals every other one bisects, so that the bracket halves."""
SMALLEST, GREATEST = 2.0**-1000, 2.0**1000


class Ending(Enum):
    """How a search ended."""

    FOUND = "the residual is in the window"
    JUMP = "the residual jumps over the window: the side above it was taken, at machine resolution"
    NONFINITE = "twenty trials in a row were not finite"
    FAILED = "no trial above the window was found"


@dataclass(frozen=True)
class Found(Generic[T]):
    """What a search brings back."""

    u: float
    residual: float
    payload: T | None  # whatever the accepted trial computed on its way
    trials: int
    ending: Ending


def middle(low: float, high: float) -> float:
    """The geometric mean of two positive numbers, without overflow."""
    return math.sqrt(low) * math.sqrt(high)


def search(
    residual: Callable[[float], tuple[float, T]],
    start: float,
    window: tuple[float, float],
    *,
    target: float | None = None,
    bisect: Callable[[float, float], float] | None = None,
) -> Found[T]:
    """Look for u with window[0] <= c(u) <= window[1], c = residual(u)[0] growing from 0 to inf, jumps allowed.

    `target` is where a proposal aims (the window's geometric mean by default).  With `bisect`, which is given the
    bracket, only that rule proposes (the paper's cold bisection); without it, fixed-point proposals are guarded by
    bisection in log u.

    >>> found = search(lambda u: (u * u, None), start=5.0, window=(1.0, 2.0))
    >>> 1.0 <= found.u**2 <= 2.0, found.ending.name
    (True, 'FOUND')
    >>> search(lambda u: (0.1 if u < 3.0 else 10.0, None), start=1.0, window=(1.0, 2.0)).ending.name
    'JUMP'
    """
    least, most = window
    aim = middle(least, most) if target is None else target
    low, high = SMALLEST, GREATEST
    above: tuple[float, float, T] | None = None
    u, nonfinite = start, 0
    for trials in count(1):
        c, payload = residual(u)
        if least <= c <= most:
            return Found(u, c, payload, trials, Ending.FOUND)
        nonfinite = nonfinite + 1 if math.isnan(c) else 0
        if nonfinite == NONFINITE_LIMIT:
            return Found(u, c, None, trials, Ending.NONFINITE)
        if c > most:
            high, above = min(high, u), (u, c, payload)
        else:  # also from a rejected trial: towards large u, that is towards the current iterate
            low = max(low, u)
        if bisect is not None:
            u = bisect(low, high)
        else:
            guess = u * (aim / c) if c > 0.0 and math.isfinite(c) else (4.0 * u if not c > 0.0 else u / 4.0)
            bisects = trials > FIXED_POINT_TRIALS and trials % 2 == 0
            u = guess if low < guess < high and not bisects else middle(low, high)
        if not low < u < high:  # the bracket is at machine resolution
            break
    if above is None:
        return Found(u, math.nan, None, trials, Ending.FAILED)
    return Found(*above, trials, Ending.JUMP)
