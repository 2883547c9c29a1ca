"""HASD with a backtracked L, one evaluation at a time: `hasd.methods.hasd` and `hasd.methods.base.descend`, traced.

An iteration wants f and its gradient at y, then f at the end x of one step or more, each with its own L.
"""

from __future__ import annotations

import jax.numpy as jnp

from .._math.search import NONFINITE_LIMIT
from .._run.status import Status
from .state import EstimateTree, EvaluationTree, HASDState, LineTree, Setting, StepTree
from .trees import Scalar, dot, largest_size, norm, select, steepest

MOST_STEPS = 199
"""Stepsizes that are tried from one point."""


def next_state(setting: Setting, state: HASDState, e: EvaluationTree, finite: Scalar) -> HASDState:
    """What follows from the evaluation e; at the end of a step its gradient matters only where `drowns` says so."""
    return select(state.line.at_x, _after_step(setting, state, e, finite), _after_coupling(setting, state, e, finite))


def drowns(state: HASDState, f: Scalar) -> Scalar:
    """Whether the promised descent is below rounding, so that the gradient at the step's end must decide."""
    predicted, noise = _promise(state.at, state.line.L, jnp.asarray(f, state.rho.dtype))
    return ~(predicted > noise)


def _promise(e: EvaluationTree, L: Scalar, f: Scalar) -> tuple[Scalar, Scalar]:
    """The descent that L promises, and the rounding of the one observed."""
    return 0.5 * e.dual_norm * (e.dual_norm / L), 8.0 * e.eps * jnp.maximum(jnp.abs(e.f), jnp.abs(f))


def _after_coupling(setting: Setting, state: HASDState, e: EvaluationTree, finite: Scalar) -> HASDState:
    """The state after the coupling point was evaluated: the first step from it is tried next."""
    line: LineTree = state.line
    begins = state.iteration == 0
    opening = begins & (line.couplings == 0)
    state = state._replace(
        fun=jnp.where(opening, e.f, state.fun),
        grad_norm0=jnp.where(opening, e.dual_norm, state.grad_norm0),
        rho=jnp.where(opening & (e.norm2 > 0.0), 1.0 / e.gain**2, state.rho),
        line=line._replace(couplings=line.couplings + 1),
    )
    t = jnp.where(begins, 0, state.iteration + 1)
    arrived = state._replace(iteration=t, x=e.x, fun=e.f, at=e, grad_norm=e.dual_norm, L=line.L_start)
    after = select(e.norm2 == 0.0, arrived.end(Status.CONVERGED), _first_trial(setting, state, e))
    return select(finite, after, _move_nearer(setting, state))


def _first_trial(setting: Setting, state: HASDState, e: EvaluationTree) -> HASDState:
    """The first step from e; where no L is known yet, one as long as x_0."""
    L_start, couplings = state.line.L_start, state.line.couplings
    unknown = jnp.isnan(L_start)
    L = jnp.where(unknown, e.dual_norm / jnp.maximum(1.0, norm(e.x, setting.p)), L_start)
    line = LineTree(L_start, couplings, at_x=True, L=L, first=unknown)
    stepping = state._replace(at=e, y=e.descend(setting.p, L), line=line)
    return select(e.is_exhausted(setting.p, L), state.end(Status.PRECISION), stepping)


def _move_nearer(setting: Setting, state: HASDState) -> HASDState:
    """The state after a coupling point outside the domain of f: one nearer to x_t comes next, up to a limit."""
    nearer = _request_coupling(setting, state._replace(rho=4.0 * state.rho), state.line)
    nearer = select(state.line.couplings >= NONFINITE_LIMIT, state.end(Status.NONFINITE), nearer)
    return select(state.iteration == 0, state.end(Status.NONFINITE_START), nearer)


def _request_coupling(setting: Setting, state: HASDState, line: LineTree) -> HASDState:
    """Ask for the coupling point of the state's rho as the next point to evaluate; x_0 at the start."""
    a = state.estimate.increment(line.L_start * state.rho, setting.mu)
    y = select(state.iteration == 0, state.x, state.estimate.couple(state.x, a, setting.mu))
    return state._replace(y=y, line=line._replace(at_x=False))


