"""Losses phi(z) of the image z = Ax - b: value, slope phi'(z), curvature phi''(z), and L_p of phi(Ax - b).

Every loss is frozen, returns float64, never writes into z, and never warns: where a value exceeds the largest
float it is inf.  ``smoothness(A, p)`` is the declared constant of x -> phi(Ax - b), without a ridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from .._checks import number
from .._math.arrays import apply_in_place, copy_of, extreme_entries, largest_entry, namespace, total
from .._math.doubt import EPS, roundings
from .._math.geometry import dot
from . import _smoothness as smoothness
from ._loss import Expansion, Loss
from ._operators import Matrix, Vector, as_data, quiet
from ._smoothness import Smoothness

SLACK = 64.0 * 2.0**-52
"""How far rounding may carry a slope beyond the domain of the conjugate."""


@dataclass(frozen=True)
class _Softmax(Loss):
    """What the two smoothed maxima share: weights that sum to 1, from which all of an expansion is made."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an alpha that is not positive."""
        object.__setattr__(self, "alpha", number("alpha", self.alpha, least=0.0, strict=True))

    @property
    def width(self) -> float:
        """How far entries of z may move before the curvature is another one."""
        return self.alpha

    def soften(self, factor: float) -> Self:
        """The same smoothed maximum with alpha so many times as large."""
        return replace(self, alpha=factor * self.alpha)

    def doubt(self, value: float, rows: int, dz: float) -> tuple[float, float, float]:
        """phi is off by at most what z is, as its slopes have sizes of sum 1 at most, and by its own sum."""
        own = 2.0 * abs(value) + self.alpha * (roundings(rows) + math.log(2.0 * rows))
        return dz + EPS * own, 1.0, dz / self.alpha


