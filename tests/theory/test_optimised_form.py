"""The optimised form: property P, A_t U_t <= psi*_t at every iterate, and what follows from them."""

import itertools
import math

import numpy as np
import pytest

import hasd
from hasd import Lp, theory
from hasd.methods import hasd as optimised
from norms import BEYOND_LP, LP, every_geometry
from reference.pseudocode import strong_psi_minimum
from support import NORMS, Known, allowance, chain, diagonal, every_norm, every_problem, log_sum_exp, quadratic, run

declared_and_found = pytest.mark.parametrize("L", ["declared", None], ids=["declared", "found"])


def dual_norm(g, p):
    return Lp(p).dual_norm(g)


def steps(states, least=1.0):
    """min(s, r^2/s) of every step: s is what its weight was planned with, r the gain at its cut, at least `least`."""
    for before, after in itertools.pairwise(states):
        g = after.cut.g
        gain = after.cut.dual_norm / float(np.linalg.norm(g))
        guess = gain if before.weight == 0.0 else 1.0 / math.sqrt(before.rho)
        yield least * theory.optimised_step(max(guess / least, 1.0), max(gain / least, 1.0))


@every_geometry
@every_problem
@declared_and_found
@pytest.mark.parametrize("strong", [False, True], ids=["mu = 0", "mu"])
def test_the_invariant_holds_at_every_iterate(known, norm, L, strong):
    known = known()
    norm = norm(known.x0.size)
    for state in run(known, "hasd", norm, 120, L=L, mu=known.mu if strong else 0.0)[1:]:
        left = state.weight * state.U
        assert left <= state.psi + allowance(left, state.psi)


@every_geometry
@every_problem
@pytest.mark.parametrize("strong", [False, True], ids=["mu = 0", "mu"])
def test_psi_is_the_minimum_of_all_cuts_and_their_prox_term(known, norm, strong):
    known = known()
    norm = norm(known.x0.size)
    mu, cuts, weight = known.mu if strong else 0.0, [], 0.0
    for state in run(known, "hasd", norm, 60, mu=mu)[1:]:
        cuts.append((state.weight - weight, state.cut.x, state.cut.f, state.cut.g))
        weight = state.weight
        v, psi = strong_psi_minimum(cuts, known.x0, mu)
        np.testing.assert_allclose(state.estimate.v, v, rtol=0, atol=1e-9 * (1 + np.abs(v).max()))
        assert state.psi == pytest.approx(psi, rel=1e-9, abs=1e-9)


@every_geometry
@every_problem
@pytest.mark.parametrize("strong", [False, True], ids=["mu = 0", "mu"])
def test_every_pair_has_property_p(known, norm, strong):
    """At the minimiser, the start, the iterate itself and points anywhere; with a declared L."""
    known = known()
    norm = norm(known.x0.size)
    rng, L = np.random.default_rng(7), known.L(norm)
    for state in run(known, "hasd", norm, 60, mu=known.mu if strong else 0.0)[1:]:
        for y in (known.x_star, known.x0, state.x, state.at.x, known.x_star + rng.standard_normal(known.x0.size)):
            f, g = known.f.value_and_grad(y)
            least = theory.property_p(f, float(g @ (state.x - y)), norm.dual_norm(g), L, norm.p)
            assert least - allowance(state.U, f, least) <= state.U


@every_geometry
@every_problem
def test_gap_and_gradient_of_the_iterate_are_within_the_bounds(known, norm):
    known = known()
    norm = norm(known.x0.size)
    L, total = known.L(norm), 0.0
    states = run(known, "hasd", norm, 120)
    for state, step in zip(states[1:], steps(states, norm.least_gain), strict=True):
        total += step
        T = state.iteration
        f, g = known.f.value_and_grad(state.x)
        gap = f - known.f_star
        assert gap <= theory.optimised_gap(known.R, state.weight, state.psi, state.U) + allowance(f, known.f_star)
        assert gap <= theory.certificate_gap(known.R, state.weight) + allowance(f, known.f_star)
        assert gap <= theory.optimised_bound(L, known.R, norm.p, total / T, T) + allowance(f, known.f_star)
        bound = theory.optimised_gradient_norm_bound(L, known.R, norm.p, state.weight)
        assert norm.dual_norm(g) <= bound * (1 + 1e-9) + 1e-9


