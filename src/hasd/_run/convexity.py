"""Whether what was seen of a function fits a convex one: a cut never lies above a value.

For a convex f, f(y) >= f(x) + <g(x), y - x> for all x and y.  The newest evaluation is held against the one before it
and, in turn, against the first and the best, both ways: four inner products an iteration.  A function that fails may be
minimised all the same, but nothing is proved about it any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .._math.arrays import Array
from .._math.evaluation import Change, Evaluation
from .._math.geometry import dot, norm2


class Seen(NamedTuple):
    """An evaluation and its iteration."""

    e: Evaluation
    iteration: int


class Convexity(NamedTuple):
    """What is known of the evaluations so far."""

    first: Seen | None = None
    best: Seen | None = None
    last: Seen | None = None

    def with_evaluation(
        self, e: Evaluation, iteration: int, bend: float, change: Callable[..., Change] = Change.between
    ) -> tuple[Convexity, str]:
        """The same with one more evaluation, and what it shows against convexity.

        bend: the largest curvature seen; change: gives the change between two evaluations.
        """
        new, (first, best, last) = Seen(e, iteration), self
        if first is None or best is None or last is None:
            return Convexity(new, new, new), ""
        violation, before = "", last.e
        if e.g is not before.g:  # arrays are compared: evaluations from a checkpoint are new objects
            other = best if iteration % 2 else first
            if other.e is not before:  # in a descent, the last is the best
                violation = _find_violation(other, new, bend)
            violation = violation or _find_violation(last, new, bend, change(before, e).s)
        return Convexity(first, new if e.f < best.e.f else best, new), violation


def _find_violation(old: Seen, new: Seen, bend: float, step: Array = None) -> str:
    """Compare each cut with the value at the other point, and say where one lies above it.

    step: from the old point to the new one, where it is known already.
    """
    e, other = new.e, old.e
    away, rise = e.x - other.x if step is None else step, e.f - other.f
    forward, backward = dot(other.g, away) - rise, rise - dot(e.g, away)
    if not (forward > 0.0 or backward > 0.0):
        return ""  # nothing to explain
    distance, doubt = norm2(away), e.df(bend) + other.df(bend)
    explained, also = doubt + other.dg(bend) * distance, doubt + e.dg(bend) * distance
    if not (forward > explained or backward > also) or math.inf in (forward, backward):
        return ""  # numbers that overflowed say nothing
    above, at, where = forward, old.iteration, new.iteration
    if backward - also > forward - explained:
        above, explained, at, where = backward, also, new.iteration, old.iteration
    return (
        f"The function is not convex, or noisy, or its gradient is wrong: the cut at iteration {at} is {above:.3g} "
        f"above the value at iteration {where}, and rounding explains {explained:.3g} of it; nothing is certified."
    )
