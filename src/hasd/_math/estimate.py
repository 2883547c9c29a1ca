"""The estimate sequence: weights, minimum and minimiser of psi_t, and what they certify.  Pure arithmetic.

    psi_t(x) = 1/2 ||x - x_0||^2 + sum_i a_i [f(y_i) + <g_i, x - y_i> + (mu/2) ||x - y_i||^2]
             = psi*_t + (kappa_t/2) ||x - v_t||^2,         kappa_t = 1 + mu A_t,  A_t = sum_i a_i.

Every bracket is a minorant of f, so psi_t(x) <= A_t f(x) + 1/2 ||x - x_0||^2 whatever the points y_i and the weights
a_i > 0 are.  Two things follow, and everything else in the package leans on them:

* upper:  A_t f(x_t) <= psi*_t  gives  f(x_t) - f* <= R^2/(2 A_t);
* lower:  f* >= (psi*_t + min_x {(kappa/2) ||x - v||^2 - 1/2 ||x - x_0||^2}) / A_t, the certificate.

The recursion is exact (a scalar one for psi*), and its largest admissible weight is a root of a quadratic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .arrays import resolution
from .doubt import EPS, roundings
from .evaluation import Evaluation
from .geometry import FAINT, Array, Geometry, dot, lift, norm2, unit


def rounding(*values: float, eps: float = EPS) -> float:
    """How large a difference of these values a method must see before it acts on it; no bound rests on this."""
    return 8.0 * eps * max(map(abs, values))


def increment(A: float, c: float, mu: float = 0.0) -> float:
    """The a > 0 with c a^2 = (A + a)(1 + mu (A + a)); c is L rho in the tight form, 18 L rho in Algorithm 1.

    At mu = 0 it is Algorithm 1's a^2 = A_{t+1}/c.  A root exists while c > mu; L rho >= mu holds for a true L, and at
    equality, where one step reaches the minimiser, or for an L guessed too small, c is taken a little above mu.
    Where c underflowed, the smallest normal number is taken: a larger c only makes a smaller, which every proof allows.

    >>> a = increment(2.0, 0.5)
    >>> round(0.5 * a * a - (2.0 + a), 12)
    0.0
    """
    c = max(c, (1.0 + 2.0**-10) * mu, 2.0**-1022)
    if mu == 0.0:
        return (1.0 + math.sqrt(1.0 + 4.0 * c * A)) / (2.0 * c)
    b = 1.0 + 2.0 * mu * A
    return (b + math.sqrt(b * b + 4.0 * (c - mu) * A * (1.0 + mu * A))) / (2.0 * (c - mu))


class Charge(NamedTuple):
    """What the cuts of an estimate may be too high by: value + slope ||. - center||, as in `Doubt`, times weights."""

    value: float = 0.0
    slope: float = 0.0
    value_bend: float = 0.0
    slope_bend: float = 0.0
    value_root: float = 0.0
    slope_root: float = 0.0

    def at(self, distance: float, bend: float, slope: float | None = None) -> float:
        """The charge at that distance from the center, for the curvature that the run has seen.

        slope: `slope_at(bend)`, where it is known already.
        """
        value = self.value + bend * self.value_bend + math.sqrt(bend) * self.value_root
        return value + distance * (self.slope_at(bend) if slope is None else slope)

    def slope_at(self, bend: float) -> float:
        """How fast the charge grows with the distance."""
        return self.slope + bend * self.slope_bend + math.sqrt(bend) * self.slope_root


UNCHARGED = Charge()


@dataclass(frozen=True)
class EstimateBound:
    """The scalars of an estimate function that a lower bound on f* needs."""

    weight: float  # A_t
    psi: float  # psi*_t
    mu: float  # the cuts' curvature
    reach: float  # ||v_t - center||_2
    offset: float = 0.0  # ||center - x_0||_2: not 0 after a restart
    charge: Charge = UNCHARGED
    unit: float = EPS  # the relative error of psi and reach
    rest: float = 0.0  # what psi was rounded off by

    def lower(self, radius: float | None = None, bend: float = 0.0) -> float:
        """f* >= this, for any radius >= ||x_0 - x*||_2 (no radius needed where the cuts carry mu > 0).

        The minimum of (kappa/2)||u - v||^2 - 1/2||u - center||^2 - c ||u - center|| over ||u - center|| <= R, c the
        slope of the charge, lies on the ray through v, at distance s = min(R, (kappa D + c)/(kappa - 1)),
        D = ||v - center||.  What rounding may have added is taken off; `bend` is the largest curvature seen.
        """
        low, rounded = self._terms(radius, bend)
        bound = (self.psi + low + self.rest - rounded) / self.weight if self.weight > 0.0 else -math.inf
        return bound if math.isfinite(bound) else -math.inf

    def rounding_charge(self, radius: float | None = None, bend: float = 0.0) -> float:
        """How much of `lower` is the charge for rounding."""
        if self.weight == 0.0 or (radius is None and self.mu == 0.0):
            return 0.0
        distance = self._distance(radius, self.charge.slope_at(bend))
        return (self.charge.at(distance, bend) + self._terms(radius, bend)[1]) / self.weight

    def _distance(self, radius: float | None, slope: float) -> float:
        """How far from the center the minimum lies, with that slope of the charge; inf where nothing bounds it."""
        curvature = self.mu * self.weight
        free = ((1.0 + curvature) * self.reach + slope) / curvature if curvature > 0.0 else math.inf
        return free if radius is None else min((radius + self.offset) * (1.0 + 4.0 * EPS), free)

    def _terms(self, radius: float | None, bend: float) -> tuple[float, float]:
        """The terms of the minimum beside psi, and what rounding may have added to them."""
        tilt = self.charge.slope_at(bend)
        s, D, curvature = self._distance(radius, tilt), self.reach, self.mu * self.weight
        # kappa/2 (s - D)^2 - s^2/2, arranged so that nothing large cancels
        curved, flat = 0.5 * curvature * (s - D) * (s - D), 0.5 * D * (D - 2.0 * s)
        slope = (1.0 + curvature) * abs(s - D) * D  # how much an error of D counts
        rounded = 2.0 * self.unit * (abs(self.psi) + curved + abs(flat) + slope)
        return curved + flat - self.charge.at(s, bend, tilt), rounded


class Sight(NamedTuple):
    """How a point y, with its gradient, is seen from an estimate."""

    apart: Array  # y - center
    up: float  # what the slope is multiplied by, so that it does not underflow
    slope: float  # <g, v - y> + (mu/2) ||v - y||^2


@dataclass(frozen=True)
class Estimate:
    """psi_t, held as its center, its minimum and how far its minimiser is from the center.

    v_t - center is kept, not v_t: where x_0 is far from 0 nothing is lost to the digits that x_0 takes up.
    """

    center: Array  # x_0 of this epoch
    away: Array  # argmin psi_t - center
    weight: float = 0.0  # A_t
    psi: float = 0.0  # psi*_t = min psi_t
    mu: float = 0.0  # strong convexity carried by every cut, w.r.t. l_2
    rest: float = 0.0  # what psi was rounded off by: psi + rest has twice the digits
    charge: Charge = UNCHARGED  # what rounding may have added to the cuts
    eps: float = EPS  # the resolution of the numbers that away is made of

    @classmethod
    def around(cls, x: Array, mu: float = 0.0) -> Estimate:
        """psi_0 = 1/2 ||. - x||^2."""
        return cls(x, x - x, mu=mu, eps=resolution(x))

    @property
    def v(self) -> Array:
        """argmin psi_t."""
        return self.center + self.away

    @cached_property
    def reach(self) -> float:
        """||v - center||_2."""
        return norm2(self.away)

    @property
    def kappa(self) -> float:
        """The curvature of psi_t."""
        return 1.0 + self.mu * self.weight

    def share(self, a: float) -> float:
        """The part tau of v in the coupling point: A kappa' (x - y) + a kappa (v - y) = 0; at mu = 0, a/A_{t+1}."""
        if self.weight == 0.0:  # tau_0 = 1, whatever a is
            return 1.0
        scale = unit(self.weight)  # a power of two: weights of a function scaled by 2^-996 do not overflow
        part, A = scale * a * self.kappa, scale * self.weight
        return part / (A * (self.kappa + self.mu * a) + part)

    def to_minimiser(self, x: Array) -> Array:
        """v - x, with the digits that v and x share left out."""
        return self.away if x is self.center else self.away - (x - self.center)

    def couple(self, x: Array, a: float) -> Array:
        """The coupling point y = (1 - tau) x + tau v."""
        return self.center if self.weight == 0.0 else x + self.share(a) * self.to_minimiser(x)

    def sight(self, e: Evaluation) -> Sight:
        """How the point of an evaluation is seen: what a cut there and its largest weight are made of."""
        apart, up = e.x - self.center, 1.0 if e.norm2 >= FAINT else lift(e.f, e.norm2)
        return Sight(apart, up, self.slope(e, up, self.away - apart))

    def cut(self, a: float, e: Evaluation, sight: Sight | None = None) -> Estimate:
        """psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2], exactly but for what `charge` says.

        The weight is rounded so that A_{t+1} = A_t + a holds to the last digit: weights are ours to choose.
        """
        A, mu = self.weight + a, self.mu
        a = A - self.weight
        kappa_next = 1.0 + mu * A
        apart, up, linear = sight or self.sight(e)
        if mu == 0.0:
            away = self.away - a * e.g
        else:
            kept = self.kappa / kappa_next
            away = kept * self.away + (a * mu / kappa_next) * apart - (a / kappa_next) * e.g
            linear *= kept
        length = a * e.norm2
        fall = length * length / (2.0 * kappa_next)
        psi, first = _two_sum(self.psi, (a / up) * (up * e.f + linear))
        psi, second = _two_sum(psi, -fall)
        reach = norm2(away)
        charge = self._charge_with_cut(a, e, norm2(apart), reach, kappa_next)
        rest = self.rest + first + second
        cut = object.__new__(Estimate)  # a frozen class is slow to fill by its own means
        cut.__dict__.update(self.__dict__, away=away, weight=A, psi=psi, rest=rest, charge=charge, reach=reach)
        return cut

    def _charge_with_cut(self, a: float, e: Evaluation, far: float, reach: float, kappa: float) -> Charge:
        """The charge with that of one more cut: the doubt of the evaluation, and the rounding of our own arithmetic.

        far = ||y - center||, reach = ||v_{t+1} - center||.  Sizes are those of the terms that are added up; an error in
        v_{t+1} tilts psi_{t+1} by kappa_{t+1} times as much.
        """
        doubt, slope, _, value_bend, slope_bend, slope_root, _, _ = e.doubt
        eps, mu, n, before = self.eps, self.mu, e.norm2, self.reach
        unit = max(e.eps, eps) * roundings(e.x.shape[0])
        spread = before + far
        terms = abs(e.f) + n * spread + 0.5 * mu * spread * spread
        length = a * n
        slope += 2.0 * eps * (n + mu * far)
        tilt = 2.0 * eps * (reach + before) * kappa
        value = a * (doubt + slope * far + 2.0 * unit * terms) + unit * length * length / kappa + tilt * reach
        old = self.charge
        return Charge(
            old[0] + value,
            old[1] + a * slope + tilt,
            old[2] + a * (value_bend + slope_bend * far),
            old[3] + a * slope_bend,
            old[4] + a * slope_root * far,
            old[5] + a * slope_root,
        )

    def slope(self, e: Evaluation, up: float, away: Array | None = None) -> float:
        """<g, v - y> + (mu/2) ||v - y||^2, times up; away = v - y may be given."""
        away = self.to_minimiser(e.x) if away is None else away
        slope = dot(e.g if up == 1.0 else up * e.g, away)
        if self.mu > 0.0:
            far = norm2(away)
            slope += 0.5 * (up * self.mu) * far * far
        return slope

    def largest_root(self, e: Evaluation, f_next: float, sight: Sight | None = None) -> float:
        """The largest a with (A + a) f_next <= min psi_{t+1}; NaN where there is none.

        -E a^2 + D a + kappa S >= 0 with S = psi* - A f_next, D = mu S + kappa [f(y) + <g, v - y> + ... - f_next] and
        E = ||g||^2/2 - mu (f(y) - f_next).  S and D are lowered by what rounding may have added, so that no weight
        grows out of noise.  Divided through by ||g||: nothing overflows, and scaling f scales a exactly.
        """
        n, f, mu, psi, A = e.norm2, e.f, self.mu, self.psi, self.weight
        kappa, up = 1.0 + mu * A, 1.0 if n >= FAINT else lift(f, f_next, n)
        S = psi - A * f_next - 8.0 * e.eps * (abs(psi) + A * abs(f_next))
        noise = rounding(up * f, up * f_next, eps=e.eps)
        _, factor, slope = sight or self.sight(e)
        D = (up * mu) * S + kappa * (up * f + slope * (up / factor) - up * f_next - noise)
        # Strong convexity gives E >= 0; the floor only shortens a, so the inequality stays true.
        half = max(0.5 - (mu / n) * ((f - f_next) / n), 1e-12)
        d = D / (up * n)
        discriminant = d * d + 4.0 * half * kappa * S
        if not discriminant >= 0.0:
            return math.nan
        root = math.sqrt(discriminant)
        if d >= 0.0:
            return (d + root) / (2.0 * half) / n
        return 2.0 * kappa * S / (root - d) / n if S > 0.0 else math.nan

    def rescale(self, slack: float) -> Estimate:
        """The cuts scaled by the largest c <= 1 for which c A U <= min psi holds again, where psi - A U = slack < 0.

        With l = sum of the cuts, l(center) = m and slope s there, min psi_c = c m - c^2 ||s||^2/(2 (1 + c mu A)).
        Where no c > 0 will do, the estimate without cuts.
        """
        A = self.weight
        if slack >= 0.0:
            return self
        s = self.reach * self.kappa
        fallen = 0.5 * s * (s / self.kappa)
        spare = slack + fallen  # m - A U
        if not spare > 0.0:
            return Estimate.around(self.center, self.mu)
        c = min(1.0, spare / (fallen - self.mu * A * slack))  # the root, arranged so that nothing cancels
        kappa = 1.0 + c * self.mu * A
        stretch = c * self.kappa / kappa
        psi = c * (self.psi + fallen) - 0.5 * (c * s) * (c * s / kappa)
        rounded = 8.0 * self.eps * (abs(self.psi) + 2.0 * fallen)
        charge = Charge(*(c * part for part in self.charge))
        tilt = 4.0 * self.eps * self.reach * kappa
        charge = charge._replace(value=charge.value + rounded + tilt * self.reach, slope=charge.slope + tilt)
        return Estimate(self.center, stretch * self.away, c * A, psi, self.mu, c * self.rest, charge, self.eps)

    def certificate(self, origin: Array) -> EstimateBound:
        """The scalars of this estimate that a lower bound needs; origin is the run's own x_0."""
        offset = 0.0 if origin is self.center else norm2(self.center - origin)
        unit = self.eps * roundings(self.away.shape[0])
        return EstimateBound(self.weight, self.psi, self.mu, self.reach, offset, self.charge, unit, self.rest)


def _two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b rounded, and the rounding error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def observed_smoothness(geometry: Geometry, e: Evaluation, other: Evaluation) -> float:
    """The smallest L that two evaluations of a convex f allow (co-coercivity); 0 where rounding hides it.

    f(z) >= f(y) + <g_y, z - y> + ||g_z - g_y||_{p*}^2 / (2L), read both ways.
    """
    apart, turn, up = e.x - other.x, e.g - other.g, lift(e.f, other.f, e.norm2, other.norm2)
    if up > 1.0:
        apart, turn = up * apart, up * turn
    noise, fall = rounding(up * e.f, up * other.f, eps=e.eps), up * (e.f - other.f)
    change = geometry.dual_norm(turn)
    bregman = fall - dot(other.g, apart), dot(e.g, apart) - fall
    return max((change * (change / (2.0 * b)) / up for b in bregman if b > 32.0 * noise), default=0.0)