@every_geometry
@every_problem
def test_weights_grow_with_the_gain(known, norm):
    """sqrt(A_T) is at least sqrt(p*/L)/2 times the sum of min(s, r^2/s), and the first step counts more."""
    known = known()
    norm = norm(known.x0.size)
    states, total, L = run(known, "hasd", norm, 120), 0.0, known.L(norm)
    first = norm.dual_norm(states[0].at.g) / np.linalg.norm(states[0].at.g)
    for state, step in zip(states[1:], steps(states, norm.least_gain), strict=True):
        total += step
        T = state.iteration
        bound = theory.optimised_weight_bound(L, norm.p, total / T, T, float(first))
        assert state.weight >= bound * (1 - 1e-9)


@every_geometry
@every_problem
def test_every_epoch_keeps_the_invariant_when_restarts_are_on(known, norm):
    known = known()
    norm = norm(known.x0.size)
    for state in run(known, "hasd", norm, 200, L=None, restart=True)[1:]:
        left = state.weight * state.U
        assert left <= state.psi + allowance(left, state.psi)
        for certificate in (*state.certificates, state.estimate.certificate(state.origin)):
            assert certificate.lower(known.R) <= known.f_star + allowance(known.f_star)


LP_METHODS = ("hasd", "hasd-paper", "steepest-descent", "linear-coupling", "estimate-sequence")
ALL_NORMS = [*LP.values(), *BEYOND_LP.values()]
METHODS_AND_NORMS = [(method, norm) for method in LP_METHODS for norm in ALL_NORMS]
METHODS_AND_NORMS += [("agd", LP["p=2"]), ("heavy-ball", LP["p=2"])]


@every_problem
@pytest.mark.parametrize(("method", "norm"), METHODS_AND_NORMS)
def test_certificate_is_never_below_the_gap(known, norm, method):
    """For every method, whatever its iterates: each cut is a minorant."""
    known = known()
    norm = norm(known.x0.size)
    for state in run(known, method, norm, 60, L=None)[1:]:
        certificate = state.estimate.certificate(state.origin)
        for radius in (known.R, 2 * known.R):
            assert certificate.lower(radius) <= known.f_star + allowance(known.f_star)


@every_geometry
@every_problem
@pytest.mark.parametrize("method", ["estimate-sequence", "linear-coupling"])
@declared_and_found
def test_rivals_with_rho_one_keep_the_tight_invariant(known, norm, method, L):
    known = known()
    norm = norm(known.x0.size)
    options = {"weights": "tight"} if method == "linear-coupling" else {}
    for state in run(known, method, norm, 60, L=L, **options)[1:]:
        left = state.weight * known.f(state.x)
        assert left <= state.psi + allowance(left, state.psi)


@every_geometry
@every_problem
def test_a_declared_L_costs_one_evaluation_an_iteration(known, norm):
    known = known()
    norm = norm(known.x0.size)
    res = hasd.minimize(known.f, known.x0, method="hasd", p=norm, L=known.L(norm), mu=0.0, tol=0, maxiter=50)
    assert res.nfev <= res.nit + 2
    assert "too small" not in res.message


def test_finding_L_costs_hardly_more_than_one_evaluation_an_iteration():
    """Where the last step proves too long, it is made again, and the new gradient is used all the same."""
    ratios = []
    for make in (quadratic, diagonal, log_sum_exp):
        for p in NORMS:
            known = make()
            res = hasd.minimize(known.f, known.x0, method="hasd", p=p, mu=0.0, tol=0, maxiter=150)
            ratios.append(res.nfev / res.nit)
    assert np.mean(ratios) <= 1.15


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_long_steps_are_taken_where_f_is_nearly_linear(monkeypatch, p):
    """The published problem with a small ridge: its minimiser is far away, and P alone would keep steps short."""
    rng = np.random.default_rng(0)
    A = (rng.random((120, 20)) < 0.8).astype(float)
    f = hasd.objectives.LogSumExp(A, rng.standard_normal(120), ridge=1e-4)
    least = hasd.minimize(f, np.zeros(20), tol=1e-10).fun

    def reached():
        res = hasd.minimize(f.value_and_grad, np.zeros(20), jac=True, method="hasd", p=p, tol=0, maxfun=150)
        return (res.fun - least) / (f(np.zeros(20)) - least)

    assert reached() <= 0.1
    monkeypatch.setattr(optimised._Step, "_is_carried", lambda *_: False)
    assert reached() > 0.3


