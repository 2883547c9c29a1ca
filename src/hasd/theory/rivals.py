"""The guarantees of the methods we are compared with, and the limit for all of them.

T counts gradient evaluations; R = ||x_0 - x*||_2 unless a docstring says otherwise.  Derivations:
docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import check

__all__ = [
    "accelerated_gradient_bound",
    "accelerated_gradient_strong_bound",
    "estimate_sequence_bound",
    "gradient_descent_bound",
    "gradient_descent_strong_bound",
    "linear_coupling_bound",
    "linear_coupling_weight",
    "lower_bound_order",
    "nemirovskii_order",
    "steepest_descent_bound",
    "steepest_descent_gradient_bound",
    "steepest_descent_strong_bound",
]


def gradient_descent_bound(L: float, R: float, T: int) -> float:
    """f(x_T) - f* <= L R^2 / (2 T),  step 1/L, L in l_2.

    Standard.  (Drori & Teboulle 2014 have the exact worst case, L R^2/(4 T + 2).)

    >>> gradient_descent_bound(1.0, 2.0, 4)
    0.5
    """
    check(L=L, R=R, T=T)
    return L * R**2 / (2.0 * T)


def steepest_descent_bound(L: float, R: float, T: int) -> float:
    """f(x_T) - f* <= 2 L R_p^2 / (T + 4),  step s_p(g)/L, L in l_p.

    Kelner et al. 2014.  Here ``R`` is R_p, the l_p radius of the level set: the largest ||x - x*||_p over
    f(x) <= f(x_0), which may far exceed ||x_0 - x*||_p.

    >>> steepest_descent_bound(1.0, 1.0, 6)
    0.2
    """
    check(L=L, R=R, T=T)
    return 2.0 * L * R**2 / (T + 4.0)


def steepest_descent_gradient_bound(L: float, gap: float, T: int) -> float:
    """min_{t<T} ||grad f(x_t)||_{p*}^2 <= 2 L (f(x_0) - f*)/T,  step s_p(g)/L, L in l_p; f need NOT be convex.

    ``gap`` is f(x_0) - f*, or any larger number; f* is the infimum, and need not be attained.  Standard for p = 2: each
    step lowers f by at least ||g||_{p*}^2/(2L), and all of them together by at most the gap.

    >>> steepest_descent_gradient_bound(L=2.0, gap=1.0, T=100)
    0.04
    """
    check(L=L, gap=gap, T=T)
    return 2.0 * L * gap / T


def accelerated_gradient_bound(L: float, R: float, T: int) -> float:
    """f(x_T) - f* <= 2 L R^2 / (T + 1)^2,  L in l_2.

    Nesterov 1983, in the form of Beck & Teboulle 2009.

    >>> accelerated_gradient_bound(1.0, 1.0, 9)
    0.02
    """
    check(L=L, R=R, T=T)
    return 2.0 * L * R**2 / (T + 1.0) ** 2


def linear_coupling_weight(L: float, T: int) -> float:
    """A_T = sum_{t<T} (t + 2)/(2 L) = T (T + 3) / (4 L)  >=  (T + 1)^2 / (4 L).

    These are the weights of Allen-Zhu & Orecchia 2017.  As A_T >= L a_T^2, the certificate
    R^2/(2 A_T) = 2 L R^2/(T (T + 3)) holds if the coupling is a/A (ours).  With the published coupling 2/(t+2), only
    :func:`linear_coupling_bound` is proved.

    >>> linear_coupling_weight(1.0, 1), linear_coupling_weight(1.0, 5)
    (1.0, 10.0)
    """
    check(L=L, T=T)
    return T * (T + 3.0) / (4.0 * L)


def linear_coupling_bound(L: float, R: float, T: int) -> float:
    """f(x_T) - f* <= 2 L R^2 / (T + 1)^2,  L in l_p, mirror map ||.||_2^2 / 2.

    Allen-Zhu & Orecchia 2017, Theorem 4.1 (4 Theta L/(T+1)^2, Theta = R^2/2); the map is 1-strongly convex in l_p for
    every p >= 2.  It also holds for the tight form with rho fixed to 1, which has sqrt(A_T) >= (T + 1)/(2 sqrt(L)).

    >>> linear_coupling_bound(1.0, 1.0, 9)
    0.02
    """
    return accelerated_gradient_bound(L, R, T)


def estimate_sequence_bound(L: float, R: float, T: int) -> float:
    """f(x_T) - f* <= 2 L R^2 / (T (T + 1)),  L in l_p, prox function ||.||_2^2 / 2.

    Nesterov 2005, Theorem 2: 4 L d(x*)/(sigma (k+1)(k+2)) with k = T - 1, since its point k has used k + 1
    gradients.

    >>> estimate_sequence_bound(1.0, 1.0, 4)
    0.1
    """
    check(L=L, R=R, T=T)
    return 2.0 * L * R**2 / (T * (T + 1.0))


def gradient_descent_strong_bound(L: float, mu: float, gap: float, T: int) -> float:
    """f(x_T) - f* <= (1 - mu/L)^T (f(x_0) - f*),  step 1/L, L in l_2.

    Standard.

    >>> gradient_descent_strong_bound(L=2.0, mu=1.0, gap=1.0, T=3)
    0.125
    """
    return steepest_descent_strong_bound(L, mu, gap, 1.0, T)


def steepest_descent_strong_bound(L: float, mu: float, gap: float, G: float, T: int) -> float:
    """f(x_T) - f* <= (1 - mu G^2/L)^T (f(x_0) - f*),  step s_p(g)/L, L in l_p, mu in l_2.

    G is the mean gain at x_0, ..., x_{T-1}.  Ours: each step multiplies the gap by at most 1 - mu r_t^2/L, and the mean
    of the r_t^2 is at least G^2.

    >>> steepest_descent_strong_bound(L=8.0, mu=1.0, gap=1.0, G=2.0, T=3)
    0.125
    """
    check(L=L, mu=mu, gap=gap, G=G, T=T)
    return gap * max(0.0, 1.0 - mu * G**2 / L) ** T


def accelerated_gradient_strong_bound(L: float, mu: float, R: float, gap: float, T: int) -> float:
    """f(x_T) - f* <= (1 - sqrt(mu/L))^T (f(x_0) - f* + mu R^2/2),  L in l_2.

    Nesterov, Lectures on Convex Optimization (2018), Theorem 2.2.3 with gamma_0 = mu.

    >>> accelerated_gradient_strong_bound(L=4.0, mu=1.0, R=1.0, gap=0.5, T=3)
    0.125
    """
    check(L=L, mu=mu, R=R, gap=gap, T=T)
    return (1.0 - math.sqrt(mu / L)) ** T * (gap + mu * R**2 / 2.0)


def lower_bound_order(L: float, R: float, T: int, p: float) -> float:
    """max_f f(x_T) - f* = Omega( L ||x*||_p^2 / T^{(p+2)/p} ) for every first-order method, d large.

    Guzman & Nemirovski 2015, as quoted by the paper.  This is an ORDER only: its constant, and factors logarithmic in
    d, are left out.  ``R`` is the l_p radius.  It is T^{-2} for p = 2 and T^{-1} for p = inf.

    >>> lower_bound_order(1.0, 1.0, 10, 2), lower_bound_order(1.0, 1.0, 10, math.inf)
    (0.01, 0.1)
    """
    check(L=L, R=R, T=T, p=p)
    return L * R**2 * float(T) ** -(1.0 + 2.0 / p)


def nemirovskii_order(L: float, R: float, T: int, p: float) -> float:
    """f(x_T) - f* = O( L R_p^2 / T^{(p+2)/p} ).

    Nemirovskii & Nesterov 1985, as quoted by the paper.  This is the matching upper ORDER, without its constant; ``R``
    is the l_p radius.

    >>> nemirovskii_order(1.0, 1.0, 4, 4)
    0.125
    """
    return lower_bound_order(L, R, T, p)
