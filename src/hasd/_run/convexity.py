"""Whether what was seen of a function fits a convex one: a cut never lies above a value.

For a convex f, f(y) >= f(x) + <g(x), y - x> for all x and y.  The newest evaluation is held against the one before it
and, in turn, against the first and the best, both ways: four inner products an iteration.  A function that fails may be
minimised all the same, but nothing is proved about it any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .._math.evaluation import Evaluation
from .._math.geometry import dot, norm2


class Seen(NamedTuple):
    """An evaluation and its iteration."""

    e: Evaluation
    iteration: int


@dataclass
class Convexity:
    """An observer of evaluations; `violation` says what was found, empty while all is well."""

    first: Seen | None = None
    best: Seen | None = None
    last: Seen | None = None
    violation: str = ""

    def __call__(self, e: Evaluation, iteration: int, bend: float) -> bool:
        """Whether no violation was found so far, this evaluation included; bend: the largest curvature seen."""
        if self.violation or not e.finite:
            return not self.violation
        new = Seen(e, iteration)
        if self.first is None or self.best is None or self.last is None:
            self.first = self.best = self.last = new
            return True
        if e.g is not self.last.e.g:  # arrays are compared: evaluations from a checkpoint are new objects
            self._compare(self.last, new, bend)
            self._compare(self.best if iteration % 2 else self.first, new, bend)
        self.last = new
        if e.f < self.best.e.f:
            self.best = new
        return not self.violation

    def _compare(self, old: Seen, new: Seen, bend: float) -> None:
        """Compare each cut with the value at the other point."""
        e, other = new.e, old.e
        away = e.x - other.x
        distance = norm2(away)
        doubt = e.df(bend) + other.df(bend)
        dg, dh = e.dg(bend), other.dg(bend)
        rise = e.f - other.f
        forward, explained = dot(other.g, away) - rise, doubt + dh * distance
        backward, also = rise - dot(e.g, away), doubt + dg * distance
        if forward > explained or backward > also:
            if backward - also > forward - explained:
                above, explained, at, where = backward, also, new.iteration, old.iteration
            else:
                above, at, where = forward, old.iteration, new.iteration
            self.violation = (
                f"The function is not convex, or noisy, or its gradient is wrong: the cut at iteration {at} is "
                f"{above:.3g} above the value at iteration {where}, and rounding explains {explained:.1g} of it; "
                "nothing is certified."
            )
