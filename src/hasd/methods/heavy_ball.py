"""Polyak's heavy ball.  No guarantee is claimed beyond quadratics.

Problem.    min f(x), f convex and L-smooth w.r.t. l_2.
Algorithm.  x_{t+1} = x_t - grad f(x_t)/L + beta (x_t - x_{t-1}).  (The paper's introduction prints the momentum term
            with its sign reversed; it pushes forward.)
Reference.  Polyak (1964).

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 100.0]))
>>> hasd.minimize(f, [1.0, 1.0], method="heavy-ball", L=100.0, momentum=0.67).success
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from .._checks import number
from .._math.estimate import observed_smoothness
from .._math.geometry import Array
from .base import Evaluation, Problem, State, advance, descend, evaluate_near, first_state


@dataclass(frozen=True, repr=False)
class HeavyBallState(State):
    """A state that remembers the iterate before."""

    previous: Array = None  # x_{t-1}


@dataclass(frozen=True)
class HeavyBall:
    """x_{t+1} = x_t - g/L + beta (x_t - x_{t-1})."""

    momentum: float = 0.9
    name: str = "heavy-ball"
    default_p: float = 2.0
    euclidean: ClassVar[bool] = True
    state_classes: ClassVar[tuple[type, ...]] = (HeavyBallState,)

    def __post_init__(self) -> None:
        """Refuse a momentum outside [0, 1)."""
        momentum = number("momentum", self.momentum, least=0.0, below=1.0)
        object.__setattr__(self, "momentum", momentum)

    def init(self, problem: Problem, start: Evaluation) -> HeavyBallState:
        """x_{-1} = x_0: no momentum yet."""
        return HeavyBallState(**first_state(problem, start, problem.mu), previous=start.x)

    def step(self, problem: Problem, state: State) -> HeavyBallState:
        """One step; L, where not declared, is what the gradients seen so far allow (co-coercivity)."""
        assert isinstance(state, HeavyBallState)
        e = state.at
        step = descend(problem, e, problem.L or state.L_next, gradient=state.L != state.L)
        x = step.x + self.momentum * (state.x - state.previous)
        there, trials = (step.e, step.trials) if state.iteration == 0 and step.e else evaluate_near(problem, x, e.x)
        seen = 0.0 if problem.L else observed_smoothness(problem.geometry, e, there)
        own = {"L": step.L, "L_next": max(step.L_kept, seen), "theta": math.nan, "previous": state.x}
        return advance(problem, state, there, state.estimate.cut(1.0 / step.L, e), trials, **own)
