"""Newton's method in a few coordinates: minimise c -> f(x + S c) where the images A S are known.

f(x + S c) = phi(z + W c) + (mu/2) ||x + S c||^2 with S orthonormal: a step costs passes over n, no product with A.  The
Newton direction is damped by a multiple of the gradient's norm (curvature can vanish far from the optimum), and the
step along it is found by the line search of all methods that keep images.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._math.arrays import Array
from .._math.cholesky import cholesky, solve
from .._math.doubt import EPS
from .._math.geometry import dot, norm2
from .._run.status import Status, Stop
from ..objectives._images import Basis, Images, Point, Small
from ._costs import Costs
from ._line_search import Look, Ray, wolfe
from ._span import Span

FLOOR = 1e-12
"""Curvature below this part of the largest is rounding."""
SHORT, LONG = 0.2, 0.7
"""Steps shorter than SHORT raise the damping, steps longer than LONG lower it."""
SOLVED, BEGUN = 0.1, 0.6
"""The share of its first size to which the gradient in the span must fall: SOLVED, or BEGUN in a span that grows to
the whole space, where no direction is ever dropped and it pays to widen the span first."""
FAR = 16.0
"""The first look is at most so many times the size of z away: without curvature Newton's step is far too long."""
SPARE = 16.0
"""Steps in a span may cost as much as so many iterations cost without them.  A smaller limit, such as 4, takes more
products in about the same time."""
ENDLESS = 1e9
"""How far to look, in sizes of z, where the curvature has vanished, to see whether f falls without end."""


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


class Effort(NamedTuple):
    """What may be spent in one span."""

    steps: int  # Newton steps, at most
    costs: Costs  # by which they are counted

    def is_over(self, spent: float) -> bool:
        """Whether steps that have cost so much are enough: products with A would have served as well."""
        return spent >= SPARE * self.costs.step(0)


def minimise(
    images: Images, span: Span, place: Place, ridge: Ridge, gradient: Small, effort: Effort, faint: float
) -> Place:
    """Newton steps until the gradient in these coordinates, given at first, has fallen enough, or the effort is over.

    A slope along a unit vector that is not steeper than `faint` does not show that f falls without end.
    """
    W, size, spent = span.W, norm2(gradient), 0.0
    enough = (BEGUN if span.grows else SOLVED) * size
    for steps in range(effort.steps):
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
        image = images.along(place.point, images.expand(W, step))
        ray = Ray(images, place.point, image, ridge.bowl(place.c, step))
        reach = images.reach(place.point, ray.image)
        look, looks = wolfe(ray, place.f, slope, min(1.0, FAR * reach), EPS)
        top = float(H.diagonal().max(initial=0.0)) / size
        if look is None:
            return place._replace(damping=max(16.0 * place.damping, 1e-6 * top))
        is_steady = look.slope < 0.5 * slope and (look.t < 1.0 or place.damping == 0.0 or top == 0.0)
        if is_steady and -slope > faint * norm2(step):
            _refuse_endless(ray, reach, look.t)
        place = _take(place, look, step, top)
        spent += effort.costs.span_step(span.k, looks)
        if effort.is_over(spent):
            break
    return place


def direction(H: Small, gradient: Small, damping: float) -> Small:
    """-(H + damping I)^{-1} gradient; curvature at rounding level is taken for 0."""
    top = float(H.diagonal().max(initial=0.0))
    if not (top > 0.0 and math.isfinite(top)):
        return -gradient
    damped = H.copy()
    damped.flat[:: len(H) + 1] += damping + FLOOR * top
    try:
        return -solve(cholesky(damped), gradient)
    except np.linalg.LinAlgError:
        return -gradient / top


def _refuse_endless(ray: Ray, reach: float, t: float) -> None:
    """Stop where f, which fell steadily up to t along a step that no curvature shortened, falls far ahead as well."""
    if ray.images.move(ray.point, ray.image, ENDLESS * (reach if math.isfinite(reach) else t))[1] < 0.0:
        raise Stop(Status.UNBOUNDED)


def _take(place: Place, look: Look, step: Small, top: float) -> Place:
    """The place that was looked at, and the damping after a step of t times Newton's."""
    damping = place.damping
    if look.t < SHORT:
        damping = max(4.0 * damping, 1e-4 * top)
    elif look.t > LONG:
        damping = 0.25 * damping if damping > 1e-9 * top else 0.0
    return Place(place.c + look.t * step, look.found, look.f, damping)
