"""The two gradient-norm corollaries, with the paper's T and ours, and the stops that need no G_hat."""

import numpy as np
import pytest

import hasd
from hasd import Lp, theory
from hasd.methods import hasd_paper
from support import every_norm, every_problem, log_sum_exp, run


def epsilon(known, p, fraction):
    return fraction * Lp(p).dual_norm(known.f.value_and_grad(known.x0)[1])


@every_norm
@every_problem
@pytest.mark.parametrize("constant", [12.0, 18.0 * 2**0.5])
def test_the_last_gradient_is_within_eps_after_the_first_corollarys_T(known, p, constant):
    """After T iterations the gradient at x_T itself is within eps (G_hat = 1 is always allowed)."""
    known = known()
    eps = epsilon(known, p, 0.2)
    T = theory.gradient_norm_iterations(known.L(p), known.R, 1.0, eps, constant=constant)
    assert T <= 20_000
    assert min(T, 3000) >= 1
    last = run(known, "hasd-paper", p, min(T, 3000))[-1]
    assert Lp(p).dual_norm(known.f.value_and_grad(last.x)[1]) <= eps


@every_norm
@every_problem
@pytest.mark.parametrize("constant", [16.0, 21.0])
def test_second_corollary_bounds_the_best_iterate(known, p, constant):
    known = known()
    eps = epsilon(known, p, 0.05)
    T = theory.gradient_norm_iterations_best(known.L(p), known.R, 1.0, eps, constant=constant)
    states = run(known, "hasd-paper", p, min(T, 3000))
    assert min(state.grad_norm for state in states[1:]) <= eps


@every_norm
@every_problem
def test_weights_bound_the_last_and_the_best_gradient_without_G_hat(known, p):
    """A_T >= L R^2/eps^2 bounds the last iterate, sum A_t >= 9 L R^2/eps^2 the best one."""
    known = known()
    L, total, best = known.L(p), 0.0, np.inf
    for state in run(known, "hasd-paper", p, 400)[1:]:
        total += state.weight
        best = min(best, state.grad_norm)
        assert state.grad_norm <= theory.gradient_norm_bound(L, known.R, state.weight, 0.0) * (1 + 1e-9)
        assert best**2 <= 9 * L * known.R**2 / total * (1 + 1e-9)


def test_lemma_gap_bounds_the_gradient():
    known = log_sum_exp()
    for p in (2.0, 3.0, np.inf):
        for state in run(known, "hasd-paper", p, 50):
            gap = known.f(state.x) - known.f_star
            assert state.grad_norm**2 <= 2 * known.L(p) * gap * (1 + 1e-6) + 1e-12


def test_minimize_returns_the_best_evaluated_gradient():
    known = log_sum_exp()
    res = hasd.minimize(
        known.f, known.x0, method="hasd-paper", L=known.L(np.inf), tol=0, gtol=1e-30, maxiter=60, goal="gradient"
    )
    assert not res.success
    assert np.abs(res.jac).sum() == pytest.approx(res.trace["grad_norm"].min(), rel=1e-12)
    np.testing.assert_array_equal(res.jac, known.f.value_and_grad(res.x)[1])
    hit = hasd.minimize(known.f, known.x0, L=known.L(np.inf), tol=0, gtol=1e-3)
    assert hit.success and np.abs(hit.jac).sum() <= 1e-3


def test_mutation_of_18_to_0_4_breaks_the_weight_stop(monkeypatch):
    """Weights twenty times too large promise gradients that are not there."""
    monkeypatch.setattr(hasd_paper, "CONSTANT", 18.0 / 2000.0)
    known = log_sum_exp()
    L = known.L(2.0)
    assert any(
        state.grad_norm > theory.gradient_norm_bound(L, known.R, state.weight, 0.0) * (1 + 1e-9)
        for state in run(known, "hasd-paper", 2.0, 400)[1:]
    )
