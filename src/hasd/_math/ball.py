"""The lower bound that an estimate proves where a minimiser lies in an l_p ball around x_0.

The weighted cuts of psi_t sum to m + <s, x - x_0>, with s = x_0 - v_t and m = psi*_t + 1/2 ||s||_2^2, so that

    A_t f* >= min {m + <s, x - x_0> : ||x - x_0||_p <= R} = m - R ||s||_{p*}       for every R >= ||x_0 - x*||_p.

It is (psi*_t - R^2/2 + (R - ||s||)^2/2) at p = 2, the bound of `EstimateBound`, in another norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from .doubt import EPS
from .estimate import EstimateBound


class Ball(NamedTuple):
    """{x : ||x - x_0||_p <= R}, which holds a minimiser by the word of the user."""

    R: float
    spread: float  # d^{1/2 - 1/p}: the largest ||x||_2/||x||_p


EVERYWHERE = Ball(math.inf, 1.0)
"""The ball that says nothing."""


@dataclass(frozen=True)
class BallBound(EstimateBound):
    """The scalars that both bounds need: for an l_2 radius, and for the ball."""

    dual: float = math.inf  # ||s||_{p*}
    ball: Ball = EVERYWHERE

    def lower(self, radius: float | None = None, bend: float = 0.0) -> float:
        """f* >= this, whether a radius is given or not; rounding is taken off."""
        if self.weight == 0.0:
            return -math.inf
        bound = (self._cuts() - self._charge(radius, bend)) / self.weight
        return max(super().lower(radius, bend), bound if math.isfinite(bound) else -math.inf)

    def rounding_charge(self, radius: float | None = None, bend: float = 0.0) -> float:
        """How much of `lower` is the charge for rounding: both bounds without it, and then the better one."""
        if self.weight == 0.0:
            return 0.0
        exact = super().lower(radius, bend) + super().rounding_charge(radius, bend)
        return max(self._cuts() / self.weight, exact) - self.lower(radius, bend)

    def _cuts(self) -> float:
        """The least value of the weighted cuts over the ball."""
        return self.psi + 0.5 * self.reach * self.reach + self.rest - self.ball.R * self.dual

    def _charge(self, radius: float | None, bend: float) -> float:
        """What rounding may have added to the cuts, at the farthest point of the ball in l_2, and to this sum."""
        far = self.ball.spread * self.ball.R
        far = far if radius is None else min(far, radius + self.offset)
        size = abs(self.psi) + self.reach * self.reach + self.ball.R * self.dual
        return self.charge.at(far * (1.0 + 8.0 * EPS), bend) + 2.0 * self.unit * size
