"""Losses phi(z) of the image z = Ax - b: value, slope phi'(z), curvature phi''(z), and L_p of phi(Ax - b).

Every loss is frozen, returns float64, never writes into z, and never warns: where a value exceeds the largest
float it is inf.  ``smoothness(A, p)`` is the declared constant of x -> phi(Ax - b), without a ridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.special

from hasd.objectives import smoothness
from hasd.objectives.operators import Matrix, Vector, as_data, as_scalar, quiet
from hasd.objectives.smoothness import Smoothness


class Curvature(NamedTuple):
    """phi''(z) = Diag(diagonal) - rank_one rank_one^T, positive semidefinite.

    ``rank_one`` is None for a separable loss.  Factors such as 1/alpha and 1/n are in both already.

    >>> Curvature(np.array([2.0, 3.0]), None).times(np.array([1.0, 1.0]))
    array([2., 3.])
    """

    diagonal: Vector
    rank_one: Vector | None

    def times(self, W: Vector) -> Vector:
        """phi''(z) W for a vector, or for a matrix of columns: two passes over n a column."""
        product = (self.diagonal * W.T).T
        return product if self.rank_one is None else product - np.multiply.outer(self.rank_one, self.rank_one @ W)


class Expansion(NamedTuple):
    """phi near a point, from one pass: phi'' = scale (Diag(diagonal) - rank_one rank_one^T); vectors may be shared."""

    value: float
    slope: Vector
    diagonal: Vector
    rank_one: Vector | None = None
    scale: float = 1.0

    @property
    def curvature(self) -> Curvature:
        """phi'' with the scale multiplied in."""
        r = self.rank_one
        return Curvature(self.scale * self.diagonal, None if r is None else math.sqrt(self.scale) * r)


class Loss(Protocol):
    """What ``Affine`` asks of a loss; write a class with these names to bring your own."""

    def value(self, z: Vector) -> float:
        """phi(z)."""
        ...

    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and phi'(z), the latter in an array of its own."""
        ...

    def curvature(self, z: Vector) -> Curvature:
        """phi''(z) as a diagonal minus a rank-one matrix."""
        ...

    def expand(self, z: Vector) -> Expansion:
        """phi(z), phi'(z) and phi''(z) together, for less than the sum of their costs."""
        ...

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """The declared L_p of x -> phi(Ax - b); inf where there is none."""
        ...


def _positive(alpha: float) -> float:
    return as_scalar(alpha, "alpha", "> 0", lambda value: value > 0.0)


@dataclass(frozen=True)
class LogSumExpLoss:
    """phi(z) = alpha log sum_i exp(z_i/alpha), between max z and max z + alpha log n.

    >>> LogSumExpLoss(alpha=1e-8).value(np.array([1e6, 0.0]))
    1000000.0
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an alpha that is not positive."""
        object.__setattr__(self, "alpha", _positive(self.alpha))

    def _exponentials(self, z: Vector) -> tuple[float, Vector, float]:
        """phi(z), e_i = exp((z_i - max z)/alpha) and their sum."""
        top = float(z.max())
        e = z - top
        e /= self.alpha
        alive = _alive(e)
        if alive is None:
            np.exp(e, out=e)
        else:
            few = np.exp(e[alive])
            e = np.zeros_like(e)
            e[alive] = few
        total = float(e.sum())
        return _from_total(top, total, self.alpha), e, total

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return self._exponentials(z)[0]

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and the weights w = softmax(z/alpha)."""
        value, w, total = self._exponentials(z)
        w /= total
        return value, w

    @quiet
    def curvature(self, z: Vector) -> Curvature:
        """(Diag(w) - w w^T)/alpha."""
        return self.expand(z).curvature

    def expand(self, z: Vector) -> Expansion:
        """All three from the weights w."""
        value, w, total = self._exponentials(z)
        w /= total
        return Expansion(value, w, w, w, 1.0 / self.alpha)

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = alpha sum_i u_i log u_i on the simplex."""
        return self.alpha * float(np.sum(scipy.special.xlogy(u, u)))

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """max_{i,j} ||a_i - a_j||_{p*}^2/(4 alpha)."""
        return _divided(smoothness.log_sum_exp(A, p), self.alpha)


