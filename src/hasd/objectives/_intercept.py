"""An intercept without a penalty: phi(z) = min over c of loss(z + c), a function of z alone.

Minimising over c keeps f(x) = phi(Ax) + ridge/2 ||x||^2 convex, and as strongly convex in x as the ridge says: every
certificate holds as it is, although c has no penalty.  With the loss expanded at z + c for the best c, where the sum of
its slope is 0,

    phi'(z) = loss'(z + c),    phi''(z) = H - H 1 1^T H / 1^T H 1,    phi*(u) = loss*(u) where u sums to 0, inf beyond.

Newton's method finds c.  It ends where what c could still gain, g^2/(2h) for the sum g of the slope and h of the
curvature, is rounding, or where entries of z are so large that rounding of z + c hides the step.  The slope is then
that of the next step, whose sum is 0 whatever c is:

    u = loss'(z + c) - H 1 g/h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from .._math.arrays import extreme_entries, total, vanishes
from .._math.doubt import EPS
from .._math.geometry import dot
from ._images import Image, LocalImages, Point
from ._loss import Expansion, Loss
from ._operators import Matrix, Vector, quiet
from ._smoothness import Smoothness
from .losses import SLACK, LogisticLoss

LOOKS = 200
"""Values of c that are tried: halving an interval takes a hundred."""
NEAR = 2.0**-6
"""Newton's step to the best c is so short at the end: the curvature, which changes by exp(step) at most, is known."""
ROOM = 2.0**-40
"""By so much, relative to 1 and the odds, the interval in which the best c lies is widened for rounding."""


@dataclass(frozen=True, eq=False)
class InterceptLoss(Loss):
    """phi(z) = min over c of loss(z + c), for a logistic loss with labels of both kinds.

    >>> import numpy as np
    >>> loss = InterceptLoss(LogisticLoss(np.array([1, 1, 1, -1])))
    >>> z, expansion = loss.settle(np.zeros(4))
    >>> z.round(9), round(expansion.value, 9)               # the logarithm of the odds, 3 to 1, and its loss
    (array([1.09861229, 1.09861229, 1.09861229, 1.09861229]), 0.562335145)
    """

    bounded_below: ClassVar[bool] = True

    inner: LogisticLoss
    odds: float = field(init=False)  # the logarithm of the odds of the labels

    def __post_init__(self) -> None:
        """Refuse labels of one kind, for which no c is best."""
        y, weights = self.inner.y, self.inner.weights
        kinds = (0.5 + 0.5 * y, 0.5 - 0.5 * y)
        above, below = (total(kind) if weights is None else dot(weights, kind) for kind in kinds)
        if not (above > 0.0 and below > 0.0):
            raise ValueError("y must hold labels of both kinds where there is an intercept")
        object.__setattr__(self, "odds", math.log(above / below))

    def settle(self, z: Vector, known: Expansion | None = None) -> tuple[Vector, Expansion]:
        """z + c for the best c, and phi expanded there; its value is NaN where no c was found, as z is too large.

        The best c for z = 0 is the logarithm of the odds of the labels, and where z moves by at most t, so does c.
        known: the loss expanded at z.
        """
        c, before = self.odds if known is None and vanishes(z) else 0.0, math.inf
        bracket: list[float] = []
        finest = 0.0  # a step of c that rounding of z + c hides
        for _ in range(LOOKS):
            there = z + c if c != 0.0 else z
            e, known = known or self.inner.expand(there), None
            g, h = total(e.slope), e.scale * total(e.diagonal)
            if not math.isfinite(e.value):
                return there, e
            if abs(g) <= NEAR * h and g * g <= EPS * e.value * h:
                return there, _expand_at_best(e, g, h)
            step = -g / h if h > 0.0 else math.inf
            if abs(step) <= min(finest, NEAR):
                return there, _expand_at_best(e, g, h)
            if not bracket and not abs(step) <= min(1.0, 0.5 * before):
                low, high = extreme_entries(z)
                room = ROOM * (1.0 + abs(self.odds))
                bracket = [self.odds - high - room, self.odds - low + room]
                finest = EPS * max(-low, high)
            if bracket:
                bracket[0 if g < 0.0 else 1] = c
                if not (bracket[0] < c + step < bracket[1] and abs(step) <= 0.5 * before):
                    step = 0.5 * (bracket[0] + bracket[1]) - c
            c, before = c + step, abs(step)
        return z, e._replace(value=math.nan)

    @quiet
    def shift(self, z: Vector) -> float:
        """The best c."""
        there, _ = self.settle(z)
        return float(there[0] - z[0])

    @staticmethod
    def follow(expansion: Expansion, direction: Vector) -> float:
        """The derivative of the best c, where z moves along the direction."""
        curvature = 0.0 if expansion.rank_one is None else total(expansion.rank_one)  # None where phi has no value
        return -dot(expansion.rank_one, direction) / curvature if curvature > 0.0 else 0.0

    def expand(self, z: Vector) -> Expansion:
        """All three at the best c."""
        return self.settle(z)[1]

    @quiet
    def conjugate(self, u: Vector) -> float:
        """That of the loss where u sums to 0 but for rounding, inf beyond."""
        return self.inner.conjugate(u) if abs(total(u)) <= SLACK * total(abs(u)) else math.inf

    def image_doubt(self, size: float) -> float:
        """What the entries of z + c lose to rounding, z being of this size: c is as large, but for the odds."""
        return 0.5 * EPS * (2.0 * size + abs(self.odds))

    def doubt(self, value: float, rows: int, dz: float) -> tuple[float, float, float]:
        """That of the loss, whose z + c may move by 2 dz, and what ending the search for c leaves.

        A slope whose sum is off by s is that of a cut that is off by s |c' - c|, at most s times what z moves by: as
        much again as rounding in a product of the slope with A.
        """
        change, pull, turn = self.inner.doubt(value, rows, 2.0 * dz)
        return change + 2.0 * EPS * value, 2.0 * pull, turn

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """That of the loss, an upper bound: minimising over c only takes curvature away."""
        return Smoothness(self.inner.smoothness(A, p), exact=False)


@dataclass(frozen=True)
class InterceptImages(LocalImages):
    """Images z + c with the best c.

    A search moves c along its derivative, and so minimises the loss of z and c along a line: a convex function that is
    phi at the start, with the same derivative, and nowhere below phi.  The best c is found where the search ends.
    """

    @property
    def settles(self) -> bool:
        """Over c."""
        return True

    def _point(self, z: Vector, known: Expansion | None = None) -> Point:
        there, expansion = self.loss.settle(z, known)
        return Point(there, expansion.value, expansion)

    def along(self, point: Point, direction: Image) -> Image:
        """What z + c moves along."""
        return direction + self.loss.follow(point.expansion, direction)

    def move(self, point: Point, direction: Image, t: float) -> tuple[Point, float]:
        """The loss at z + t direction, and its derivative along the direction."""
        z = direction * t
        z += point.z
        e = self.loss.inner.expand(z)
        return Point(z, e.value, e), dot(e.slope, direction)

    def settle(self, point: Point) -> Point:
        """The best c is added."""
        return self._point(point.z, point.expansion)


def _expand_at_best(e: Expansion, g: float, h: float) -> Expansion:
    """The expansion of the loss at the best c, up to a step -g/h, as one of phi."""
    if h == 0.0:  # all curvature underflowed, and with it the slope
        return e._replace(rank_one=e.diagonal)
    slope = e.slope - (g / h * e.scale) * e.diagonal
    return e._replace(slope=slope, rank_one=e.diagonal / math.sqrt(h / e.scale))
