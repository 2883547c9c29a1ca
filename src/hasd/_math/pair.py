"""Pairs (x, U) with property P, and the damping that keeps A U <= psi*: the arithmetic of the optimised form.

Property P of (x, U), for a function f, a norm, a constant L and sigma >= 0:

    U >= f(y) + <g(y), x - y> + sigma ||g(y)||_*^2 / (2L)    for every y,  g = grad f.

* A steepest step has it: x~ = y - s(g)/L with U~ = f(y) - ||g||_*^2/(2L), where f is convex and L-smooth and half the
  squared dual norm is sigma-strongly convex in the dual norm (sigma = p* - 1 in l_p).
* Convex combinations of pairs with P have P.
* At y = x it says f(x) <= U - sigma ||grad f(x)||_*^2/(2L): U bounds f(x) without an evaluation there.

One iteration takes the cut at y with weight a = gamma a' kappa/(kappa + mu a' (1 - gamma)) and moves (x, U) towards
(x~, U~) by the share (gamma A + a)/(A + a).  Then, whatever y is,

    psi*_+ - A_+ U_+  >=  psi* - A U + gamma q - gamma^2 W/2,
    q = A (U - f(y)) + b' [<g, v - y> + (mu/2) ||v - y||^2] + (A + b') ||g||_*^2/(2L),   b' = a' kappa/(kappa + mu a'),
    W = a'^2 ||g||_2^2/(kappa + mu a'),

so that the largest gamma <= 1 whose right-hand side is not negative keeps A U <= psi*, whatever L made the older pairs.
Where y is the coupling point of x and v for a', A <g, x - y> + b' <g, v - y> = 0, and property P at y makes q so large
that gamma = min(1, r^2/s^2) is always allowed (docs/theory.md).

U and psi* are kept as two small numbers, A (U - f(y)) and psi* - A U, which are updated by differences.  Near the
minimiser, where values of f differ by rounding only, differences come from gradients instead (`compare`).

The functions of plain numbers take `sqrt` as an argument: JAX gives its own and traces the same formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .arrays import Array
from .estimate import Estimate, rounding
from .evaluation import Evaluation
from .geometry import Geometry, dot, lift

ROOM = 1.1
"""How far c is kept above mu at least: at c = mu the planned weight is infinite."""
LEAST_C = 2.0**-1000
"""A c below this, of tiny functions or large gains, is raised to it, so that weights do not overflow."""
FULL_SHARE = 0.25
"""How far what L must satisfy is moved from property P's demand towards that of co-coercivity.  P alone lets L fall too
far at p = inf, where sigma = 0; all of co-coercivity costs a third more evaluations on l_inf potentials."""
UNCLEAR = 32.0
"""A difference of values is clear where it is so many times what rounding may make of it."""


class Difference(NamedTuple):
    """How f at a point y compares with f at z.  All numbers are multiplied by the same power of two, `up`."""

    up: float
    fall: Any  # f(y) - f(z)
    slope: Any  # <g(z), y - z>
    noise: Any  # how much of `fall` may be rounding
    by_values: Any  # whether `fall` is the difference of the values

    @property
    def bregman(self) -> Any:
        """D = f(y) - f(z) - <g(z), y - z>."""
        return self.fall - self.slope


def compare(e: Evaluation, other: Evaluation) -> Difference:
    """f(y) - f(z), y at e and z at the other, as exactly as values and gradients tell.

    A convex f has <g(z), y - z> <= f(y) - f(z) <= <g(y), y - z>.  Where these two differ by little more than what the
    values may be off by, the number halfway between them is taken: of f's Taylor series only the third order is lost.
    """
    up = lift(e.f, other.f, e.norm2, other.norm2)
    noise = rounding(up * e.f, up * other.f, eps=e.eps)
    apart = up * (e.x - other.x) if up != 1.0 else e.x - other.x
    slope, steeper = dot(other.g, apart), dot(e.g, apart)
    if abs(steeper - slope) > UNCLEAR * noise:
        return Difference(up, up * e.f - up * other.f, slope, noise, True)
    return Difference(up, 0.5 * (slope + steeper), slope, rounding(slope, steeper, eps=e.eps), False)


class BoundedPoint(NamedTuple):
    """A point x_t with a number U_t, which have property P; y is where f was evaluated last."""

    x: Array
    excess: float = 0.0  # A_t (U_t - f(y))
    slack: float = 0.0  # psi*_t - A_t U_t, with what stronger cuts add; not negative

    def seen_from(self, difference: Difference, A: float) -> BoundedPoint:
        """The same, after an evaluation at another y: `difference` compares the last with it."""
        return self._replace(excess=self.excess + (A / difference.up) * difference.fall)


class WeightPlan(NamedTuple):
    """The weight that the cut at a point gets if the gain there is what it was at the last one."""

    weight: float = math.nan  # a'
    c: float = math.nan  # L/s^2 for the guess s of the gain
    coupled: bool = True  # whether the point is the coupling point for that weight


UNPLANNED = WeightPlan()
"""Where nothing is coupled yet: at the start of an epoch."""


def dual_convexity(geometry: Geometry) -> float:
    """sigma: half the squared dual norm is sigma-strongly convex in the dual norm; 0, always true, if it is not said.

    >>> from hasd._math.geometry import Lp
    >>> dual_convexity(Lp(2.0)), dual_convexity(Lp(math.inf))
    (1.0, 0.0)
    """
    return float(getattr(geometry, "dual_convexity", 0.0))


def planned_weight(
    A: Any, kappa: Any, mu: Any, c: Any, sigma: float, bonus: float = 0.0, sqrt: Callable[[Any], Any] = math.sqrt
) -> Any:
    """The a' > 0 with c a'^2 = (kappa + mu a') ((1 + sigma) A + (1 + bonus) a'), for c > (1 + bonus) mu.

    >>> planned_weight(A=0.0, kappa=1.0, mu=0.0, c=4.0, sigma=1.0)
    0.25
    """
    lead, linear, rest = c - (1.0 + bonus) * mu, (1.0 + bonus) * kappa + mu * (1.0 + sigma) * A, (1.0 + sigma) * A
    return (linear + sqrt(linear * linear + 4.0 * lead * kappa * rest)) / (2.0 * lead)


def damped_weight(gamma: Any, weight: Any, kappa: Any, mu: Any) -> Any:
    """a = gamma a' kappa/(kappa + mu a' (1 - gamma)), for which a kappa/(kappa + mu a) = gamma b'."""
    return gamma * weight * (kappa / (kappa + mu * weight * (1.0 - gamma)))  # kappa a' may overflow


