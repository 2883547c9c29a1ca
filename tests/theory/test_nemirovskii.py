"""The rate in R_p: the invariant with its loss, the bound and the certificate, at every iterate and beyond T."""

from fractions import Fraction

import numpy as np
import pytest

import hasd
from hasd import Lp, theory
from hasd.methods import NemirovskiiNesterov, nemirovskii_nesterov
from support import allowance, chain, every_norm, every_problem, log_sum_exp, quadratic, run

T = 60


def distance(known, p):
    """||x_0 - x*||_p."""
    return Lp(p).norm(known.x0 - known.x_star)


def prox(known, p, R):
    """The exponent of the prox term, and R in that norm."""
    d = known.x0.size
    q = theory.prox_exponent(p, d)
    return q, R * d ** (1.0 / q - 1.0 / p)


def surplus(known, p, L="declared", R=None):
    """A f(x) - psi* over what the method may lose, at every iterate up to twice the planned ones."""
    R = distance(known, p) if R is None else R
    q, reach = prox(known, p, R)
    for state in run(known, NemirovskiiNesterov(T=T, R=R), p, 2 * T, L=L)[1:]:
        left = state.weight * known.f(state.x)
        yield left - state.psi - theory.nemirovskii_loss(reach, T, q, state.iteration), allowance(left, state.psi)


@every_norm
@every_problem
@pytest.mark.parametrize("L", ["declared", None])
def test_the_invariant_holds_at_every_iterate_and_beyond_the_planned_ones(known, p, L):
    for above, rounding in surplus(known(), p, L):
        assert above <= rounding


@every_norm
@pytest.mark.parametrize("factor", [1e-3, 0.3, 100.0])
def test_the_invariant_needs_no_true_R(p, factor):
    known = quadratic()
    for above, rounding in surplus(known, p, R=factor * distance(known, p)):
        assert above <= rounding


@every_norm
@every_problem
@pytest.mark.parametrize("L", ["declared", None])
def test_weight_and_gap_keep_their_bounds_at_every_iterate(known, p, L):
    known = known()
    q, reach = prox(known, p, distance(known, p))
    for state in run(known, NemirovskiiNesterov(T=T, R=distance(known, p)), p, 2 * T, L=L)[1:]:
        t, gap = state.iteration, known.f(state.x) - known.f_star
        assert state.weight >= (1.0 - 1e-12) * theory.nemirovskii_weight_bound(state.L, T, q, t)
        assert gap <= theory.nemirovskii_bound(state.L, reach, T, q, t) + allowance(known.f_star)
        certified = theory.nemirovskii_gap(reach, q, state.weight, known.f(state.x), state.psi)
        assert gap <= certified + allowance(known.f_star)
        assert certified <= (1 + 1e-9) * theory.nemirovskii_bound(state.L, reach, T, q, t) + allowance(known.f_star)


@every_norm
@every_problem
def test_the_librarys_bound_is_true_and_no_worse_than_the_certificate_of_the_estimate(known, p):
    known = known()
    R = distance(known, p) * (1.0 + 1e-12)
    q, reach = prox(known, p, R)
    for state in run(known, NemirovskiiNesterov(T=T, R=R), p, 2 * T)[1:]:
        lower, value = state.bound.lower(), known.f(state.x)
        assert lower <= known.f_star + 1e-13 * max(1.0, abs(known.f_star))
        certified = theory.nemirovskii_gap(reach, q, state.weight, value, state.psi)
        assert value - lower <= certified + allowance(value)


def test_the_bound_is_the_estimate_sequences_at_p_2_and_best_at_the_planned_number():
    assert theory.nemirovskii_bound(3.0, 2.0, 50, 2) == pytest.approx(theory.linear_coupling_bound(3.0, 2.0, 50))
    planned = [theory.nemirovskii_bound(1.0, 1.0, T, 4.0, t=200) for T in (50, 200, 800)]
    assert planned[1] == min(planned)
    order = theory.nemirovskii_order(1.0, 1.0, 200, 4.0)
    assert theory.nemirovskii_bound(1.0, 1.0, 200, 4.0) <= 2.0 / theory.prox_convexity(4.0) * order


def test_the_convexity_of_the_prox_term_is_never_above_the_true_one():
    """At whole p the difference is a polynomial, which fractions evaluate without rounding at any t."""
    for p in (3, 4, 5, 8, 12):
        sigma = Fraction(theory.prox_convexity(float(p)) ** (p / 2))
        grid = [Fraction(k, 4000) for k in range(1, 4000)]
        least = min((1 - u) ** p - u**p + p * u ** (p - 1) for u in grid)
        assert sigma <= least <= sigma * Fraction(1001, 1000)


def test_the_convexity_of_the_prox_term_bounds_bregman_distances():
    rng = np.random.default_rng(5)
    for p in (2.0, 2.001, 2.5, 3.0, 6.0, 20.0):
        x, v = rng.standard_normal((2, 500)) * 10.0 ** rng.uniform(-2, 1, 500)
        bregman = np.abs(x) ** p - np.abs(v) ** p - p * np.sign(v) * np.abs(v) ** (p - 1.0) * (x - v)
        least = theory.prox_convexity(p) ** (p / 2.0) * np.abs(x - v) ** p
        assert (bregman >= least - 1e-12 * p * (np.abs(x) + np.abs(v)) ** p).all()


