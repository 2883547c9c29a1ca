"""HASD with a backtracked L, one evaluation at a time: `hasd.methods.hasd` and `hasd.methods.base.descend`, traced.

An iteration wants f and its gradient at y, then f at the end x of one step or more, each with its own L.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from .._math.search import NONFINITE_LIMIT
from .state import (
    CONVERGED,
    NONFINITE,
    NONFINITE_START,
    PRECISION,
    EstimateTree,
    EvaluationTree,
    HASDState,
    LineTree,
    Setting,
    couple,
    cut,
    end_run,
    increment,
    is_exhausted,
    make_evaluation,
    settle,
    slope,
)
from .trees import Scalar, Tree, dot, largest_size, mix, norm, select, steepest

MOST_STEPS = 199
"""Stepsizes that are tried from one point."""


class Accepted(NamedTuple):
    """A step that descends as its L promises."""

    L: Scalar
    f: Scalar
    local: Scalar  # the L that would just have passed
    spoilt: Scalar


def advance(setting: Setting, state: HASDState, y: Tree, f: Scalar, g: Tree) -> HASDState:
    """What follows from f and its gradient g at y; at the end of a step g matters only where `drowns` says so."""
    assert state.line is not None
    counted = state._replace(evaluations=state.evaluations + 1)
    e, finite = make_evaluation(setting, y, f, g, state.rho.dtype)
    after = select(
        state.line.at_x, _after_step(setting, counted, e, finite), _after_coupling(setting, counted, e, finite)
    )
    return settle(state, after, e.f)


def drowns(state: HASDState, f: Scalar) -> Scalar:
    """Whether the promised descent is below rounding, so that the gradient at the step's end must decide."""
    assert state.line is not None
    predicted, noise = _promise(state.at, state.line.L, jnp.asarray(f, state.rho.dtype))
    return ~(predicted > noise)


def _promise(e: EvaluationTree, L: Scalar, f: Scalar) -> tuple[Scalar, Scalar]:
    """The descent that L promises, and the rounding of the one observed."""
    return 0.5 * e.dual_norm * (e.dual_norm / L), 8.0 * e.eps * jnp.maximum(jnp.abs(e.f), jnp.abs(f))


def _after_coupling(setting: Setting, state: HASDState, e: EvaluationTree, finite: Scalar) -> HASDState:
    """The state after the coupling point was evaluated: the first step from it is tried next."""
    line = state.line
    assert line is not None
    begins = state.iteration == 0
    opening = begins & (line.couplings == 0)
    state = state._replace(
        fun=jnp.where(opening, e.f, state.fun),
        grad_norm0=jnp.where(opening, e.dual_norm, state.grad_norm0),
        rho=jnp.where(opening & (e.norm2 > 0.0), 1.0 / e.gain**2, state.rho),
        line=line._replace(couplings=line.couplings + 1),
    )
    arrived = state._replace(
        iteration=jnp.where(begins, 0, state.iteration + 1),
        x=e.x,
        fun=e.f,
        at=e,
        grad_norm=e.dual_norm,
        L=line.L_start,
    )
    after = select(e.norm2 == 0.0, end_run(arrived, CONVERGED), _first_trial(setting, state, e))
    return select(finite, after, _move_nearer(setting, state))


def _first_trial(setting: Setting, state: HASDState, e: EvaluationTree) -> HASDState:
    """The first step from e; where no L is known yet, one as long as x_0."""
    assert state.line is not None
    L_start = state.line.L_start
    unknown = jnp.isnan(L_start)
    L = jnp.where(unknown, e.dual_norm / jnp.maximum(1.0, norm(e.x, setting.p)), L_start)
    nan = jnp.full_like(L, jnp.nan)
    line = state.line._replace(
        at_x=jnp.ones_like(state.line.at_x),
        L=L,
        first=unknown,
        best_L=nan,
        best_f=nan,
        best_local=nan,
        spoilt=jnp.ones_like(L),
        nonfinite=jnp.zeros_like(state.line.nonfinite),
        trials=jnp.ones_like(state.line.trials),
    )
    stepping = _request_step_end(setting, state._replace(at=e), e, line)
    return select(is_exhausted(setting, e, L), end_run(state, PRECISION), stepping)


def _move_nearer(setting: Setting, state: HASDState) -> HASDState:
    """The state after a coupling point outside the domain of f: one nearer to x_t comes next, up to a limit."""
    assert state.line is not None
    nearer = _request_coupling(setting, state._replace(rho=4.0 * state.rho), state.line)
    nearer = select(state.line.couplings >= NONFINITE_LIMIT, end_run(state, NONFINITE), nearer)
    return select(state.iteration == 0, end_run(state, NONFINITE_START), nearer)


def _request_step_end(setting: Setting, state: HASDState, e: EvaluationTree, line: LineTree) -> HASDState:
    """Ask for the end of the step from e with the line's L as the next point to evaluate."""
    s = steepest(e.g, setting.p, e.dual_norm)
    return state._replace(y=mix(lambda y, s: y - s / line.L, e.x, s), line=line)


def _request_coupling(setting: Setting, state: HASDState, line: LineTree) -> HASDState:
    """Ask for the coupling point of the state's rho as the next point to evaluate; x_0 at the start."""
    a = increment(state.estimate.weight, line.L_start * state.rho, setting.mu)
    y = couple(state.x, state.estimate, a, setting.mu)
    y = select(state.iteration == 0, state.x, y)
    return state._replace(y=y, line=line._replace(at_x=jnp.zeros_like(line.at_x)))


