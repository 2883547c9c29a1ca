"""HASD with a declared L, one evaluation at a time: `hasd.methods.hasd` and `hasd.search`, traced."""

from __future__ import annotations

import jax.numpy as jnp

from .._math.search import FIXED_POINT_TRIALS, NONFINITE_LIMIT
from ..methods.hasd import AIM, WINDOW
from .state import (
    CONVERGED,
    NONFINITE,
    NONFINITE_START,
    PRECISION,
    EstimateTree,
    EvaluationTree,
    HASDState,
    SearchTree,
    Setting,
    couple,
    cut,
    end_run,
    first_rho,
    increment,
    is_exhausted,
    make_evaluation,
    new_search,
    settle,
)
from .trees import Scalar, Tree, dot, dual, mix, norm, select, steepest


def advance(setting: Setting, state: HASDState, y: Tree, f: Scalar | None, g: Tree) -> HASDState:
    """What follows from f and its gradient g at y: an iteration, the search's next trial, or cuts scaled."""
    e, finite = make_evaluation(setting, y, f, g, state.rho.dtype)
    counted = state._replace(evaluations=state.evaluations + 1)
    if state.mend is None:
        return settle(state, _after_coupling(setting, counted, e, finite), e.f)
    better = finite & (e.f < state.mend.best_f)
    best, best_f = select(better, (e.x, e.f), (state.mend.best, state.mend.best_f))
    noted = counted._replace(mend=state.mend._replace(best=best, best_f=best_f))
    after = select(
        state.mend.wanted, _repair_estimate(setting, counted, e.f), _after_coupling(setting, noted, e, finite)
    )
    return settle(state, after, e.f)


def _after_coupling(setting: Setting, state: HASDState, e: EvaluationTree, finite: Scalar) -> HASDState:
    """The state after the coupling point was evaluated: the next iterate, or the next trial."""
    assert state.search is not None
    begins = state.iteration == 0  # y_0 does not depend on rho: take the smallest admissible one
    rho = jnp.where(begins, WINDOW[0] / e.gain**2, state.rho)
    c = jnp.where(finite, jnp.where(e.norm2 > 0.0, rho * e.gain**2, AIM), jnp.nan)
    accepted = finite & (begins | state.search.forced | ((c >= WINDOW[0]) & (c <= WINDOW[1])))
    searched, failed = _next_trial(setting, state, c)
    searched = select(failed, end_run(state, NONFINITE), searched)
    searched = select(begins, end_run(state, NONFINITE_START), searched)

    moved = select(is_exhausted(setting, e, state.L), end_run(state, PRECISION), _take_step(setting, state, e, rho))
    if setting.raise_L:
        smoothness = observed_smoothness(setting, state.at, e)
        disproved = ~begins & (smoothness > state.L * (1.0 + 1e-9))
        moved = select(disproved, _raise_smoothness(state, smoothness), moved)
    return select(accepted, moved, searched)


def _take_step(setting: Setting, state: HASDState, e: EvaluationTree, rho: Scalar) -> HASDState:
    """The next iterate, with the first trial of the iteration after it."""
    L, mu = state.L, setting.mu
    a = increment(state.estimate.weight, L * rho, mu)  # L rho a^2 = A_{t+1} kappa_{t+1}
    s = steepest(e.g, setting.p, e.dual_norm)
    begins = state.iteration == 0
    arrived = state._replace(at=e, grad_norm=e.dual_norm, grad_norm0=jnp.where(begins, e.dual_norm, state.grad_norm0))
    moved = arrived._replace(
        iteration=state.iteration + 1,
        x=mix(lambda y, s: y - s / L, e.x, s),
        estimate=cut(state.estimate, a, e, mu),
    )
    there = end_run(select(begins, arrived, moved), CONVERGED)
    return select(e.dual_norm == 0.0, there, request_coupling(setting, moved, first_rho(e.gain), new_search(rho.dtype)))


def request_coupling(setting: Setting, state: HASDState, rho: Scalar, search: SearchTree) -> HASDState:
    """Ask for the coupling point of rho as the next point to evaluate."""
    a = increment(state.estimate.weight, state.L * rho, setting.mu)
    return state._replace(rho=rho, y=couple(state.x, state.estimate, a, setting.mu), search=search)


