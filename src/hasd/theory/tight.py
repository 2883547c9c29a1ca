"""The tight form, cuts at the point y that a step starts from, and the certificate: all ours.

Linear coupling and estimate sequences are the tight form with rho = 1; ``hasd-cg`` and ``hasd-subspace`` keep its bound
with exact steps.  (``hasd`` has the better bounds of `hasd.theory.optimised`.)  A step is x+ = y - s_p(g)/L with
g = grad f(y), A_{t+1} = L rho a^2, 1/r^2 <= rho <= window/r^2, r = ||g||_{p*}/||g||_2.
Gains are taken at the points y_t.  If steps reach only a fraction eta of the decrease, take window/eta for window.
Derivations: docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import check

__all__ = [
    "certificate_lower",
    "descent",
    "strong_gap_from_gradient",
    "tight_bound",
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
