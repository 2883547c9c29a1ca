"""Steepest descent in the l_p norm; at p = 2 it is gradient descent.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm.
Algorithm.  x_{t+1} = x_t - s_p(grad f(x_t)) / L.
Guarantee.  f(x_T) - f* <= 2 L R_p^2/(T + 4), R_p the l_p radius of the level set of x_0 (Kelner et al. 2014); at p = 2
            f(x_T) - f* <= L R^2/(2T).  Each step: f(x_{t+1}) <= f(x_t) - ||g||_{p*}^2/(2L).
Reference.  Boyd & Vandenberghe, Convex Optimization, section 9.4; Kelner, Lee, Orecchia, Sidford (SODA 2014).

>>> import numpy as np, hasd
>>> res = hasd.minimize(hasd.objectives.Quadratic(np.diag([1.0, 4.0])), [1.0, 1.0], method="gradient-descent")
>>> res.success
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .base import Evaluation, Problem, State, advance, descend, first_state


@dataclass(frozen=True)
class SteepestDescent:
    """x_{t+1} = x_t - s_p(grad f(x_t))/L."""

    name: str = "steepest-descent"
    default_p: float = math.inf

    @property
    def euclidean(self) -> bool:
        """Whether it goes by the name of gradient descent."""
        return self.default_p == 2.0

    def init(self, problem: Problem, start: Evaluation) -> State:
        """x_0 with its gradient."""
        return State(**first_state(problem, start, problem.mu))

    def step(self, problem: Problem, state: State) -> State:
        """One steepest step; the evaluation at x_{t+1} is the next step's."""
        e = state.at
        step = descend(problem, e, problem.L or state.L_next, gradient=True)
        assert step.e is not None
        a = 1.0 / step.L  # any positive weight gives a valid certificate; this one averages the cuts
        own = {"L": step.L, "L_next": step.L_next, "theta": math.nan}
        return advance(problem, state, step.e, state.estimate.cut(a, e), step.trials, **own)
