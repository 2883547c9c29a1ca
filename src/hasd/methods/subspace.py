"""Newton's method in a few coordinates: minimise c -> f(x + S c) where the images A S are known.

f(x + S c) = phi(z + W c) + (mu/2) ||x + S c||^2 with S orthonormal: a step costs passes over n, no product with A.  The
Newton direction is damped by a multiple of the gradient's norm (curvature can vanish far from the optimum), and the
step along it is found by a search on the derivative, which is exact enough where phi bends sharply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..estimate import rounding
from ..objectives.images import Image, Images, Point, Small
from .span import Span

FLOOR = 1e-12
"""Curvature below this part of the largest is rounding."""
SHORT, LONG = 0.2, 0.7
"""Steps shorter than the one raise the damping, longer than the other lower it."""
FLAT = 0.3
"""A step is taken once the derivative along it has fallen to this part of the first."""
LOOKS = 20
"""Points looked at along a direction before the best one is taken."""
SOLVED = 0.1
"""The gradient in the span has fallen enough."""
FAR = 16.0
"""The first look is at most so many times the size of z away: where curvature has vanished, Newton's step is absurd."""
MOST = 40
"""Points looked at before a direction is given up."""


@dataclass(frozen=True)
class Place:
    """Where an inner iteration stands."""

    c: Small  # coordinates: x + S c
    point: Point  # phi expanded at z + W c
    f: float  # f(x + S c)
    damping: float  # the multiple of ||gradient|| added to the curvature
    moved: bool = False  # whether a step was taken


@dataclass(frozen=True)
class Ridge:
    """(mu/2) ||x + S c||^2 in the coordinates c."""

    mu: float
    squared: float  # ||x||^2
    along: Small  # S^T x

    def value(self, c: Small) -> float:
        """Its value."""
        return 0.5 * self.mu * (self.squared + float(c @ (2.0 * self.along + c))) if self.mu > 0.0 else 0.0

    def gradient(self, c: Small) -> Small:
        """Its gradient."""
        return self.mu * (self.along + c)


def minimise(span: Span, place: Place, ridge: Ridge, most: int) -> Place:
    """At most `most` Newton steps, until the gradient in these coordinates has fallen to a tenth."""
    images, W, first = span.images, span.W, math.nan
    for _ in range(most):
        gradient = images.slopes(W, place.point) + ridge.gradient(place.c)
        size = float(np.linalg.norm(gradient))
        if math.isnan(first):
            first = size
        elif size <= SOLVED * first:
            break
        H = span.bends(place.point)
        H.flat[:: len(H) + 1] += ridge.mu
        step = direction(H, gradient, place.damping * size)
        if not float(gradient @ step) < 0.0:
            break
        before = place
        place = search(images, W, place, ridge, step, float(gradient @ step), H, size)
        if place.c is before.c:
            break
    return place


def direction(H: Small, gradient: Small, damping: float) -> Small:
    """-(H + damping I)^{-1} gradient, with curvature that is rounding taken for none."""
    top = float(H.diagonal().max(initial=0.0))
    if not (top > 0.0 and math.isfinite(top)):
        return -gradient
    damped = H.copy()
    damped.flat[:: len(H) + 1] += damping + FLOOR * top
    return -np.linalg.solve(damped, gradient)


def search(
    images: Images, W: Any, place: Place, ridge: Ridge, step: Small, slope: float, H: Small, size: float
) -> Place:
    """The best of a few points along the step; the damping follows the length that was taken."""
    image: Image = images.expand(W, step)
    linear = ridge.mu * float(step @ (ridge.along + place.c))
    square = ridge.mu * float(step @ step)
    low, high, slope_low, slope_high, width = 0.0, math.inf, slope, math.inf, math.inf
    t = min(1.0, FAR * images.reach(place.point, image))
    best: tuple[float, float, Point] | None = None
    for looks in range(1, MOST + 1):
        point, derivative = images.move(place.point, image, t)
        derivative += linear + t * square
        f = point.value + ridge.value(place.c + t * step)
        flat = abs(derivative) <= FLAT * -slope
        # At rounding level the slope decides: it has fallen, whatever the last digits of f say.
        if (f < place.f and (best is None or f < best[0])) or (flat and f <= place.f + rounding(place.f, f)):
            best = (f, t, point)
        if best is not None and (looks >= LOOKS or (flat and best[1] == t)):
            break
        if derivative < 0.0 and math.isfinite(f):
            low, slope_low = t, derivative
        else:
            high, slope_high = t, derivative
        if high - low <= 1e-14 * high:
            break
        bend = images.bend(point, image) + square
        newton = t - derivative / bend if bend > 0.0 else math.nan
        t, width = _between(low, high, slope_low, slope_high, width, newton)
    top = float(H.diagonal().max(initial=0.0)) / size
    if best is None:
        return replace(place, damping=max(16.0 * place.damping, 1e-6 * top))
    f, t, point = best
    damping = place.damping
    if t < SHORT:
        damping = max(4.0 * damping, 1e-4 * top)
    elif t > LONG:
        damping = 0.25 * damping if damping > 1e-9 * top else 0.0
    return Place(place.c + t * step, point, f, damping, True)


def _between(
    low: float, high: float, slope_low: float, slope_high: float, width: float, newton: float
) -> tuple[float, float]:
    """The next t: Newton's, or at most eight times farther while downhill; the secant's or the middle in a bracket."""
    if high == math.inf:
        return (min(max(newton, 1.5 * low), 8.0 * low) if newton > low else 4.0 * low), width
    gap = high - low
    t = newton
    if not low + 0.01 * gap < t < high - 0.01 * gap:
        t = low - slope_low * gap / (slope_high - slope_low) if math.isfinite(slope_high) else math.nan
    if not math.isfinite(t) or gap > 0.5 * width:
        t = 0.5 * (low + high) if low > 0.0 else 0.1 * high
    return min(max(t, low + 0.01 * gap), high - 0.01 * gap), gap