def largest_damping(q: float, slack: float, length: float) -> float:
    """The largest gamma <= 1 with slack + gamma q - gamma^2 W/2 >= 0, W = length^2; 0 where there is none.

    >>> largest_damping(q=0.0, slack=2.0, length=4.0), largest_damping(8.0, 1.0, 2.0)
    (0.5, 1.0)
    """
    if slack + q - 0.5 * length * length >= 0.0:
        return 1.0
    if length == 0.0:  # it underflowed
        return 0.0
    half = q / length
    square = half * half + 2.0 * slack
    return max(0.0, min(1.0, (half + math.sqrt(square)) / length)) if square >= 0.0 else 0.0


def plan_weight(estimate: Estimate, c: float, sigma: float, bonus: float = 0.0) -> WeightPlan:
    """The plan for c = L/s^2.  For a true L and a true gain c is above (1 + bonus) mu; a c below is raised.

    >>> import numpy as np
    >>> plan_weight(Estimate.around(np.zeros(1)), c=4.0, sigma=1.0).weight
    0.25
    """
    c = max(c, ROOM * (1.0 + bonus) * estimate.mu, LEAST_C)
    return WeightPlan(planned_weight(estimate.weight, estimate.kappa, estimate.mu, c, sigma, bonus), c)


def damping_rule(gain: float, L: float, plan: WeightPlan) -> float:
    """min(1, r^2/s^2), what the proof allows at a coupling point where property P holds."""
    return min(1.0, gain**2 * (plan.c / L))


class Damping(NamedTuple):
    """gamma, and the terms that the new slack is made of."""

    gamma: Any
    slope: Any = 0.0  # <g, v - y> + (mu/2) ||v - y||^2
    fall: Any = 0.0  # ||g||_*^2/(2L); this and the slope are multiplied by up
    up: float = 1.0


