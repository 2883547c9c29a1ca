"""The dual of entropic transport."""

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import hasd
from hasd._math.doubt import Sizes
from hasd._run.capabilities import traits_of_objective
from hasd.objectives import EntropicTransport


def problem(reg=0.05, n=7, m=5):
    rng = np.random.default_rng(0)
    a, b = rng.random(n) + 0.1, rng.random(m) + 0.1
    return EntropicTransport(rng.random((n, m)), a / a.sum(), b / b.sum(), reg), rng.standard_normal(n + m)


def test_gradient_is_the_error_of_the_marginals():
    f, x = problem()
    g = f.value_and_grad(x)[1]
    np.testing.assert_allclose(g, approx_fprime(x, f, 1e-7), atol=1e-5)
    P = f.plan(x)
    np.testing.assert_allclose(g, np.concatenate((P.sum(axis=1) - f.a, P.sum(axis=0) - f.b)), atol=1e-14)


def test_minimiser_has_the_marginals_and_declared_constants_hold():
    f, x = problem()
    res = hasd.minimize(f, np.zeros(12), tol=1e-10)
    assert res.success and res.method == "hasd-qn"
    P = f.plan(res.x)
    np.testing.assert_allclose(P.sum(axis=1), f.a, atol=1e-9)
    np.testing.assert_allclose(P.sum(axis=0), f.b, atol=1e-9)
    assert (f.smoothness(np.inf), f.smoothness(2)) == (pytest.approx(4 / f.reg), pytest.approx(1 / f.reg))
    rng = np.random.default_rng(1)
    for p, dual in ((2.0, 2.0), (np.inf, 1.0)):
        for step in rng.standard_normal((20, 12)):
            change = np.linalg.norm(f.value_and_grad(x + step)[1] - f.value_and_grad(x)[1], dual)
            assert change <= f.smoothness(p) * np.linalg.norm(step, p) * (1 + 1e-12)


def test_a_tiny_reg_does_not_overflow():
    f, x = problem(reg=1e-6)
    value, g = f.value_and_grad(1e3 * x)
    assert np.isfinite(value) and np.all(np.isfinite(g))


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ([0.5, 0.6], r"^a must sum to 1, got a sum of 1.1$"),
        ([1.0, 0.0], r"^a must be positive, but a\[1\] is 0.0$"),
        (np.array([0.5, 0.5 + 1e-4], dtype=np.float32), r"^a must sum to 1, got a sum of 1.0001"),
    ],
)
def test_bad_marginals_are_refused(a, message):
    with pytest.raises(ValueError, match=message):
        EntropicTransport(np.ones((2, 2)), a, [0.5, 0.5], 0.1)


def test_masses_are_divided_by_their_sums_so_that_a_minimum_exists():
    f = EntropicTransport(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5 + 8e-10]), [0.3, 0.7 - 8e-10], 0.1)
    shift = np.array([1e6, 1e6, 0.0, 0.0])  # along it f is constant; with the masses as given it changed by 8e-4
    assert abs(f(shift) - f(np.zeros(4))) <= 1e-9


def test_masses_that_were_divided_by_their_sum_in_single_precision_are_taken():
    a = np.random.default_rng(0).random(3000, dtype=np.float32)
    a /= a.sum()
    assert abs(float(a.astype(float).sum()) - 1.0) > 1e-9
    assert EntropicTransport(np.zeros((3000, 1)), a, [1.0], 0.1).a.sum() == pytest.approx(1.0, abs=1e-12)


def test_it_is_known_to_be_convex_and_bounded_below():
    """No run on it asks whether it is convex, and a radius too small is all that a contradiction can mean."""
    f, x = problem()
    traits = traits_of_objective(f)
    assert traits.convex and traits.bounded_below
    res = hasd.minimize(f, x, method="hasd", radius=1e-6, maxiter=300)
    assert math.isinf(res.gap) and "radius = 1e-06 is too small; nothing is certified" in res.message


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("reg", [1.0, 0.05, 1e-4])
def test_settle_gives_value_and_gradient_where_one_potential_is_best(reg, dtype):
    f, x = problem(reg)
    there, value, g = f.settle(x.astype(dtype))
    assert there.dtype == g.dtype == dtype and f.nprod == 1
    np.testing.assert_array_equal(there[:7], x.astype(dtype)[:7])
    exact, gradient = f.value_and_grad(there.astype(float))
    size = float(np.linalg.norm(there))
    doubt = f.doubt(Sizes(value, float(np.linalg.norm(g)), size, float(np.abs(there).max()), 12, np.finfo(dtype).eps))
    assert abs(value - exact) <= 2 * doubt.value
    assert np.linalg.norm(g - gradient) <= 2 * doubt.true
    assert exact <= f(x.astype(dtype)) + 2 * doubt.value
    for step in np.random.default_rng(1).standard_normal((20, 5)):  # no other v is better
        assert f(there + np.concatenate((np.zeros(7), reg * step))) >= exact - 2 * doubt.value


@pytest.mark.parametrize("reg", [0.05, 0.01])
def test_hasd_qn_settles_one_potential_and_certifies_the_answer(reg):
    f, _ = problem(reg, n=30, m=20)
    best = hasd.minimize(f, np.zeros(50), method="hasd", p=np.inf, tol=1e-11, maxiter=20000)
    away = np.linalg.norm(best.x)
    res = hasd.minimize(f, np.zeros(50), method="hasd-qn", tol=1e-8, radius=1.01 * away)
    box = hasd.minimize(f.value_and_grad, np.zeros(50), jac=True, method="hasd-qn", tol=1e-8)
    assert res.success and box.success and res.nfev < box.nfev
    assert -1e-12 <= res.fun - best.fun <= res.gap
    assert np.all(res.trace["lower"] <= best.fun + 1e-12)


def test_a_start_that_settles_at_a_minimiser_is_the_answer():
    f = EntropicTransport(np.array([[0.3, 0.7]]), [1.0], [0.5, 0.5], 0.1)
    res = hasd.minimize(f, np.ones(3), method="hasd-qn")
    assert res.success and not res.jac.any() and res.nfev == 2


def test_settling_gives_x_itself_where_the_other_potential_is_no_number_of_its_precision():
    smallest = EntropicTransport(np.zeros((3, 2)), np.full(3, 1 / 3), [1.0, 5e-324], 1.0)  # 5e-324/3 is 0
    large = EntropicTransport(np.zeros((1, 2)), [1.0], [0.5, 0.5], 1e100)  # no v of float32
    for f, x in ((smallest, np.zeros(5)), (large, np.zeros(3, np.float32))):
        there, value, g = f.settle(x)
        np.testing.assert_array_equal(there, x)
        assert value == f(x) and np.array_equal(g, f.value_and_grad(x)[1])
        res = hasd.minimize(f, x, method="hasd-qn")
        assert res.success and np.isfinite(res.x).all() and math.isfinite(res.fun)