def _after_step(setting: Setting, state: HASDState, there: EvaluationTree, whole: Scalar) -> HASDState:
    """The state after a step's end was evaluated: take the step, or try another L; `whole`: all is finite there."""
    line: LineTree = state.line
    e, f, L = state.at, there.f, line.L
    s = steepest(e.g, setting.p, e.dual_norm)
    predicted, noise = _promise(e, L, f)
    visible = predicted > noise
    finite = jnp.isfinite(f)
    local = jnp.where(visible, 2.0 * L * (1.0 + 0.5 * ((f - e.f) / predicted)), L)
    descends = jnp.where(visible, f <= e.f - predicted + noise, whole & (dot(there.g, s) >= 0.0))
    passed, has_best = finite & descends, ~jnp.isnan(line.best.L)

    takes_best = has_best & (~passed | (f >= line.best.f))
    lengthens = passed & ~takes_best & line.first & (local < 0.5 * L)
    takes = takes_best | (passed & ~lengthens)

    nonfinite = jnp.where(finite, 0, line.nonfinite + 1)
    raised = jnp.where(finite, jnp.minimum(jnp.maximum(2.0 * L, local), 1024.0 * L), 4.0 * L)
    L_next = jnp.where(lengthens, jnp.maximum(local, L / 1024.0), raised)
    again = line._replace(
        L=L_next,
        first=lengthens,
        best=select(lengthens, StepTree(L, f, local), line.best),
        spoilt=jnp.where(finite, line.spoilt, 4.0 * line.spoilt),
        nonfinite=nonfinite,
        trials=line.trials + 1,
    )
    shortest = finite & ~lengthens & (largest_size(s) / raised <= e.eps * e.eps * largest_size(e.x))
    retried = state._replace(y=e.descend(setting.p, L_next), line=again)
    retried = select(shortest | (line.trials >= MOST_STEPS), state.end(Status.PRECISION), retried)
    retried = select(nonfinite == NONFINITE_LIMIT, state.end(Status.NONFINITE), retried)
    step = select(takes_best, line.best, StepTree(L, f, local))
    return select(takes, _take_step(setting, state, step), retried)


def _take_step(setting: Setting, state: HASDState, step: StepTree) -> HASDState:
    """Take the step with the largest certified weight; where that is below half the rule's, try a larger rho."""
    line: LineTree = state.line
    e, estimate, mu = state.at, state.estimate, setting.mu
    safe = 1.0 / e.gain**2
    rule = estimate.increment(step.L * jnp.maximum(state.rho, safe), mu)
    root = estimate.largest_root(e, step.f, mu)
    enough = root >= 0.5 * rule
    # In the second case the proof gives the rule's weight, and rounding hid it.
    moves = enough | ((state.rho >= safe) & (line.L_start >= step.L))
    a = jnp.where(enough, root, rule)
    A = estimate.weight + a
    L_kept = step.L / line.spoilt
    moved = state._replace(
        iteration=state.iteration + 1,
        x=e.descend(setting.p, step.L),
        fun=step.f,
        grad_norm=e.dual_norm,
        L=step.L,
        rho=A * (1.0 + mu * A) / (step.L * a) / a,
        estimate=estimate.cut(a, e, mu),
    )
    if setting.restart:
        moved = select(step.f > state.fun, moved._replace(estimate=EstimateTree(moved.x)), moved)
    L_next = jnp.minimum(jnp.maximum(step.local, 0.5 * L_kept), L_kept)
    moved = _request_coupling(setting, moved, line._replace(L_start=L_next, couplings=0))

    tried = state._replace(rho=jnp.maximum(2.0 * state.rho, safe))
    anew = _request_coupling(setting, tried, line._replace(L_start=step.L))
    anew = select(line.couplings >= NONFINITE_LIMIT, state.end(Status.NONFINITE), anew)
    return select(moves, moved, anew)
