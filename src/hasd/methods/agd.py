"""Nesterov's accelerated gradient descent.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_2 norm; mu-strongly convex where mu > 0.
Algorithm.  x_{t+1} = y_t - grad f(y_t)/L,   y_{t+1} = x_{t+1} + beta_t (x_{t+1} - x_t),
            beta_t = (c_t - 1)/c_{t+1} with c_{t+1}^2 = c_{t+1} + c_t^2, c_0 = 1   (mu = 0),
            beta   = (1 - q)/(1 + q), q = sqrt(mu/L)                                (mu > 0).
            (The paper's introduction prints the momentum term with its sign reversed.)
Guarantee.  f(x_T) - f* <= 2 L R^2/(T + 1)^2;  with mu, <= L R^2 (1 - sqrt(mu/L))^T.
Reference.  Nesterov (1983), Lectures on Convex Optimization (2018), section 2.2; Beck & Teboulle (2009) for the
            backtracking.

>>> import numpy as np, hasd
>>> hasd.minimize(hasd.objectives.Quadratic(np.diag([1.0, 50.0])), [1.0, 1.0], method="agd").success
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .._math.estimate import increment
from .._math.geometry import Array
from .base import Evaluation, Problem, State, advance, descend, evaluate_near, first_state


@dataclass(frozen=True, repr=False)
class AGDState(State):
    """A state with its next gradient point."""

    y: Array = None  # y_t
    c: float = 1.0  # c_t, Nesterov's t_k


@dataclass(frozen=True)
class AGD:
    """x_{t+1} = y_t - g/L, y_{t+1} = x_{t+1} + beta (x_{t+1} - x_t)."""

    name: str = "agd"
    default_p: float = 2.0
    euclidean: ClassVar[bool] = True
    state_classes: ClassVar[tuple[type, ...]] = (AGDState,)

    def init(self, problem: Problem, start: Evaluation) -> AGDState:
        """y_0 = x_0."""
        return AGDState(**first_state(problem, start, problem.mu), y=start.x)

    def step(self, problem: Problem, state: State) -> AGDState:
        """One step; L never falls when it is backtracked."""
        assert isinstance(state, AGDState)
        e, trials = (state.at, 1) if state.iteration == 0 else evaluate_near(problem, state.y, state.x)
        step = descend(problem, e, problem.L or state.L_next)
        c = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * state.c * state.c))
        q = math.sqrt(problem.mu / step.L)
        beta = (1.0 - q) / (1.0 + q) if problem.mu > 0.0 else (state.c - 1.0) / c
        a = increment(state.weight, step.L, problem.mu)
        own = {"L": step.L, "L_next": step.L_kept, "y": step.x + beta * (step.x - state.x), "c": c}
        cut, tried = state.estimate.cut(a, e), max(trials, step.trials)
        return advance(problem, state, e, cut, tried, x=step.x, fun=step.f, **own)