def damp(
    estimate: Estimate,
    pair: BoundedPoint,
    e: Evaluation,
    N: float,
    L: float,
    plan: WeightPlan,
    sigma: float,
    bonus: float = 0.0,
) -> Damping:
    """gamma, for the cut at e with dual norm N: 1, or as much of it as keeps A U <= psi*.

    At a coupling point where (x, U) has P, the proof gives min(1, r^2 c/L), r the gain at e, and the slack psi* - A U
    may give more.  Elsewhere, and where older steps were made with too small an L, only the slack decides.  Less than
    half of what the proof would give is no progress: 0 then.
    """
    if N == 0.0:  # e is a minimiser: its cut may have any weight
        return Damping(1.0)
    A, kappa, mu, a = estimate.weight, estimate.kappa, estimate.mu, plan.weight
    up = lift(e.f, N)
    slope, fall = estimate.slope(e, up), 0.5 * (up * N) * (N / L)
    b = a * (kappa / (kappa + mu * a))
    q = pair.excess + (b / up) * slope + ((A + (1.0 + bonus) * b) / up) * fall
    gamma = largest_damping(q, pair.slack, a * e.norm2 / math.sqrt(kappa + mu * a))
    rule = damping_rule(N / e.norm2, L, plan)
    if gamma < rule and plan.coupled:
        ahead = dot(e.g if up == 1.0 else up * e.g, pair.x - e.x)
        if pair.excess >= (A / up) * (ahead + sigma * fall - rounding(ahead, eps=e.eps)):  # P holds at e
            return Damping(rule, slope, fall, up)
    return Damping(gamma if gamma >= 0.5 * rule else 0.0, slope, fall, up)


def slack_with_cut(
    old: Any, damping: Damping, A: Any, a: Any, kappa: Any, kappa_next: Any, norm2: Any, bonus: float = 0.0
) -> Any:
    """psi*_{t+1} - A_{t+1} U_{t+1}, after a cut of weight a at a gradient of length norm2; old: the pair before."""
    gamma, slope, fall, length = damping.gamma, damping.slope / damping.up, damping.fall / damping.up, a * norm2
    gained = gamma * old.excess + (a * kappa / kappa_next) * slope + (gamma * A + (1.0 + bonus) * a) * fall
    return old.slack + gained - 0.5 * length * (length / kappa_next)


def step_with_cut(
    old: BoundedPoint, stepped: Array, estimate: Estimate, e: Evaluation, a: float, damping: Damping, bonus: float
) -> tuple[BoundedPoint, Estimate]:
    """The pair moved towards the steepest step from e, and the estimate with the cut at e, of weight a.

    With gamma = 0 the old pair is left out, and the cuts are scaled down so far that A U <= psi* holds.
    """
    A, fall, is_held = estimate.weight, damping.fall / damping.up, damping.gamma == 0.0
    gamma = 1.0 if is_held else damping.gamma
    cut = estimate.cut(a, e)
    a = cut.weight - A
    slack = slack_with_cut(old, damping._replace(gamma=gamma), A, a, estimate.kappa, cut.kappa, e.norm2, bonus)
    if is_held:
        cut = cut.rescale(slack)
        return BoundedPoint(stepped, -cut.weight * fall, max(slack, 0.0)), cut
    share = (gamma * A + a) / cut.weight
    x = stepped if A == 0.0 else old.x + share * (stepped - old.x)
    return BoundedPoint(x, (1.0 - gamma) * old.excess - (gamma * A + a) * fall, slack), cut


def smoothness_asked(
    geometry: Geometry, e: Evaluation, there: Evaluation, step: Array, norms: tuple[float, float], L: float, up: float
) -> float:
    """What the gradients at e and `there` ask of L: this number n/L is at most D for every true constant L.

    D = f(y) - f(z) - <g(z), y - z> with y, g at e and z there; step = s(g)/L; norms are the dual norms N and M of g and
    g(z).  Property P of the steepest step from e asks for n = N^2/2 - <g(z), s(g)> + sigma M^2/2, and co-coercivity for
    ||g(z) - g||_*^2/2, which is no less (and the same at p = 2); n is between them.  L (n/L)/D is the least constant
    that fits.  The number is multiplied by the power of two `up`.
    """
    N, M = norms
    sigma = dual_convexity(geometry)
    g = there.g if up == 1.0 else up * there.g
    asked = 0.5 * (up * N) * (N / L) - dot(g, step) + 0.5 * sigma * (up * M) * (M / L)
    if sigma < 1.0:
        turn = geometry.dual_norm(there.g - e.g)
        asked += FULL_SHARE * (0.5 * (up * turn) * (turn / L) - asked)
    return asked
