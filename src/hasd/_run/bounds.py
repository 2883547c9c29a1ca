"""What a run has proved so far: f* lies between `lower` and `upper`.

Any evaluated value is an upper bound.  The lower bound is the best of the estimate sequence's certificates (for the
radius the user vouches for, or without one where mu > 0) and of the single cuts at the evaluated points.  Bounds only
improve: they are kept across iterations and restarts, however the iterates were made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .._math.arrays import Array
from .._math.doubt import CERTAIN, Doubt
from .._math.estimate import EstimateBound
from .._math.evaluation import Change, Evaluation
from .certificate import TINY, Cut, cut_at
from .convexity import Convexity
from .oracle import Oracle
from .record import State, restore_fields

NOTHING = EstimateBound(weight=0.0, psi=0.0, mu=0.0, reach=0.0)
"""A bound that says nothing: -inf for every radius."""
NOWHERE = Cut(f=math.inf, slope=math.inf, tilt=-math.inf, away=0.0)
"""A cut that proves nothing."""


@dataclass
class Bounds:
    """An observer of the states."""

    radius: float | None  # an l_2 bound on ||x_0 - x*||
    mu: float  # strong convexity w.r.t. l_2
    gap_tol: float = -math.inf
    lower: float = -math.inf
    upper: float = math.inf
    x: Array = None  # where upper was found
    doubt: Doubt = CERTAIN  # what upper may be off by
    certificate: EstimateBound = NOTHING  # the estimate that gave the best lower bound of its kind
    cut: Cut | EstimateBound = NOTHING  # the cut that gave the best lower bound of its kind
    nearest: Cut = NOWHERE  # the cut whose slope proves the least gap at its own point
    near: float = math.inf  # that gap
    near_x: Array = None  # that point
    convexity: Convexity | None = None  # None: f is convex by construction, or its gradients too coarse to tell
    oracle: Oracle | None = None  # which knows the curvature that was seen
    withdrawn: str = ""  # why nothing is certified after all
    is_nonconvex: bool = False  # whether that is because cuts lay above values, and not a constant of the user's
    assumed: str = ""  # what the estimates of the method assume beside that, in words; they then need no radius
    proved: tuple[float, float] = (-math.inf, -math.inf)  # by the certificate and by the cut, for the curvature below
    charged_for: float = math.nan  # the curvature that `proved` and `near` are charged for; NaN: none yet
    kept: ClassVar[tuple[str, ...]] = (  # what a checkpoint holds
        "upper",
        "x",
        "doubt",
        "certificate",
        "cut",
        "nearest",
        "near_x",
        "withdrawn",
        "is_nonconvex",
        "convexity",
    )

    def restore(self, known: Mapping[str, Any]) -> None:
        """Take over what a run had proved, for the radius of this one."""
        watched = self.convexity is not None
        restore_fields(self, known)
        self.convexity = self.convexity if watched else None
        if self.can_certify:
            self._charge(self.bend)
            self.lower = max(self.proved)

    def _charge(self, bend: float) -> None:
        """Charge the proofs so far for the curvature that is known now."""
        self.proved = self.certificate.lower(self.radius, bend), self.cut.lower(self.radius, bend)
        self.near, self.charged_for = self.nearest.gap(self.radius, bend), bend

    @property
    def can_certify(self) -> bool:
        """Whether a lower bound can be had at all."""
        return (self.radius is not None or self.mu > 0.0 or self.assumed != "") and not self.withdrawn

    @property
    def bend(self) -> float:
        """The largest curvature seen, by which a user's function is judged, at least mu."""
        if self.oracle is None or not self.oracle.source.by_curvature:
            return 0.0
        return max(self.oracle.bend.largest, self.mu)

    @property
    def _knows_rounding(self) -> bool:
        """Whether rounding can be judged: that of a user's function only after a second point has shown curvature."""
        return self.oracle is None or not self.oracle.source.by_curvature or self.oracle.bend.pairs > 0

    @property
    def gap(self) -> float:
        """The certified gap of the best point so far."""
        return min(self._upper - self.lower, self.near)

    @property
    def best(self) -> Array:
        """The point that it is the gap of."""
        return self.near_x if self.near < self._upper - self.lower else self.x

    @property
    def _upper(self) -> float:
        """An upper bound on the least value: the value with what it may be off by."""
        return self.upper + self.doubt.value + self.bend * self.doubt.value_bend

    def __call__(self, state: State) -> None:
        """Take in one state.  The caller silences NumPy's warnings."""
        bend, at, oracle = self.bend, state.at, self.oracle
        if self.convexity is not None and at.finite and not self.withdrawn:
            change = Change.between if oracle is None else oracle.change
            self.convexity, self.withdrawn = self.convexity.with_evaluation(at, state.iteration, bend, change)
            self.is_nonconvex = self.withdrawn != ""
        if oracle is not None:
            oracle.newest = None  # it holds vectors, which the next step does not need
        value, x = (at.f, at.x) if math.isnan(state.fun) else (state.fun, state.x)
        if value < self.upper:
            self.upper, self.x, self.doubt = value, x, _value_doubt(value, at)
        if not (self.can_certify and self._knows_rounding):
            return
        radius, estimate = self.radius, state.bound
        cut = cut_at(at, None if radius is None else state.origin, self.mu)
        # Both the proofs so far and the new ones are charged for the curvature that is known now.
        if bend != self.charged_for:
            self._charge(bend)
        proved, cut_proved = self.proved
        if (lower := estimate.lower(radius, bend)) > proved:
            self.certificate, proved = estimate, lower
        if (lower := cut.lower(radius, bend)) > cut_proved:
            self.cut, cut_proved = cut, lower
        if (gap := cut.gap(radius, bend)) < self.near:
            self.nearest, self.near_x, self.near = cut, at.x, gap
        self.proved, self.lower = (proved, cut_proved), max(proved, cut_proved)
        if self.lower - self._upper > TINY or self.near < -TINY:
            self.withdraw(max(self.lower, self.upper - self.near), self.upper)

    def gap_of(self, value: float, at: Evaluation) -> float:
        """The certified gap of a value of the function, at the point of this evaluation or near it."""
        if not self.can_certify:
            return math.inf
        doubt = _value_doubt(value, at)
        return max(value + doubt.value + self.bend * doubt.value_bend - self.lower, 0.0)

    def withdraw(self, lower: float, value: float) -> None:
        """Certify nothing any more, as a lower bound is above a value."""
        objective = None if self.oracle is None else getattr(self.oracle.source, "objective", None)
        reasons = [] if self.radius is None else [f"radius = {self.radius:g} is too small"]
        reasons += [f"mu = {self.mu:g} is too large"] if self.mu > getattr(objective, "ridge", 0.0) else []
        reasons += [f"{self.assumed} is wrong"] if self.assumed else []
        reasons += [] if self.convexity is None else ["the function is not convex"]
        reasons = reasons or ["rounding is larger than it is taken to be"]
        contradiction = (
            f"A lower bound, {lower:.10g}, is above a value that was found, {value:.10g}, by {lower - value:.2g}"
        )
        self.withdrawn = f"{contradiction}: {', or '.join(reasons)}; nothing is certified."

    def is_closed_at(self, e: Evaluation, origin: Array) -> bool:
        """Whether the certified gap at this very point is small enough."""
        near = cut_at(e, origin, self.mu).gap(self.radius, self.bend)
        return not self.withdrawn and min(e.f + e.df(self.bend) - self.lower, near) <= self.gap_tol


def _value_doubt(value: float, at: Evaluation) -> Doubt:
    """What a value may be off by; one without its gradient gets the doubt of the evaluation before it."""
    return at.doubt if value == at.f else at.doubt._replace(value=at.doubt.value + 4.0 * at.eps * abs(value))
