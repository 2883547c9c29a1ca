"""The optimised form (method ``hasd``): property P, its invariant, its rate, strong convexity.  Ours, but where said.

An iteration plans a weight with a guess s of the gain, takes the cut at y with the gain r that it finds there, and is
damped by gamma = min(1, r^2/s^2).  Gamma is the mean of min(s, r^2/s) over the run, with
s = r at the first step; it is the mean gain while the gain is steady.  Derivations: docs/theory.md.
"""

from __future__ import annotations

import math

from ._check import ceiling, check

__all__ = [
    "optimised_bound",
    "optimised_gap",
    "optimised_gradient_norm_bound",
    "optimised_gradient_norm_iterations",
    "optimised_growth_factor",
    "optimised_iterations",
    "optimised_restart_period",
    "optimised_step",
    "optimised_strong_bound",
    "optimised_weight_bound",
    "property_p",
]


def _dual(p: float) -> float:
    """p* = p/(p - 1)."""
    check(p=p)
    return 1.0 if math.isinf(p) else p / (p - 1.0)


def property_p(f: float, slope: float, grad_norm: float, L: float, p: float) -> float:
    """U >= f(y) + <g, x - y> + (p* - 1) ||g||_{p*}^2 / (2 L) for every y: what a pair (x, U) promises.

    ``slope`` is <g, x - y> and ``grad_norm`` is ||g||_{p*}, g = grad f(y).  If f is convex and L-smooth, a steepest
    step x~ = y - s_p(g)/L has it with U~ = f(y) - ||g||_{p*}^2/(2 L), and so have convex combinations.  At p = 2 this
    is what the proofs of the optimised gradient method use.

    >>> property_p(f=1.0, slope=-0.5, grad_norm=1.0, L=2.0, p=2)
    0.75
    """
    check(f=f, slope=slope, grad_norm=grad_norm, L=L)
    return f + slope + (_dual(p) - 1.0) * grad_norm**2 / (2.0 * L)


def optimised_gap(R: float, A: float, psi: float, U: float) -> float:
    """f(x) - f* <= U - f* <= (R^2/2 - (psi* - A U)) / A  <=  R^2 / (2 A), by the invariant A U <= psi*.

    The first inequality needs a true L; where L is found on the way, f(x) may be above U.

    >>> optimised_gap(R=2.0, A=4.0, psi=8.0, U=2.0), optimised_gap(2.0, 4.0, 9.0, 2.0)
    (0.5, 0.25)
    """
    check(R=R, A=A, psi=psi, U=U)
    return (R**2 / 2.0 - (psi - A * U)) / A


def optimised_step(guess: float, gain: float) -> float:
    """min(s, r^2/s): sqrt(A) grows in proportion to it; it is the gain r where the guess s of the gain is right.

    >>> optimised_step(2.0, 2.0), optimised_step(1.0, 2.0), optimised_step(2.0, 1.0)
    (2.0, 1.0, 0.5)
    """
    check(guess=guess, gain=gain)
    return min(guess, gain**2 / guess)


def optimised_weight_bound(L: float, p: float, Gamma: float, t: int, first_gain: float = 0.0) -> float:
    """A_t >= (sqrt(p*)/2 Gamma t + (1 - sqrt(p*)/2) r_0)^2 / L  >=  p* Gamma^2 t^2 / (4 L), for mu = 0.

    r_0 is the gain at x_0, whose cut gets the weight r_0^2/L at once; ``first_gain`` may be r_0, 1 or 0.

    >>> optimised_weight_bound(L=1.0, p=2, Gamma=1.0, t=4), optimised_weight_bound(1.0, math.inf, 2.0, 4)
    (8.000000000000002, 16.0)
    """
    check(L=L, Gamma=Gamma, t=t, first_gain=first_gain)
    half = math.sqrt(_dual(p)) / 2.0
    return (half * Gamma * t + (1.0 - half) * first_gain) ** 2 / L


def optimised_bound(L: float, R: float, p: float, Gamma: float, T: int, first_gain: float = 0.0) -> float:
    """f(x_T) - f* <= 2 L R^2 / (p* Gamma^2 T^2), that is R^2/(2 A_T) with :func:`optimised_weight_bound`.

    The constant 2/p* is 1 at p = 2, that of the optimised gradient method, and 2 at p = inf; the paper's is 324.

    >>> round(optimised_bound(1.0, 1.0, 2, 1.0, 10), 12), optimised_bound(1.0, 1.0, math.inf, 1.0, 10)
    (0.01, 0.02)
    """
    check(R=R, T=T)
    return R**2 / (2.0 * optimised_weight_bound(L, p, Gamma, T, first_gain))


