"""The step that linear coupling and the estimate sequence share: couple, evaluate, steepest step, cut."""

from __future__ import annotations

from collections.abc import Callable

from .base import Problem, State, advance, descend, evaluate_near


def coupled_step(problem: Problem, state: State, rule: Callable[[float], tuple[float, float]]) -> State:
    """One step with rho = 1: a, tau = rule(L), y = x + tau (v - x), x+ = y - s_p(g)/L, v+ from the cut at y.

    Where L is backtracked it never falls, and y is made anew while tau moves with L.
    """
    estimate, e, L, trials, spoilt = state.estimate, state.at, problem.L or state.L_next, 0, 1.0
    while True:
        _, tau = rule(L)
        more = 1
        if state.iteration > 0:  # y_0 = x_0, evaluated already
            e, more = evaluate_near(problem, state.x + tau * estimate.to_minimiser(state.x), state.x)
        step = descend(problem, e, L)
        trials, spoilt = trials + more, spoilt * step.spoilt
        a, moved = rule(step.L)
        if state.iteration == 0 or not step.L > L or moved == tau:
            break
        L = step.L
    own = {"L": step.L, "L_next": step.L / spoilt, "rho": 1.0, "theta": 1.0 - moved}
    return advance(problem, state, e, estimate.cut(a, e), trials, x=step.x, fun=step.f, **own)
