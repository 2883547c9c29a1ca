"""Searches along a half-line x + t d: what a look costs depends on what is known of f.  And f from images of points."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from .._math.estimate import rounding
from .._math.geometry import Array, dot
from .._math.search import NONFINITE_LIMIT
from ..objectives._images import Image, Images, Point
from .base import Evaluation, Problem, S, Status, Stop, fields_at

ARMIJO = 1e-4
"""f(x + t d) <= f(x) + ARMIJO t <g, d>."""
FARTHER = 10.0
"""Newton's step along d is at most so many times the one d itself proposes."""
LOOKS = 30
"""Points looked at along a direction before it is given up."""
BRISK = 3
"""A line that is settled where the search ends alone may be far above f.  If it takes more looks, or f is not known at
its end, the search begins again, and every look is settled."""
CLEAR = 0.01
"""Tangents are asked where rounding of f moves the place at which they meet by no more than this part of the way."""
EAGER, LEAP = 10, 2.0**9
"""While f falls, EAGER looks go four times as far each, and later ones LEAP times as far: 1e60 in all.  While it does
not fall, EAGER looks go a tenth as far or more, and later ones, where f is more than doubled, LEAP, LEAP^2, LEAP^4, ...
times less: no length is too small to be found."""


class Look(NamedTuple):
    """What was seen at x + t d."""

    t: float
    f: float
    slope: float  # the derivative of what the line shows; NaN where that is not finite
    found: Any  # the evaluation there, or the point where images are kept; None at an end of a bracket

    @property
    def without_vectors(self) -> Look:
        """What the end of a bracket needs of it."""
        return self._replace(found=None)


@dataclass
class BlackBoxLine:
    """Every look is an evaluation."""

    problem: Problem
    x: Array
    d: Array
    flat: ClassVar[float] = 0.9  # Wolfe's second constant: |slope| <= flat |slope at 0|
    is_newton: ClassVar[bool] = False

    def first_length(self, slope: float) -> float:
        """Where to look first, slope being the derivative at 0: at the step's own length, as nothing else is known."""
        return 1.0

    def look(self, t: float) -> Look:
        """One evaluation.  Variables that the objective settles have no slope there, so they may be anywhere."""
        e = self.problem.oracle.settle(self.x + t * self.d)
        return Look(t, e.f, dot(e.g, self.d) if e.finite else math.nan, e)

    def end(self, look: Look) -> Look:
        """The look at which the search ends."""
        return look

    def take(self, look: Look) -> tuple[Evaluation, Point | None]:
        """The evaluation that the look made; there is no image."""
        return look.found, None


@dataclass
class Ray:
    """The images z + t A d of a half-line: a pass over n for every look.

    It follows a Newton step.  Where f still falls at the end of that step, the step is taken as it is, because the next
    one knows better how to go on.  Where it is too long, as it often is for a smoothed maximum, tangents shorten it.
    """

    images: Images
    point: Point  # phi expanded at z
    image: Image  # what z moves along: A d, with what follows it
    bowl: tuple[float, float, float]  # <x, x>, <x, d> and <d, d>, each times the ridge
    flat: float = 0.3
    settles: bool = False  # whether every look is settled, and not only the one at which the search ends
    is_newton: ClassVar[bool] = True

    def look(self, t: float) -> Look:
        """What is at t."""
        point, slope = self.images.move(self.point, self.image, t)
        if self.settles:
            point = self.images.settle(point)
            slope = self.images.move(point, self.image, 0.0)[1]
        xx, xd, dd = self.bowl
        f = point.value + 0.5 * xx + t * (xd + 0.5 * t * dd)
        return Look(t, f, slope + xd + t * dd if math.isfinite(f) else math.nan, point)

    def end(self, look: Look) -> Look:
        """The look at which the search ends, settled; its slope is still that of the line.  f is NaN where it fails."""
        if self.settles or not self.images.settles:
            return look
        point = self.images.settle(look.found)
        return look._replace(f=look.f + (point.value - look.found.value), found=point)

    def bend(self, point: Point) -> float:
        """The second derivative along the line, at a point of it."""
        return self.images.bend(point, self.image) + self.bowl[2]


