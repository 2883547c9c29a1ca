"""Searches along a half-line x + t d: what a look costs depends on what is known of f."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .._math.estimate import rounding
from .._math.evaluation import Evaluation
from .._math.geometry import Array, dot
from .._math.search import NONFINITE_LIMIT
from .._run.problem import Problem
from .._run.status import Status, Stop
from ..objectives._images import Images, Point

ARMIJO = 1e-4
"""f(x + t d) <= f(x) + ARMIJO t <g, d>."""
FARTHER = 10.0
"""Newton's step along d is at most so many times the one d itself proposes."""
LOOKS = 30
"""Points looked at along a direction before it is given up."""
EAGER, LEAP = 10, 2.0**9
"""While f falls, EAGER looks go four times as far each, and later ones LEAP times as far: 1e60 in all."""


class LineLook(NamedTuple):
    """What was seen at x + t d."""

    t: float
    f: float
    slope: float  # <grad f(x + t d), d>; NaN where f is not finite
    found: Evaluation | Point


class Line(Protocol):
    """The half-line x + t d, looked at point by point."""

    flat: float  # Wolfe's second constant: |slope| <= flat |slope at 0|

    def first_length(self, slope: float, t: float) -> float:
        """Where to look first; t is the quasi-Newton step's own length, slope the derivative at 0."""
        ...

    def look(self, t: float) -> LineLook:
        """f and its slope at t."""
        ...

    def take(self, look: LineLook) -> tuple[Evaluation, Point | None]:
        """The evaluation there, and its image where images are kept."""
        ...


@dataclass
class BlackBoxLine:
    """Every look is an evaluation."""

    problem: Problem
    x: Array
    d: Array
    flat: float = 0.9

    def first_length(self, slope: float, t: float) -> float:
        """The step's own length: nothing else is known."""
        return t

    def look(self, t: float) -> LineLook:
        """One evaluation."""
        e = self.problem.oracle.evaluate(self.x + t * self.d)
        return LineLook(t, e.f, dot(e.g, self.d) if e.finite else math.nan, e)

    def take(self, look: LineLook) -> tuple[Evaluation, Point | None]:
        """The evaluation that the look made."""
        assert isinstance(look.found, Evaluation)
        return look.found, None


@dataclass
class ImageLine:
    """One product for the direction, a pass over n for every look, one product for the gradient at the end."""

    problem: Problem
    x: Array
    d: Array
    point: Point
    image_doubt: float = 0.0  # what the image of x may be off by
    flat: float = 0.5

    def __post_init__(self) -> None:
        """Compute the image of the direction, and the ridge's terms along it."""
        objective, x, d = self.problem.objective, self.x, self.d
        self.images: Images = objective.images()
        self.image = self.images.multiply(d)
        self.ridge = mu = objective.ridge
        self.bowl = (mu * dot(x, x), mu * dot(x, d), mu * dot(d, d)) if mu > 0.0 else (0.0, 0.0, 0.0)

    def bend(self) -> float:
        """The second derivative along the line at t = 0."""
        return self.images.bend(self.point, self.image) + self.bowl[2]

    def first_length(self, slope: float, t: float) -> float:
        """Newton's step along the line; where the curvature may change, at most `FARTHER` times t."""
        bend = self.bend()
        return -slope / bend if bend > 0.0 and (self.images.constant or FARTHER * t * bend > -slope) else FARTHER * t

    def look(self, t: float) -> LineLook:
        """One pass over n."""
        point, slope = self.images.move(self.point, self.image, t)
        xx, xd, dd = self.bowl
        f = point.value + 0.5 * xx + t * xd + 0.5 * t * t * dd
        return LineLook(t, f, slope + xd + t * dd if math.isfinite(f) else math.nan, point)

    def take(self, look: LineLook) -> tuple[Evaluation, Point | None]:
        """One product with A^T."""
        assert isinstance(look.found, Point)
        self.problem.oracle.charge()
        x, f = self.x + look.t * self.d, look.found.value
        g = self.images.gradient(look.found)
        if self.ridge > 0.0:  # computed from x: the terms of `bowl` may be far larger, and cancel
            f, g = f + 0.5 * self.ridge * dot(x, x), g + self.ridge * x
        return self.problem.oracle.evaluation(x, f, g, self.image_doubt), look.found


