"""Strong convexity carried by the cuts: geometric growth of the weights, certificates without R, roots that exist."""

import itertools
import math

import numpy as np
import pytest

import hasd
from hasd import theory
from hasd._math import pair
from reference.pseudocode import optimised_form
from support import Known, allowance, diagonal, every_norm, run, strongly_convex


def growth(known, p, states):
    """(A_{t+1}/A_t, what the theory promises for it), from the second step on."""
    for before, after in itertools.pairwise(states[1:]):
        gain = max(1.0, after.cut.dual_norm / float(np.linalg.norm(after.cut.g)))
        guess = max(1.0, 1.0 / math.sqrt(before.rho))
        yield after.weight / before.weight, theory.optimised_growth_factor(known.L(p), known.mu, p, guess, gain)


@every_norm
@strongly_convex
def test_iterates_with_mu_match_the_literal_form(known, p):
    known = known()
    states = run(known, "hasd", p, 30, mu=known.mu)
    gradient = lambda x: known.f.value_and_grad(x)[1]  # noqa: E731
    literal = optimised_form(known.f, gradient, known.x0, known.L(p), p, 30, known.mu)
    for state, step in zip(states[1:], literal, strict=True):
        np.testing.assert_allclose(state.x, step["x"], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(state.estimate.v, step["v"], rtol=1e-6, atol=1e-7)
        assert state.weight == pytest.approx(step["A"], rel=1e-6)
        assert state.psi == pytest.approx(step["psi"], rel=1e-6, abs=1e-7)
        assert pytest.approx(step["U"], rel=1e-6, abs=1e-8) == state.U


@every_norm
@strongly_convex
def test_weights_grow_geometrically(known, p):
    known = known()
    states = run(known, "hasd", p, 100, mu=known.mu)
    for ratio, promised in growth(known, p, states):
        assert ratio >= promised * (1 - 1e-9)
    assert known.f(states[-1].x) - known.f_star <= known.R**2 / (2 * states[-1].weight) + allowance(known.f_star)


@strongly_convex
def test_the_strongly_convex_rate_holds_at_every_iterate_at_p_2(known):
    known = known()
    for state in run(known, "hasd", 2.0, 100, mu=known.mu)[1:]:
        bound = theory.optimised_strong_bound(known.L(2.0), known.mu, known.R, 2.0, 1.0, state.iteration)
        gap = known.f(state.x) - known.f_star
        assert gap <= bound + allowance(known.f_star)
        g = np.linalg.norm(known.f.value_and_grad(state.x)[1])
        assert gap <= theory.strong_gap_from_gradient(known.mu, g) + allowance(known.f_star)


@every_norm
@strongly_convex
@pytest.mark.parametrize("L", ["declared", None])
def test_lower_bound_needs_no_radius(known, p, L):
    known = known()
    res = hasd.minimize(known.f, known.x0, p=p, L=None if L is None else known.L(p), mu=known.mu, tol=1e-5)
    true = res.fun - known.f_star
    assert true <= res.gap + allowance(known.f_star)
    assert true <= res.certificate.gap(known.R) + allowance(known.f_star)
    assert res.certificate.gap(known.R) <= res.gap + allowance(known.f_star)
    assert res.gap < 1e-3 * (known.f(known.x0) - known.f_star)


def sphere(mu: float) -> Known:
    """mu/2 ||x - x*||^2: its L for p = 2 is mu."""
    x_star = np.arange(1.0, 7.0)
    f = hasd.objectives.Quadratic(mu * np.eye(6), -mu * x_star)
    return Known("sphere", f, np.zeros(6), x_star, f(x_star), mu=mu)


@every_norm
@pytest.mark.parametrize("L", ["declared", None, "too small"], ids=["declared", "found", "too small"])
def test_a_planned_weight_exists_where_L_over_the_squared_gain_is_mu(p, L):
    """L = mu at p = 2; at p = inf, L = mu d and a gain of sqrt(d): then L/s^2 = mu, and step 1 alone has no root."""
    known = sphere(0.5)
    known = Known(known.name, known.f, known.x_star + 1.0, known.x_star, known.f_star, mu=0.5)
    constant = None if L is None else max(known.mu, known.L(p) * (0.3 if L == "too small" else 1.0))
    states = run(known, "hasd", p, 40, L=constant, mu=known.mu)
    for state in states[1:]:
        assert math.isfinite(state.weight) and math.isfinite(state.U)
        assert state.weight * state.U <= state.psi + allowance(state.psi)
    assert known.f(states[-1].x) - known.f_star <= 1e-9


def test_mutation_ignoring_kappa_in_the_weight_breaks_the_growth(monkeypatch):
    """The weights of mu = 0 in place of those that kappa and mu give."""
    real = pair.planned_weight
    monkeypatch.setattr(pair, "planned_weight", lambda A, kappa, mu, *rest: real(A, 1.0, 0.0, *rest))
    known = diagonal()
    states = run(known, "hasd", 2.0, 100, mu=known.mu)
    assert any(ratio < promised * (1 - 1e-9) for ratio, promised in growth(known, 2.0, states))


def test_mutation_without_room_above_mu_there_is_no_weight(monkeypatch):
    monkeypatch.setattr(pair, "ROOM", 1.0)
    known = sphere(0.5)
    with pytest.raises(ZeroDivisionError):
        run(known, "hasd", 2.0, 5, L=0.5, mu=0.5)


def test_mutation_mu_ten_times_too_large_breaks_the_certificate():
    known = diagonal()
    state = run(known, "hasd", 2.0, 60, mu=10 * known.mu)[-1]
    assert state.estimate.certificate(state.origin).lower() > known.f_star + 1e-6
    assert math.isfinite(state.psi)


def test_the_growth_tends_to_the_factor_of_the_strongly_convex_optimised_gradient_method():
    """a/A tends to the positive root of (L/mu - 1) x^2 = 3 x + 2."""
    known = diagonal()
    condition = known.L(2.0) / known.mu
    root = (3.0 + math.sqrt(8.0 * condition + 1.0)) / (2.0 * condition - 2.0)
    states = run(known, "hasd", 2.0, 300, mu=known.mu)
    assert states[-1].weight / states[-2].weight == pytest.approx(1.0 + root, rel=1e-6)