@dataclass(frozen=True)
class LogSumExpLoss(_Softmax):
    """phi(z) = alpha log sum_i exp(z_i/alpha), between max z and max z + alpha log n.

    Its slope is w = softmax(z/alpha).

    >>> LogSumExpLoss(alpha=1e-8).value(np.array([1e6, 0.0]))
    1000000.0
    """

    def expand(self, z: Vector) -> Expansion:
        """The slope w, w_i = exp((z_i - max z)/alpha) over their sum, and the curvature (Diag(w) - w w^T)/alpha."""
        top = largest_entry(z)
        alive = _places_that_count(z, top, self.alpha)
        w = (z if alive is None else z[alive]) - top
        w /= self.alpha
        w = apply_in_place("exp", w)
        all_of_them = total(w)
        w /= all_of_them
        w = _spread(w, alive, z)
        return Expansion(_from_total(top, all_of_them, self.alpha), w, w, w, 1.0 / self.alpha, alive)

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = alpha sum_i u_i log u_i on the simplex, inf beyond."""
        if not (extreme_entries(u)[0] >= 0.0 and abs(total(u) - 1.0) <= SLACK):
            return math.inf
        return self.alpha * total(x_log_x(u))

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """max_{i,j} ||a_i - a_j||_{p*}^2/(4 alpha)."""
        return _divide(smoothness.log_sum_exp(A, p), self.alpha)


@dataclass(frozen=True)
class SymmetricSoftmaxLoss(_Softmax):
    """phi(z) = alpha log sum_i (exp(z_i/alpha) + exp(-z_i/alpha)), between ||z||_inf and that + alpha log 2n.

    Its slope is w+ - w-, the difference of the weights of z_i and of -z_i.

    >>> SymmetricSoftmaxLoss(alpha=1e-8).value(np.array([-1e6, 0.0]))
    1000000.0
    """

    bounded_below: ClassVar[bool] = True

    def expand(self, z: Vector) -> Expansion:
        """The slope s = w+ - w- and the curvature (Diag(w+ + w-) - s s^T)/alpha from the weights of z_i and of -z_i.

        With r = exp(-2|z|/alpha) the sums and the differences of the weights are exp((|z| - max|z|)/alpha) times 1 + r
        and 1 - r, over the sum of the former; 1 - r as -expm1 has no cancellation near z = 0.
        """
        magnitude = abs(z)
        top = largest_entry(magnitude)
        alive = _places_that_count(magnitude, top, self.alpha)
        sign = z
        if alive is not None:
            magnitude, sign = magnitude[alive], z[alive]
        odd = magnitude / (-0.5 * self.alpha)
        odd = apply_in_place("expm1", odd)
        even = 2.0 + odd
        magnitude -= top
        magnitude /= self.alpha
        e = apply_in_place("exp", magnitude)
        even *= e
        all_of_them = total(even)
        even /= all_of_them
        e /= all_of_them
        odd *= e
        odd = _spread(namespace(odd).copysign(odd, sign), alive, z)
        value = _from_total(top, all_of_them, self.alpha)
        return Expansion(value, odd, _spread(even, alive, z), odd, 1.0 / self.alpha, alive)

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = alpha sum_i (w+ log w+ + w- log w-) for ||u||_1 <= 1, inf beyond.

        The weights are (m +- u)/2 with m_i = sqrt(u_i^2 + k^2) and k >= 0 such that sum_i m_i = 1: the entropy of all
        weights with difference u is greatest where w+ w- is the same for every i.
        """
        magnitude, xp = abs(u), namespace(u)
        spare, n = 1.0 - total(magnitude), u.shape[0]
        if not spare >= -SLACK:
            return math.inf
        k = 1.0 / n if spare > 0.0 else 0.0
        for _ in range(60):  # Newton on a convex increasing function, from above: monotone
            m = xp.hypot(magnitude, k)
            step = (total(m) - 1.0) / total(k / m) if k > 0.0 else 0.0
            if not step > 4.0 * 2.0**-52 * k:
                break
            k = max(k - step, spare / n)
        larger = 0.5 * (magnitude + xp.hypot(magnitude, k))
        some = larger > 0.0
        smaller = xp.where(some, 0.25 * k * k / xp.where(some, larger, 1.0), 0.0)
        return self.alpha * total(x_log_x(larger) + x_log_x(smaller))

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """max_i ||a_i||_{p*}^2/alpha; A = None is the identity."""
        return _divide(smoothness.symmetric_softmax(A, p), self.alpha)


class _PowerSum(Loss):
    """What the losses 1/q sum_i |z_i|^q share."""

    bounded_below: ClassVar[bool] = True

    q: float

    def doubt(self, value: float, rows: int, dz: float) -> tuple[float, float, float]:
        """The slopes |z|^{q-1} at z + dz, by Minkowski's inequality in l_{q-1}, and the sum of n powers.

        Sums of lower powers are bounded by Hoelder's inequality.
        """
        q, n = self.q, float(rows)
        size = np.float64(q * value) ** (1.0 / q)  # ||z||_q; NumPy's power gives inf where Python's would raise
        length = n ** (1.0 / (q * (q - 1.0))) * size  # ||z||_{q-1} at most
        moved = length + n ** (1.0 / (q - 1.0)) * dz
        change = moved ** (q - 1.0) * dz + EPS * (roundings(rows) + 2.0 * q) * value
        turn = (q - 1.0) * n ** (1.0 / (q - 1.0)) * moved ** (q - 2.0) * dz
        return float(change), float(length ** (q - 1.0)), float(turn)

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """At q = 2 a bound on ||A||_{p->2}^2; inf for q > 2: the curvature grows without bound."""
        return smoothness.squares(A, p) if self.q == 2.0 else Smoothness(math.inf, exact=True)