def evaluate_image(problem: Problem, x: Array, point: Point) -> Evaluation:
    """f and its gradient at x from the image of x: one product with A^T."""
    ridge = problem.objective.ridge
    g = problem.objective.images().gradient(point) + ridge * x
    return problem.oracle.evaluation(x, point.value + 0.5 * ridge * dot(x, x), g)


def wolfe(
    line: Line, f0: float, slope0: float, t: float, eps: float, faint: Callable[[], float] = lambda: 0.0
) -> tuple[LineLook | None, int]:
    """A look that meets Wolfe's conditions, or the best one that decreases f; None where none does.  And the trials.

    A slope of size `faint()` or less may be rounding: then it does not prove that f falls.
    """
    if not slope0 < 0.0:
        return None, 0
    low, high = LineLook(0.0, f0, slope0, None), None  # type: ignore[arg-type]
    best: LineLook | None = None
    nonfinite = 0
    for trials in range(1, LOOKS + 1):
        look = line.look(t)
        noise = rounding(f0, look.f, eps=eps) if math.isfinite(look.f) else 0.0
        if math.isnan(look.slope):
            nonfinite += 1
            if nonfinite == NONFINITE_LIMIT:
                raise Stop(Status.NONFINITE)
            high = LineLook(t, math.inf, math.nan, look.found)
        else:
            flat = abs(look.slope) <= -line.flat * slope0
            # At rounding level the slope decides (Hager & Zhang's approximate condition).
            decreased = look.f <= f0 + ARMIJO * t * slope0 + (noise if flat else 0.0)
            if decreased and flat:
                return look, trials
            if look.f < f0 and (best is None or look.f < best.f):
                best = look
            if look.slope < 0.0 and decreased:
                low = look
            else:
                high = look
        if high is not None and high.t - low.t <= 1e-12 * high.t:
            break
        t = _point_beyond(low, slope0, trials) if high is None else _point_between(low, high)
    if high is None:  # f still falls, dozens of orders of magnitude away
        seen = f0 - low.f > rounding(f0, low.f, eps=eps)
        if seen and -slope0 > faint():
            raise Stop(Status.UNBOUNDED)
        return None, trials
    return best, trials


def _point_beyond(low: LineLook, slope0: float, trials: int) -> float:
    """The next t beyond low, where f still falls; after `EAGER` trials where a linear slope would vanish."""
    if trials <= EAGER:
        return 4.0 * low.t
    risen = low.slope - slope0
    return (max(-slope0 / risen, 4.0) if risen > -1e-8 * slope0 else LEAP) * low.t


def _point_between(low: LineLook, high: LineLook) -> float:
    """The minimiser of the cubic through both ends, kept away from the ends."""
    width = high.t - low.t
    if not math.isfinite(high.f) or math.isnan(high.slope):
        return low.t + 0.1 * width
    theta = 3.0 * (low.f - high.f) / width + low.slope + high.slope
    scale = max(abs(theta), abs(low.slope), abs(high.slope))  # so that no square of a slope is taken
    root = scale * math.sqrt(max((theta / scale) ** 2 - (low.slope / scale) * (high.slope / scale), 0.0))
    denominator = high.slope - low.slope + 2.0 * root
    t = high.t - width * (high.slope + root - theta) / denominator if denominator > 0.0 else math.nan
    if not math.isfinite(t):
        t = low.t + 0.5 * width
    return min(max(t, low.t + 0.1 * width), high.t - 0.1 * width)
