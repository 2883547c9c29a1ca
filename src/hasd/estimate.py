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

from .geometry import Array, Geometry, dot, lift, norm2, unit
from .oracle import Evaluation

EPS = 2.0**-52
NOISE = 8.0 * EPS
"""Relative rounding error allowed for in one function value."""


def rounding(*values: float, eps: float = EPS) -> float:
    """What the difference of these function values may be off by."""
    return 8.0 * eps * max(map(abs, values))


def increment(A: float, c: float, mu: float = 0.0) -> float:
    """The a > 0 with c a^2 = (A + a)(1 + mu (A + a)); c is L rho in the tight form, 18 L rho in Algorithm 1.

    At mu = 0 it is Algorithm 1's a^2 = A_{t+1}/c.  A root exists while c > mu; L rho >= mu holds for a true L, and at
    equality, where one step reaches the minimiser, or for an L guessed too small, c is taken a little above mu.

    >>> a = increment(2.0, 0.5)
    >>> round(0.5 * a * a - (2.0 + a), 12)
    0.0
    """
    c = max(c, (1.0 + 2.0**-10) * mu)
    if mu == 0.0:
        return (1.0 + math.sqrt(1.0 + 4.0 * c * A)) / (2.0 * c)
    b = 1.0 + 2.0 * mu * A
    return (b + math.sqrt(b * b + 4.0 * (c - mu) * A * (1.0 + mu * A))) / (2.0 * (c - mu))


@dataclass(frozen=True)
class Certificate:
    """The scalars of an estimate function that a lower bound on f* needs."""

    weight: float  # A_t
    psi: float  # psi*_t
    mu: float  # the cuts' curvature
    reach: float  # ||v_t - center||_2
    offset: float = 0.0  # ||center - x_0||_2: not 0 after a restart
    blur: float = 0.0  # what a gradient of the cuts may be off by, in l_2

    def lower(self, radius: float | None = None) -> float:
        """f* >= this, for any radius >= ||x_0 - x*||_2 (no radius needed where the cuts carry mu > 0).

        The minimum of (kappa/2)||u - v||^2 - 1/2||u - center||^2 over ||u - center|| <= R lies on the ray through v,
        at distance s = min(R, kappa D/(kappa - 1)), D = ||v - center||.  Rounding is taken off.
        """
        if self.weight == 0.0 or (radius is None and self.mu == 0.0):
            return -math.inf
        kappa = 1.0 + self.mu * self.weight
        free = kappa * self.reach / (self.mu * self.weight) if self.mu > 0.0 else math.inf
        s = free if radius is None else min(radius + self.offset, free)
        # kappa/2 (s - D)^2 - s^2/2, arranged so that nothing large cancels
        curved = 0.5 * self.mu * self.weight * (s - self.reach) * (s - self.reach)
        low = curved + 0.5 * self.reach * (self.reach - 2.0 * s)
        noise = max(NOISE * (abs(self.psi) + abs(low)) / self.weight, self.blur * (s + self.reach))
        bound = (self.psi + low) / self.weight - noise
        return bound if math.isfinite(bound) else -math.inf


