"""Algorithm 1 as published (method ``hasd-paper``): Lemmas 1-3, the main theorem, distances, the search.

"The paper" is "Faster Acceleration for Steepest Descent" (Bai & Bullins, COLT 2025).  Derivations:
docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import ceiling, check

__all__ = [
    "DISTANCE",
    "DISTANCE_CORRECTED",
    "GROWTH",
    "GROWTH_LEMMA2",
    "GROWTH_PAPER",
    "MAIN",
    "MAIN_LEMMA2",
    "MAIN_LEMMA3",
    "MAIN_PAPER",
    "PROGRESS",
    "certificate_gap",
    "coupling_distance_bound",
    "distance_bound",
    "distance_bound_as_printed",
    "distance_bound_from_weight",
    "gain_limit",
    "main_bound",
    "main_iterations",
    "progress_from_gradient",
    "progress_from_step",
    "search_diameter",
    "search_diameter_as_printed",
    "search_trials_bound",
    "slack_from_gradient",
    "slack_from_step",
    "slack_limit",
    "softmax_gain",
    "weight_bound",
]

PROGRESS = 9.0
"""Lemma 1: <grad f(x+), y - x+> >= ||grad f(x+)||_{p*}^2 / (9 L)."""

GROWTH_PAPER = 18.0
"""Lemma 3 as printed: sqrt(A_t) >= G t / (18 sqrt(L))."""
GROWTH = 12.0
"""Lemma 3 unrounded (ours): sqrt(A_t) >= G t / (12 sqrt(L))."""
GROWTH_LEMMA2 = 6.0 * math.sqrt(2.0)
"""The same with the weights that the proof of Lemma 2 prints (ours): sqrt(A_t) >= G t / (6 sqrt(2 L))."""

MAIN_PAPER = 324.0
"""Theorem 1 as printed; twice what its own Lemma 3 gives."""
MAIN_LEMMA3 = 162.0
"""Theorem 1 with Lemma 3 as printed: 18^2 / 2."""
MAIN = 72.0
"""Theorem 1 with Lemma 3 unrounded (ours): 12^2 / 2."""
MAIN_LEMMA2 = 36.0
"""Theorem 1 with the weights that the proof of Lemma 2 prints (ours): (6 sqrt(2))^2 / 2."""

DISTANCE_CORRECTED = 54.0
"""Lemma R_bounds with the square roots of Cauchy-Schwarz put back and Lemma 3 as printed: 3 * 18."""
DISTANCE = 12.0
"""The same, from the sum of A_i ||x_i - y_{i-1}||_p^2 and Lemma 3 unrounded (ours)."""


def gain_limit(d: int, p: float) -> float:
    """1 <= G <= d^{1/2 - 1/p}.

    Norm inequalities on R^d (the paper, after Theorem 1, as G^2 <= d^{1-2/p}).  The printed form is right.

    >>> gain_limit(100, float("inf")), gain_limit(100, 2)
    (10.0, 1.0)
    """
    check(d=d, p=p)
    return float(d) ** (0.5 - 1.0 / p)


def softmax_gain(d: int, p: float) -> float:
    """G = d^{1/2 - 1/p} for alpha log sum_i (e^{x[i]/alpha} + e^{-x[i]/alpha}) from x_0 = (1, ..., 1).

    The paper, appendix "Example: The Softmax Function".  All coordinates of every gradient are equal, so the
    gain is at its limit.  The printed form is right.

    >>> softmax_gain(16, 4)
    2.0
    """
    return gain_limit(d, p)


def progress_from_step(L: float, step_norm: float) -> float:
    """<grad f(x+), y - x+> >= L ||x+ - y||_p^2,  x+ = y - s_p(grad f(y)) / (2 L).

    Lemma 1 of the paper, first inequality.  The printed form is right.

    >>> progress_from_step(2.0, 3.0)
    18.0
    """
    check(L=L, step_norm=step_norm)
    return L * step_norm**2


def progress_from_gradient(L: float, grad_norm: float) -> float:
    """L ||x+ - y||_p^2 >= ||grad f(x+)||_{p*}^2 / (9 L).

    Lemma 1 of the paper, second inequality; ``grad_norm`` is ||grad f(x+)||_{p*}.  The printed form is right.

    >>> progress_from_gradient(1.0, 3.0)
    1.0
    """
    check(L=L, grad_norm=grad_norm)
    return grad_norm**2 / (PROGRESS * L)


def slack_from_gradient(L: float, A: float, grad_norm: float) -> float:
    """B_{t+1} - B_t = A_{t+1} ||grad f(x_{t+1})||_{p*}^2 / (18 L), where A_t f(x_t) + B_t <= psi*_t.

    Lemma 2 of the paper.  Its proof once prints a^2 = (A_t + A_{t+1})/(18 L rho), where Algorithm 1 has A_{t+1}/(18 L
    rho).  With the printed rule the statement holds too, if a_{t+1} is given here in place of A_{t+1}.

    >>> slack_from_gradient(L=1.0, A=2.0, grad_norm=3.0)
    1.0
    """
    check(L=L, A=A, grad_norm=grad_norm)
    return A * grad_norm**2 / (2.0 * PROGRESS * L)


def slack_from_step(L: float, A: float, step_norm: float) -> float:
    """B'_{t+1} - B'_t = A_{t+1} L ||x_{t+1} - y_t||_p^2 / 2, where A_t f(x_t) + B'_t <= psi*_t; B' >= B.

    Ours: Lemma 2, but with the first inequality of Lemma 1 in place of the second.  The term a^2 ||g||_2^2 / 2 <= A
    ||g||_{p*}^2 / (18 L) takes at most half of A <g, y - x+> >= A L ||x+ - y||_p^2.

    >>> slack_from_step(L=1.0, A=2.0, step_norm=3.0)
    9.0
    """
    check(L=L, A=A, step_norm=step_norm)
    return A * L * step_norm**2 / 2.0


def slack_limit(R: float) -> float:
    """B_t <= R^2 / 2  (and ||v_t - x*||_2 <= R).

    Lemma three_upper (2), (3) of the paper; B' of :func:`slack_from_step` obeys it too.  The printed form is right.

    >>> slack_limit(2.0)
    2.0
    """
    check(R=R)
    return R**2 / 2.0


def weight_bound(L: float, G: float, t: int, constant: float = GROWTH, first_gain: float = 0.0) -> float:
    """A_t >= (G t + r_1)^2 / (12^2 L)  >=  G^2 t^2 / (12^2 L)  >=  G^2 t^2 / (18^2 L).

    Lemma 3 of the paper, printed with 18 (right, but rounded twice); 12 and r_1 are ours.  r_1 is the gain of the first
    step, which counts double because A_0 = 0; ``first_gain`` may be r_1, 1 (which is always valid) or 0.  The bound
    needs rho_t <= 2/r_t^2 at every step.  If a step is accepted without it (which can happen at p = inf), this bound no
    longer holds, but the certificate does.

    >>> weight_bound(L=1.0, G=2.0, t=9) == 18**2 / 144, weight_bound(1.0, 2.0, 9, constant=GROWTH_PAPER)
    (True, 1.0)
    """
    check(L=L, G=G, t=t, constant=constant, first_gain=first_gain)
    return (G * t + first_gain) ** 2 / (constant**2 * L)


def certificate_gap(R: float, A: float) -> float:
    """f(x_T) - f* <= R^2 / (2 A_T).

    Lemma three_upper (1) of the paper (proof of Theorem 1); it holds for any method that keeps A f(x) <= psi*. The
    printed form is right.

    >>> certificate_gap(R=2.0, A=4.0)
    0.5
    """
    check(R=R, A=A)
    return R**2 / (2.0 * A)


def main_bound(L: float, R: float, G: float, T: int, constant: float = MAIN, first_gain: float = 0.0) -> float:
    """f(x_T) - f* <= 72 L R^2 / (G T + r_1)^2  <=  72 L R^2 / (G^2 T^2)  <=  324 L R^2 / (G^2 T^2).

    Theorem 1 of the paper, printed with 324: right but loose (:data:`MAIN_PAPER`).  Its Lemma 3 as printed gives 162
    (:data:`MAIN_LEMMA3`), and the argument of the lemma without rounding gives 72 (:data:`MAIN`, ours).  ``first_gain``
    is as in :func:`weight_bound`; R = ||x_0 - x*||_2, and G is the mean gain at x_1, ..., x_T.

    >>> [main_bound(1.0, 1.0, 1.0, 6, c) for c in (MAIN_PAPER, MAIN_LEMMA3, MAIN)]
    [9.0, 4.5, 2.0]
    """
    check(L=L, R=R, G=G, T=T, constant=constant, first_gain=first_gain)
    return constant * L * R**2 / (G * T + first_gain) ** 2


def main_iterations(L: float, R: float, G: float, eps: float, constant: float = MAIN) -> int:
    """T = ceil(sqrt(72 L / eps) R / G)  =>  f(x_T) - f* <= eps.

    Theorem 1 of the paper solved for T (324 as printed, 72 ours).

    >>> main_iterations(1.0, 1.0, 1.0, eps=2.0), main_iterations(1.0, 1.0, 1.0, eps=9.0, constant=MAIN_PAPER)
    (6, 6)
    """
    check(L=L, R=R, G=G, eps=eps, constant=constant)
    return ceiling(math.sqrt(constant * L / eps) * R / G)


def distance_bound(R: float, t: int, G: float = 1.0, constant: float = DISTANCE) -> float:
    """||x_t - x*||_p <= R + 12 R / (G_t sqrt(t))  <=  R + 54 R / sqrt(t).

    Lemma R_bounds (1) of the paper, corrected; what it prints is false (:func:`distance_bound_as_printed`).  Its
    argument gives 54 if the square roots of Cauchy-Schwarz are kept (:data:`DISTANCE_CORRECTED`); 12 is ours
    (:data:`DISTANCE`).

    >>> distance_bound(1.0, 9), distance_bound(1.0, 9, constant=DISTANCE_CORRECTED)
    (5.0, 19.0)
    """
    check(R=R, t=t, G=G, constant=constant)
    return R + constant * R / (G * math.sqrt(t))


def distance_bound_from_weight(L: float, R: float, A: float, weight_sum: float) -> float:
    """||x_t - x*||_p <= R + R sqrt(sum_{i<=t} A_i) / (sqrt(L) A_t).

    Ours: a run can evaluate this.  It does not assume that A_t grows, and implies :func:`distance_bound`, as sum A_i <=
    t A_t.

    >>> distance_bound_from_weight(L=1.0, R=1.0, A=2.0, weight_sum=4.0)
    2.0
    """
    check(L=L, R=R, A=A, weight_sum=weight_sum)
    return R + R * math.sqrt(weight_sum / L) / A


def distance_bound_as_printed(R: float, t: int) -> float:
    """||x_t - x*||_p <= R + 2916 R^2 / t: FALSE, kept so that tests can show it.

    Lemma R_bounds (1) of the paper drops the square roots of Cauchy-Schwarz, and adds a length to its square.
    :func:`distance_bound` is right.  A counterexample is one step from x_0 = s (1, 0.6) with p = inf and x* = 0:

    >>> s, e, h = 1e-6, 0.01, 1e-4                     # f(x) = (x2 - e x1)^2 / 2 + h |x|^2 / 2
    >>> x = (s, 0.6 * s)
    >>> g = (-e * (x[1] - e * x[0]) + h * x[0], (x[1] - e * x[0]) + h * x[1])
    >>> step = (abs(g[0]) + abs(g[1])) / (2 * ((1 + e) ** 2 + 2 * h))          # ||g||_1 / (2 L_inf)
    >>> x1 = (x[0] + step, x[1] - step)                                        # g[0] < 0 < g[1]
    >>> R = (x[0] ** 2 + x[1] ** 2) ** 0.5
    >>> far = max(map(abs, x1))
    >>> g[0] < 0 < g[1], far <= distance_bound_as_printed(R, 1), far <= distance_bound(R, 1)
    (True, False, True)
    """
    check(R=R, t=t)
    return R + 2916.0 * R**2 / t


def coupling_distance_bound(R: float, t: int, G: float = 1.0, constant: float = DISTANCE) -> float:
    """||x_t - v_t||_p <= 2 R + 12 R / (G_t sqrt(t)).

    Lemma R_bounds (2) of the paper, corrected; it prints 2 R + 2916 R^2, which is false for the same reason as (1).

    >>> coupling_distance_bound(1.0, 9)
    6.0
    """
    return R + distance_bound(R, t, G, constant)


def search_diameter_as_printed(R: float) -> float:
    """D_R = (R + 1458 R^2)(20 R + 4374 R^2).

    Theorem 2 of the paper.  It uses the false Lemma R_bounds, and therefore mixes powers of R.

    >>> search_diameter_as_printed(1.0) == 1459 * 4394
    True
    """
    check(R=R)
    return (R + 1458.0 * R**2) * (20.0 * R + 4374.0 * R**2)


def search_diameter(R: float, constant: float = DISTANCE) -> float:
    """D_R = (1 + c/2)(20 + 3c/2) R^2,  c = 12: 266 R^2; c = 54: 2828 R^2.

    c is the constant of :func:`distance_bound`.  This is the diameter of Theorem 2 of the paper with Lemma R_bounds
    corrected; the other gaps of the theorem remain, see :func:`search_trials_bound`.

    >>> search_diameter(1.0), search_diameter(1.0, DISTANCE_CORRECTED)
    (266.0, 2828.0)
    """
    check(R=R, constant=constant)
    return (1.0 + constant / 2.0) * (20.0 + 1.5 * constant) * R**2


def search_trials_bound(L: float, R: float, d: int, p: float, eps: float, *, as_printed: bool = True) -> float:
    """trials <= 9 + 5(p-2)/(2p) log2(d) + log2(L D_R / eps),  0 < eps <= L D_R / 6.

    Theorem 2 of the paper, NOT ESTABLISHED for p > 2; use it only to compare with counted trials.  Lemma d_theta bounds
    the norm of an inverse by the inverse of a norm and drops the mixed derivative -Hess ||.||_p^2, Lemma hessian takes
    the p -> p norm in place of p -> p*, and at p = inf an acceptable theta may not exist.  ``as_printed`` says which
    D_R is used.

    >>> round(search_trials_bound(1.0, 1.0, d=1, p=2, eps=1e-3, as_printed=False), 2)
    27.02
    """
    check(L=L, R=R, d=d, p=p, eps=eps)
    diameter = search_diameter_as_printed(R) if as_printed else search_diameter(R)
    if 6.0 * eps > L * diameter:
        raise ValueError(f"eps must not exceed L D_R / 6 = {L * diameter / 6.0!r}, got {eps!r}")
    return 9.0 + 2.5 * (1.0 - 2.0 / p) * math.log2(d) + math.log2(L * diameter / eps)
