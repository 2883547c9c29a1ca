"""What a run has proved so far: f* lies between `lower` and `upper`.

Any evaluated value is an upper bound.  The lower bound is the best of the estimate sequence's certificates (for the
radius the user vouches for, or without one where mu > 0) and of the single cuts at the evaluated points.  Bounds only
improve: they are kept across iterations and restarts, however the iterates were made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .arrays import Array
from .convexity import Convexity
from .estimate import rounding
from .methods.base import State
from .objectives.operators import quiet
from .result import Cut, Status, cut_at


@dataclass
class Bounds:
    """An observer of the states; also the stopping criterion on the gap."""

    radius: float | None  # an l_2 bound on ||x_0 - x*||
    mu: float  # strong convexity w.r.t. l_2
    gap_tol: float = -math.inf
    lower: float = -math.inf
    upper: float = math.inf
    x: Array = None  # where upper was found
    blur: float = 0.0  # what a gradient may be off by
    convexity: Convexity | None = None  # None: f is convex by construction
    withdrawn: str = ""  # why nothing is certified after all

    @property
    def known(self) -> bool:
        """Whether a lower bound can be had at all."""
        return (self.radius is not None or self.mu > 0.0) and not self.withdrawn

    @property
    def gap(self) -> float:
        """The certified gap of the best point so far."""
        return self.upper - self.lower

    @quiet
    def __call__(self, state: State) -> None:
        """Take in one state."""
        value, x = (state.at.f, state.at.x) if math.isnan(state.fun) else (state.fun, state.x)
        if value < self.upper:
            self.upper, self.x = value, x
        if self.convexity is not None and not self.convexity(state.at, state.iteration):
            self._withdraw(self.convexity.violation)
        if not self.known:
            return
        self.blur = max(self.blur, state.estimate.blur)
        certified = state.estimate.certificate(state.origin).lower(self.radius)
        self.lower = max(self.lower, certified, self._cut(state).lower(self.radius, self.mu))
        if self.lower > self.upper + rounding(self.lower, self.upper, eps=state.at.eps):
            self._withdraw(
                f"A lower bound, {self.lower:.6g}, is above the value {self.upper:.6g}: the radius is too small, mu "
                "too large, or the function not convex; nothing is certified."
            )

    def _withdraw(self, why: str) -> None:
        self.withdrawn = self.withdrawn or why
        self.lower = -math.inf

    def _cut(self, state: State) -> Cut:
        """The cut at the evaluated point; the distance to x_0 matters to a radius only."""
        e = state.at
        if self.radius is not None:
            return cut_at(e, state.origin, self.blur)
        return Cut(e.f, e.norm2, 0.0, 0.0, e.eps, max(self.blur, 8.0 * e.eps * e.norm2))

    def criterion(self, state: State) -> Status | None:
        """Whether the gap is small enough."""
        return Status.GAP if self.gap <= self.gap_tol and not self.withdrawn else None
