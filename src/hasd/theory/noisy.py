"""Steepest descent with gradients that are off: what remains of its guarantee.  Ours; docs/theory.md has the proofs.

x_{t+1} = x_t - s_p(g_t)/L, where f is L-smooth in l_p and g_t is off by e_t = g_t - grad f(x_t).  Nothing is asked of
the errors but their dual norm: they need not be unbiased, and f need not be convex.
"""

from __future__ import annotations

import math

from ._check import check

__all__ = ["noisy_gradient_bound", "noisy_progress", "noisy_strong_bound"]


def noisy_progress(f: float, grad_norm: float, noise: float, L: float) -> float:
    """f(x_{t+1}) <= f(x_t) - ||grad f(x_t)||_{p*}^2 / (4 L) + 5 ||e_t||_{p*}^2 / (2 L).

    ``grad_norm`` and ``noise`` are the two dual norms, ``f`` is f(x_t).  With n = ||g_t||_{p*}, smoothness gives
    L (f(x_t) - f(x_{t+1})) >= n^2/2 - ||e|| n, and n >= ||grad f|| - ||e||.

    >>> noisy_progress(f=1.0, grad_norm=2.0, noise=0.0, L=1.0)
    0.0
    """
    check(f=f, grad_norm=grad_norm, noise=noise, L=L)
    return f - grad_norm**2 / (4.0 * L) + 5.0 * noise**2 / (2.0 * L)


def noisy_gradient_bound(L: float, gap: float, sigma: float, T: int) -> float:
    """min_t E ||grad f(x_t)||_{p*}^2 <= (1/T) sum_t E ||grad f(x_t)||_{p*}^2 <= 4 L (f(x_0) - f*) / T + 10 sigma^2.

    E ||e_t||_{p*}^2 <= sigma^2 for all t < T; ``gap`` is f(x_0) - f*, f* any lower bound on f.  It is the sum of
    :func:`noisy_progress`.  The second term does not fall with T: it is made smaller by larger batches.

    >>> round(noisy_gradient_bound(L=1.0, gap=1.0, sigma=0.1, T=40), 12)
    0.2
    """
    check(L=L, gap=gap, sigma=sigma, T=T)
    return 4.0 * L * gap / T + 10.0 * sigma**2


def noisy_strong_bound(L: float, mu: float, gap: float, sigma: float, T: int) -> float:
    """E f(x_T) - f* <= (1 - mu/(2 L))^T (f(x_0) - f*) + 5 sigma^2 / mu.

    For f that is mu-strongly convex w.r.t. l_2, or only ||grad f||_2^2 >= 2 mu (f - f*): the l_{p*} norm is no less
    than that of l_2, so :func:`noisy_progress` contracts the gap.

    >>> round(noisy_strong_bound(L=1.0, mu=1.0, gap=4.0, sigma=0.0, T=2), 12)
    1.0
    """
    check(L=L, mu=mu, gap=gap, sigma=sigma, T=T)
    return math.exp(T * math.log1p(-mu / (2.0 * L))) * gap + 5.0 * sigma**2 / mu
