"""What a run has proved so far: f* lies between `lower` and `upper`.

Any evaluated value is an upper bound.  The lower bound is the best of the estimate sequence's certificates (for the
radius the user vouches for, or without one where mu > 0) and of the single cuts at the evaluated points.  Bounds only
improve: they are kept across iterations and restarts, however the iterates were made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .geometry import Array, dot
from .methods.base import State
from .result import Status, one_cut


@dataclass
class Bounds:
    """An observer of the states; also the stopping criterion on the gap."""

    radius: float | None  # an l_2 bound on ||x_0 - x*||
    mu: float  # strong convexity w.r.t. l_2
    gap_tol: float = -math.inf
    lower: float = -math.inf
    upper: float = math.inf
    x: Array = None  # where upper was found

    @property
    def known(self) -> bool:
        """Whether a lower bound can be had at all."""
        return self.radius is not None or self.mu > 0.0

    @property
    def gap(self) -> float:
        """The certified gap of the best point so far."""
        return self.upper - self.lower

    def __call__(self, state: State) -> None:
        """Take in one state."""
        value, x = (state.at.f, state.at.x) if math.isnan(state.fun) else (state.fun, state.x)
        if value < self.upper:
            self.upper, self.x = value, x
        if not self.known:
            return
        certified = state.estimate.certificate(state.origin).lower(self.radius)
        tilt = dot(state.at.g, state.origin - state.at.x) if self.radius is not None else math.nan
        single = one_cut(state.at.f, state.at.norm2, tilt, self.radius, self.mu)
        self.lower = max(self.lower, certified, single)

    def criterion(self, state: State) -> Status | None:
        """Whether the gap is small enough."""
        return Status.GAP if self.gap <= self.gap_tol else None