def _after_step(setting: Setting, state: HASDState, there: EvaluationTree, whole: Scalar) -> HASDState:
    """The state after a step's end was evaluated: take the step, or try another L; `whole`: all is finite there."""
    line, e, f = state.line, state.at, there.f
    assert line is not None
    s = steepest(e.g, setting.p, e.dual_norm)
    predicted, noise = _promise(e, line.L, f)
    visible = predicted > noise
    finite = jnp.isfinite(f)
    local = jnp.where(visible, 2.0 * line.L * (1.0 + 0.5 * ((f - e.f) / predicted)), line.L)
    descends = jnp.where(visible, f <= e.f - predicted + noise, whole & (dot(there.g, s) >= 0.0))
    passed, has_best = finite & descends, ~jnp.isnan(line.best_L)

    takes_best = has_best & (~passed | (f >= line.best_f))
    lengthens = passed & ~takes_best & line.first & (local < 0.5 * line.L)
    takes = takes_best | (passed & ~lengthens)

    nonfinite = jnp.where(finite, 0, line.nonfinite + 1)
    raised = jnp.where(finite, jnp.minimum(jnp.maximum(2.0 * line.L, local), 1024.0 * line.L), 4.0 * line.L)
    again = line._replace(
        L=jnp.where(lengthens, jnp.maximum(local, line.L / 1024.0), raised),
        first=lengthens,
        best_L=jnp.where(lengthens, line.L, line.best_L),
        best_f=jnp.where(lengthens, f, line.best_f),
        best_local=jnp.where(lengthens, local, line.best_local),
        spoilt=jnp.where(finite, line.spoilt, 4.0 * line.spoilt),
        nonfinite=nonfinite,
        trials=line.trials + 1,
    )
    shortest = finite & ~lengthens & (largest_size(s) / raised <= e.eps * e.eps * largest_size(e.x))
    retried = select(
        shortest | (line.trials >= MOST_STEPS), end_run(state, PRECISION), _request_step_end(setting, state, e, again)
    )
    retried = select(nonfinite == NONFINITE_LIMIT, end_run(state, NONFINITE), retried)
    step = Accepted(
        jnp.where(takes_best, line.best_L, line.L),
        jnp.where(takes_best, line.best_f, f),
        jnp.where(takes_best, line.best_local, local),
        line.spoilt,
    )
    return select(takes, _take_step(setting, state, e, s, step), retried)


def _take_step(setting: Setting, state: HASDState, e: EvaluationTree, s: Tree, step: Accepted) -> HASDState:
    """Take the step with the largest certified weight; where that is below half the rule's, try a larger rho."""
    line, estimate, mu = state.line, state.estimate, setting.mu
    assert line is not None
    safe = 1.0 / e.gain**2
    rule = increment(estimate.weight, step.L * jnp.maximum(state.rho, safe), mu)
    root = largest_root(estimate, e, step.f, mu)
    enough = root >= 0.5 * rule
    # In the second case the proof gives the rule's weight, and rounding hid it.
    moves = enough | ((state.rho >= safe) & (line.L_start >= step.L))
    a = jnp.where(enough, root, rule)
    A = estimate.weight + a
    L_kept = step.L / step.spoilt
    moved = state._replace(
        iteration=state.iteration + 1,
        x=mix(lambda y, s: y - s / step.L, e.x, s),
        fun=step.f,
        grad_norm=e.dual_norm,
        L=step.L,
        rho=A * (1.0 + mu * A) / (step.L * a) / a,
        estimate=cut(estimate, a, e, mu),
    )
    if setting.restart:
        zero = jnp.zeros_like(a)
        moved = select(step.f > state.fun, moved._replace(estimate=EstimateTree(moved.x, zero, zero)), moved)
    L_next = jnp.minimum(jnp.maximum(step.local, 0.5 * L_kept), L_kept)
    moved = _request_coupling(setting, moved, line._replace(L_start=L_next, couplings=jnp.zeros_like(line.couplings)))

    tried = state._replace(rho=jnp.maximum(2.0 * state.rho, safe))
    anew = _request_coupling(setting, tried, line._replace(L_start=step.L))
    anew = select(line.couplings >= NONFINITE_LIMIT, end_run(state, NONFINITE), anew)
    return select(moves, moved, anew)


def largest_root(estimate: EstimateTree, e: EvaluationTree, f_next: Scalar, mu: Scalar | float) -> Scalar:
    """The largest a with (A + a) f_next <= min psi_{t+1}; NaN where there is none (see `hasd._math.estimate`)."""
    n, A, psi, f = e.norm2, estimate.weight, estimate.psi, e.f
    kappa = 1.0 + mu * A
    S = psi - A * f_next - 8.0 * e.eps * (jnp.abs(psi) + A * jnp.abs(f_next))
    noise = 8.0 * e.eps * jnp.maximum(jnp.abs(f), jnp.abs(f_next))
    D = mu * S + kappa * (f + slope(estimate, e, mu) - f_next - noise)
    half = jnp.maximum(0.5 - (mu / n) * ((f - f_next) / n), 1e-12)
    d = D / n
    root = jnp.sqrt(d * d + 4.0 * half * kappa * S)  # NaN where there is no root
    other = jnp.where(S > 0.0, 2.0 * kappa * S / (root - d) / n, jnp.nan)
    return jnp.where(d >= 0.0, (d + root) / (2.0 * half) / n, other)
