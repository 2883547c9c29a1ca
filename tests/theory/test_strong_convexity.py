"""Strong convexity carried by the cuts: the invariant, geometric growth of the weights, certificates without R."""

import itertools
import math

import numpy as np
import pytest

import hasd
from hasd import theory
from hasd._math.estimate import increment
from reference.pseudocode import tight_form
from support import allowance, diagonal, every_norm, run, strongly_convex


@every_norm
@strongly_convex
@pytest.mark.parametrize("L", ["declared", None])
def test_the_invariant_holds_with_mu(known, p, L):
    known = known()
    for state in run(known, "hasd", p, 100, L=L, mu=known.mu)[1:]:
        left = state.weight * known.f(state.x)
        assert left <= state.psi + allowance(left, state.psi)


@every_norm
@strongly_convex
def test_iterates_with_mu_match_the_literal_tight_form(known, p):
    known = known()
    states = run(known, "hasd", p, 30, mu=known.mu)
    rhos = [state.rho for state in states[1:]]
    literal = tight_form(known.f, lambda x: known.f.value_and_grad(x)[1], known.x0, known.L(p), p, 30, rhos, known.mu)
    for state, step in zip(states[1:], literal, strict=True):
        np.testing.assert_allclose(state.x, step["x"], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(state.estimate.v, step["v"], rtol=1e-7, atol=1e-8)
        assert state.weight == pytest.approx(step["A"], rel=1e-9)
        assert state.psi == pytest.approx(step["psi"], rel=1e-7, abs=1e-8)


@every_norm
@strongly_convex
def test_weights_grow_geometrically(known, p):
    known = known()
    states = run(known, "hasd", p, 100, mu=known.mu)
    for before, after in itertools.pairwise(states):
        factor = theory.strong_growth_factor(known.L(p), known.mu, after.rho)
        assert after.weight >= before.weight * factor * (1 - 1e-9)
    assert known.f(states[-1].x) - known.f_star <= known.R**2 / (2 * states[-1].weight) + allowance(known.f_star)


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


def test_mutation_ignoring_kappa_in_the_weight_breaks_the_growth(monkeypatch):
    """L rho a^2 = A_{t+1} (the rule for mu = 0) in place of A_{t+1} kappa_{t+1}."""
    known = diagonal()
    from hasd.methods import hasd as tight

    monkeypatch.setattr(tight, "increment", lambda A, c, mu: increment(A, c))
    states = run(known, "hasd", 2.0, 100, mu=known.mu)
    assert any(
        after.weight < before.weight * theory.strong_growth_factor(known.L(2.0), known.mu, after.rho) * (1 - 1e-9)
        for before, after in itertools.pairwise(states)
    )


def test_mutation_mu_ten_times_too_large_breaks_the_certificate():
    known = diagonal()
    state = run(known, "hasd", 2.0, 60, mu=10 * known.mu)[-1]
    assert state.estimate.certificate(state.origin).lower() > known.f_star + 1e-6
    assert math.isfinite(state.psi)