@dataclass(frozen=True)
class SquareLoss(_PowerSum):
    """phi(z) = 1/2 ||z||_2^2.

    >>> SquareLoss().value_and_slope(np.array([3.0, 4.0]))
    (12.5, array([3., 4.]))
    """

    q = 2.0

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return 0.5 * dot(z, z)

    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and z."""
        return self.value(z), copy_of(z)

    def expand(self, z: Vector) -> Expansion:
        """phi(z), z and the identity."""
        return Expansion(*self.value_and_slope(z), namespace(z).ones_like(z))

    def conjugate(self, u: Vector) -> float:
        """phi*(u) = 1/2 ||u||^2."""
        return self.value(u)


@dataclass(frozen=True, eq=False)
class LogisticLoss(Loss):
    """phi(z) = sum_i s_i log(1 + exp(-y_i z_i)), labels y_i in {-1, 1}, s_i the share of row i in the weights, or 1/n.

    >>> LogisticLoss(np.array([1, -1])).value(np.array([1e6, 1e6]))
    500000.0
    >>> LogisticLoss(np.array([1, -1]), weights=np.array([1.0, 3.0])).weights
    array([0.25, 0.75])
    """

    bounded_below: ClassVar[bool] = True

    y: Vector
    weights: Vector | None = None
    opposite: Vector = field(init=False)  # -y
    pulls: Vector = field(init=False)  # -s y: the slope where exp(-y z) is large

    def __post_init__(self) -> None:
        """Refuse labels other than -1 and 1; divide the weights by their sum."""
        y = as_data(self.y, None, "y", self.y)
        xp = namespace(y)
        if not bool(xp.all(abs(y) == 1.0)):
            labels = xp.unique_values(y)
            found = ", ".join(f"{float(labels[i]):g}" for i in range(min(labels.shape[0], 5)))
            raise ValueError(f"y must hold labels -1 and 1 only, got {found}; convert 0/1 labels with 2*y - 1")
        object.__setattr__(self, "y", y)
        if self.weights is not None:
            object.__setattr__(self, "weights", shares(self.weights, y))
        object.__setattr__(self, "opposite", -y)
        object.__setattr__(self, "pulls", self._share * self.opposite)

    @property
    def _share(self) -> Any:
        """The share of a row: a vector where there are weights."""
        return 1.0 / self.y.shape[0] if self.weights is None else self.weights

    def _exponentials(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and e = exp(-y z), kept below overflow: where it is large, log(1 + e) = -y z to the last digit."""
        t, xp = self.opposite * z, namespace(z)
        if largest_entry(t) <= 700.0:
            e = apply_in_place("exp", t)
            losses = xp.log1p(e)
        else:  # an entry is larger, or NaN
            e = apply_in_place("exp", xp.minimum(t, 700.0))
            losses = xp.maximum(xp.log1p(e), t)
        return total(losses) / z.shape[0] if self.weights is None else dot(self.weights, losses), e

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return self._exponentials(z)[0]

    def _parts(self, z: Vector) -> tuple[float, Vector, Vector, Vector]:
        """phi(z), phi'(z) = -s y/(1 + exp(y z)), 1 + exp(-y z) and 1/(1 + exp(y z))."""
        value, e = self._exponentials(z)
        above = 1.0 + e
        e /= above
        return value, self.pulls * e, above, e

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and phi'(z)."""
        return self._parts(z)[:2]

    def expand(self, z: Vector) -> Expansion:
        """All three from exp(-y z); the curvature s/(2 + exp(z) + exp(-z)) is the same for either label."""
        value, slope, above, bend = self._parts(z)
        bend /= above
        if self.weights is None:
            return Expansion(value, slope, bend, scale=1.0 / z.shape[0])
        bend *= self.weights
        return Expansion(value, slope, bend)

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = sum_i s_i (q_i log q_i + (1 - q_i) log(1 - q_i)), q_i = -y_i u_i/s_i in [0, 1], inf beyond."""
        xp, share = namespace(u), self._share
        q = -self.y * u / share
        low, high = extreme_entries(q)
        if not (low >= 0.0 and high <= 1.0 + SLACK):
            return math.inf
        q = xp.minimum(q, 1.0)
        rest = xp.where(q < 1.0, (1.0 - q) * xp.log1p(-xp.where(q < 1.0, q, 0.0)), 0.0)
        return total(share * (x_log_x(q) + rest))

    @staticmethod
    def doubt(value: float, rows: int, dz: float) -> tuple[float, float, float]:
        """Slopes s/(1 + e^m) are at most s log(1 + e^-m), and s; moving z by dz raises them by e^dz at most.

        The curvature is below the slope, and s/4.
        """
        moved = min(1.0, max(value, math.ulp(0.0)) * math.exp(min(dz, 700.0)))
        return dz * moved + EPS * roundings(rows) * 2.0 * value, min(1.0, value), dz * min(0.25, moved)

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """A bound on ||A||_{p->2}^2 max s_i/4: phi'' is largest at z = 0, where it is s/4; not exact with weights."""
        squares = smoothness.squares(A, p)
        if self.weights is None:
            return _divide(squares, 4.0 * self.y.shape[0])
        return Smoothness(0.25 * largest_entry(self.weights) * squares, exact=False)


@dataclass(frozen=True)
class PowerLoss(_PowerSum):
    """phi(z) = 1/q sum_i |z_i|^q, q >= 2.

    >>> PowerLoss(q=4).value(np.array([1e200]))
    inf
    """

    q: float

    def __post_init__(self) -> None:
        """Refuse q < 2, where the slope is not Lipschitz even near z = 0."""
        object.__setattr__(self, "q", number("q", self.q, least=2.0))

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return total(abs(z) ** self.q) / self.q

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and sign(z) |z|^{q-1}."""
        return self.value(z), namespace(z).copysign(abs(z) ** (self.q - 1.0), z)

    def expand(self, z: Vector) -> Expansion:
        """All three from |z|^{q-2}."""
        power = abs(z) ** (self.q - 2.0)
        slope = power * z
        return Expansion(dot(slope, z) / self.q, slope, power, scale=self.q - 1.0)

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = (1 - 1/q) sum_i |u_i|^{q/(q-1)}."""
        return (1.0 - 1.0 / self.q) * total(abs(u) ** (self.q / (self.q - 1.0)))


def _places_that_count(z: Vector, top: float, alpha: float) -> Vector | None:
    """The places where exp((z - top)/alpha) counts beside exp(0) = 1, if they are few; None where they are many.

    An entry 60 alpha below the largest adds 1e-26 of it, less than rounding, for any number of rows.  Arrays of other
    libraries than NumPy may be on a device, where looking costs more than it saves.
    """
    if type(z) is not np.ndarray:
        return None
    alive = (z > top - 60.0 * alpha).nonzero()[0]
    return alive if 0 < 4 * alive.size < z.size else None


def _spread(few: Vector, places: Vector | None, z: Vector) -> Vector:
    """A vector as long as z that is `few` at these places (None: everywhere) and 0 elsewhere."""
    if places is None:
        return few
    out = np.zeros(len(z))
    out[places] = few
    return out


def _from_total(top: float, total: float, alpha: float) -> float:
    """top + alpha log total; top itself where it is not finite and total has become NaN."""
    return top + alpha * math.log(total) if math.isfinite(top) else top


def x_log_x(u: Vector) -> Vector:
    """u log u, 0 at u = 0; for u >= 0."""
    xp = namespace(u)
    return u * xp.log(xp.where(u > 0.0, u, 1.0))


def shares(weights: Vector, rows: Vector) -> Vector:
    """Positive weights of the rows, divided by their sum."""
    w = as_data(weights, rows.shape[0], "weights", rows, "y")
    if not extreme_entries(w)[0] > 0.0:
        raise ValueError("weights must be positive: leave out rows of weight 0")
    w /= largest_entry(w)  # so that the sum does not overflow
    return w / total(w)


def _divide(L: Smoothness, by: float) -> Smoothness:
    return Smoothness(L / by, L.exact)
