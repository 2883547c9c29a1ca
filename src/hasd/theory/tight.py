"""The tight form (method ``hasd``; with exact steps ``hasd-subspace``) and its certificate: all ours.

A step is x+ = y - s_p(g)/L with g = grad f(y), A_{t+1} = L rho a^2, 1/r^2 <= rho <= window/r^2, r = ||g||_{p*}/||g||_2.
Gains are taken at the points y_t.  If steps reach only a fraction eta of the decrease, take window/eta for window.
Derivations: docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import ceiling, check

__all__ = [
    "certificate_lower",
    "descent",
    "strong_bound",
    "strong_gap_from_gradient",
    "strong_growth_factor",
    "strong_weight_bound",
    "tight_bound",
    "tight_gradient_norm_bound",
    "tight_gradient_norm_iterations",
    "tight_gradient_norm_iterations_best",
    "tight_iterations",
    "tight_restart_period",
    "tight_weight_bound",
]


def descent(L: float, grad_norm: float) -> float:
    """f(y) - f(y - s_p(g)/L) >= ||g||_{p*}^2 / (2 L).

    Standard (Kelner et al. 2014; inside the paper's Lemma gradnormmin); ``grad_norm`` is ||grad f(y)||_{p*}.

    >>> descent(2.0, 2.0)
    1.0
    """
    check(L=L, grad_norm=grad_norm)
    return grad_norm**2 / (2.0 * L)


def tight_weight_bound(L: float, G: float, t: int, window: float = 1.0, first_gain: float = 0.0) -> float:
    """A_t >= (G t + r_0)^2 / (4 window L)  >=  G^2 t^2 / (4 window L).

    Ours.  r_0 is the gain at y_0 = x_0, which counts double because A_0 = 0; ``first_gain`` may be r_0, 1 or 0.

    >>> tight_weight_bound(L=1.0, G=2.0, t=3), tight_weight_bound(1.0, 1.0, 1, first_gain=1.0)
    (9.0, 1.0)
    """
    check(L=L, G=G, t=t, window=window, first_gain=first_gain)
    return (G * t + first_gain) ** 2 / (4.0 * window * L)


def tight_bound(L: float, R: float, G: float, T: int, window: float = 1.0, first_gain: float = 0.0) -> float:
    """f(x_T) - f* <= 2 window L R^2 / (G T + r_0)^2  <=  2 window L R^2 / (G^2 T^2).

    Ours.  At window = 1 it is 36 times smaller than the sharpest bound for the paper's form.  With p = 2 and
    first_gain = 1 it is the classical 2 L R^2/(T+1)^2.

    >>> tight_bound(1.0, 1.0, 1.0, 4), tight_bound(1.0, 1.0, 1.0, 3, first_gain=1.0)
    (0.125, 0.125)
    """
    check(L=L, R=R, G=G, T=T, window=window, first_gain=first_gain)
    return 2.0 * window * L * R**2 / (G * T + first_gain) ** 2


def tight_iterations(L: float, R: float, G: float, eps: float, window: float = 1.0) -> int:
    """T = ceil(sqrt(2 window L / eps) R / G)  =>  f(x_T) - f* <= eps.

    Ours: :func:`tight_bound` solved for T.

    >>> tight_iterations(1.0, 1.0, 1.0, eps=0.02)
    10
    """
    check(L=L, R=R, G=G, eps=eps, window=window)
    return ceiling(math.sqrt(2.0 * window * L / eps) * R / G)


def tight_restart_period(L: float, mu: float, G: float, window: float = 1.0) -> int:
    """T = ceil(sqrt(8 window L / mu) / G)  =>  f(x_T) - f* <= (f(x_0) - f*) / 2.

    Ours: it follows from 2 window L R^2/(G T)^2 with R^2 <= 2 (f(x_0) - f*)/mu.  The constant for Algorithm 1 is 17.

    >>> tight_restart_period(L=2.0, mu=1.0, G=1.0)
    4
    """
    check(L=L, mu=mu, G=G, window=window)
    return ceiling(math.sqrt(8.0 * window * L / mu) / G)


def tight_gradient_norm_iterations(L: float, R: float, G: float, eps: float, window: float = 1.0) -> int:
    """T = ceil(2 sqrt(window) L R / (G eps))  =>  ||grad f(x_T)||_{p*} <= eps.

    Ours: it follows from :func:`tight_bound` <= eps^2/(2 L).  The constant for Algorithm 1 is 12.

    >>> tight_gradient_norm_iterations(1.0, 1.0, 1.0, eps=0.1)
    20
    """
    check(L=L, R=R, G=G, eps=eps, window=window)
    return ceiling(2.0 * math.sqrt(window) * L * R / (G * eps))


def tight_gradient_norm_iterations_best(
    L: float, R: float, G: float, eps: float, window: float = 1.0, slack: float = 2.0
) -> int:
    """T = ceil((12 window k^2/(k-1))^{1/3} (L R/(G eps))^{2/3})  =>  min_{t<T} ||grad f(y_t)||_{p*} <= eps.

    Ours, for k/r^2 <= rho <= window k/r^2 with k = ``slack`` > 1: if rho is a factor k too large, (1 - 1/k) A_{t+1}
    ||g(y_t)||_{p*}^2/(2 L) is left in psi*.  k = 2 is best and gives 48^{1/3} = 3.63, against 16 for Algorithm 1.  G <=
    G_t is needed for every t.

    >>> tight_gradient_norm_iterations_best(1.0, 1.0, 1.0, eps=1e-3)
    364
    """
    check(L=L, R=R, G=G, eps=eps, window=window, slack=slack)
    if slack == 1.0:
        raise ValueError("slack must exceed 1: at 1 nothing is left over")
    constant = (12.0 * window * slack**2 / (slack - 1.0)) ** (1.0 / 3.0)
    return ceiling(constant * (L * R / (G * eps)) ** (2.0 / 3.0))


def tight_gradient_norm_bound(L: float, R: float, A: float, weight_sum: float) -> float:
    """min(||grad f(x_T)||_{p*}, min_{t<T} ||grad f(y_t)||_{p*}) <= R sqrt(L / (A_T + W)).

    Ours; W, the ``weight_sum``, is sum_t (1 - 1/(rho_t r_t^2)) A_{t+1}, which is zero if rho = 1/r^2 (the bound is then
    one on x_T alone).

    >>> tight_gradient_norm_bound(L=1.0, R=1.0, A=1.0, weight_sum=3.0)
    0.5
    """
    check(L=L, R=R, A=A, weight_sum=weight_sum)
    return R * math.sqrt(L / (A + weight_sum))


def strong_growth_factor(L: float, mu: float, rho: float = 1.0) -> float:
    """A_{t+1} / A_t >= 1 / (1 - sqrt(mu / (L rho))).

    Ours: L rho a^2 = A_{t+1} (1 + mu A_{t+1}) gives a/A_{t+1} >= sqrt(mu/(L rho)).  L rho >= mu always holds; at
    equality the factor is infinite, and one step reaches the minimiser.

    >>> strong_growth_factor(L=4.0, mu=1.0)
    2.0
    """
    check(L=L, mu=mu, rho=rho)
    if mu > L * rho:
        raise ValueError(f"mu must not exceed L rho, got mu={mu!r} and L rho={L * rho!r}")
    left = 1.0 - math.sqrt(mu / (L * rho))
    return 1.0 / left if left > 0.0 else math.inf


def strong_weight_bound(L: float, mu: float, G: float, T: int, window: float = 1.0) -> float:
    """A_T >= max( (1 - G q)^{-T} / (window L (1 + q)),  (G T + 1)^2 / (4 window L) ).

    Here q = sqrt(mu/(window L)).  Ours: the product of :func:`strong_growth_factor` over the run (log(1 - x) is
    concave, so the mean gain suffices) and A_1 = 1/(L rho - mu).  The second term holds because mu never slows the
    growth of the plain tight form.  The bound is infinite if G q >= 1.

    >>> strong_weight_bound(L=4.0, mu=1.0, G=1.0, T=5) == 2.0**4 / 3.0       # 1/(L - mu) times 2 per step
    True
    """
    check(L=L, mu=mu, G=G, T=T, window=window)
    q = math.sqrt(mu / (window * L))
    if G * q >= 1.0:
        return math.inf
    exponent = -T * math.log1p(-G * q)
    geometric = math.exp(exponent) / (window * L * (1.0 + q)) if exponent < 700.0 else math.inf
    return max(geometric, tight_weight_bound(L, G, T, window, first_gain=1.0))


def strong_bound(L: float, mu: float, R: float, G: float, T: int, window: float = 1.0) -> float:
    """f(x_T) - f* <= (R^2/2) min( window L (1 + q) (1 - G q)^T,  4 window L / (G T + 1)^2 ).

    Here q = sqrt(mu/(window L)).  Ours: it is R^2/(2 A_T) with :func:`strong_weight_bound`.  Strong convexity is used
    in every cut, without restarts.

    >>> round(strong_bound(L=4.0, mu=1.0, R=1.0, G=1.0, T=5), 6)       # (L - mu) R^2 / 2 / 2^4
    0.09375
    """
    check(R=R)
    return R**2 / (2.0 * strong_weight_bound(L, mu, G, T, window))


def certificate_lower(psi: float, A: float, R: float, moved: float | None = None, mu: float = 0.0) -> float:
    """f* >= ( psi* + k m^2/2 - k m u + mu A u^2/2 ) / A,  k = 1 + mu A, u = min(R, k m/(mu A)).

    Here m = ||v - x_0||_2.  Ours; it holds for any weights and any points of a convex f.  With mu = 0 it is (psi* -
    R^2/2 + (R - m)^2/2)/A, the minimum over the ball of radius R of the affine function that the cuts add up to.
    ``moved`` is m; without it (only for mu = 0) the worst m is taken, which gives (psi* - R^2/2)/A.  With mu > 0, R may
    be inf, which gives (psi* - k m^2/(2 mu A))/A.

    >>> certificate_lower(psi=1.0, A=2.0, R=1.0), certificate_lower(1.0, 2.0, R=1.0, moved=2.0)
    (0.25, 0.5)
    >>> certificate_lower(1.0, 2.0, R=math.inf, moved=1.0, mu=0.5)
    0.0
    """
    check(psi=psi, A=A)
    if mu != 0.0:
        check(mu=mu)
    ball_unknown = mu > 0.0 and math.inf <= R
    if not ball_unknown:
        check(R=R)
    if moved is None:
        if mu > 0.0:
            raise ValueError("moved must be given when mu > 0")
        return (psi - R**2 / 2.0) / A
    check(moved=moved)
    curvature = 1.0 + mu * A
    u = min(R, curvature * moved / (mu * A)) if mu > 0.0 else R
    return (psi + curvature * moved * (moved / 2.0 - u) + mu * A * u**2 / 2.0) / A


def strong_gap_from_gradient(mu: float, grad_norm: float) -> float:
    """f(x) - f* <= ||grad f(x)||_2^2 / (2 mu).

    Standard; ``grad_norm`` is the l_2 norm of the gradient at the same x.

    >>> strong_gap_from_gradient(mu=0.5, grad_norm=1.0)
    1.0
    """
    check(mu=mu, grad_norm=grad_norm)
    return grad_norm**2 / (2.0 * mu)
