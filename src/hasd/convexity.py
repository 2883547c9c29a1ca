"""Whether what was seen of a function fits a convex one: a cut never lies above a value.

For a convex f, f(y) >= f(x) + <g(x), y - x> for all x and y.  The newest evaluation is held against the one before it
and, in turn, against the first and the best, both ways: four inner products an iteration.  A function that fails may be
minimised all the same, but nothing is proved about it any more.

On the way the largest curvature is noted, by which the rounding of a user's function is judged (see `doubt`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .geometry import dot, norm2
from .oracle import Evaluation


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
    bend: float = 0.0  # the largest curvature seen
    accuses: bool = True  # whether gradients are fine enough to tell; differences are not

    def __call__(self, e: Evaluation, iteration: int) -> bool:
        """Whether no violation was found so far, this evaluation included."""
        if self.violation or not e.finite:
            return not self.violation
        new = Seen(e, iteration)
        if self.first is None or self.best is None or self.last is None:
            self.first = self.best = self.last = new
            return True
        if e.g is not self.last.e.g:  # asked of the arrays, as an evaluation that comes from a checkpoint is made anew
            with np.errstate(all="ignore"):  # a run that diverges may overflow here
                self._compare(self.last, new)
                self._compare(self.best if iteration % 2 else self.first, new)
        self.last = new
        if e.f < self.best.e.f:
            self.best = new
        return not self.violation

    def _compare(self, old: Seen, new: Seen) -> None:
        """Both cuts against both values."""
        e, other = new.e, old.e
        away = e.x - other.x
        distance, size = norm2(away), max(norm2(e.x), norm2(other.x))
        # x itself may stand for a neighbour, so that points closer than that show no curvature
        nearby = distance + 4.0 * max(e.eps, other.eps) * size
        if nearby > 0.0:
            self.bend = max(self.bend, norm2(e.g - other.g) / nearby)
        if not self.accuses:
            return
        doubt = e.df(self.bend) + other.df(self.bend)
        dg, dh = e.dg(self.bend), other.dg(self.bend)
        rise = e.f - other.f
        forward = (dot(other.g, away) - rise, doubt + dh * distance, old.iteration, new.iteration)
        backward = (rise - dot(e.g, away), doubt + dg * distance, new.iteration, old.iteration)
        above, explained, at, where = max(forward, backward, key=lambda cut: cut[0] - cut[1])
        if above > explained:
            self.violation = (
                f"The function is not convex, or noisy, or its gradient is wrong: the cut at iteration {at} is "
                f"{above:.3g} above the value at iteration {where}, where rounding explains {explained:.1g}; nothing "
                "is certified."
            )
