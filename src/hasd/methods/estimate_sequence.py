"""Nesterov's estimate sequence with a steepest step in the l_p norm.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm; mu-strongly convex w.r.t. l_2 where mu > 0.
Algorithm.  y_t = (A_t x_t + a v_t)/A_{t+1},   x_{t+1} = y_t - s_p(grad f(y_t))/L,   v_{t+1} = argmin psi_{t+1},
            psi_{t+1} = psi_t + a [f(y_t) + <grad f(y_t), . - y_t>],   A_{t+1} = A_t + a = L a^2.
Guarantee.  A_t f(x_t) <= min psi_t for all t, hence f(x_T) - f* <= R^2/(2 A_T) <= 2 L R^2/(T + 1)^2, R in l_2.
Reference.  Nesterov, Smooth minimization of non-smooth functions (2005), with d(x) = 1/2 ||x - x_0||_2^2, which is
            1-strongly convex w.r.t. l_p for every p >= 2.  In another norm, with gains of at least r, L/r^2 stands for
            L in the weights and in the guarantee.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 50.0]))
>>> hasd.minimize(f, [1.0, 1.0], method="estimate-sequence", p=3).success
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .._math.estimate import increment
from .._math.geometry import Array, least_gain
from .._run.record import S
from .base import Evaluation, Problem, State, advance, descend, evaluate_near, first_state


@dataclass(frozen=True)
class EstimateSequence:
    """Nesterov 2005 in the l_p norm: HASD's tight form with rho fixed to 1."""

    name: str = "estimate-sequence"
    default_p: float = math.inf

    def init(self, problem: Problem, start: Evaluation) -> State:
        """psi_0 = 1/2 ||x - x_0||^2."""
        return State(**first_state(problem, start, problem.mu))

    def step(self, problem: Problem, state: State) -> State:
        """Couple at y, cut at y."""
        estimate = state.estimate

        def rule(L: float) -> tuple[float, float]:
            a = increment(estimate.weight, L, estimate.mu)
            return a, estimate.share(a)

        return coupled_step(problem, state, rule, estimate.to_minimiser(state.x))


def coupled_step(problem: Problem, state: S, rule: Callable[[float], tuple[float, float]], to_v: Array) -> S:
    """One step with rho = 1/r^2: a, tau = rule(L), y = x + tau to_v, to_v = v - x, x+ = y - s_p(g)/L, the cut at y.

    The prox term 1/2 ||.||_2^2 is 1-strongly convex in r ||.||, r the least gain of the norm: weights are those for the
    constant L/r^2 that f has in that norm.  Where L is backtracked it never falls, and y is made anew while tau moves
    with L.
    """
    least = least_gain(problem.geometry) or 1.0
    estimate, trials, spoilt = state.estimate, 0, 1.0
    L = problem.L or max(state.L_next, math.ulp(0.0))  # an L that underflowed to 0 is taken for the smallest number
    while True:
        _, tau = rule(L / least / least)
        y = state.x + tau * to_v
        e, more = (state.at, 1) if state.iteration == 0 else evaluate_near(problem, y, state.x)  # y_0 = x_0
        step = descend(problem, e, L)
        trials, spoilt = trials + more, spoilt * step.spoilt
        a, share = rule(step.L / least / least)
        if state.iteration == 0 or not step.L > L or share == tau:
            break
        L = step.L
    own = {"L": step.L, "L_next": step.L / spoilt, "rho": 1.0 / least**2, "theta": 1.0 - share}
    return advance(problem, state, e, estimate.cut(a, e), trials, x=step.x, fun=step.f, **own)
