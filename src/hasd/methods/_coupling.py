"""The step that linear coupling and the estimate sequence share: couple, evaluate, steepest step, cut."""

from __future__ import annotations

from collections.abc import Callable

from .._run.problem import Problem
from .._run.record import State
from .base import advance, descend, evaluate_near


def coupled_step(
    problem: Problem, state: State, weight: Callable[[float], float], share: Callable[[float], float]
) -> State:
    """One step with rho = 1: a = weight(L), y = x + share(L) (v - x), x+ = y - s_p(g)/L, v+ from the cut at y.

    Where L is backtracked it never falls, and y is made anew while share(L) moves with L.
    """
    estimate, e, L, trials = state.estimate, state.at, problem.L or state.L_next, 1
    if state.iteration > 0:  # y_0 = x_0, evaluated already
        tau = share(L)
        e, trials = evaluate_near(problem, state.x + tau * estimate.to_minimiser(state.x), state.x)
    step = descend(problem, e, L)
    spoilt = step.spoilt
    while state.iteration > 0 and step.L > L and share(step.L) != tau:
        L, tau = step.L, share(step.L)
        e, more = evaluate_near(problem, state.x + tau * estimate.to_minimiser(state.x), state.x)
        step, trials = descend(problem, e, L), trials + more
        spoilt *= step.spoilt
    a = weight(step.L)
    own = {"L": step.L, "L_next": step.L / spoilt, "rho": 1.0, "theta": 1.0 - share(step.L)}
    return advance(problem, state, e, estimate.cut(a, e), trials, x=step.x, fun=step.f, **own)
