"""A bound on f(x) - f* from the dual, for f = phi(Ax - b) + ridge/2 ||x||^2: what ``Affine.duality_gap`` computes.

For every u, with z = Ax - b and v = A^T u (Fenchel-Young, then the minimum over y),

    f(x) - f(y) <= F(u) + ridge/2 ||x||^2 + <v, x> - <v, y> - ridge/2 ||y||^2,  F(u) = phi(z) + phi*(u) - <u, z> >= 0,
    f(x) - f*   <= F(u) + ||v + ridge x||^2/(2 ridge)                            over all y, ridge > 0,
    f(x) - f_R  <= F(u) + ridge/2 (||x||^2 - R^2) + <v, x> + R ||v||             f_R the least over ||y|| <= R.

At u = phi'(z), F = 0 and the second line is ||grad f||^2/(2 ridge).  A Newton step in the dual does better: with
H = phi''(z), K = A^T H A and (K + ridge) w = grad f, minimising the model 1/2 <d, H^-1 d> of F gives

    u' = u - H A w,    v' + ridge x = ridge w + res,    gap ~ 1/2 <grad f, w> + ||res||^2/(2 ridge),

so conjugate residuals, which make ||res|| least, are the right iteration, and the bound tends to the true gap to
second order.  At ridge = 0 the same u' is the projection onto A^T u = 0 in the metric H^-1.  That metric knows the
domain of phi*: an entry of u near its end moves in proportion to its distance from it, and for log-sum-exp the sum
stays 1; the Euclidean projection leaves the simplex at the first entry of u that is nearly 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from .._math.arrays import copy_of, namespace, to_float64, total
from .._math.geometry import dot, norm2
from ._operators import Vector, quiet
from .losses import LogSumExpLoss

REACH = 100.0
"""Without ridge and radius, a residual of rounding size is charged for minimisers up to REACH (||x|| + ||w||) away."""
SAFE = 8.0
"""Rounding is charged at so many times the machine's precision of the sizes that were added."""
EXCESS = 0.1
"""The projection ends when what it could still gain is this part of the gap."""
TRIALS = 16
"""Points tried along a segment, each O(n): they find the best one to 1e-3 of its length."""


@dataclass(frozen=True)
class Dual:
    """A point of the dual space."""

    u: Vector
    pulled: Vector  # v = A^T u

    def move_towards(self, other: Dual, t: float) -> Dual:
        """(1 - t) self + t other, without a product."""
        return Dual((1.0 - t) * self.u + t * other.u, (1.0 - t) * self.pulled + t * other.pulled)


class DualPoint:
    """A point x with its value, its dual point u = phi'(z) and the sizes that its bounds need."""

    def __init__(self, objective: Any, x: Vector, radius: float | None) -> None:
        """Evaluate at x; two products."""
        self.objective, self.x, self.radius = objective, x, radius
        self.ridge, self.eps = objective.ridge, objective.precision
        self.size = norm2(x)
        self.z = objective.image(x)
        self.value, u = objective.loss.value_and_slope(self.z)
        self.dual = Dual(u, objective.adjoint(u))
        self.slope = self.dual.pulled + self.ridge * x  # grad f
        image = self.z if objective.b is None else self.z + objective.b
        # The largest ratio seen, which is ||A||_2 at most.
        self.norm = max(ratio(norm2(self.dual.pulled), norm2(u)), ratio(norm2(image), self.size))
        self.step = 0.0  # ||w||

    def gap(self, dual: Dual) -> float:
        """The bound from one u, inf where u proves nothing; rounding in f and in the bound is added."""
        u, v = dual.u, dual.pulled
        loss: Any = self.objective.loss
        conjugate, b = loss.conjugate(u), self.objective.b
        entries = abs(self.z) if b is None else abs(self.z) + abs(b)
        sizes = abs(self.value) + abs(conjugate) + dot(abs(u), entries) + self.ridge * self.size * self.size
        young = self.value + conjugate - dot(u, self.z) + SAFE * self.eps * sizes
        gap = max(young, 0.0) + self._cost_of_residual(v, SAFE * self.eps * self.norm * norm2(u))
        return math.inf if math.isnan(gap) else gap

    def _cost_of_residual(self, v: Vector, blur: float) -> float:
        """The largest difference that v, which may be off by blur, leaves between f(x) and f(y)."""
        if self.radius is None and self.ridge == 0.0:
            far, away = norm2(v), (1.0 + REACH) * (self.size + self.step)
            return (far + blur) * away if far <= 8.0 * blur else math.inf
        return penalty(v, self.x, self.ridge, self.radius, blur)

    def is_enough(self, r: Vector, w: Vector, u: Vector) -> bool:
        """Whether a residual r costs little beside 1/2 <grad f, w>, or is rounding."""
        far = norm2(r)
        if far <= 4.0 * self.eps * self.norm * norm2(u):
            return True
        excess = far * far / (2.0 * self.ridge) if self.ridge > 0.0 else math.inf
        if self.radius is not None:
            excess = min(excess, far * (self.size + self.radius))
        return excess <= EXCESS * 0.5 * dot(self.slope, w)


