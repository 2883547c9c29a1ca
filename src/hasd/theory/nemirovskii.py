"""The method with an l_p prox term: how convex ||x||_p^p is, the invariant, the rate and the certificate.

Throughout, ``R`` is a bound on ||x_0 - x*||_p, T the number of iterations that the method was planned for, t the number
that it has made, and ``A`` the sum of its weights where the prox term is ||x - x_0||_p^p/(p R^{p-2}): that is the sum
for ||x - x_0||_p^p/p, divided by R^{p-2}, and does not overflow for large p.  p is finite in all formulas; for
p = inf the method takes :func:`prox_exponent` in its place, and d^{1/p} R for R.  Derivations: docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import check

__all__ = [
    "nemirovskii_bound",
    "nemirovskii_gap",
    "nemirovskii_loss",
    "nemirovskii_weight_bound",
    "prox_convexity",
    "prox_exponent",
]

EPS = 2.0**-52


def prox_exponent(p: float, d: int) -> float:
    """The exponent of the prox term: p itself, and max(2, ln d) for p = inf.

    At p = ln d the norms differ little, ||x||_inf <= ||x||_p <= d^{1/p} ||x||_inf = e ||x||_inf, and what is L-smooth
    in l_inf is L-smooth in l_p.

    >>> prox_exponent(4, 1000), round(prox_exponent(math.inf, 1000), 3), prox_exponent(math.inf, 3)
    (4.0, 6.908, 2.0)
    """
    check(p=p, d=d)
    return max(2.0, math.log(d)) if p == math.inf else float(p)


def prox_convexity(p: float) -> float:
    """sigma_p^{2/p}, rounded down, where ||x||_p^p - ||v||_p^p - p <|v|^{p-2} v, x - v>  >=  sigma_p ||x - v||_p^p.

    sigma_p is the least |1 + t|^p - |t|^p - p |t|^{p-2} t over all real t.  It equals (p - 1) u^{p-2} at the only root
    u in (0, 1/2) of (p - 1) u^{p-2} = (1 - u)^{p-1} + u^{p-1}, and any smaller u gives a lower bound; 2^{2-p} is one
    such bound.  The root is bisected in logarithms, and a u is only taken for small enough if rounding cannot be the
    reason.  The result lies between 1/4 (p = inf) and 1 (p = 2).

    >>> prox_convexity(2.0), round(prox_convexity(4.0) ** 2, 9)
    (1.0, 0.333333333)
    """
    check(p=p)
    if not math.isfinite(p):
        raise ValueError(f"p must be finite, got {p!r}")
    if p == 2.0:
        return 1.0
    # both ends as log u: at the lower one (p - 1) u^{p-2} = 2^{2-p}, and the upper one is above the root
    low, high = -math.log(2.0) - math.log(p - 1.0) / (p - 2.0), -math.log(2.0)
    sigma = (2.0 - p) * math.log(2.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        u = math.exp(middle)
        left = math.log(p - 1.0) + (p - 2.0) * middle
        right = (p - 1.0) * math.log1p(-u) + math.log1p((u / (1.0 - u)) ** (p - 1.0))
        certain = 16.0 * EPS * (1.0 + abs(left) + abs(right) + p * abs(middle))
        if left + certain <= right:
            low, sigma = middle, max(sigma, left)
        else:
            high = middle
    return math.exp(2.0 * sigma / p - 16.0 * EPS * (1.0 + abs(2.0 * sigma / p)))


def nemirovskii_loss(R: float, T: int, p: float, t: int) -> float:
    """A_t f(x_t) <= psi*_t + this, at every iterate:  (p - 2)/(2p) R^2 t/T.

    psi*_t is the minimum of sum a_i [f(y_i) + <g_i, x - y_i>] + ||x - x_0||_p^p/(p R^{p-2}).  For p = 2 nothing is
    lost: it is the invariant of the estimate sequence.  ``R`` is the method's own and need not be true here.

    >>> nemirovskii_loss(R=2.0, T=100, p=4, t=50), nemirovskii_loss(R=2.0, T=100, p=2, t=50)
    (0.5, 0.0)
    """
    check(R=R, T=T, p=p, t=t)
    return R * R * (t / T) * (0.5 - 1.0 / p)


def nemirovskii_weight_bound(L: float, T: int, p: float, t: int) -> float:
    """A_t >= sigma_p^{2/p} T^{-(p-2)/p} (t + 1)^2/(4 L).

    >>> nemirovskii_weight_bound(L=1.0, T=9, p=2, t=9)
    25.0
    """
    check(L=L, T=T, t=t)
    return prox_convexity(p) * float(T) ** (2.0 / p - 1.0) * (t + 1.0) ** 2 / (4.0 * L)


def nemirovskii_bound(L: float, R: float, T: int, p: float, t: int | None = None) -> float:
    """f(x_T) - f* <= 2 sigma_p^{-2/p} L R_p^2 T^{(p-2)/p}/(T + 1)^2  <=  2 sigma_p^{-2/p} L R_p^2/T^{(p+2)/p}.

    L in l_p; the order is that of Nemirovskii & Nesterov 1985.  After ``t`` iterations instead of T, it is R_p^2/p plus
    :func:`nemirovskii_loss`, divided by :func:`nemirovskii_weight_bound`: that holds for every t >= 1, but falls only
    like 1/t beyond T.

    >>> nemirovskii_bound(1.0, 1.0, 9, 2), nemirovskii_bound(1.0, 1.0, 100, 4) <= 2 * 3**0.5 * 100**-1.5
    (0.02, True)
    >>> nemirovskii_bound(1.0, 1.0, 100, 4, t=400) > nemirovskii_bound(1.0, 1.0, 400, 4)
    True
    """
    t = T if t is None else t
    return (R * R / p + nemirovskii_loss(R, T, p, t)) / nemirovskii_weight_bound(L, T, p, t)


def nemirovskii_gap(R: float, p: float, A: float, f: float, psi: float) -> float:
    """f(x) - f* <= (R_p^2/p + A f(x) - psi*)/A,  whatever the points and weights of the cuts are.

    For convex f, psi* <= A f* + ||x* - x_0||_p^p/(p R_p^{p-2}).  The library certifies the minimum of the cuts over the
    ball ||x - x_0||_p <= R_p instead, f* >= (m - R_p ||s||_{p*})/A with m and s the value and the slope at x_0 of the
    sum of the cuts: that is never worse, by Young's inequality.

    >>> nemirovskii_gap(R=2.0, p=4, A=10.0, f=1.0, psi=9.0)
    0.2
    """
    check(R=R, p=p, A=A, f=f, psi=psi)
    return (R * R / p + A * f - psi) / A