class ImageLine(Ray):
    """One product for the direction, a pass over n for every look, one product for the gradient at the end."""

    is_newton = False

    def __init__(
        self,
        problem: Problem,
        e: Evaluation,
        d: Array,
        point: Point,
        images: Images | None = None,
        flat: float = 0.5,
    ):
        """The line from e, whose image the point is.

        images: those of a softer loss, if that is searched; flat: Wolfe's second constant.
        """
        images, mu = images or problem.images, problem.objective.ridge
        bowl = (mu * dot(e.x, e.x), mu * dot(e.x, d), mu * dot(d, d)) if mu > 0.0 else (0.0, 0.0, 0.0)
        super().__init__(images, point, images.along(point, images.multiply(d)), bowl)
        self.problem, self.e, self.d, self.flat = problem, e, d, flat

    def first_length(self, slope: float) -> float:
        """Newton's step along the line; where the curvature may change, at most `FARTHER` times d."""
        bend = self.bend(self.point)
        return -slope / bend if bend > 0.0 and (self.images.constant or FARTHER * bend > -slope) else FARTHER

    def take(self, look: Look) -> tuple[Evaluation, Point | None]:
        """One product with A^T."""
        self.problem.oracle.charge()
        x = self.e.x + look.t * self.d
        return evaluate_image(self.problem, x, look.found, self.e.doubt.image), look.found


def evaluate_image(problem: Problem, x: Array, point: Point, image_doubt: float | None = None) -> Evaluation:
    """f and its gradient at x from the image of x, which may be off by the doubt: one product with A^T."""
    f, g, ridge = point.value, problem.images.gradient(point), problem.objective.ridge
    if ridge > 0.0:  # computed from x: terms of the ridge along a line may be far larger, and cancel
        f, g = f + 0.5 * ridge * dot(x, x), g + ridge * x
    return problem.oracle.evaluation(x, f, g, image_doubt)


def refresh_image(problem: Problem, state: S) -> S:
    """Compute the image of x_t, the value and the gradient from x_t itself: two products."""
    point = problem.images.at(state.x)
    return state.with_fields(**fields_at(problem, evaluate_image(problem, state.x, point)), point=point, age=0)


Line = BlackBoxLine | ImageLine
"""Those that a method searches along in the space of x."""


def wolfe(
    line: Line | Ray, f0: float, slope0: float, t: float, eps: float, faint: Callable[[], float] = lambda: 0.0
) -> tuple[Look | None, int]:
    """A look that meets Wolfe's conditions, or the best one that decreases f; None where none does.  And the trials.

    A slope of size `faint()` or less may be rounding: then it does not prove that f falls.
    """
    if not slope0 < 0.0:
        return None, 0
    look, trials = _bracket(line, f0, slope0, t, eps, faint)
    end = None if look is None else line.end(look)
    failed = end is None or math.isnan(end.f) or trials > BRISK
    if failed and isinstance(line, Ray) and line.images.settles:
        line.settles = True
        end, more = _bracket(line, f0, slope0, t, eps, faint)
        trials += more
    return end, trials


def _bracket(
    line: Line | Ray, f0: float, slope0: float, t: float, eps: float, faint: Callable[[], float]
) -> tuple[Look | None, int]:
    """The look that `wolfe` ends at, of the function that the line shows: f, or one that is nowhere below f."""
    low, high, best, nonfinite, side, again = Look(0.0, f0, slope0, None), None, None, 0, 0, False
    for trials in range(1, LOOKS + 1):
        look = line.look(t)
        if math.isnan(look.slope):
            nonfinite += 1
            if nonfinite == NONFINITE_LIMIT:
                raise Stop(Status.NONFINITE)
            high = look.without_vectors
        else:
            flat = abs(look.slope) <= -line.flat * slope0
            # At rounding level the slope decides (Hager & Zhang's approximate condition).
            decreased = look.f <= f0 + ARMIJO * t * slope0 + (rounding(f0, look.f, eps=eps) if flat else 0.0)
            if decreased and (flat or (line.is_newton and high is None and look.slope < 0.0)):
                return look, trials
            if look.f < f0 and (best is None or look.f < best.f):
                best = look
            before, side = side, 1 if look.slope < 0.0 and decreased else -1
            again = before == side
            if side > 0:
                low = look.without_vectors
            else:
                high = look.without_vectors
        del look  # and its vectors, unless it is the best, before the next are made
        if high is not None and _is_closed(low, high):
            break
        if high is None:
            t = _point_beyond(low, slope0, trials)
        else:
            t = _point_between(low, high, trials, again and line.is_newton and _is_clear(low, high, eps))
    if high is None:  # f still falls, dozens of orders of magnitude away
        seen = f0 - low.f > rounding(f0, low.f, eps=eps)
        if seen and -slope0 > faint():
            raise Stop(Status.UNBOUNDED)
        return None, trials
    return best, trials