@quiet
def duality_gap(objective: Any, x: Vector, radius: float | None = None, iterations: int = 100) -> float:
    """The least of the bounds from u = phi'(z), from u' and from 0; see ``Affine.duality_gap``.

    Points between the three are tried only where u' is outside the domain of phi*: elsewhere they gain a percent.
    """
    point = DualPoint(objective, to_float64(x), radius)
    if not math.isfinite(point.value):
        return math.inf if point.value > 0.0 else math.nan
    newton = _newton(point, iterations) if iterations > 0 else point.dual
    zero = Dual(_zeros(newton.u), _zeros(newton.pulled))
    bounds = [(point.gap(dual), dual) for dual in (newton, point.dual, zero)]
    gap, best = min(bounds, key=itemgetter(0))
    if bounds[0][0] == math.inf > gap:
        for end in (newton, point.dual, newton):
            gap, best = min((gap, best), _best_between(point, best, end), key=itemgetter(0))
    return gap


def _newton(point: DualPoint, iterations: int) -> Dual:
    """u' = u - H A w by conjugate residuals on (A^T H A + ridge) w = A^T u + ridge x; 2 products each, 1 a cycle.

    A cycle ends by its own residual; the true one, computed again from u', decides whether another cycle may gain.
    """
    objective, ridge = point.objective, point.ridge
    curvature = objective.loss.curvature(point.z)
    dual, w = point.dual, _zeros(point.x)
    before = math.inf
    while True:
        r = dual.pulled + ridge * (point.x - w)
        if iterations <= 0 or not norm2(r) < 0.5 * before or point.is_enough(r, w, dual.u):
            point.step = norm2(w)
            return dual
        before = norm2(r)
        u, energy = copy_of(dual.u), 0.0
        p, Hp, Kp = _zeros(r), _zeros(u), _zeros(r)
        while iterations > 0 and not point.is_enough(r, w, u):
            Ar = objective.forward(r)
            Hr = curvature.times(Ar)
            Kr = objective.adjoint(Hr) + ridge * r
            iterations -= 1
            point.norm = max(point.norm, ratio(norm2(Ar), norm2(r)))
            energy, previous = dot(r, Kr), energy
            beta = energy / previous if previous > 0.0 else 0.0
            p, Hp, Kp = r + beta * p, Hr + beta * Hp, Kr + beta * Kp
            square = dot(Kp, Kp)
            if not (energy > 0.0 and 0.0 < square < math.inf):  # K r = 0, or lost to under- or overflow
                break
            a = energy / square
            w = w + a * p
            u -= a * Hp
            r = r - a * Kp
        if isinstance(objective.loss, LogSumExpLoss):
            u /= total(u)
        dual = Dual(u, objective.adjoint(u))


def _best_between(point: DualPoint, one: Dual, other: Dual) -> tuple[float, Dual]:
    """The best dual point on a segment that begins inside the domain, by golden section: D is concave."""
    shrink = (math.sqrt(5.0) - 1.0) / 2.0

    def at(t: float) -> tuple[float, float]:
        return point.gap(one.move_towards(other, t)), t

    low, high = 0.0, 1.0
    left, right = at(1.0 - shrink), at(shrink)
    for _ in range(TRIALS - 2):
        if left[0] <= right[0]:  # also where both are inf: the domain ends before them
            high, right = right[1], left
            left = at(high - shrink * (high - low))
        else:
            low, left = left[1], right
            right = at(low + shrink * (high - low))
    gap, t = min(left, right)
    return gap, one.move_towards(other, t)


def _zeros(v: Vector) -> Vector:
    return namespace(v).zeros_like(v)


def ratio(image: float, length: float) -> float:
    """How much longer the image is than what it is the image of; 0 where that has no length."""
    return image / length if length > 0.0 else 0.0


def penalty(v: Vector, x: Vector, ridge: float, radius: float | None, blur: float) -> float:
    """max over ||y|| <= radius of <v, x - y> + ridge/2 (||x||^2 - ||y||^2) for a v that may be off by blur."""
    far, size = norm2(v), norm2(x)
    if ridge > 0.0 and (radius is None or far <= ridge * radius):
        short = norm2(v + ridge * x) + blur
        return short * (short / (2.0 * ridge))
    if radius is None:
        return math.inf
    inner = dot(v, x) + radius * far + blur * (size + radius)
    return inner + 0.5 * ridge * (size - radius) * (size + radius)
