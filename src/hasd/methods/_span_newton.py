"""Newton's method in a few coordinates: minimise c -> f(x + S c) where the images A S are known.

f(x + S c) = phi(z + W c) + (mu/2) ||x + S c||^2 with S orthonormal: a step costs passes over n, no product with A.  The
Newton direction is damped by a multiple of the gradient's norm (curvature can vanish far from the optimum), and the
step along it is found by a search on the derivative, which is exact enough where phi bends sharply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from .._math.arrays import Array
from .._math.estimate import rounding
from .._math.geometry import dot, norm2
from .._run.status import Status, Stop
from ..objectives._images import Basis, Image, Images, Point, Small
from ._span import Span

FLOOR = 1e-12
"""Curvature below this part of the largest is rounding."""
SHORT, LONG = 0.2, 0.7
"""Steps shorter than SHORT raise the damping, steps longer than LONG lower it."""
FLAT = 0.3
"""A step is taken once the derivative along it has fallen to this part of the first."""
LOOKS = 20
"""Points looked at along a direction before the best one is taken."""
SOLVED, BEGUN = 0.1, 0.6
"""The share of its first size to which the gradient in the span must fall: SOLVED, or BEGUN in a span that grows to
the whole space, where no direction is ever dropped and it pays to widen the span first."""
FAR = 16.0
"""The first look is at most so many times the size of z away: without curvature Newton's step is far too long."""
ENDLESS = 1e9
"""How far to look, in sizes of z, where the curvature has vanished, to see whether f falls without end."""
MOST = 40
"""Points looked at before a direction is given up."""
SLOW = 0.505
"""A bracket that keeps more than this part of its width shrinks too slowly.  Halving is fast enough: a little above a
half, so that rounding does not decide whether a halved bracket counts as slow."""


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

    @classmethod
    def near(cls, mu: float, x: Array, S: Basis) -> Ridge:
        """The ridge around x, in the coordinates of S's orthonormal columns."""
        return cls(mu, dot(x, x), S.inner_products(x)) if mu > 0.0 else cls(0.0, 0.0, np.zeros(S.k))

    def value(self, c: Small) -> float:
        """Its value."""
        return 0.5 * self.mu * (self.squared + float(c @ (2.0 * self.along + c))) if self.mu > 0.0 else 0.0

    def gradient(self, c: Small) -> Small:
        """Its gradient."""
        return self.mu * (self.along + c)


def minimise(images: Images, span: Span, place: Place, ridge: Ridge, gradient: Small, most: int, faint: float) -> Place:
    """At most `most` Newton steps, until the gradient in these coordinates, given at first, has fallen enough.

    A slope along a unit vector that is not steeper than `faint` does not show that f falls without end.
    """
    W = span.W
    first = size = norm2(gradient)
    enough = (BEGUN if span.grows else SOLVED) * first
    for steps in range(most):
        if steps > 0:
            gradient = images.slopes(W, place.point) + ridge.gradient(place.c)
            size = norm2(gradient)
            if size <= enough:
                break
        H = images.bends(W, place.point)
        H.flat[:: len(H) + 1] += ridge.mu
        step = direction(H, gradient, place.damping * size)
        if not float(gradient @ step) < 0.0:
            break
        before = place
        ray = Ray(images, place, ridge, step, images.expand(W, step))
        place = search(ray, float(gradient @ step), H, size, faint)
        if place.c is before.c:
            break
    return place


def direction(H: Small, gradient: Small, damping: float) -> Small:
    """-(H + damping I)^{-1} gradient; curvature at rounding level is taken for 0."""
    top = float(H.diagonal().max(initial=0.0))
    if not (top > 0.0 and math.isfinite(top)):
        return -gradient
    damped = H.copy()
    damped.flat[:: len(H) + 1] += damping + FLOOR * top
    _, step, failed = dposv(damped.T, -gradient, overwrite_a=True)  # .T: LAPACK's order, and H is symmetric
    return step if failed == 0 else -gradient / top


class RayLook(NamedTuple):
    """f and its derivative at t along a step."""

    t: float
    f: float
    derivative: float
    point: Any  # a Point; None at the ends of a bracket


