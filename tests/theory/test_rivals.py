"""The rivals' own guarantees."""

import itertools

import numpy as np
import pytest

from hasd import Lp, theory
from norms import every_geometry
from support import allowance, chain, diagonal, every_norm, every_problem, run, strongly_convex


def gaps(known, states):
    return [(state.iteration, known.f(state.x) - known.f_star) for state in states[1:]]


@every_problem
def test_gradient_descent_keeps_its_bound(known):
    known = known()
    for T, gap in gaps(known, run(known, "gradient-descent", 2.0, 60)):
        assert gap <= theory.gradient_descent_bound(known.L(2.0), known.R, T) + allowance(known.f_star)


@every_geometry
@every_problem
@pytest.mark.parametrize("L", ["declared", None])
def test_steepest_descent_decreases_as_promised(known, norm, L):
    known = known()
    states = run(known, "steepest-descent", norm(known.x0.size), 60, L=L)
    for before, after in itertools.pairwise(states):
        drop = before.grad_norm**2 / (2 * after.L)
        assert after.fun <= before.fun - drop + allowance(before.fun)


@every_norm
def test_steepest_descent_keeps_its_rate_in_R_p(p):
    """On a separable quadratic the level set's l_p radius is known: |x_i| <= sqrt(2 f(x_0)/h_i)."""
    known = diagonal()
    h = np.array([10.0, 0.1, 0.05, 0.01])
    radius = Lp(p).norm(np.sqrt(2 * known.f(known.x0) / h))
    for T, gap in gaps(known, run(known, "steepest-descent", p, 60)):
        assert gap <= theory.steepest_descent_bound(known.L(p), radius, T)


@every_problem
@pytest.mark.parametrize("L", ["declared", None])
def test_accelerated_gradient_descent_keeps_its_bound(known, L):
    known = known()
    states = run(known, "agd", 2.0, 80, L=L)
    for T, gap in gaps(known, states):
        bound = theory.accelerated_gradient_bound(states[T].L, known.R, T)
        assert gap <= bound + allowance(known.f_star)


@strongly_convex
def test_accelerated_gradient_descent_with_mu_keeps_its_bound(known):
    known = known()
    first = known.f(known.x0) - known.f_star
    for T, gap in gaps(known, run(known, "agd", 2.0, 80, mu=known.mu)):
        bound = theory.accelerated_gradient_strong_bound(known.L(2.0), known.mu, known.R, first, T)
        assert gap <= bound + allowance(known.f_star)


@every_geometry
@every_problem
@pytest.mark.parametrize("method", ["linear-coupling", "estimate-sequence"])
def test_linear_coupling_and_estimate_sequence_keep_their_bound(known, norm, method):
    """In l_p with L; in any norm with L/r^2, r the least gain."""
    known = known()
    norm = norm(known.x0.size)
    L = known.L(norm) / norm.least_gain**2
    for T, gap in gaps(known, run(known, method, norm, 80)):
        assert gap <= theory.linear_coupling_bound(L, known.R, T) + allowance(known.f_star)


@every_norm
@every_problem
def test_published_weights_keep_the_potential_of_linear_coupling(known, p):
    """L a_t^2 f(x_t) + (1/4L) sum_{k<t} f(x_k) <= psi*_t (Allen-Zhu & Orecchia, section 4)."""
    known = known()
    L, earlier = known.L(p), 0.0
    for state in run(known, "linear-coupling", p, 60)[1:]:
        a = (state.iteration + 1) / (2 * L)
        left = L * a * a * known.f(state.x) + earlier / (4 * L)
        assert left <= state.psi + allowance(left, state.psi)
        earlier += known.f(state.x)


@pytest.mark.parametrize("method", ["agd", "linear-coupling", "estimate-sequence"])
def test_mutation_gradient_descent_does_not_meet_the_accelerated_bound(method):
    """The accelerated bound holds for the rival on Nesterov's chain, and plain gradient descent breaks it."""
    known, T = chain(200), 150
    bound = theory.accelerated_gradient_bound(4.0, known.R, T)
    assert gaps(known, run(known, method, 2.0, T, L=4.0))[-1][1] <= bound
    assert gaps(known, run(known, "gradient-descent", 2.0, T, L=4.0))[-1][1] > bound


def test_mutation_a_quarter_of_L_breaks_the_descent_methods():
    known = diagonal()
    for method, bound in (
        ("gradient-descent", theory.gradient_descent_bound),
        ("agd", theory.accelerated_gradient_bound),
        ("linear-coupling", theory.linear_coupling_bound),
        ("estimate-sequence", theory.estimate_sequence_bound),
    ):
        results = gaps(known, run(known, method, 2.0, 60, L=known.L(2.0) / 4))
        assert any(not gap <= bound(known.L(2.0) / 4, known.R, T) for T, gap in results), method