def optimised_iterations(L: float, R: float, p: float, Gamma: float, eps: float) -> int:
    """T = ceil(sqrt(2 L / (p* eps)) R / Gamma)  =>  f(x_T) - f* <= eps: :func:`optimised_bound` solved for T.

    >>> optimised_iterations(1.0, 1.0, math.inf, 1.0, eps=0.02)
    10
    """
    check(L=L, R=R, Gamma=Gamma, eps=eps)
    return ceiling(math.sqrt(2.0 * L / (_dual(p) * eps)) * R / Gamma)


def optimised_restart_period(L: float, mu: float, p: float, Gamma: float) -> int:
    """T = ceil(sqrt(8 L / (p* mu)) / Gamma)  =>  f(x_T) - f* <= (f(x_0) - f*) / 2.

    It follows from 2 L R^2/(p* Gamma^2 T^2) with R^2 <= 2 (f(x_0) - f*)/mu.  The constant for Algorithm 1 is 17.

    >>> optimised_restart_period(L=2.0, mu=1.0, p=math.inf, Gamma=1.0)
    4
    """
    check(L=L, mu=mu, Gamma=Gamma)
    return ceiling(math.sqrt(8.0 * L / (_dual(p) * mu)) / Gamma)


def optimised_gradient_norm_bound(L: float, R: float, p: float, A: float) -> float:
    """||grad f(x_T)||_{p*} <= R sqrt(L / (p* A_T)).

    It follows from property P at y = x_T, f(x_T) + (p* - 1) ||g||^2/(2 L) <= U_T, with U_T - f* <= R^2/(2 A_T) and
    f(x_T) - f* >= ||g||^2/(2 L).

    >>> optimised_gradient_norm_bound(L=2.0, R=1.0, p=2, A=4.0)
    0.5
    """
    check(L=L, R=R, A=A)
    return R * math.sqrt(L / (_dual(p) * A))


def optimised_gradient_norm_iterations(L: float, R: float, p: float, Gamma: float, eps: float) -> int:
    """T = ceil(2 L R / (p* Gamma eps))  =>  ||grad f(x_T)||_{p*} <= eps.

    :func:`optimised_gradient_norm_bound` with p* Gamma^2 T^2/(4 L) for A_T.  The constant for Algorithm 1 is 12.  The
    faster T^{-3/2} for the best iterate is Algorithm 1's alone (:func:`gradient_norm_iterations_best`).

    >>> optimised_gradient_norm_iterations(1.0, 1.0, math.inf, 1.0, eps=0.1)
    20
    """
    check(L=L, R=R, Gamma=Gamma, eps=eps)
    return ceiling(2.0 * L * R / (_dual(p) * Gamma * eps))


def optimised_growth_factor(L: float, mu: float, p: float, guess: float, gain: float) -> float:
    """A_{t+1} / A_t >= 1 + gamma q / (1 + q (1 - gamma)),  q = s sqrt(p* mu / L), gamma = min(1, r^2/s^2).

    It follows from (L/s^2) a'^2 = (kappa + mu a') (p* A + a') >= p* mu A^2.  Undamped, at p = 2, it is
    1 + sqrt(2 mu/L), the rate of Park, Park & Ryu (2023) to first order.

    >>> optimised_growth_factor(L=8.0, mu=1.0, p=2, guess=1.0, gain=1.0)
    1.5
    """
    check(L=L, mu=mu, guess=guess, gain=gain)
    gamma, q = min(1.0, (gain / guess) ** 2), guess * math.sqrt(_dual(p) * mu / L)
    return 1.0 + gamma * q / (1.0 + q * (1.0 - gamma))


def optimised_strong_bound(L: float, mu: float, R: float, p: float, G: float, T: int) -> float:
    """f(x_T) - f* <= (L R^2 / (2 G^2)) (1 + G sqrt(p* mu / L))^{-(T-1)}, for a steady gain G (at p = 2 it is always 1).

    It is R^2/(2 A_T), as A_1 >= G^2/L and :func:`optimised_growth_factor` multiplies it T - 1 times.

    >>> optimised_strong_bound(L=8.0, mu=1.0, R=1.0, p=2, G=1.0, T=2) == 4.0 / 1.5
    True
    """
    check(L=L, mu=mu, R=R, G=G, T=T)
    grown = (T - 1) * math.log(optimised_growth_factor(L, mu, p, G, G))
    return L * R**2 / (2.0 * G**2) * math.exp(-grown)
