"""Our sharper forms: the first step counted double, slack from steps, gradient norms and restarts of the new form."""

import itertools

import numpy as np
import pytest

import hasd
from hasd import Lp, theory
from support import Known, allowance, diagonal, every_norm, every_problem, log_sum_exp, run, strongly_convex


@every_norm
@every_problem
def test_first_step_counts_double(known, p):
    known = known()
    total = 0.0
    states = run(known, "hasd-paper", p, 60)
    first = states[1].gain
    for state in states[1:]:
        total += state.gain
        T = state.iteration
        G = total / T
        assert state.weight >= theory.weight_bound(known.L(p), G, T, first_gain=first) * (1 - 1e-9)
        gap = known.f(state.x) - known.f_star
        assert gap <= theory.main_bound(known.L(p), known.R, G, T, first_gain=first) + allowance(known.f_star)


@every_norm
@every_problem
def test_slack_from_steps_bounds_the_distance(known, p):
    """sum A_i L ||x_i - y_{i-1}||^2/2 fits under psi* too, and bounds ||x_t - x*||_p from the weights alone."""
    known = known()
    geometry, L = Lp(p), known.L(p)
    slack = by_gradient = weights = 0.0
    states = run(known, "hasd-paper", p, 60)
    for before, after in itertools.pairwise(states):
        a = after.weight - before.weight
        y = before.estimate.couple(before.x, a)
        slack += theory.slack_from_step(L, after.weight, geometry.norm(after.x - y))
        by_gradient += theory.slack_from_gradient(L, after.weight, after.grad_norm)
        weights += after.weight
        left = after.weight * known.f(after.x)
        assert by_gradient <= slack * (1 + 1e-9)
        assert left + slack <= after.psi + allowance(left, after.psi)
        assert slack <= theory.slack_limit(known.R) * (1 + 1e-9)
        bound = theory.distance_bound_from_weight(L, known.R, after.weight, weights)
        assert geometry.norm(after.x - known.x_star) <= bound * (1 + 1e-9)


@every_norm
def test_symmetric_softmax_attains_the_largest_gain(p):
    f = hasd.objectives.SymmetricSoftmax(alpha=1.0)
    res = hasd.minimize(f, np.ones(20), method="hasd-paper", p=p, L=f.smoothness(p), tol=0, maxiter=15)
    np.testing.assert_allclose(res.trace["gain"][1:], theory.softmax_gain(20, p), rtol=1e-9)


@every_norm
@strongly_convex
def test_one_restart_period_of_the_optimised_form_halves_the_gap(known, p):
    known = known()
    T = theory.optimised_restart_period(known.L(p), known.mu, p, 1.0)
    last = run(known, "hasd", p, T)[-1]
    assert known.f(last.x) - known.f_star <= 0.5 * (known.f(known.x0) - known.f_star) + 1e-12


@every_norm
@every_problem
def test_the_last_gradient_of_the_optimised_form_is_within_eps_after_its_T(known, p):
    known = known()
    L = known.L(p)
    eps = 0.2 * Lp(p).dual_norm(known.f.value_and_grad(known.x0)[1])
    T = theory.optimised_gradient_norm_iterations(L, known.R, p, 1.0, eps)
    last = run(known, "hasd", p, min(T, 3000))[-1]
    assert Lp(p).dual_norm(known.f.value_and_grad(last.x)[1]) <= eps


@every_norm
@strongly_convex
def test_steepest_descent_keeps_its_bound_on_strongly_convex_functions(known, p):
    known = known()
    first = known.f(known.x0) - known.f_star
    for state in run(known, "steepest-descent", p, 60)[1:]:
        gap = known.f(state.x) - known.f_star
        bound = theory.steepest_descent_strong_bound(known.L(p), known.mu, first, 1.0, state.iteration)
        assert gap <= bound + allowance(known.f_star)
        if p == 2.0:
            bound = theory.gradient_descent_strong_bound(known.L(p), known.mu, first, state.iteration)
            assert gap <= bound + allowance(known.f_star)


@every_norm
@every_problem
def test_x_and_v_stay_within_the_coupling_distance_bound(known, p):
    known = known()
    for state in run(known, "hasd-paper", p, 60)[1:]:
        distance = Lp(p).norm(state.x - state.estimate.v)
        assert distance <= theory.coupling_distance_bound(known.R, state.iteration) * (1 + 1e-9)


def test_certificate_function_agrees_with_the_run():
    known = log_sum_exp()
    state = run(known, "hasd", 3.0, 50)[-1]
    certificate = state.estimate.certificate(state.origin)
    assert theory.certificate_lower(state.psi, state.weight, known.R, certificate.reach) == pytest.approx(
        certificate.lower(known.R), rel=1e-9
    )


def test_mutation_a_quarter_of_the_restart_period_does_not_halve():
    """Started along the flattest axis, a quarter of the period is not enough: the count is not idle."""
    f = hasd.objectives.Quadratic(np.diag([4.0, 1e-3]))
    T = theory.optimised_restart_period(4.0, 1e-3, 2.0, 1.0)
    states = run(Known("flat axis", f, np.array([0.0, 1.0]), np.zeros(2), 0.0), "hasd", 2.0, T, L=4.0)
    assert f(states[T].x) <= 0.5 * f(states[0].x) < f(states[T // 4].x)


def test_mutation_without_L_in_the_slack_it_does_not_fit():
    """Ten times the slack no longer fits under psi* - A f."""
    known = diagonal()
    states = run(known, "hasd-paper", 2.0, 60)
    slack, broken = 0.0, False
    for before, after in itertools.pairwise(states):
        y = before.estimate.couple(before.x, after.weight - before.weight)
        slack += 10 * theory.slack_from_step(known.L(2.0), after.weight, float(np.linalg.norm(after.x - y)))
        broken |= after.weight * known.f(after.x) + slack > after.psi + allowance(after.psi)
    assert broken