@dataclass(frozen=True)
class Ray:
    """c + t step for t > 0, looked at point by point: a pass over n each."""

    images: Images
    place: Place
    ridge: Ridge
    step: Small
    image: Image

    def look(self, t: float) -> RayLook:
        """What is at t."""
        point, derivative = self.images.move(self.place.point, self.image, t)
        c = self.place.c + t * self.step
        return RayLook(
            t, point.value + self.ridge.value(c), derivative + float(self.ridge.gradient(c) @ self.step), point
        )

    def newton(self, look: RayLook) -> float:
        """The next t by Newton's method; NaN without curvature."""
        bend = self.images.bend(look.point, self.image) + self.ridge.mu * float(self.step @ self.step)
        return look.t - look.derivative / bend if bend > 0.0 else math.nan


def search(ray: Ray, slope: float, H: Small, size: float, faint: float) -> Place:
    """A point along the step where f has fallen and its derivative is small, or the step's whole length where f still
    falls there: the next Newton step knows better how to go on.  The damping follows the length that was taken.
    """
    place = ray.place
    reach = ray.images.reach(place.point, ray.image)
    low, high, width = RayLook(0.0, place.f, slope, place.point), None, math.inf
    t, best = min(1.0, FAR * reach), None
    for looks in range(1, MOST + 1):
        look = ray.look(t)
        flat = abs(look.derivative) <= FLAT * -slope
        # At rounding level the slope decides, not the last digits of f.
        if (look.f < place.f and (best is None or look.f < best.f)) or (
            flat and look.f <= place.f + rounding(place.f, look.f)
        ):
            best = look
        if best is not None and (looks >= LOOKS or (flat and best is look)):
            break
        if not (look.derivative < 0.0 and math.isfinite(look.f)):
            high = look._replace(point=None)  # the ends of a bracket need no vectors
        elif high is None:
            steadily = look.derivative < 0.5 * slope and (t < 1.0 or place.damping == 0.0 or not H.any())
            if steadily and -slope > faint * norm2(ray.step):
                _refuse_endless(ray, ENDLESS * (reach if math.isfinite(reach) else t))
            break
        else:
            low = look._replace(point=None)
        if high.t - low.t <= 1e-14 * high.t:
            break
        t, width = _point_between(low, high, width, ray.newton(look))
    return _take_best(place, best, ray.step, float(H.diagonal().max(initial=0.0)) / size)


def _refuse_endless(ray: Ray, t: float) -> None:
    """Where the curvature has vanished, look far ahead, and stop where f still falls there: no minimum is in reach."""
    if ray.ridge.mu == 0.0 and ray.look(t).derivative < 0.0:  # a ridge bounds f
        raise Stop(Status.UNBOUNDED)


def _take_best(place: Place, best: RayLook | None, step: Small, top: float) -> Place:
    """The place after the best look; where there is none, the same place with more damping."""
    damping = place.damping
    if best is None:
        return replace(place, damping=max(16.0 * damping, 1e-6 * top))
    if best.t < SHORT:
        damping = max(4.0 * damping, 1e-4 * top)
    elif best.t > LONG:
        damping = 0.25 * damping if damping > 1e-9 * top else 0.0
    return Place(place.c + best.t * step, best.point, best.f, damping, True)


def _point_between(low: RayLook, high: RayLook, width: float, newton: float) -> tuple[float, float]:
    """The next t in a bracket: Newton's, the secant's, or the middle where the bracket shrinks too slowly."""
    gap = high.t - low.t
    t = newton
    if not low.t + 0.01 * gap < t < high.t - 0.01 * gap:
        finite = math.isfinite(high.derivative)
        t = low.t - low.derivative * gap / (high.derivative - low.derivative) if finite else math.nan
    if not math.isfinite(t) or gap > SLOW * width:
        t = 0.5 * (low.t + high.t) if low.t > 0.0 else 0.1 * high.t
    return min(max(t, low.t + 0.01 * gap), high.t - 0.01 * gap), gap