@dataclass(frozen=True)
class Estimate:
    """psi_t, held as its center, minimiser and minimum."""

    center: Array  # x_0 of this epoch
    v: Array  # argmin psi_t
    weight: float = 0.0  # A_t
    psi: float = 0.0  # psi*_t = min psi_t
    mu: float = 0.0  # strong convexity carried by every cut, w.r.t. l_2
    blur: float = 0.0  # what a gradient of the cuts may be off by: rounding of the largest one

    @property
    def kappa(self) -> float:
        """The curvature of psi_t."""
        return 1.0 + self.mu * self.weight

    def share(self, a: float) -> float:
        """The part tau of v in the coupling point: A kappa' (x - y) + a kappa (v - y) = 0; at mu = 0, a/A_{t+1}."""
        scale = unit(self.weight)  # a power of two: weights of a function scaled by 2^-996 do not overflow
        part, A = scale * a * self.kappa, scale * self.weight
        return part / (A * (self.kappa + self.mu * a) + part)

    def couple(self, x: Array, a: float) -> Array:
        """The coupling point y = (1 - tau) x + tau v."""
        return self.v if self.weight == 0.0 else x + self.share(a) * (self.v - x)

    def cut(self, a: float, e: Evaluation) -> Estimate:
        """psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2], exactly."""
        kappa, kappa_next = self.kappa, self.kappa + self.mu * a
        up = lift(e.f, e.norm2)
        if self.mu == 0.0:
            v = self.v - a * e.g
            linear = self._slope(e, up)
        else:
            v = (kappa / kappa_next) * self.v + (a * self.mu / kappa_next) * e.x - (a / kappa_next) * e.g
            linear = (kappa / kappa_next) * self._slope(e, up)
        length = a * e.norm2
        psi = self.psi + (a / up) * (up * e.f + linear) - length * length / (2.0 * kappa_next)
        return Estimate(self.center, v, self.weight + a, psi, self.mu, max(self.blur, 8.0 * e.eps * e.norm2))

    def _slope(self, e: Evaluation, up: float) -> float:
        """<g, v - y> + (mu/2) ||v - y||^2, times up."""
        away = self.v - e.x
        slope = dot(e.g if up == 1.0 else up * e.g, away)
        if self.mu > 0.0:
            far = norm2(away)
            slope += 0.5 * (up * self.mu) * far * far
        return slope

    def largest_root(self, e: Evaluation, f_next: float) -> float:
        """The largest a with (A + a) f_next <= min psi_{t+1}; NaN where there is none.

        -E a^2 + D a + kappa S >= 0 with S = psi* - A f_next, D = mu S + kappa [f(y) + <g, v - y> + ... - f_next] and
        E = ||g||^2/2 - mu (f(y) - f_next).  S and D are lowered by what rounding may have added, so that no weight
        grows out of noise.  Divided through by ||g||: nothing overflows, and scaling f scales a exactly.
        """
        n, kappa, up = e.norm2, self.kappa, lift(e.f, f_next, e.norm2)
        S = self.psi - self.weight * f_next - 8.0 * e.eps * (abs(self.psi) + self.weight * abs(f_next))
        noise = rounding(up * e.f, up * f_next, eps=e.eps)
        D = (up * self.mu) * S + kappa * (up * e.f + self._slope(e, up) - up * f_next - noise)
        # Strong convexity gives E >= 0; the floor only shortens a, so the inequality stays true.
        half = max(0.5 - (self.mu / n) * ((e.f - f_next) / n), 1e-12)
        d = D / (up * n)
        discriminant = d * d + 4.0 * half * kappa * S
        if not discriminant >= 0.0:
            return math.nan
        root = math.sqrt(discriminant)
        if d >= 0.0:
            return (d + root) / (2.0 * half) / n
        return 2.0 * kappa * S / (root - d) / n if S > 0.0 else math.nan

    def rescaled(self, f: float) -> Estimate:
        """The cuts scaled by the largest c <= 1 for which c A f <= min psi holds again: after L proved too small.

        With l = sum of the cuts, l(center) = m and slope s there, min psi_c = c m - c^2 ||s||^2/(2 (1 + c mu A)).
        Where no c > 0 will do, the estimate without cuts.
        """
        A = self.weight
        if A * f <= self.psi:
            return self
        s = norm2(self.v - self.center) * self.kappa
        slack = self.psi + 0.5 * s * (s / self.kappa) - A * f  # m - A f
        if not slack > 0.0:
            return Estimate(self.center, self.center, mu=self.mu)
        c = min(1.0, 2.0 * slack / (s * s - 2.0 * self.mu * A * slack))
        kappa = 1.0 + c * self.mu * A
        v = self.center + (c * self.kappa / kappa) * (self.v - self.center)
        psi = c * (slack + A * f) - 0.5 * (c * s) * (c * s / kappa)
        return Estimate(self.center, v, c * A, psi, self.mu, self.blur)

    def certificate(self, origin: Array) -> Certificate:
        """What remains of this estimate when its vectors are let go; origin is the run's own x_0."""
        offset = 0.0 if origin is self.center else norm2(self.center - origin)
        return Certificate(self.weight, self.psi, self.mu, norm2(self.v - self.center), offset, self.blur)


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