@every_norm
def test_the_rate_is_not_loose_by_more_than_a_small_factor_on_the_hardest_quadratic(p):
    """On Nesterov's chain the bound is within a factor of what the method does: no slack to hide a fault in."""
    known = chain(300)
    L = 4.0 if p == 2.0 else float(known.f.smoothness(p))
    state = run(known, "hasd", p, 60, L=L)[-1]
    bound = theory.optimised_bound(L, known.R, p, Lp(p).dual_norm(state.at.g) / np.linalg.norm(state.at.g), 60)
    assert known.f(state.x) - known.f_star <= bound


def test_mutation_p_star_in_place_of_p_star_minus_one_breaks_property_p():
    known = diagonal()
    for p in (2.0, 3.0, np.inf):
        broken = False
        for state in run(known, "hasd", p, 60)[1:]:
            f, g = known.f.value_and_grad(state.x)
            N = dual_norm(g, p)
            least = theory.property_p(f, 0.0, N, known.L(p), p) + N**2 / (2 * known.L(p))
            broken |= least - allowance(f, least) > state.U
        assert broken


def rank_two() -> Known:
    """A quadratic of rank two whose gain jumps, with the exact constant for p = inf: damping is needed here."""
    M = np.array([[0.05, 1.0, 3.0, 0.05, 1.0, 1.0], [3.0, 1.0, 0.05, 0.05, 0.05, 3.0]])
    M *= np.random.default_rng(11).standard_normal(M.shape)
    x0 = np.random.default_rng(29).standard_normal(6)
    return Known("rank two", hasd.objectives.Quadratic(M.T @ M), x0, np.zeros(6), 0.0)


def exact_constant(H):
    """L of 1/2 <x, Hx> in l_inf: the largest <x, Hx> over sign vectors."""
    return max(float(np.array(signs) @ H @ np.array(signs)) for signs in itertools.product((-1.0, 1.0), repeat=len(H)))


@pytest.mark.parametrize("make", [diagonal, rank_two])
def test_mutation_gamma_left_at_one_breaks_the_invariant(monkeypatch, make):
    known = make()
    L = exact_constant(known.f.H)

    def violations():
        states = run(known, "hasd", np.inf, 30, L=L)
        return [s for s in states[1:] if s.weight * s.U > s.psi + allowance(s.psi, s.weight * s.U)]

    assert not violations()
    assert min(state.gamma for state in run(known, "hasd", np.inf, 30, L=L)[1:]) < 1.0
    real = optimised.damp
    monkeypatch.setattr(optimised, "damp", lambda *arguments: real(*arguments)._replace(gamma=1.0))
    assert violations()


def test_mutation_a_third_of_L_breaks_what_U_promises():
    known = diagonal()
    states = run(known, "hasd", 2.0, 60, L=known.L(2.0) / 3, raise_L=False)
    assert any(known.f(state.x) > state.U + allowance(state.U) for state in states[1:])


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_mutation_half_the_planned_weight_breaks_the_growth(monkeypatch, p):
    real = optimised.plan_weight

    def short(*arguments):
        plan = real(*arguments)
        return plan._replace(weight=0.5 * plan.weight)

    monkeypatch.setattr(optimised, "plan_weight", short)
    known, total, broken = diagonal(), 0.0, False
    states = run(known, "hasd", p, 60)
    for state, step in zip(states[1:], steps(states), strict=True):
        total += step
        T = state.iteration
        broken |= state.weight < theory.optimised_weight_bound(known.L(p), p, total / T, T) * (1 - 1e-9)
    assert broken


def test_mutation_a_radius_too_small_breaks_the_certificate():
    """The bound does lean on R: with half of it the lower bound rises above f*."""
    known = diagonal()
    state = run(known, "hasd", 2.0, 60)[-1]
    certificate = state.estimate.certificate(state.origin)
    assert certificate.lower(known.R) <= known.f_star < certificate.lower(0.5 * known.R)
