"""Linear coupling of steepest and mirror descent in the l_p norm.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm.
Algorithm.  y = tau v_t + (1 - tau) x_t,  x_{t+1} = y - s_p(grad f(y))/L,  v_{t+1} = v_t - a grad f(y),  tau = 1/(a L),
            weights="published":  a = (t + 2)/(2L), as in the reference;
            weights="tight":      a from L a^2 = A_{t+1}, which is HASD's tight form with rho fixed to 1.
            The mirror map is 1/2 ||.||_2^2, which is 1-strongly convex w.r.t. l_p for every p >= 2 (l_inf included).
            In another norm, with gains of at least r, L/r^2 stands for L in the weights and in the guarantee.
Guarantee.  f(x_T) - f* <= 2 L R^2/(T + 1)^2, R in l_2, for both.  Published weights keep
            L a_t^2 f(x_t) + (1/4L) sum_{k<t} f(x_k) <= min psi_t; tight ones A_t f(x_t) <= min psi_t.
Reference.  Allen-Zhu & Orecchia, Linear coupling (ITCS 2017), Theorem 4.1.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 50.0]))
>>> hasd.minimize(f, [1.0, 1.0], method="linear-coupling", weights="tight").success
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._checks import check_words
from .._math.estimate import increment
from .base import Evaluation, Problem, State, first_state
from .estimate_sequence import coupled_step

WEIGHTS = ("published", "tight")


@dataclass(frozen=True)
class LinearCoupling:
    """Allen-Zhu & Orecchia's coupling, l_p step and l_2 mirror map."""

    weights: str = "published"
    name: str = "linear-coupling"
    default_p: float = math.inf

    def __post_init__(self) -> None:
        """Refuse unknown weights."""
        check_words(weights=(self.weights, WEIGHTS))

    def init(self, problem: Problem, start: Evaluation) -> State:
        """x_0 = v_0; the cuts carry no mu, which the method does not use."""
        return State(**first_state(problem, start))

    def step(self, problem: Problem, state: State) -> State:
        """Couple with tau = 1/(a L), cut at y."""

        def rule(L: float) -> tuple[float, float]:
            if self.weights == "published":
                return (state.iteration + 2.0) / (2.0 * L), 2.0 / (state.iteration + 2.0)
            a = increment(state.weight, L)
            return a, 1.0 / (a * L)

        return coupled_step(problem, state, rule, state.estimate.to_minimiser(state.x))