@dataclass(frozen=True)
class SymmetricSoftmaxLoss:
    """phi(z) = alpha log sum_i (exp(z_i/alpha) + exp(-z_i/alpha)), between ||z||_inf and that + alpha log 2n.

    >>> SymmetricSoftmaxLoss(alpha=1e-8).value(np.array([-1e6, 0.0]))
    1000000.0
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an alpha that is not positive."""
        object.__setattr__(self, "alpha", _positive(self.alpha))

    def _exponentials(self, z: Vector) -> tuple[float, Vector, Vector, float]:
        """phi(z); cosh and sinh of z/alpha, both over exp(max|z|/alpha)/2; the sum of the former."""
        magnitude = np.abs(z)
        top = float(magnitude.max())
        e = magnitude - top
        e /= self.alpha
        alive = _alive(e)
        if alive is None:
            even, odd = self._parts(e, magnitude)
        else:
            even, odd = np.zeros_like(e), np.zeros_like(e)
            even[alive], odd[alive] = self._parts(e[alive], magnitude[alive])
        total = float(even.sum())
        return _from_total(top, total, self.alpha), even, np.copysign(odd, z), total

    def _parts(self, exponent: Vector, magnitude: Vector) -> tuple[Vector, Vector]:
        """exp(exponent) (1 + r) and exp(exponent) (1 - r), r = exp(-2|z|/alpha); no cancellation near z = 0."""
        e = np.exp(exponent)
        drop = np.expm1(magnitude / (-0.5 * self.alpha))
        return e * (2.0 + drop), e * drop

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return self._exponentials(z)[0]

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and s = w+ - w-, the difference of the weights of z_i and of -z_i."""
        value, _, odd, total = self._exponentials(z)
        return value, odd / total

    @quiet
    def curvature(self, z: Vector) -> Curvature:
        """(Diag(w+ + w-) - s s^T)/alpha."""
        return self.expand(z).curvature

    def expand(self, z: Vector) -> Expansion:
        """All three from the weights of z_i and -z_i."""
        value, even, odd, total = self._exponentials(z)
        odd /= total
        even /= total
        return Expansion(value, odd, even, odd, 1.0 / self.alpha)

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """max_i ||a_i||_{p*}^2/alpha; A = None is the identity."""
        return _divided(smoothness.symmetric_softmax(A, p), self.alpha)


@dataclass(frozen=True)
class SquareLoss:
    """phi(z) = 1/2 ||z||_2^2.

    >>> SquareLoss().value_and_slope(np.array([3.0, 4.0]))
    (12.5, array([3., 4.]))
    """

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return 0.5 * float(z @ z)

    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and z."""
        return self.value(z), z.copy()

    def curvature(self, z: Vector) -> Curvature:
        """The identity."""
        return Curvature(np.ones_like(z), None)

    def expand(self, z: Vector) -> Expansion:
        """All three."""
        return Expansion(*self.value_and_slope(z), np.ones_like(z))

    def conjugate(self, u: Vector) -> float:
        """phi*(u) = 1/2 ||u||^2."""
        return self.value(u)

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """A bound on ||A||_{p->2}^2."""
        return smoothness.squares(A, p)


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    """phi(z) = 1/n sum_i log(1 + exp(-y_i z_i)), labels y_i in {-1, 1}.

    >>> LogisticLoss(np.array([1, -1])).value(np.array([1e6, 1e6]))
    500000.0
    """

    y: Vector

    def __post_init__(self) -> None:
        """Refuse labels other than -1 and 1."""
        y = as_data(self.y, None, "y")
        if not (np.abs(y) == 1.0).all():
            found = ", ".join(f"{label:g}" for label in np.unique(y)[:5])
            raise ValueError(f"y must hold labels -1 and 1 only, got {found}; convert 0/1 labels with 2*y - 1")
        object.__setattr__(self, "y", y)

    def _exponentials(self, z: Vector) -> tuple[float, Vector, Vector]:
        """phi(z), the margins t = y z and exp(-|t|)."""
        t = self.y * z
        e = np.exp(-np.abs(t))
        return float(np.mean(np.log1p(e) + np.maximum(-t, 0.0))), t, e

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return self._exponentials(z)[0]

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and -y/(1 + exp(y z))/n."""
        value, t, e = self._exponentials(z)
        return value, self.y * np.where(t > 0.0, e, 1.0) / (-len(t) * (1.0 + e))

    @quiet
    def curvature(self, z: Vector) -> Curvature:
        """1/(2 + exp(z) + exp(-z))/n, the same for either label."""
        e = np.exp(-np.abs(z))
        return Curvature(e / (len(z) * (1.0 + e) ** 2), None)

    def expand(self, z: Vector) -> Expansion:
        """All three from exp(-|z|)."""
        value, t, e = self._exponentials(z)
        below = 1.0 / (1.0 + e)
        slope = self.y * np.where(t > 0.0, e, 1.0) * (below / -len(t))
        return Expansion(value, slope, e * below * (below / len(t)))

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = 1/n sum_i (s_i log s_i + (1 - s_i) log(1 - s_i)), s_i = -n y_i u_i in [0, 1]."""
        s = np.clip(-len(u) * self.y * u, 0.0, 1.0)
        return float(np.mean(scipy.special.xlogy(s, s) + scipy.special.xlog1py(1.0 - s, -s)))

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """A bound on ||A||_{p->2}^2/(4n): phi'' is largest at z = 0, where it is 1/(4n)."""
        return _divided(smoothness.squares(A, p), 4.0 * len(self.y))


