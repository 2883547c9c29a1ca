"""What all methods share: the problem they are given, the state they return, the steepest step with its backtracking.

A method is an immutable object with a name and two functions,

    init(problem, start) -> State          start: the evaluation at x_0
    step(problem, state) -> State          one iteration; raises `Stop(status)` where it cannot be made

and no loop, clock or output of its own.  Write a class with these to bring your own to ``minimize(method=...)``.
`Problem`, `Evaluation`, `State`, `Stop` and `Status` can be imported from here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from .._math.arrays import Array, largest_size
from .._math.estimate import Estimate, rounding
from .._math.evaluation import Evaluation
from .._math.geometry import dot, least_gain, lift, norm2
from .._math.search import NONFINITE_LIMIT
from .._run.problem import Problem
from .._run.record import S, State
from .._run.status import Status, Stop
from ..objectives._images import Point

IDLE = 25
"""After so many iterations in a row in which neither f nor ||g|| falls, the run is at machine precision."""


BLURRED = 100
"""After so many iterations in a row in which the gradient is only rounding, the run ends: f might fall for ever."""


VAST = 1e15
"""A run may be called endless where |f| > VAST |f(x_0)| and x is VAST^2 times the size of x_0 away from x_0.  Where the
gradient has been nothing but rounding for a while, or no step is found, VAST times is far enough."""


def fields_at(problem: Problem, e: Evaluation) -> dict[str, Any]:
    """The fields of a state whose iterate is an evaluated point."""
    return {"x": e.x, "fun": e.f, "at": e, "grad_norm": problem.dual_norm(e)}


def first_state(problem: Problem, start: Evaluation, mu: float = 0.0) -> dict[str, Any]:
    """The fields of a state at t = 0."""
    L = math.nan if problem.L is None else problem.L
    of_run = {"grad_norm0": problem.dual_norm(start), "origin": start.x, "first": start.f}
    of_run |= {"estimate": Estimate.around(start.x, mu)}
    return {"iteration": 0, "L": L, "L_next": L, **of_run, **fields_at(problem, start)}


class Standing(NamedTuple):
    """How a descent stands: it is at machine precision where neither f nor the gradient falls any more."""

    lowest: float = math.inf  # the least f
    least: float = math.inf  # the least ||g||; a fall of less than a tenth is not counted
    idle: int = 0  # iterations since either fell
    blurred: int = 0  # iterations since the gradient was larger than what it may be off by

    def with_iterate(self, e: Evaluation, dg: float = 0.0, most: tuple[int, int] = (IDLE, BLURRED)) -> Standing:
        """The standing after one more iterate, whose gradient may be off by dg; at most so many are idle or blurred."""
        fell = e.f < self.lowest or e.norm2 < 0.9 * self.least
        idle, blurred = 0 if fell else self.idle + 1, 0 if e.norm2 > dg else self.blurred + 1
        if idle >= most[0] or blurred >= most[1]:
            raise Stop(Status.PRECISION)
        least = min(self.least, e.norm2) if e.norm2 < 0.9 * self.least else self.least
        return Standing(min(self.lowest, e.f), least, idle, blurred)


UNTRIED = Standing()


@dataclass(frozen=True, repr=False)
class ImageState(State):
    """A state with its image, where images are kept."""

    point: Point = None  # type: ignore[assignment]  # phi expanded at A x_t - b; None on a black box
    age: int = 0  # iterations since the image was made from x, or compared with x's own
    standing: Standing = UNTRIED


def add_cut(estimate: Estimate, e: Evaluation, f: float) -> Estimate:
    """psi_{t+1}: the cut at e with the largest weight that keeps A f <= min psi; no cut where rounding hides it."""
    sight = estimate.sight(e)
    a = estimate.largest_root(e, f, sight)
    return estimate.cut(a, e, sight) if a > 0.0 and estimate.weight + a < math.inf else estimate


def advance(problem: Problem, state: S, at: Evaluation, estimate: Estimate, trials: int, **own: Any) -> S:
    """The next state: `at` is the evaluation whose gradient is the newest.

    The iterate is that evaluation's point, unless ``x=`` and ``fun=`` say otherwise; theta is A_t/A_{t+1}.
    """
    theta = state.estimate.weight / estimate.weight if estimate.weight > 0.0 else math.nan
    N, n = problem.dual_norm(at), at.norm2
    made = {"x": at.x, "fun": at.f, "at": at, "grad_norm": N, "gain": N / n if n > 0.0 else 1.0}
    made |= {"iteration": state.iteration + 1, "estimate": estimate, "theta": theta, "trials": trials}
    made["left"] = _what_is_left(state.at.f - at.f, N, state.grad_norm)
    return state.with_fields(**(made | own))


def _what_is_left(change: float, N: float, before: float) -> float:
    """How far f may still fall, after a step in which it changed by so much and ||g|| went from `before` to N.

    On a quadratic such a step is followed by a fall that is smaller by the square of what ||g|| fell by.  The value of
    an accelerated method may rise in a step; it has not come to rest then, either.
    """
    shrunk = min(N / before, 1.0) if before > 0.0 else 0.0
    return abs(change) * shrunk * shrunk


@dataclass(frozen=True)
class Descent:
    """A steepest step from an evaluated point."""

    x: Array  # y - s_p(g)/L
    f: float  # f there; NaN where L was declared and nothing had to be checked
    e: Evaluation | None  # the evaluation there, where one was asked for
    L: float  # the constant that was accepted
    local: float  # curvature measured along the step: the L that would just have passed
    trials: int  # stepsizes tried
    spoilt: float = 1.0  # the factor by which non-finite trials raised L; it says nothing about f

    @property
    def L_next(self) -> float:
        """Where the next backtracking starts: at the measured curvature, within a factor two."""
        return min(max(self.local, 0.5 * self.L_kept), self.L_kept)

    @property
    def L_kept(self) -> float:
        """Where it starts for a method that never lowers L."""
        return self.L / self.spoilt


def evaluate_near(problem: Problem, y: Array, x: Array) -> tuple[Evaluation, int]:
    """The evaluation at y, or while that is not finite at points ever closer to x; and the number of trials."""
    for trial in range(1, NONFINITE_LIMIT + 1):
        e = problem.oracle.evaluate(y)
        if e.finite:
            return e, trial
        y = x + 0.5 * (y - x)
    raise Stop(Status.NONFINITE)


def first_length(problem: Problem, x: Array) -> float:
    """How long a step is tried first where L is not known: as long as x, and 1 at least, in units of the weights."""
    return max(1.0 / (least_gain(problem.geometry) or 1.0), problem.geometry.norm(x))


def descend(problem: Problem, e: Evaluation, L: float, *, gradient: bool = False) -> Descent:
    """x+ = y - s_p(g)/L with f(x+) <= f(y) - ||g||_{p*}^2/(2L); L is raised until that holds.

    A declared L is trusted: nothing is checked and, unless the gradient is asked for, nothing is evaluated.  L = NaN
    (the first step of a backtracking run) starts from a step as long as x_0 and comes down as well.  A non-finite
    trial shortens the step.
    """
    N = problem.dual_norm(e)
    s = problem.steepest(e)
    first = math.isnan(L)
    if first:
        L = N / first_length(problem, e.x)
    L = max(L, math.ulp(0.0))  # an L that underflowed to 0 is taken for the smallest number
    if N == 0.0:
        return Descent(e.x, e.f, e, L, L, 1)
    if is_exhausted(problem, e, L):
        raise Stop(Status.PRECISION)
    if problem.L is not None and not gradient:
        return Descent(e.x - s / L, math.nan, None, L, L, 1)
    best: Descent | None = None  # an accepted first step, while a longer one is tried
    nonfinite, spoilt = 0, 1.0
    for trials in range(1, 200):
        x = e.x - s / L
        there = problem.oracle.evaluate(x) if gradient else None
        f = problem.oracle.value(x) if there is None else there.f
        if not (math.isfinite(f) if there is None else there.finite):
            nonfinite += 1
            if best is not None:
                return best
            if nonfinite == NONFINITE_LIMIT:
                raise Stop(Status.NONFINITE)
            first, L, spoilt = False, 4.0 * L, 4.0 * spoilt
            continue
        nonfinite = 0
        up = lift(e.f, f, N)
        predicted, noise = 0.5 * (up * N) * (N / L), rounding(up * e.f, up * f, eps=e.eps)
        rise, visible = up * (f - e.f), predicted > noise
        local = 2.0 * L * (1.0 + 0.5 * (rise / predicted)) if visible or (rise > noise and predicted > 0.0) else L
        trial = Descent(x, f, there, L, local, trials, spoilt)
        if problem.L is not None:
            return trial
        # Where the promised decrease drowns in rounding, the gradient at x+ decides instead: <g(x+), s> >= 0 says that
        # the step did not overshoot, which for a quadratic is the same condition.
        enough = up * f <= up * e.f - predicted + noise
        if not visible:
            left = _slope_left(problem, trial, s / N) / N
            enough = left >= 0.0
            if enough and first:  # a first step far too short to be seen: what it did to the slope shows the curvature
                local = L * max(1.0 - left, 0.0)
        if not enough:
            if best is not None:
                return best
            first, L = False, min(max(2.0 * L, local), 1024.0 * L)
            if largest_size(s / L) <= e.eps * e.eps * largest_size(e.x):
                raise Stop(Status.PRECISION)
        elif best is not None and visible and f >= best.f:
            return best
        elif first and local < 0.5 * L:
            best, L = trial, max(local, L / 1024.0)
        else:
            return trial
    raise Stop(Status.PRECISION)


def _slope_left(problem: Problem, trial: Descent, s: Array) -> float:
    """How steeply f still falls at the end of a step along -s; NaN where the gradient there is not finite."""
    there = trial.e or problem.oracle.evaluate(trial.x)
    return dot(there.g, s) if there.finite else math.nan


def is_exhausted(problem: Problem, e: Evaluation, L: float) -> bool:
    """Whether a step of size 1/L from e moves neither the point nor the value by more than their last digits."""
    N = problem.dual_norm(e)
    small = 2.0 * e.eps * problem.geometry.norm(e.x) >= N / L
    up = lift(e.f, N)
    return small and e.eps * abs(up * e.f) >= 0.5 * (up * N) * (N / L)


def falls_endlessly(state: ImageState, stuck: bool = False) -> bool:
    """Whether f, very far from x_0, still falls as steeply as on the whole way from x_0.

    Where a convex f flattens towards a minimiser, Wolfe's conditions bring its slope well below the mean one.
    """
    e = state.at
    if not abs(e.f) > VAST * abs(state.first):
        return False
    away = e.x - state.origin
    far, mean = norm2(away), e.f - state.first
    enough = VAST if stuck or state.standing.blurred >= IDLE else VAST**2
    return far > enough * max(1.0, norm2(state.origin)) and dot(e.g, away / far) < 0.99 * (mean / far) < 0.0


class ImageMethod:
    """What the methods that keep images declare."""

    keeps_images: ClassVar[bool] = True

    @staticmethod
    def finish(problem: Problem, e: Evaluation) -> Evaluation:
        """What was computed on cached images, or by the formulas of settled variables, is evaluated from x."""
        is_indirect = problem.traits.has_images or problem.traits.settle is not None
        return problem.oracle.record(e.x) if is_indirect else e