def _is_closed(low: Look, high: Look) -> bool:
    """Whether nothing is left to look at between the ends; f near x is looked at while it has had no value."""
    known = low.t > 0.0 or not math.isnan(high.slope)
    return known and high.t - low.t <= max(1e-12 * high.t, sys.float_info.min)


def _point_beyond(low: Look, slope0: float, trials: int) -> float:
    """The next t beyond low, where f still falls; after `EAGER` trials where a linear slope would vanish."""
    if trials <= EAGER:
        return 4.0 * low.t
    risen = low.slope - slope0
    return (max(-slope0 / risen, 4.0) if risen > -1e-8 * slope0 else LEAP) * low.t


def _point_between(low: Look, high: Look, trials: int, by_tangents: bool) -> float:
    """The minimiser of the cubic through both ends, kept away from the ends; where they are far apart, their mean.

    What is seen so far away says nothing of where f falls, so the mean is that of the exponents.  `by_tangents`: first
    the tangents at the ends are asked, as the last two looks were on the same side.
    """
    is_far = not high.f - low.f <= abs(low.f)  # also where it is NaN; near the minimum f may seem to rise by rounding
    if trials > EAGER and low.t == 0.0 and is_far:
        return max(high.t * LEAP ** -(2.0 ** (trials - EAGER - 1)), sys.float_info.min)
    if 0.0 < low.t < high.t / (2.0 * LEAP):
        return math.sqrt(low.t) * math.sqrt(high.t)
    width = high.t - low.t
    if math.isnan(high.slope):
        return low.t + 0.1 * width
    least, most = low.t + 0.1 * width, high.t - 0.1 * width
    if by_tangents and least < (t := _tangents_meet(low, high)) < most:
        return t
    t = _cubic_minimum(low, high)
    return min(max(t, least), most) if math.isfinite(t) else low.t + 0.5 * width


def _cubic_minimum(low: Look, high: Look) -> float:
    """The minimiser of the cubic through both ends; NaN where it has none."""
    width = high.t - low.t
    theta = 3.0 * (low.f - high.f) / width + low.slope + high.slope
    scale = max(abs(theta), abs(low.slope), abs(high.slope))  # so that no square of a slope is taken
    root = scale * math.sqrt(max((theta / scale) ** 2 - (low.slope / scale) * (high.slope / scale), 0.0))
    denominator = high.slope - low.slope + 2.0 * root
    return high.t - width * (high.slope + root - theta) / denominator if denominator > 0.0 else math.nan


def _tangents_meet(low: Look, high: Look) -> float:
    """Where the tangents at both ends meet: the minimum of the lower bound on a convex f that they make.

    A smoothed maximum is nearly straight on either side of a sharp bend.  There a cubic misses the bend again and again
    from the same side, and the tangents find it.
    """
    return low.t + (low.f - high.f + high.slope * (high.t - low.t)) / (high.slope - low.slope)


def _is_clear(low: Look, high: Look, eps: float) -> bool:
    """Whether rounding of f hardly changes the place where the tangents meet."""
    return rounding(low.f, high.f, eps=eps) < CLEAR * (high.slope - low.slope) * (high.t - low.t)
