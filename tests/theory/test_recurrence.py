"""Lemma 2: A_t f(x_t) + B_t <= psi*_t, with psi* recomputed from the whole list of cuts."""

import numpy as np
import pytest

from hasd import theory
from hasd.methods import hasd_paper
from norms import every_geometry
from reference.pseudocode import psi_minimum
from support import allowance, diagonal, every_norm, every_problem, log_sum_exp, run


def recurrence(known, states, rule="algorithm"):
    """(A_t f(x_t) + B_t, psi*_t) for every t, from the definitions; by Lemma 2's printed rule, B sums a, not A."""
    cuts, B, previous = [], 0.0, 0.0
    for state in states[1:]:
        f, g = known.f.value_and_grad(state.x)
        cuts.append((state.weight - previous, state.x, f, g))
        weight = state.weight if rule == "algorithm" else state.weight - previous
        B += theory.slack_from_gradient(state.L, weight, state.grad_norm)
        previous = state.weight
        v, psi = psi_minimum(cuts, known.x0)
        np.testing.assert_allclose(state.estimate.v, v, rtol=0, atol=1e-9 * (1 + np.abs(v).max()))
        assert state.psi == pytest.approx(psi, rel=1e-9, abs=1e-9)
        yield state.weight * f + B, psi


@every_geometry
@every_problem
@pytest.mark.parametrize("L", ["declared", None])
@pytest.mark.parametrize("rule", ["algorithm", "lemma"])
def test_the_recurrence_holds_at_every_iterate(known, norm, L, rule):
    known = known()
    norm = norm(known.x0.size)
    for left, right in recurrence(known, run(known, "hasd-paper", norm, 60, L=L, weights=rule), rule):
        assert left <= right + allowance(left, right)


@every_norm
@pytest.mark.parametrize("rule", ["algorithm", "lemma"])
def test_the_recurrence_holds_with_the_cold_bisection(p, rule):
    known = log_sum_exp()
    for left, right in recurrence(known, run(known, "hasd-paper", p, 25, search="bisect", weights=rule), rule):
        assert left <= right + allowance(left, right)


@pytest.mark.parametrize("p", [2.0, np.inf])
@pytest.mark.parametrize("rule", ["algorithm", "lemma"])
def test_mutation_of_18_to_0_4_breaks_the_recurrence(monkeypatch, p, rule):
    monkeypatch.setattr(hasd_paper, "CONSTANT", 0.4)
    known = diagonal()
    states = run(known, "hasd-paper", p, 60, weights=rule)
    assert any(left > right + allowance(left, right) for left, right in recurrence(known, states, rule))


@every_norm
@every_problem
def test_estimate_stays_below_the_function(known, p):
    """Lemma psi_upper: psi_t(x) <= A_t f(x) + 1/2||x - x_0||^2, at points anywhere."""
    known = known()
    rng = np.random.default_rng(5)
    for state in run(known, "hasd-paper", p, 30):
        for x in (known.x_star, state.x, known.x_star + rng.standard_normal(known.x0.size)):
            psi = state.psi + 0.5 * np.sum((x - state.estimate.v) ** 2)
            bound = state.weight * known.f(x) + 0.5 * np.sum((x - known.x0) ** 2)
            assert psi <= bound + allowance(psi, bound)