def _next_trial(setting: Setting, state: HASDState, c: Scalar) -> tuple[HASDState, Scalar]:
    """The next trial after a residual outside the window, and whether the search has failed; as `hasd.search.search`.

    Where that returns the trial above the window, this proposes it once more, so that it need not be stored.
    """
    search, u = state.search, state.rho
    assert search is not None
    top = new_search(u.dtype).high
    lost, over = jnp.isnan(c), c > WINDOW[1]
    nonfinite = jnp.where(lost, search.nonfinite + 1, 0)
    high = jnp.where(over, jnp.minimum(search.high, u), search.high)
    low = jnp.where(over, search.low, jnp.maximum(search.low, u))
    guided = search.guided + 1
    away = jnp.where(c > 0.0, u / 4.0, 4.0 * u)
    guess = jnp.where((c > 0.0) & jnp.isfinite(c), u * (AIM / c), away)
    bisects = (guided > FIXED_POINT_TRIALS) & (guided % 2 == 0)
    inside = (low < guess) & (guess < high)
    rho = jnp.where(inside & ~bisects, guess, jnp.sqrt(low) * jnp.sqrt(high))
    narrow = ~((low < rho) & (rho < high))  # the bracket is at machine resolution
    jumps = narrow & (high < top)
    rho = jnp.where(jumps, high, rho)
    failed = (nonfinite == NONFINITE_LIMIT) | (narrow & ~jumps)
    return request_coupling(setting, state, rho, SearchTree(low, high, guided, nonfinite, jumps)), failed


def observed_smoothness(setting: Setting, one: EvaluationTree, other: EvaluationTree) -> Scalar:
    """The smallest L that two evaluations allow (co-coercivity); 0 where rounding hides it."""
    noise = 8.0 * other.eps * jnp.maximum(jnp.abs(one.f), jnp.abs(other.f))
    change = norm(mix(lambda a, b: a - b, one.g, other.g), dual(setting.p))
    apart = mix(lambda a, b: a - b, one.x, other.x)
    least = jnp.zeros_like(noise)
    for bregman in (one.f - other.f - dot(other.g, apart), other.f - one.f + dot(one.g, apart)):
        least = jnp.where(bregman > 32.0 * noise, jnp.maximum(least, change * (change / (2.0 * bregman))), least)
    return least


def _raise_smoothness(state: HASDState, smoothness: Scalar) -> HASDState:
    """Raise L and ask for f at x_t: the cuts must be scaled, as they rested on the smaller L."""
    assert state.mend is not None
    mend = state.mend._replace(wanted=jnp.ones_like(state.mend.wanted))
    return state._replace(L=jnp.maximum(smoothness, 1.1 * state.L), y=state.x, mend=mend)


def _repair_estimate(setting: Setting, state: HASDState, f: Scalar) -> HASDState:
    """Scale the cuts to f(x_t); where no scale is enough, begin a new epoch at the best point seen."""
    assert state.mend is not None
    center, best = state.mend.center, state.mend.best
    estimate = rescale(state.estimate, center, f, setting.mu)
    zero = jnp.zeros_like(estimate.weight)
    x, estimate, center = select(
        estimate.weight > 0.0, (state.x, estimate, center), (best, EstimateTree(best, zero, zero), best)
    )
    mend = state.mend._replace(wanted=jnp.zeros_like(state.mend.wanted), center=center)
    return request_coupling(
        setting, state._replace(x=x, estimate=estimate, mend=mend), first_rho(state.at.gain), new_search(zero.dtype)
    )


def rescale(estimate: EstimateTree, center: Tree, f: Scalar, mu: Scalar | float) -> EstimateTree:
    """The cuts scaled by the largest c <= 1 with c A f <= min psi, as `Estimate.rescale`; 0 where none."""
    A, kappa = estimate.weight, 1.0 + mu * estimate.weight
    away = mix(lambda v, x: v - x, estimate.v, center)
    s = norm(away, 2.0) * kappa
    slack = estimate.psi + 0.5 * s * (s / kappa) - A * f
    c = jnp.minimum(1.0, 2.0 * slack / (s * s - 2.0 * mu * A * slack))
    kappa_scaled = 1.0 + c * mu * A
    scaled = EstimateTree(
        mix(lambda x, far: x + (c * kappa / kappa_scaled) * far, center, away),
        c * A,
        c * (slack + A * f) - 0.5 * (c * s) * (c * s / kappa_scaled),
    )
    zero = jnp.zeros_like(A)
    scaled = select(slack > 0.0, scaled, EstimateTree(center, zero, zero))
    return select(A * f <= estimate.psi, estimate, scaled)
