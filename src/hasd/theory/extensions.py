"""Restarts under strong convexity and the norm of the gradient: the paper's Section 4, for Algorithm 1.

"The paper" is "Faster Acceleration for Steepest Descent" (Bai & Bullins, COLT 2025).  Derivations:
docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import ceiling, check

__all__ = [
    "GRADIENT",
    "GRADIENT_BEST",
    "GRADIENT_BEST_PAPER",
    "GRADIENT_PAPER",
    "RESTART",
    "RESTART_PAPER",
    "gradient_norm_bound",
    "gradient_norm_gap",
    "gradient_norm_iterations",
    "gradient_norm_iterations_best",
    "gradient_norm_weight",
    "gradient_norm_weight_sum",
    "restart_count",
    "restart_factor",
    "restart_period",
    "restart_weight",
]

RESTART_PAPER = 36.0
"""Algorithm 2: sqrt(4 * 324)."""
RESTART = 17.0
"""Ours: sqrt(4 * 72) = 16.97, rounded up."""
GRADIENT_PAPER = 18.0 * math.sqrt(2.0)
"""First gradient-norm corollary as printed: sqrt(2 * 324)."""
GRADIENT = 12.0
"""Ours: sqrt(2 * 72)."""
GRADIENT_BEST_PAPER = 21.0
"""Second gradient-norm corollary as printed: 8748^{1/3} = 20.6, rounded up."""
GRADIENT_BEST = 16.0
"""Ours: (9 * 144 * 3)^{1/3} = 15.72, rounded up."""


def restart_period(L: float, mu: float, G: float, constant: float = RESTART) -> int:
    """T = ceil((17 / G) sqrt(L / mu))  =>  f(x_T) - f* <= (f(x_0) - f*) / 2.

    Strongly convex corollary and Algorithm 2 of the paper, printed with 36 and without the ceiling, which is right but
    loose.  mu is with respect to l_2; G is a lower bound on the mean gain of every stage.

    >>> restart_period(L=4.0, mu=1.0, G=1.0), restart_period(4.0, 1.0, 1.0, constant=RESTART_PAPER)
    (34, 72)
    """
    check(L=L, mu=mu, G=G, constant=constant)
    return ceiling(constant / G * math.sqrt(L / mu))


def restart_count(gap: float, eps: float, factor: float = 0.5) -> int:
    """K = ceil(log(gap / eps) / log(1 / factor))  =>  factor^K gap <= eps.

    Strongly convex corollary of the paper, which says K = O(log(1/eps)).  K = 0 if gap <= eps already.

    >>> restart_count(gap=1.0, eps=2**-10), restart_count(gap=1.0, eps=2.0)
    (10, 0)
    """
    check(gap=gap, eps=eps, factor=factor)
    return 0 if gap <= eps else ceiling(math.log(gap / eps) / math.log(1.0 / factor))


def restart_factor(mu: float, A: float) -> float:
    """f(x_T) - f* <= (f(x_0) - f*) / (mu A_T).

    Ours: it is R^2/(2 A_T) with R^2 <= 2 (f(x_0) - f*)/mu, and holds for every method that keeps A f(x) <= psi*.

    >>> restart_factor(mu=0.5, A=4.0)
    0.5
    """
    check(mu=mu, A=A)
    return 1.0 / (mu * A)


def restart_weight(mu: float, factor: float = 0.5) -> float:
    """A_T >= 1 / (factor mu)  =>  f(x_T) - f* <= factor (f(x_0) - f*);  2/mu halves.

    Ours: a restart rule that needs no G.  factor = e^{-2}, that is A_T >= e^2/mu, has the best worst case: if sqrt(A_T)
    grows linearly, it minimises sqrt(A)/log(mu A), the iterations per unit of the logarithm of the gap.

    >>> restart_weight(mu=0.1), round(restart_weight(1.0, math.exp(-2)), 6)
    (20.0, 7.389056)
    """
    check(mu=mu, factor=factor)
    return 1.0 / (factor * mu)


def gradient_norm_gap(L: float, eps: float) -> float:
    """f(x) - f* <= eps^2 / (2 L)  =>  ||grad f(x)||_{p*} <= eps.

    Lemma gradnormmin of the paper.  The printed form is right.

    >>> gradient_norm_gap(L=2.0, eps=0.2)
    0.010000000000000002
    """
    check(L=L, eps=eps)
    return eps**2 / (2.0 * L)


def gradient_norm_iterations(L: float, R: float, G: float, eps: float, constant: float = GRADIENT) -> int:
    """T = ceil(12 L R / (G eps))  =>  ||grad f(x_T)||_{p*} <= eps.

    First gradient-norm corollary of the paper, printed with 18 sqrt(2), which is right but loose.

    >>> [gradient_norm_iterations(1.0, 1.0, 1.0, 0.1, c) for c in (GRADIENT_PAPER, GRADIENT)]
    [255, 120]
    """
    check(L=L, R=R, G=G, eps=eps, constant=constant)
    return ceiling(constant * L * R / (G * eps))


def gradient_norm_iterations_best(L: float, R: float, G: float, eps: float, constant: float = GRADIENT_BEST) -> int:
    """T = ceil(16 (L R / (G eps))^{2/3})  =>  min_{t <= T} ||grad f(x_t)||_{p*} <= eps.

    Second gradient-norm corollary of the paper, printed with 21, which is right but loose (its proof prints sum G_t^2 t
    for sum G_t^2 t^2).  It holds for the best iterate only, and needs G <= G_t for every t <= T.

    >>> gradient_norm_iterations_best(1.0, 1.0, 1.0, 1e-3)
    1600
    """
    check(L=L, R=R, G=G, eps=eps, constant=constant)
    return ceiling(constant * (L * R / (G * eps)) ** (2.0 / 3.0))


def gradient_norm_weight(L: float, R: float, eps: float) -> float:
    """A_T >= L R^2 / eps^2  =>  ||grad f(x_T)||_{p*} <= eps.

    Ours: a stopping rule without G, from R^2/(2 A_T) <= eps^2/(2 L).  It holds for every method that keeps A f(x) <=
    psi*.

    >>> gradient_norm_weight(1.0, 2.0, 0.5)
    16.0
    """
    check(L=L, R=R, eps=eps)
    return L * (R / eps) ** 2


def gradient_norm_weight_sum(L: float, R: float, eps: float) -> float:
    """sum_{t<=T} A_t >= 9 L R^2 / eps^2  =>  min_{t<=T} ||grad f(x_t)||_{p*} <= eps.

    Ours: a stopping rule without G, from B_T <= R^2/2 (see :func:`slack_limit`), for Algorithm 1 only.
    :func:`gradient_norm_bound` is better than this rule and :func:`gradient_norm_weight`.

    >>> gradient_norm_weight_sum(1.0, 2.0, 0.5)
    144.0
    """
    check(L=L, R=R, eps=eps)
    return 9.0 * L * (R / eps) ** 2


def gradient_norm_bound(L: float, R: float, A: float, weight_sum: float) -> float:
    """min_{t<=T} ||grad f(x_t)||_{p*} <= 3 R sqrt(L / (sum_{t<=T} A_t + 9 A_T)).

    Ours, for Algorithm 1 only.  It follows from A_T (f(x_T) - f*) + B_T <= R^2/2 and f(x_T) - f* >= ||grad
    f(x_T)||^2/(2 L).  As it uses both terms at once, it is below eps no later than :func:`gradient_norm_weight` and
    :func:`gradient_norm_weight_sum` say.

    >>> gradient_norm_bound(L=1.0, R=1.0, A=1.0, weight_sum=0.0), gradient_norm_bound(1.0, 1.0, 1.0, 27.0)
    (1.0, 0.5)
    """
    check(L=L, R=R, A=A, weight_sum=weight_sum)
    return 3.0 * R * math.sqrt(L / (weight_sum + 9.0 * A))
