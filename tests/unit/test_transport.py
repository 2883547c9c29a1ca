"""The dual of entropic transport."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import hasd
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


@pytest.mark.parametrize(("a", "message"), [([0.5, 0.6], "a must be positive and sum to 1"), ([1.0, 0.0], "a must be")])
def test_bad_marginals_are_refused(a, message):
    with pytest.raises(ValueError, match=message):
        EntropicTransport(np.ones((2, 2)), a, [0.5, 0.5], 0.1)
