"""The function at one point: value, gradient, their norms, and what rounding may have done to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .arrays import Array, largest_size, resolution
from .doubt import CERTAIN, Doubt, Sizes
from .geometry import norm2


def is_finite(x: Array) -> bool:
    """Whether all entries are finite."""
    return math.isfinite(largest_size(x))


@dataclass(frozen=True)
class Evaluation:
    """The function at one point."""

    x: Array  # the point
    f: float  # f(x)
    g: Array  # grad f(x)
    precision: float = 0.0  # relative error of the products behind f and g, where it is coarser than x's own
    doubt: Doubt = CERTAIN  # what f and g may be off by

    def df(self, bend: float = 0.0) -> float:
        """What f may be off by; bend is the largest curvature that the run has seen."""
        doubt = self.doubt
        return doubt.value + bend * doubt.value_bend

    def dg(self, bend: float = 0.0) -> float:
        """What g may be off by, in l_2."""
        doubt = self.doubt
        return doubt.slope + bend * doubt.slope_bend + math.sqrt(bend) * doubt.slope_root

    @cached_property
    def finite(self) -> bool:
        """Whether point, value and gradient are free of NaN and inf."""
        # The norms are needed anyway.  They may overflow where no entry does: then the entries are looked at.
        seen = math.isfinite(self.f) and (math.isfinite(self.norm2) or is_finite(self.g))
        return seen and (math.isfinite(self.size) or is_finite(self.x))

    @cached_property
    def norm2(self) -> float:
        """||g||_2."""
        return norm2(self.g)

    @cached_property
    def size(self) -> float:
        """||x||_2."""
        return norm2(self.x)

    @cached_property
    def eps(self) -> float:
        """The resolution of the numbers that x, f and g are made of."""
        return max(resolution(self.x), self.precision)


def sizes_of(e: Evaluation, precision: float = 0.0) -> Sizes:
    """The sizes of an evaluation whose numbers are no finer than x's, nor than the precision."""
    return Sizes(e.f, e.norm2, e.size, largest_size(e.x), e.x.shape[0], max(resolution(e.x), precision))


class Change(NamedTuple):
    """From one evaluation to another."""

    before: Evaluation
    after: Evaluation
    s: Array  # the step between their points
    length: float  # its l_2 norm
    turn: float  # that of the change of the gradient, a vector that is not kept

    @classmethod
    def between(cls, before: Evaluation, after: Evaluation) -> Change:
        """From `before` to `after`."""
        turn, s = norm2(after.g - before.g), after.x - before.x
        return cls(before, after, s, norm2(s), turn)


class Bend(NamedTuple):
    """The largest curvature between evaluations that followed each other."""

    largest: float = 0.0
    last: Evaluation | None = None  # the newest
    pairs: int = 0  # how many were compared: without any, nothing is known

    def with_evaluation(self, e: Evaluation) -> Bend:
        """The curvature with one more evaluation; rounding of the points is added to their distance."""
        return Bend(last=e) if self.last is None else self.with_change(Change.between(self.last, e))

    def with_change(self, change: Change) -> Bend:
        """The same, where the change from the last evaluation to this one is known."""
        before, e, _, apart, turn = change
        noise = 4.0 * e.eps * max(e.size, before.size)
        far = apart + noise
        seen = turn / far if far > 0.0 else 0.0
        # points that their last digits do not tell apart show no curvature by having the same gradient
        return Bend(max(self.largest, seen), e, self.pairs + (apart > noise))


NO_BEND = Bend()
