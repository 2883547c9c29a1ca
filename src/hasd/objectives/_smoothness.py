"""Declared smoothness constants: ||grad f(x) - grad f(y)||_{p*} <= L_p ||x - y||_p.

For a convex f that is twice differentiable, L_p is the supremum of <v, Hess f(x) v> over x and ||v||_p = 1.
"""

from __future__ import annotations

import math

import numpy as np

from .._math.geometry import Lp, convert_smoothness
from . import _norms as norms
from ._operators import Matrix, is_sparse, quiet


class Smoothness(float):
    """L_p with ||grad f(x) - grad f(y)||_{p*} <= L_p ||x - y||_p, a float that says if it is the least such.

    ``exact`` is True for the least constant (up to rounding), False for an upper bound.

    >>> L = Smoothness(2.0, exact=True)
    >>> L, L.exact, 3 * L
    (Smoothness(2.0, exact=True), True, 6.0)
    """

    exact: bool

    def __new__(cls, value: float, exact: bool) -> Smoothness:
        """The constant and whether it is the least."""
        self = super().__new__(cls, value)
        self.exact = bool(exact)
        return self

    def __getnewargs__(self) -> tuple[float, bool]:  # type: ignore[override]
        return float(self), self.exact

    def __repr__(self) -> str:
        return f"Smoothness({float(self)!r}, exact={self.exact})"


@quiet
def log_sum_exp(A: Matrix, p: float) -> Smoothness:
    """log sum exp(Ax - b): max_{i,j} ||a_i - a_j||_{p*}^2 / 4, the least constant that serves every b.

    The Hessian is the covariance of the rows under the softmax weights, and no distribution on [l, u] has a
    variance above (u - l)^2/4.  Where all pairs are too many: max_i ||a_i - c||_{p*}^2, the spread around any c.
    Where A cannot be read: lambda_max(A^T A) d^{1-2/p} / 2, as Diag(w) - w w^T <= I/2.

    >>> log_sum_exp(np.array([[1.0, 1.0], [1.0, -1.0]]), float("inf"))
    Smoothness(1.0, exact=True)
    """
    q, M = Lp(p).dual, norms.entries(A)
    if M is None:
        return Smoothness(_from_euclidean(norms.squared_spectral_norm(A), p, A.shape[1]) / 2.0, exact=False)
    if norms.can_afford_pairs(M, q):
        return Smoothness(_square(norms.diameter(M, q)) / 4.0, exact=True)
    return Smoothness(_square(norms.radius(M, q)), exact=False)


@quiet
def symmetric_softmax(A: Matrix | None, p: float) -> Smoothness:
    """log sum (exp z + exp -z), z = Ax - b: max_i ||a_i||_{p*}^2, an upper bound at most 4 times loose.

    It is reached at z = 0 for p = inf and A = None, the identity.  Where A cannot be read:
    lambda_max(A^T A) d^{1-2/p}.

    >>> symmetric_softmax(None, float("inf"))
    Smoothness(1.0, exact=True)
    """
    q = Lp(p).dual
    if A is None:
        return Smoothness(1.0, exact=p == math.inf)
    M = norms.entries(A)
    if M is None:
        return Smoothness(_from_euclidean(norms.squared_spectral_norm(A), p, A.shape[1]), exact=False)
    return Smoothness(_square(float(norms.row_norms(M, q).max())), exact=False)


@quiet
def squares(A: Matrix, p: float) -> Smoothness:
    """1/2 ||Ax - b||_2^2: the least of lambda_max(A^T A) d^{1-2/p}, ||A^T A||_{p*} and sum_i ||a_i||_{p*}^2.

    ||.||_{p*} of a matrix is entrywise: by the triangle inequality it never exceeds the sum over rows, which
    is used only where the Gram matrix would be large.  Exact at p = 2, and at p = inf where A^T A has no
    negative entry: there v = (1, ..., 1) reaches it.

    >>> squares(np.array([[1.0, 2.0], [0.0, 1.0]]), float("inf"))
    Smoothness(10.0, exact=True)
    """
    M, d = norms.entries(A), A.shape[1]
    euclidean = norms.squared_spectral_norm(A if M is None else M)
    if M is not None and d > norms.GRAM:
        return _least_bound(euclidean, None, p, d, float(np.square(norms.row_norms(M, Lp(p).dual)).sum()))
    return _least_bound(euclidean, None if M is None else norms.gram(M), p, d)


@quiet
def quadratic(H: Matrix, p: float) -> Smoothness:
    """1/2 <x, Hx> + <c, x>: the lesser of max|lambda| d^{1-2/p} and ||H||_{p*}, entrywise.

    Exact at p = 2, and at p = inf where H has no negative entry.

    >>> quadratic(np.diag([1.0, 2.0]), float("inf"))
    Smoothness(3.0, exact=True)
    """
    M = norms.entries(H)
    return _least_bound(norms.spectral_norm(H if M is None else M), M, p, H.shape[1])


def _least_bound(euclidean: float, H: Matrix | None, p: float, d: int, other: float = math.inf) -> Smoothness:
    """The lesser bound on a fixed Hessian H: its l_2 constant converted, or its entrywise l_{p*} norm.

    The latter bounds <u, H v> by Hoelder's inequality for ||u||_p = ||v||_p = 1.  Where H is None, `other` takes its
    place.
    """
    q = Lp(p).dual
    if p == 2.0 and math.isfinite(euclidean):
        return Smoothness(euclidean, exact=True)
    if H is None:
        return Smoothness(min(_from_euclidean(euclidean, p, d), other), exact=False)
    values = H.data if is_sparse(H) else H.ravel()
    entrywise = float(np.linalg.norm(values, q))
    exact = p == math.inf and bool((values >= 0.0).all()) and math.isfinite(entrywise)
    return Smoothness(entrywise if exact else min(_from_euclidean(euclidean, p, d), entrywise), exact)


def add_ridge(part: Smoothness, ridge: float, p: float, d: int | None) -> Smoothness:
    """f + ridge/2 ||x||_2^2: the ridge adds ridge d^{1-2/p}; inf where d is not known and p > 2.

    Both terms are largest at the same v, so that an exact part gives an exact sum, at p = 2 (||v||_2 is
    constant) and at p = inf (a convex quadratic is largest over the cube at a sign vector: ||v||_2^2 = d).

    >>> add_ridge(Smoothness(1.0, exact=True), 0.5, float("inf"), 4)
    Smoothness(3.0, exact=True)
    """
    if ridge == 0.0:
        return part
    if d is None and p > 2.0:
        return Smoothness(math.inf, exact=False)
    return Smoothness(part + _from_euclidean(ridge, p, d or 1), part.exact and p in (2.0, math.inf))


def _from_euclidean(L: float, p: float, d: int) -> float:
    return convert_smoothness(L, source=2.0, target=p, d=d)


def _square(x: float) -> float:
    return x * x  # x**2 would raise on overflow; inf is wanted
