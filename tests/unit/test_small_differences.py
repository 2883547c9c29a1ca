"""Where values of f differ by rounding only, gradients tell how f compares, and `hasd` goes on as before."""

import mpmath
import numpy as np
import pytest

import hasd
from hasd._math import pair
from hasd._math.evaluation import Evaluation
from support import every_norm

OFFSET = 1e6


def bowl(x, h=3.0):
    """A quadratic whose values all begin with the same digits."""
    return Evaluation(x, OFFSET + 0.5 * h * float(x @ x), h * x)


def test_values_are_compared_where_their_difference_is_clear():
    one, other = bowl(np.array([2.0, 0.0])), bowl(np.array([0.0, 1.0]))
    seen = pair.compare(one, other)
    assert seen.by_values and seen.fall == one.f - other.f
    assert seen.bregman == seen.fall - other.g @ (one.x - other.x)


@pytest.mark.parametrize("size", [1e-6, 1e-9, 1e-150])
def test_gradients_are_compared_where_values_are_the_same(size):
    """Exact for a quadratic: 3/2 (|y|^2 - |z|^2)."""
    one, other = bowl(size * np.array([2.0, 1.0])), bowl(size * np.array([0.5, -1.0]))
    seen = pair.compare(one, other)
    assert not seen.by_values
    assert seen.fall / seen.up == pytest.approx(1.5 * size * size * (5.0 - 1.25), rel=1e-12, abs=1e-320)
    assert seen.noise <= 1e-13 * seen.up * size * size * 100.0


def test_the_comparison_is_within_what_values_or_convexity_allow():
    """For a function that is no quadratic, at every distance; exact values have forty digits."""
    rng = np.random.default_rng(0)

    def value(x):
        return mpmath.fsum(mpmath.cosh(mpmath.mpf(float(t))) for t in x)

    def at(x):
        return Evaluation(x, float(OFFSET + value(x)), np.sinh(x))

    with mpmath.workdps(40):
        for distance in 10.0 ** np.arange(-12.0, 0.5, 0.5):
            x = rng.standard_normal(4)
            y = x + distance * rng.standard_normal(4)
            seen, exact = pair.compare(at(x), at(y)), value(x) - value(y)
            width = abs(float((at(x).g - at(y).g) @ (x - y)))
            allowed = 8.0 * 2.0**-52 * (OFFSET + 10.0) if seen.by_values else 0.5 * width + 1e-14 * distance
            assert abs(seen.fall - exact) <= allowed


def problems():
    """Softmax fits with and without a ridge, and a quadratic, all with values around a thousand."""
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((200, 8)), 1e3 + rng.standard_normal(200)
    ones = np.ones((200, 1))
    for ridge in (0.0, 1e-2):
        yield hasd.objectives.LogSumExp(A, -b, ridge=ridge), 8
        yield hasd.objectives.SymmetricSoftmax(np.hstack([A, ones]), b, alpha=50.0, ridge=ridge), 9


def iterations(f, d, p, tol):
    res = hasd.minimize(f, np.zeros(d), method="hasd", p=p, tol=tol, maxiter=2000)
    assert res.nit < 2000 or tol == 1e-11
    return res.nit


@every_norm
def test_the_gradient_keeps_falling_below_the_resolution_of_values(p):
    """Eleven digits take at most about twice as long as six, though eight are all that values can tell."""
    for f, d in problems():
        assert iterations(f, d, p, 1e-11) <= 3 * iterations(f, d, p, 1e-6) + 20


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_mutation_without_gradients_runs_stay_where_values_stop(monkeypatch, p):
    monkeypatch.setattr(pair, "UNCLEAR", -1.0)
    assert any(iterations(f, d, p, 1e-11) == 2000 for f, d in problems())


@every_norm
def test_a_mu_that_says_too_little_does_not_slow_a_run_down(p):
    """f is a hundred times as strongly convex as mu: epochs end all the same.  Mutation: restart=False."""
    rng = np.random.default_rng(2)
    Q, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    H = Q @ np.diag(np.geomspace(1e-2, 1.0, 20)) @ Q.T
    f = hasd.objectives.Quadratic(0.5 * (H + H.T), rng.standard_normal(20))

    def taken(mu, restart=True):
        settings = {"method": "hasd", "p": p, "mu": mu, "restart": restart, "tol": 1e-8}
        return hasd.minimize(f, np.zeros(20), **settings).nit

    assert taken(1e-4) <= 3 * taken(1e-2)
    assert taken(1e-4, restart=False) > 3 * taken(1e-2)
