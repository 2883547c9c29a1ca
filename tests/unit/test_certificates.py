"""What a result certifies, and what becomes of a declared L that is too small."""

import math

import numpy as np
import pytest

import hasd
from hasd.methods.hasd import HASDMethod
from support import declared_and_not, every_method, log_sum_exp, logistic, quadratic
from unit.test_minimize import TARGET, Bowl, solve


class TestGap:
    @every_method
    @declared_and_not
    def test_gap_is_above_the_true_gap_and_shrinks(self, method, L):
        R = float(np.linalg.norm(TARGET))
        gaps = []
        for maxiter in (5, 200):
            res = solve(method, L=L, tol=1e-9, maxiter=maxiter)
            gaps.append(res.certificate.gap(R))
            assert res.certificate.gap(2.0 * R) >= gaps[-1] >= res.fun - 1e-12
        assert gaps[1] < 0.5 * gaps[0]

    def test_gap_needs_a_radius_where_mu_is_zero(self):
        res = solve(maxiter=20)
        with pytest.raises(ValueError, match="radius"):
            res.certificate.gap()
        with pytest.raises(ValueError, match="radius"):
            res.certificate.gap(-1.0)
        with pytest.raises(ValueError, match="radius"):
            res.certificate.gap(float("nan"))

    @every_method
    def test_gap_needs_no_radius_where_mu_is_known(self, method):
        res = solve(method, L=30.0, mu=0.05, tol=1e-9, maxiter=300)
        assert res.fun - 1e-12 <= res.gap <= 0.5 * Bowl.value(np.zeros(6))

    def test_before_the_first_step_the_cut_at_x0_is_all_there_is(self):
        res = solve(maxiter=0)
        assert res.certificate.gap(10.0) == pytest.approx(10.0 * np.linalg.norm(res.jac))


class TestSmoothnessTooSmall:
    @pytest.mark.parametrize("make", [quadratic, log_sum_exp, logistic])
    @pytest.mark.parametrize("p", [2.0, np.inf])
    @pytest.mark.parametrize("factor", [10.0, 100.0])
    def test_L_is_raised_and_reported(self, make, p, factor):
        known = make()
        declared = known.L(p) / factor
        res = hasd.minimize(known.f, known.x0, method="hasd", p=p, L=declared, mu=0.0, tol=1e-4)
        assert res.success
        assert declared < res.L
        assert "too small" in res.message and f"{declared:g}" in res.message
        assert abs(res.fun - known.f_star) <= 1e-5 * (known.f(known.x0) - known.f_star)

    @pytest.mark.parametrize("make", [quadratic, log_sum_exp, logistic])
    @pytest.mark.parametrize("p", [2.0, np.inf])
    @pytest.mark.parametrize("factor", [10.0, 100.0])
    def test_the_certificate_stays_true(self, make, p, factor):
        known = make()
        options = {"method": "hasd", "p": p, "L": known.L(p) / factor, "mu": 0.0, "tol": 0}
        for maxiter in (1, 2, 3, 5, 8, 13, 30, 100):
            res = hasd.minimize(known.f, known.x0, maxiter=maxiter, **options)
            assert res.certificate.gap(known.R) >= res.fun - known.f_star - 1e-12

    def test_an_L_that_is_large_enough_is_kept(self):
        res = solve(L=30.0)
        assert res.L == 30.0 and "too small" not in res.message

    def test_raising_can_be_switched_off(self):
        known = log_sum_exp()
        L = known.L(2.0) / 10.0
        res = hasd.minimize(known.f, known.x0, method=HASDMethod(raise_L=False), p=2, L=L, maxiter=50)
        assert res.L == L and "too small" not in res.message
        assert res.certificate.gap(known.R) >= res.fun - known.f_star


class TestCharge:
    """How much of a gap is rounding, and radii that the run contradicts."""

    @pytest.mark.parametrize("method", ["hasd", "agd", "hasd-qn", "hasd-subspace", "hasd-newton"])
    def test_the_charge_is_a_part_of_the_gap(self, method):
        known = log_sum_exp()
        for maxiter in (1, 5, 50):
            certificate = hasd.minimize(known.f, known.x0, method=method, maxiter=maxiter, tol=0.0).certificate
            assert 0.0 < certificate.charge(known.R) <= certificate.gap(known.R)
        assert certificate.charge(known.R) < 1e-12

    def test_the_smallest_radius_that_the_run_allows_is_allowed(self):
        known = quadratic()
        certificate = hasd.minimize(known.f, known.x0, method="hasd", p=2, tol=1e-9, restart=False).certificate
        with pytest.raises(
            ValueError, match=r"contradicted by the run.* smallest radius that the run allows is"
        ) as error:
            certificate.gap(0.5 * known.R)
        smallest = float(str(error.value).split()[-1].rstrip("."))
        assert 0.5 * known.R < smallest <= known.R * (1 + 1e-5) and certificate.gap(smallest * (1 + 1e-5)) >= 0.0

    def test_a_run_that_certifies_nothing_any_more_charges_everything(self):
        hills = lambda x: (float(np.sum(0.05 * x**2 + np.cos(2 * x))), 0.1 * x - 2 * np.sin(2 * x))  # noqa: E731
        certificate = hasd.minimize(hills, np.linspace(0.1, 3, 6), jac=True).certificate
        assert certificate.charge(10.0) == certificate.gap(10.0) == math.inf
