"""Newton's method in a few coordinates: minimise c -> f(x + S c) where the images A S are known.

f(x + S c) = phi(z + W c) + (mu/2) ||x + S c||^2 with S orthonormal: a step costs passes over n, no product with A.  The
Newton direction is damped by a multiple of the gradient's norm (curvature can vanish far from the optimum), and the
step along it is found by a search on the derivative, which is exact enough where phi bends sharply.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from .._math.arrays import Array
from .._math.estimate import rounding
from .._math.geometry import dot, norm2
from .._run.status import Status, Stop
from ..objectives._images import Basis, Images, Point, Small
from ._line_search import Look, Ray
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


class Place(NamedTuple):
    """Where an inner iteration stands."""

    c: Small  # coordinates: x + S c
    point: Point  # phi expanded at z + W c
    f: float  # f(x + S c)
    damping: float  # the multiple of ||gradient|| added to the curvature


class Ridge(NamedTuple):
    """(mu/2) ||x + S c||^2 in the coordinates c."""

    mu: float
    squared: float  # ||x||^2
    along: Small  # S^T x

    @classmethod
    def near(cls, mu: float, x: Array, S: Basis) -> Ridge:
        """The ridge around x, in the coordinates of S's orthonormal columns."""
        return cls(mu, dot(x, x), S.inner_products(x)) if mu > 0.0 else cls(0.0, 0.0, np.zeros(S.k))

    def bowl(self, c: Small, step: Small) -> tuple[float, float, float]:
        """Its terms along c + t step, as a `Ray` takes them."""
        if self.mu == 0.0:
            return 0.0, 0.0, 0.0
        squared = self.squared + float(c @ (2.0 * self.along + c))
        return self.mu * squared, float(self.gradient(c) @ step), self.mu * float(step @ step)

    def gradient(self, c: Small) -> Small:
        """Its gradient."""
        return self.mu * (self.along + c)


def minimise(images: Images, span: Span, place: Place, ridge: Ridge, gradient: Small, most: int, faint: float) -> Place:
    """At most `most` Newton steps, until the gradient in these coordinates, given at first, has fallen enough.

    A slope along a unit vector that is not steeper than `faint` does not show that f falls without end.
    """
    W, size = span.W, norm2(gradient)
    enough = (BEGUN if span.grows else SOLVED) * size
    for steps in range(most):
        if steps > 0:
            gradient = images.slopes(W, place.point) + ridge.gradient(place.c)
            size = norm2(gradient)
            if size <= enough:
                break
        H = images.bends(W, place.point)
        H.flat[:: len(H) + 1] += ridge.mu
        step = direction(H, gradient, place.damping * size)
        slope = float(gradient @ step)
        if not slope < 0.0:
            break
        ray = Ray(images, place.point, images.expand(W, step), ridge.bowl(place.c, step))
        whole = place.damping == 0.0 or not H.any()
        best = search(ray, place.f, slope, whole, faint * norm2(step))
        place = _take(place, best, step, float(H.diagonal().max(initial=0.0)) / size)
        if best is None:
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


def search(ray: Ray, f: float, slope: float, whole: bool, faint: float) -> Look | None:
    """A point along the step where f has fallen and its derivative is small, or the step's whole length where f still
    falls there: the next Newton step knows better how to go on.  None where f does not fall.

    f and slope are those at 0.  Where f falls steadily along a step that the curvature did not shorten (it is `whole`,
    or f was looked at before its end), f is looked at far ahead: where it still falls there, no minimum is in reach.
    """
    reach = ray.images.reach(ray.point, ray.image)
    low, high, best, width = Look(0.0, f, slope, None), None, None, math.inf
    t = min(1.0, FAR * reach)
    for looks in range(1, MOST + 1):
        look = ray.look(t)
        flat = abs(look.slope) <= FLAT * -slope
        lowest = look.f < (f if best is None else best.f)
        # At rounding level the slope decides, not the last digits of f.
        if lowest or (flat and look.f <= f + rounding(f, look.f)):
            best = look
        if best is not None and (looks >= LOOKS or (flat and best is look)):
            break
        if not look.slope < 0.0:
            high = look._replace(found=None)  # the ends of a bracket need no vectors
        elif high is not None:
            low = look._replace(found=None)
        else:
            if look.slope < 0.5 * slope and (whole or t < 1.0) and -slope > faint:
                ahead = ENDLESS * (reach if math.isfinite(reach) else t)
                if ray.images.move(ray.point, ray.image, ahead)[1] < 0.0:
                    raise Stop(Status.UNBOUNDED)
            break
        if high.t - low.t <= 1e-14 * high.t:
            break
        bend = ray.bend(look.found)
        t, width = _point_between(low, high, width, t - look.slope / bend if bend > 0.0 else math.nan)
    return best


def _take(place: Place, best: Look | None, step: Small, top: float) -> Place:
    """The place after the best look; where there is none, the same place with more damping."""
    damping = place.damping
    if best is None:
        return place._replace(damping=max(16.0 * damping, 1e-6 * top))
    if best.t < SHORT:
        damping = max(4.0 * damping, 1e-4 * top)
    elif best.t > LONG:
        damping = 0.25 * damping if damping > 1e-9 * top else 0.0
    return Place(place.c + best.t * step, best.found, best.f, damping)


def _point_between(low: Look, high: Look, width: float, newton: float) -> tuple[float, float]:
    """The next t in a bracket: Newton's, the secant's, or the middle where the bracket shrinks too slowly."""
    gap = high.t - low.t
    t = newton
    if not low.t + 0.01 * gap < t < high.t - 0.01 * gap:
        finite = math.isfinite(high.slope)
        t = low.t - low.slope * gap / (high.slope - low.slope) if finite else math.nan
    if not math.isfinite(t) or gap > SLOW * width:
        t = 0.5 * (low.t + high.t) if low.t > 0.0 else 0.1 * high.t
    return min(max(t, low.t + 0.01 * gap), high.t - 0.01 * gap), gap
