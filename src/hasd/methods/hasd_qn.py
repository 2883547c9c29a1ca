"""A quasi-Newton step inside the certified estimate sequence: for black boxes, and where products with A are cheap.

Problem.    min f(x), f convex and smooth.
Algorithm.  d = -H_t grad f(x_t), H_t the inverse Hessian of limited memory (two loops over the last m pairs);
            x_{t+1} = x_t + t d with Wolfe's conditions;  a = the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};
            psi_{t+1} = psi_t + a [f(x_t) + <grad f(x_t), . - x_t> + (mu/2)||. - x_t||^2]  (the cut at y = x_t).
            On a black box a look along d is an evaluation; on an affine objective d has one image and every look is
            a pass over n, so the search there is closer and an iteration costs two products.
Guarantee.  f(x_t) never increases, and A_t f(x_t) <= min psi_t: f(x_T) - f* <= R^2/(2 A_T), read off at run time.  No
            rate is claimed for the step itself beyond Liu & Nocedal's linear one for strongly convex f.
Reference.  Liu & Nocedal (1989) for the two loops; AGMsDR (Nesterov et al. 2020) for the root.

>>> import numpy as np, hasd
>>> res = hasd.minimize(lambda x: (x @ x + np.exp(x).sum(), 2 * x + np.exp(x)), np.ones(4), jac=True, method="hasd-qn")
>>> res.success
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from ..estimate import rounding
from ..geometry import Array, dot, norm2
from ..objectives.images import Images, Point
from ..oracle import Evaluation
from ..result import Status, Stop
from ..search import NONFINITE_LIMIT
from .base import Problem, State, first_state, gain_at, whole

ARMIJO = 1e-4
"""f(x + t d) <= f(x) + ARMIJO t <g, d>."""
REFRESH = 100
"""Iterations after which a cached image is made anew from x."""
LOOKS = 30
"""Points looked at along a direction before it is given up."""


class Pair(NamedTuple):
    """A step with the change of the gradient along it."""

    s: Array  # x_{t+1} - x_t
    y: Array  # g_{t+1} - g_t
    sy: float  # <s, y> > 0


@dataclass(frozen=True)
class QNState(State):
    """A state with its curvature pairs."""

    pairs: tuple[Pair, ...] = ()  # oldest first
    point: Point | None = None  # phi expanded at A x_t - b, where images are kept
    age: int = 0  # iterations since that image was made from x


class Look(NamedTuple):
    """What was seen at x + t d."""

    t: float
    f: float
    slope: float  # <grad f(x + t d), d>; NaN where f is not finite
    found: Evaluation | Point


class Line(Protocol):
    """The half-line x + t d, looked at point by point."""

    flat: float  # Wolfe's second constant: |slope| <= flat |slope at 0|

    def look(self, t: float) -> Look:
        """f and its slope at t."""
        ...

    def take(self, look: Look) -> tuple[Evaluation, Point | None]:
        """The evaluation there, and its image where images are kept."""
        ...


@dataclass
class BlackBoxLine:
    """Every look is an evaluation."""

    problem: Problem
    x: Array
    d: Array
    flat: float = 0.9

    def look(self, t: float) -> Look:
        """One evaluation."""
        e = self.problem.oracle.evaluate(self.x + t * self.d)
        return Look(t, e.f, dot(e.g, self.d) if e.finite else math.nan, e)

    def take(self, look: Look) -> tuple[Evaluation, Point | None]:
        """It is there already."""
        assert isinstance(look.found, Evaluation)
        return look.found, None


@dataclass
class ImageLine:
    """One product for the direction, a pass over n for every look, one product for the gradient at the end."""

    problem: Problem
    x: Array
    d: Array
    point: Point
    flat: float = 0.3

    def __post_init__(self) -> None:
        """The image of the direction, and the ridge along it."""
        self.images: Images = self.problem.objective.images()
        self.image = self.images.multiply(self.d)
        ridge = self.problem.objective.ridge
        self.ridge = tuple(ridge * dot(u, v) for u, v in ((self.x, self.x), (self.x, self.d), (self.d, self.d)))

    def look(self, t: float) -> Look:
        """One pass over n."""
        point, slope = self.images.move(self.point, self.image, t)
        xx, xd, dd = self.ridge
        f = point.value + 0.5 * xx + t * xd + 0.5 * t * t * dd
        return Look(t, f, slope + xd + t * dd if math.isfinite(f) else math.nan, point)

    def take(self, look: Look) -> tuple[Evaluation, Point | None]:
        """One product with A^T."""
        assert isinstance(look.found, Point)
        self.problem.oracle.charge()
        x = self.x + look.t * self.d
        g = self.images.gradient(look.found) + self.problem.objective.ridge * x
        return self.problem.oracle.evaluation(x, look.f, g), look.found


@dataclass(frozen=True)
class HASDQN:
    """Limited-memory quasi-Newton with a certificate.  `memory`: pairs kept."""

    memory: int = 20
    name: str = "hasd-qn"
    default_p: float = 2.0

    def __post_init__(self) -> None:
        """Refuse a memory below one."""
        whole("memory", self.memory, least=1)

    def init(self, problem: Problem, start: Evaluation) -> QNState:
        """No pairs yet."""
        affine = hasattr(problem.objective, "images")
        point = problem.objective.images().at(start.x) if affine else None
        return QNState(**first_state(problem, start, problem.mu), point=point)

    def step(self, problem: Problem, state: State) -> QNState:
        """One iteration: from the pairs kept, and where that direction fails from the gradient alone."""
        assert isinstance(state, QNState)
        e = state.at
        for pairs in (state.pairs, ()) if state.pairs else ((),):
            d = -two_loops(pairs, e.g)
            slope = dot(e.g, d)
            line: Line
            if state.point is None:
                line = BlackBoxLine(problem, e.x, d)
            else:
                line = ImageLine(problem, e.x, d, state.point)
            look, trials = wolfe(line, e.f, slope, 1.0 if pairs else 1.0 / e.norm2, e.eps)
            if look is not None:
                return self._next(problem, replace(state, pairs=pairs), e, *line.take(look), trials)
        if state.age > 0 and state.point is not None:
            return self.step(problem, _refreshed(problem, state))
        raise Stop(Status.PRECISION)

    def _next(
        self, problem: Problem, state: QNState, e: Evaluation, there: Evaluation, point: Point | None, trials: int
    ) -> QNState:
        a = state.estimate.largest_root(e, there.f)
        estimate = state.estimate.cut(a, e) if a > 0.0 else state.estimate
        s, y = there.x - e.x, there.g - e.g
        sy = dot(s, y)
        curved = sy > e.eps * norm2(s) * norm2(y)
        moved = replace(
            state,
            iteration=state.iteration + 1,
            x=there.x,
            fun=there.f,
            at=there,
            grad_norm=problem.geometry.dual_norm(there.g),
            estimate=estimate,
            theta=state.weight / estimate.weight if estimate.weight > 0.0 else math.nan,
            gain=gain_at(problem, there),
            trials=trials,
            pairs=(*state.pairs, Pair(s, y, sy))[-self.memory :] if curved else state.pairs,
            point=point,
            age=state.age + 1,
        )
        return _refreshed(problem, moved) if point is not None and moved.age >= REFRESH else moved


def _refreshed(problem: Problem, state: QNState) -> QNState:
    """The image of x_t, its value and its gradient from x_t: two products."""
    images: Images = problem.objective.images()
    point, ridge = images.at(state.x), problem.objective.ridge
    f = point.value + 0.5 * ridge * dot(state.x, state.x)
    e = problem.oracle.evaluation(state.x, f, images.gradient(point) + ridge * state.x)
    return replace(state, point=point, fun=f, at=e, grad_norm=problem.geometry.dual_norm(e.g), age=0)


def two_loops(pairs: tuple[Pair, ...], g: Array) -> Array:
    """H g, the limited-memory inverse Hessian applied to g (Liu & Nocedal, Algorithm 2.1); g itself without pairs."""
    q, alphas = g, []
    for s, y, sy in reversed(pairs):
        alpha = dot(s, q) / sy
        q = q - alpha * y
        alphas.append(alpha)
    if pairs:
        _, y, sy = pairs[-1]
        size = norm2(y)
        q = (sy / size / size) * q
    for (s, y, sy), alpha in zip(pairs, reversed(alphas), strict=True):
        q = q + (alpha - dot(y, q) / sy) * s
    return q


def wolfe(line: Line, f0: float, slope0: float, t: float, eps: float) -> tuple[Look | None, int]:
    """A look with Wolfe's conditions, or the best one that decreases f; None where none does."""
    if not slope0 < 0.0:
        return None, 0
    low, high = Look(0.0, f0, slope0, None), None  # type: ignore[arg-type]
    best: Look | None = None
    nonfinite = 0
    for trials in range(1, LOOKS + 1):
        look = line.look(t)
        noise = rounding(f0, look.f, eps=eps) if math.isfinite(look.f) else 0.0
        if math.isnan(look.slope):
            nonfinite += 1
            if nonfinite == NONFINITE_LIMIT:
                raise Stop(Status.NONFINITE)
            high = Look(t, math.inf, math.nan, look.found)
        else:
            flat = abs(look.slope) <= -line.flat * slope0
            # at rounding level the slope decides (Hager & Zhang's approximate condition)
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
        t = _next_look(low, high)
    if high is None:  # still falling, many orders of magnitude farther on
        raise Stop(Status.UNBOUNDED)
    return best, trials


def _next_look(low: Look, high: Look | None) -> float:
    """Beyond low while nothing is above; then the minimiser of the cubic through both ends, kept off them."""
    if high is None:
        return 4.0 * low.t
    width = high.t - low.t
    if not math.isfinite(high.f) or math.isnan(high.slope):
        return low.t + 0.1 * width
    theta = 3.0 * (low.f - high.f) / width + low.slope + high.slope
    root = math.sqrt(max(theta * theta - low.slope * high.slope, 0.0))
    denominator = high.slope - low.slope + 2.0 * root
    t = high.t - width * (high.slope + root - theta) / denominator if denominator > 0.0 else math.nan
    if not math.isfinite(t):
        t = low.t + 0.5 * width
    return min(max(t, low.t + 0.1 * width), high.t - 0.1 * width)
