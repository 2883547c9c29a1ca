"""One evaluation, and what follows from it: one step of optimistix, one update of optax.

This is `hasd.methods.hasd`, traced.  A trial is a constant L with the iterate it makes of the newest evaluation; it is
judged by the evaluation at the coupling point that it leads to, and is then either the next iterate, or followed by
another trial.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._math.doubt import OPERATIONS, roundings
from .._math.pair import (
    FULL_SHARE,
    ROOM,
    UNCLEAR,
    Damping,
    Difference,
    WeightPlan,
    damped_weight,
    planned_weight,
    slack_with_cut,
)
from .._math.search import NONFINITE_LIMIT
from .._run.status import Status
from ..methods.hasd import CORRECT, LOWER, LOWER_FIRST, MOST, RAISE, STALL, TRIALS
from .state import RUNNING, EstimateTree, EvaluationTree, HASDState, Iterate, Setting, compare
from .trees import Scalar, Tree, dot, largest_size, mix, norm, select, steepest


class Verdict(NamedTuple):
    """What the evaluation at y says of the trial that led there, where it is finite."""

    made: Iterate  # the next iterate: the trial, or what a larger L makes in its place
    L: Scalar  # the constant of that iterate
    needed: Scalar  # the least constant that would have been enough; inf where L was raised
    usable: Scalar  # whether the evaluation may be the next cut
    spent: Scalar  # whether steps have become too short to be raised further


def advance(setting: Setting, state: HASDState, y: Tree, f: Scalar | None, g: Tree) -> HASDState:
    """The state after f and its gradient g at y; f = None where L is declared and the value is not known.

    A run that has ended stays as it is, and f = -inf ends it.
    """
    value = jnp.asarray(nan if f is None else f, state.L.dtype)
    g = mix(lambda _, leaf: leaf, y, g)
    norm2 = norm(g, 2.0)
    there = EvaluationTree(y, value, g, norm2, norm2 if setting.lp.p == 2.0 else norm(g, setting.lp.dual))
    finite = jnp.isfinite(largest_size(y)) & jnp.isfinite(largest_size(g))
    if f is not None:
        finite &= jnp.isfinite(value)
    counted = state._replace(evaluations=state.evaluations + 1)
    begun = counted._replace(at=there, best=there, start=there, grad_norm0=there.dual_norm)
    begun = select(finite, begun, counted.end(Status.NONFINITE_START))
    after = select(state.evaluations == 0, begun, _judge_trial(setting, counted, there, finite))
    after = select(value == -inf, counted.end(Status.UNBOUNDED), after)
    return _next_trial(setting, select(state.status == RUNNING, after, state))


def _judge_trial(setting: Setting, state: HASDState, there: EvaluationTree, finite: Scalar) -> HASDState:
    """The next iterate, if the evaluation agrees with the trial or can be used all the same; or the next L to try."""
    L, e = state.L_tried, state.base
    asked, seen = _smoothness_asked(setting, e, there, L), compare(e, there)
    needed = jnp.where(UNCLEAR * seen.noise < seen.bregman, L * jnp.clip(asked / seen.bregman, 0.0, 1.0), L)
    verdict = Verdict(state.trial.seen_from(seen), L, needed, finite, jnp.asarray(False))
    if setting.raise_L or not setting.declared:
        # Outside of vmap, what follows if L seems too small is computed only then.
        verdict = jax.lax.cond(
            finite & (asked > seen.bregman + seen.noise),
            lambda: _raise_constant(setting, state, there, verdict, asked, seen),
            lambda: verdict,
        )
    nonfinite = state.nonfinite + jnp.where(finite, 0, 1)
    trials = state.trials + 1
    lost, spent = nonfinite == NONFINITE_LIMIT, verdict.spent | (trials == TRIALS)
    status = jnp.where(lost, Status.NONFINITE.code, jnp.where(spent, Status.PRECISION.code, RUNNING))
    L = jnp.where(finite, verdict.L, 4.0 * L)
    again = state._replace(L_tried=L, trials=trials, nonfinite=nonfinite, status=status)
    return select(verdict.usable & ~verdict.spent, _move(setting, state, there, verdict), again)


def _raise_constant(
    setting: Setting, state: HASDState, there: EvaluationTree, kept: Verdict, asked: Scalar, seen: Difference
) -> Verdict:
    """The verdict where the gradients ask for a larger L: the step is made again with it.

    A declared L is kept if rounding explains what they ask for, and one that was found if it does no harm: if f falls
    below its lowest value by a quarter of what L promises, and the next cut gets the weight that was planned.
    """
    L, e, D = kept.L, state.base, seen.bregman
    if setting.declared:
        most = jnp.where(seen.by_values, D, 2.0 * D)  # without values it is known to be between 0 and 2 D
        holds = asked <= most + seen.noise + _rounding_of_test(e, there, L)
    else:
        falls = compare(state.best, there).fall > 0.25 * e.fall(L)
        holds = falls & (_damp(setting, kept.made, there, L).gamma >= _damping_rule(there, L, kept.made.plan))
    least = jnp.where(D > 0.0, L * (asked / D), inf)
    raised = jnp.maximum((CORRECT if setting.declared else RAISE) * L, jnp.minimum(least, MOST * L))
    first, later = _first_iterate(setting, e, raised), _later_iterate(setting, state.made, state.at, raised)
    made = select(state.anew | (state.estimate.weight == 0.0), first, later).seen_from(seen)
    made = made._replace(plan=made.plan._replace(coupled=False))
    usable = (made.estimate.weight > 0.0) & (_damp(setting, made, there, raised).gamma > 0.0)
    longest = largest_size(steepest(e.g, setting.lp.p, e.dual_norm)) / L
    return select(holds, kept, Verdict(made, raised, inf, usable, longest <= e.eps**2 * largest_size(e.x)))


def _move(setting: Setting, state: HASDState, there: EvaluationTree, verdict: Verdict) -> HASDState:
    """The state at the next iterate; an L that was found falls towards the one that was needed."""
    state = select(state.anew, state.new_epoch(), state)
    L, made = verdict.L, verdict.made
    L_next = L / 4.0 ** state.nonfinite.astype(L.dtype)  # what non-finite points raised L by says nothing about f
    if not setting.declared:
        lowered = jnp.where(state.has_risen, LOWER, LOWER_FIRST) * L_next
        L_next = jnp.minimum(L_next, jnp.maximum(lowered, verdict.needed))
    lower = ~(compare(state.best, there).fall <= 0.0)
    iteration, idle = state.iteration + 1, jnp.where(lower, 0, state.idle + 1)
    patience = jnp.maximum(2.0 - setting.lp.dual_convexity, STALL * (iteration - state.began).astype(L.dtype))
    stalls = (idle.astype(L.dtype) >= patience) & (made.estimate.weight >= state.least)
    return state._replace(
        at=there,
        best=select(lower, there, state.best),
        made=made,
        iteration=iteration,
        L=L,
        L_next=L_next,
        has_risen=state.has_risen | (state.L_next < L),
        idle=idle,
        L_tried=L_next,
        trials=1,
        nonfinite=0,
        anew=stalls if setting.restart and not setting.declared else False,
    )


def _next_trial(setting: Setting, state: HASDState) -> HASDState:
    """The state with the next point to evaluate, or the end of the run; an epoch that leads nowhere is left."""
    A, unknown = state.estimate.weight, jnp.isnan(state.L_tried)
    guess = state.at.dual_norm / jnp.maximum(1.0, norm(state.at.x, setting.lp.p))  # a step as long as x_0
    L = jnp.where(unknown, jnp.maximum(guess, jnp.finfo(guess.dtype).tiny), state.L_tried)
    later = _later_iterate(setting, state.made, state.at, L)
    leaves = ~state.anew & (A > 0.0) & ((state.nonfinite > 2) | (later.estimate.weight == 0.0))
    trials, anew = jnp.where(leaves, 1, state.trials), state.anew | leaves
    e = select(anew, state.best, state.at)
    trial = select(anew | (A == 0.0), _first_iterate(setting, e, L), later)
    tried = state._replace(
        y=trial.estimate.couple(trial.x, trial.plan.weight, setting.mu),
        trial=trial,
        L_next=jnp.where(leaves, L, state.L_next),
        L_tried=L,
        trials=trials,
        anew=anew,
    )
    exhausted = ~unknown & (trials == 1) & e.is_exhausted(setting.lp.p, L)
    status = jnp.where(exhausted, Status.PRECISION.code, RUNNING)
    status = jnp.where(state.at.dual_norm == 0.0, Status.CONVERGED.code, status)
    status = jnp.where(state.status == RUNNING, status, state.status)
    return select(status == RUNNING, tried, state._replace(status=status))


def _first_iterate(setting: Setting, e: EvaluationTree, L: Scalar) -> Iterate:
    """The first iterate of an epoch that begins at e: the steepest step."""
    empty = EstimateTree.around(e.x)
    nothing = Iterate(e.x, 0.0, 0.0, empty, _plan_weight(setting, empty, e, L))
    return _iterate_with_cut(setting, nothing, e, L, Damping(1.0, 0.0, e.fall(L)))


def _later_iterate(setting: Setting, old: Iterate, e: EvaluationTree, L: Scalar) -> Iterate:
    """The iterate after the old one."""
    return _iterate_with_cut(setting, old, e, L, _damp(setting, old, e, L))


def _iterate_with_cut(setting: Setting, old: Iterate, e: EvaluationTree, L: Scalar, damping: Damping) -> Iterate:
    """The iterate after the old one with the cut at e, as `hasd._math.pair.step_with_cut`."""
    estimate, mu, fall = old.estimate, setting.mu, damping.fall
    held = damping.gamma == 0.0  # older pairs hold it back: go on without them, and with as much weight as that allows
    gamma, A, kappa = jnp.where(held, 1.0, damping.gamma), estimate.weight, estimate.kappa(mu)
    cut = estimate.cut(damped_weight(gamma, old.plan.weight, kappa, mu), e, mu)
    a = cut.weight - A
    slack = slack_with_cut(old, damping._replace(gamma=gamma), A, a, kappa, cut.kappa(mu), e.norm2)
    share, excess = (gamma * A + a) / cut.weight, (1.0 - gamma) * old.excess - (gamma * A + a) * fall
    s = steepest(e.g, setting.lp.p, e.dual_norm)
    x = mix(lambda x, y, s: x + share * ((y - s / L) - x), old.x, e.x, s)
    scaled = cut.rescale(slack, mu)
    made = Iterate(x, excess, slack, cut, WeightPlan())
    without = Iterate(x, -scaled.weight * fall, jnp.maximum(slack, 0.0), scaled, WeightPlan())
    made = select(held, without, made)
    return made._replace(plan=_plan_weight(setting, made.estimate, e, L))


def _plan_weight(setting: Setting, estimate: EstimateTree, e: EvaluationTree, L: Scalar) -> WeightPlan:
    """The plan for the next point, where the gain is guessed to be the one at e."""
    mu, sigma = setting.mu, setting.lp.dual_convexity
    c: Scalar = jnp.maximum(L / e.gain**2, ROOM * mu)
    return WeightPlan(planned_weight(estimate.weight, estimate.kappa(mu), mu, c, sigma, sqrt=jnp.sqrt), c)


def _damp(setting: Setting, made: Iterate, e: EvaluationTree, L: Scalar) -> Damping:
    """gamma for the cut at e, as `hasd._math.pair.damp`; without values, what the proof gives for a true L."""
    estimate, plan, mu = made.estimate, made.plan, setting.mu
    A, a, kappa, slope, fall = estimate.weight, plan.weight, estimate.kappa(mu), estimate.slope(e, mu), e.fall(L)
    b = a * (kappa / (kappa + mu * a))
    q = made.excess + b * slope + (A + b) * fall
    gamma = largest_damping(q, made.slack, a * e.norm2 / jnp.sqrt(kappa + mu * a))
    rule = _damping_rule(e, L, plan)
    ahead = dot(e.g, mix(lambda x, y: x - y, made.x, e.x))
    holds = made.excess >= A * (ahead + setting.lp.dual_convexity * fall - e.rounding(ahead, 0.0))
    gamma = jnp.where((gamma < rule) & plan.coupled & holds, rule, jnp.where(gamma >= 0.5 * rule, gamma, 0.0))
    gamma = jnp.where(jnp.isnan(made.excess), rule, gamma)
    return Damping(jnp.where(e.dual_norm == 0.0, 1.0, gamma), slope, fall)


def _damping_rule(e: EvaluationTree, L: Scalar, plan: WeightPlan) -> Scalar:
    """min(1, r^2/s^2), what the proof allows at a coupling point where property P holds."""
    return jnp.minimum(1.0, e.gain**2 * (plan.c / L))


def largest_damping(q: Scalar, slack: Scalar, length: Scalar) -> Scalar:
    """That of `hasd._math.pair`, without its branches."""
    half = q / length
    square = half * half + 2.0 * slack
    root = jnp.clip((half + jnp.sqrt(jnp.maximum(square, 0.0))) / length, 0.0, 1.0)
    root = jnp.where((square >= 0.0) & (length > 0.0), root, 0.0)
    return jnp.where(slack + q - 0.5 * length * length >= 0.0, 1.0, root)


def _smoothness_asked(setting: Setting, e: EvaluationTree, there: EvaluationTree, L: Scalar) -> Scalar:
    """What the gradients at e and there ask of L, as `hasd._math.pair.smoothness_asked`."""
    sigma, M = setting.lp.dual_convexity, there.dual_norm
    ahead = dot(there.g, steepest(e.g, setting.lp.p, e.dual_norm)) / L
    asked = e.fall(L) - ahead + 0.5 * sigma * M * (M / L)  # not sigma fall(L), which is NaN if M^2 overflows
    if sigma < 1.0:
        turn = norm(mix(lambda g, h: h - g, e.g, there.g), setting.lp.dual)
        asked += FULL_SHARE * (0.5 * turn * (turn / L) - asked)
    return asked


def _rounding_of_test(e: EvaluationTree, there: EvaluationTree, L: Scalar) -> Scalar:
    """What rounding may explain of what the gradients ask, by the model of `hasd._math.doubt`.

    In place of the curvature that was seen it has L, which is no less if it is true.
    """
    unit = roundings(sum(leaf.size for leaf in jax.tree.leaves(e.x))) * e.eps
    apart, size, other = (norm(x, 2.0) for x in (mix(lambda y, z: y - z, e.x, there.x), e.x, there.x))
    value = jnp.abs(e.f) + e.norm2 * size + L * size * size
    value += jnp.abs(there.f) + there.norm2 * other + L * other * other
    slope = there.norm2 + L * other + jnp.sqrt(2.0 * L * jnp.abs(there.f))
    sums = there.norm2 * apart + 2.0 * (e.fall(L) + there.fall(L))
    return unit * (OPERATIONS * (value + slope * apart) + sums)
