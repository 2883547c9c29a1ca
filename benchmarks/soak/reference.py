"""The minimum, and how far from x0 it is attained, by Newton's method in sixty digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

from benchmarks.soak.exact import DIGITS, Exact, cholesky, exact, norm, shifted, solve
from benchmarks.soak.losses import Numbers

STEPS, HALVINGS = 150, 120
TINY = Decimal("1e-28")
"""Part of the trace that is added to the diagonal: a singular Hessian has a Cholesky factor then, steps stay in its
range, and the minimiser that is found is the one nearest to x0."""
CLOSE, SLACK = Decimal("1e-18"), Decimal("1e-40")
"""The last Newton step relative to ||x0 - x||; what sixty digits may lose of f, relative to its values."""


@dataclass(frozen=True)
class Reference:
    """What is known of a problem, each number rounded to the side on which nothing true is called false."""

    start: Decimal  # f(x0)
    minimum: Decimal  # not below f*, and above it by far less than any float shows
    radius: float  # not below the distance from x0 to the nearest minimiser


def find(f: Exact, x0: Any) -> Reference | None:
    """The reference; None where Newton's method does not arrive."""
    with localcontext(DIGITS):
        start = x = exact(x0)
        first = value = f.value(x)
        for _ in range(STEPS):
            g, H = f.derivatives(x)
            C = cholesky(shifted(H, TINY * H.trace()))
            if C is None:
                return None
            step = solve(C, -g)
            there = _downhill(f, x, value, step, -(g @ step))
            if there is None:
                return None
            x, value = there
            if norm(step) <= CLOSE * norm(x - start) + SLACK * norm(x):
                slack = SLACK * (abs(first) + abs(value))
                return Reference(first, value + slack, _upwards(norm(x - start) + 2 * norm(step)))
        return None


def _downhill(f: Exact, x: Numbers, value: Decimal, step: Numbers, fall: Decimal) -> tuple[Numbers, Decimal] | None:
    """The first point on the way back from x + step that falls as it should."""
    noise = SLACK * abs(value)
    for _ in range(HALVINGS):
        there = x + step
        lower = f.value(there)
        if lower <= value - fall / 4 + noise:
            return there, lower
        step, fall = step / 2, fall / 2
    return None


def _upwards(length: Decimal) -> float:
    """A float that is not below."""
    rounded = float(length)
    return rounded if rounded >= length else math.nextafter(rounded, math.inf)