@dataclass(frozen=True)
class PowerLoss:
    """phi(z) = 1/q sum_i |z_i|^q, q >= 2.

    >>> PowerLoss(q=4).value(np.array([1e200]))
    inf
    """

    q: float

    def __post_init__(self) -> None:
        """Refuse q < 2, where the slope is not Lipschitz even near z = 0."""
        object.__setattr__(self, "q", as_scalar(self.q, "q", ">= 2", lambda value: value >= 2.0))

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return float(np.sum(np.abs(z) ** self.q)) / self.q

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and sign(z) |z|^{q-1}."""
        return self.value(z), np.copysign(np.abs(z) ** (self.q - 1.0), z)

    @quiet
    def curvature(self, z: Vector) -> Curvature:
        """(q-1) |z|^{q-2}."""
        return Curvature((self.q - 1.0) * np.abs(z) ** (self.q - 2.0), None)

    def expand(self, z: Vector) -> Expansion:
        """All three from |z|^{q-2}."""
        power = np.abs(z) ** (self.q - 2.0)
        slope = power * z
        return Expansion(float(slope @ z) / self.q, slope, power, scale=self.q - 1.0)

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """inf for q > 2: the curvature grows without bound; at q = 2 that of ``SquareLoss``."""
        return smoothness.squares(A, p) if self.q == 2.0 else Smoothness(math.inf, exact=True)


def _alive(exponents: Vector) -> Vector | None:
    """Where exp counts beside exp(0) = 1, if that is at few places; None where it is worth taking everywhere.

    A row 60 below the largest adds 1e-26 of it: less than rounding, for as many rows as there may be.
    """
    alive = np.flatnonzero(exponents > -60.0)
    return alive if 0 < 4 * alive.size < exponents.size else None


def _from_total(top: float, total: float, alpha: float) -> float:
    """top + alpha log total; top itself where it is not finite and total has become NaN."""
    return top + alpha * math.log(total) if math.isfinite(top) else top


def _divided(L: Smoothness, by: float) -> Smoothness:
    return Smoothness(L / by, L.exact)