@pytest.mark.parametrize("p", [2.0, 2.0 + 1e-15, 2.0 + 1e-9, 2.5, 3.0, 30.0, 1e4, 1e300])
def test_the_convexity_of_the_prox_term_is_between_the_simple_bound_and_one(p):
    value = theory.prox_convexity(p)
    assert 2.0 ** (4.0 / p - 2.0) * (1.0 - 1e-13) <= value <= 1.0


def test_mutation_weights_that_are_too_large_break_the_invariant(monkeypatch):
    """c twenty times too large."""
    known, p = log_sum_exp(), 4.0
    assert all(above <= rounding for above, rounding in surplus(known, p))
    true = theory.prox_convexity
    monkeypatch.setattr(nemirovskii_nesterov, "prox_convexity", lambda p: 20.0 * true(p))
    assert any(above > rounding for above, rounding in surplus(known, p))


def test_mutation_gradient_descent_does_not_meet_the_bound():
    known, steps = chain(200), 150
    R = distance(known, 2.0)
    bound = theory.nemirovskii_bound(4.0, R, steps, 2.0)
    accelerated = run(known, NemirovskiiNesterov(T=steps, R=R), 2.0, steps, L=4.0)[-1]
    assert known.f(accelerated.x) - known.f_star <= bound
    assert known.f(run(known, "gradient-descent", 2.0, steps, L=4.0)[-1].x) - known.f_star > bound


class TestCertificate:
    """What ``res.gap`` says on the strength of R."""

    def solve(self, p, R, **settings):
        known = log_sum_exp()
        method = NemirovskiiNesterov(T=T, R=R)
        return known, hasd.minimize(known.f, known.x0, method=method, p=p, mu=0.0, tol=0, maxiter=T, **settings)

    @every_norm
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_the_gap_is_true_without_a_radius_and_says_what_it_assumes(self, p, dtype):
        known = log_sum_exp()
        x0 = known.x0.astype(dtype)
        R = 1.001 * Lp(p).norm(x0.astype(float) - known.x_star)
        res = hasd.minimize(known.f, x0, method="nemirovskii-nesterov", p=p, T=T, R=R, mu=0.0, tol=0, maxiter=T)
        assert res.x.dtype == dtype
        assert known.f(res.x.astype(float)) - known.f_star <= res.gap < np.inf
        assert res.lower <= known.f_star
        assert (np.diff(res.trace["lower"][1:]) >= 0.0).all() and (res.trace["lower"] <= known.f_star).all()
        assert res.certificate.assumes == f"R = {R:g} >= ||x_0 - x*||_{p:g}"

    def test_a_gap_tolerance_needs_no_radius(self):
        known = log_sum_exp()
        tolerance = 0.2 * (known.f(known.x0) - known.f_star)
        _, res = self.solve(4.0, distance(known, 4.0), gap_tol=tolerance)
        assert res.success and res.gap <= tolerance and res.nit < T

    def test_a_radius_makes_the_gap_no_larger(self):
        known = log_sum_exp()
        R = 50.0 * distance(known, 4.0)
        _, alone = self.solve(4.0, R)
        _, both = self.solve(4.0, R, radius=known.R)
        assert known.f(both.x) - known.f_star <= both.gap < 0.5 * alone.gap
        assert known.f(alone.x) - known.f_star <= alone.certificate.gap(known.R) < 0.5 * alone.gap

    def test_mutation_an_R_that_is_too_small_is_contradicted(self):
        known = log_sum_exp()
        _, res = self.solve(4.0, 0.01 * distance(known, 4.0))
        assert res.gap == np.inf and res.lower == -np.inf
        assert "R = " in res.message and ">= ||x_0 - x*||_4 is wrong" in res.message

    def test_a_comparison_trusts_no_bound_of_a_refuted_R(self):
        known = log_sum_exp()
        R = distance(known, 4.0)
        sizes = {"too small": 0.01 * R, "right": R}
        methods = {label: {"method": "nemirovskii-nesterov", "T": T, "R": size} for label, size in sizes.items()}
        both = hasd.compare(known.f, known.x0, {**methods, "hasd": "hasd"}, budget=T, p=4.0, mu=0.0, radius=known.R)
        assert both.lower <= known.f_star
        own = {row["label"]: row["own_gap"] for row in both.rows()}
        assert own["too small"] == np.inf and np.isfinite(own["right"]) and np.isfinite(own["hasd"])

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    @pytest.mark.parametrize("p", [2.5, 4.0, 1000.0, np.inf])
    def test_an_R_out_of_all_proportion_ends_with_a_finite_point_and_a_true_bound(self, p, scale):
        known, res = self.solve(p, scale)
        assert np.isfinite(res.x).all() and res.fun <= known.f(known.x0)
        assert scale < 1.0 or known.f(res.x) - known.f_star <= res.gap

    def test_the_exponent_in_place_of_infinity_is_said(self):
        _, res = self.solve(np.inf, 1.0)
        assert "has p = 2.30259 in place of inf" in res.message
        assert theory.prox_exponent(np.inf, 10) == pytest.approx(2.302585, rel=1e-6)
