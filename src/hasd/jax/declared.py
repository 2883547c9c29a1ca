"""HASD with a declared L, one evaluation at a time: `hasd.methods.hasd` and `hasd._math.search`, traced."""

from __future__ import annotations

import jax.numpy as jnp

from .._math.search import FIXED_POINT_TRIALS, NONFINITE_LIMIT
from .._run.status import Status
from ..methods.hasd import AIM, WINDOW
from .state import EstimateTree, EvaluationTree, HASDState, Mend, SearchTree, Setting, new_search
from .trees import Scalar, dot, dual, mix, norm, select


def next_state(setting: Setting, state: HASDState, e: EvaluationTree, finite: Scalar) -> HASDState:
    """What follows from the evaluation e: an iteration, the search's next trial, or cuts scaled."""
    mend: Mend | None = state.mend
    if mend is None:
        return _after_coupling(setting, state, e, finite)
    best, best_f = select(finite & (e.f < mend.best_f), (e.x, e.f), (mend.best, mend.best_f))
    noted = state._replace(mend=mend._replace(best=best, best_f=best_f))
    return select(mend.wanted, _repair_estimate(setting, state, e.f), _after_coupling(setting, noted, e, finite))


def _after_coupling(setting: Setting, state: HASDState, e: EvaluationTree, finite: Scalar) -> HASDState:
    """The state after the coupling point was evaluated: the next iterate, or the next trial."""
    begins = state.iteration == 0  # y_0 does not depend on rho: take the smallest admissible one
    rho = jnp.where(begins, WINDOW[0] / e.gain**2, state.rho)
    c = jnp.where(finite, jnp.where(e.norm2 > 0.0, rho * e.gain**2, AIM), jnp.nan)
    accepted = finite & (begins | state.search.forced | ((c >= WINDOW[0]) & (c <= WINDOW[1])))
    searched, failed = _next_trial(setting, state, c)
    searched = select(failed, state.end(Status.NONFINITE), searched)
    searched = select(begins, state.end(Status.NONFINITE_START), searched)

    exhausted = e.is_exhausted(setting.p, state.L)
    moved = select(exhausted, state.end(Status.PRECISION), _take_step(setting, state, e, rho))
    if setting.raise_L:
        smoothness = observed_smoothness(setting, state.at, e)
        disproved = ~begins & (smoothness > state.L * (1.0 + 1e-9))
        # The cuts rested on the smaller L and must be scaled, for which f is wanted at x_t.
        raised = state._replace(
            L=jnp.maximum(smoothness, 1.1 * state.L), y=state.x, mend=state.mend._replace(wanted=True)
        )
        moved = select(disproved, raised, moved)
    return select(accepted, moved, searched)


def _take_step(setting: Setting, state: HASDState, e: EvaluationTree, rho: Scalar) -> HASDState:
    """The next iterate, with the first trial of the iteration after it."""
    a = state.estimate.increment(state.L * rho, setting.mu)  # L rho a^2 = A_{t+1} kappa_{t+1}
    begins = state.iteration == 0
    arrived = state._replace(at=e, grad_norm=e.dual_norm, grad_norm0=jnp.where(begins, e.dual_norm, state.grad_norm0))
    moved = arrived._replace(
        iteration=state.iteration + 1,
        x=e.descend(setting.p, state.L),
        estimate=state.estimate.cut(a, e, setting.mu),
    )
    there = select(begins, arrived, moved).end(Status.CONVERGED)
    return select(e.dual_norm == 0.0, there, _begin_search(setting, moved))


def _begin_search(setting: Setting, state: HASDState) -> HASDState:
    """Ask for the coupling point of a new search, which starts from the gain of the last evaluation."""
    return _request_coupling(setting, state, AIM / state.at.gain**2, new_search(state.rho.dtype))


def _request_coupling(setting: Setting, state: HASDState, rho: Scalar, search: SearchTree) -> HASDState:
    """Ask for the coupling point of rho as the next point to evaluate."""
    a = state.estimate.increment(state.L * rho, setting.mu)
    return state._replace(rho=rho, y=state.estimate.couple(state.x, a, setting.mu), search=search)


def _next_trial(setting: Setting, state: HASDState, c: Scalar) -> tuple[HASDState, Scalar]:
    """The next trial after a residual outside the window, and whether the search has failed: as `hasd._math.search`.

    Where that returns the trial above the window, this proposes it once more, so that it need not be stored.
    """
    search: SearchTree = state.search
    u = state.rho
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
    jumps = narrow & (high < new_search(u.dtype).high)
    rho = jnp.where(jumps, high, rho)
    failed = (nonfinite == NONFINITE_LIMIT) | (narrow & ~jumps)
    return _request_coupling(setting, state, rho, SearchTree(low, high, guided, nonfinite, jumps)), failed


def observed_smoothness(setting: Setting, one: EvaluationTree, other: EvaluationTree) -> Scalar:
    """The smallest L that two evaluations allow (co-coercivity); 0 where rounding hides it."""
    noise = 8.0 * other.eps * jnp.maximum(jnp.abs(one.f), jnp.abs(other.f))
    change = norm(mix(lambda a, b: a - b, one.g, other.g), dual(setting.p))
    apart = mix(lambda a, b: a - b, one.x, other.x)
    least = jnp.zeros_like(noise)
    for bregman in (one.f - other.f - dot(other.g, apart), other.f - one.f + dot(one.g, apart)):
        least = jnp.where(bregman > 32.0 * noise, jnp.maximum(least, change * (change / (2.0 * bregman))), least)
    return least


def _repair_estimate(setting: Setting, state: HASDState, f: Scalar) -> HASDState:
    """Scale the cuts to f(x_t); where no scale is enough, begin a new epoch at the best point seen."""
    mend: Mend = state.mend
    scaled, best = state.estimate.rescale(mend.center, f, setting.mu), mend.best
    x, estimate, center = select(scaled.weight > 0.0, (state.x, scaled, mend.center), (best, EstimateTree(best), best))
    mend = mend._replace(center=center, wanted=False)
    return _begin_search(setting, state._replace(x=x, estimate=estimate, mend=mend))
