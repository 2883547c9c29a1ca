"""The estimate sequence's arithmetic, against its definition by brute force."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from hasd import Lp
from hasd.estimate import Certificate, Estimate, increment, observed_smoothness
from hasd.oracle import Evaluation

POSITIVE = st.floats(1e-3, 1e3)
MU = st.sampled_from([0.0, 0.01, 0.5])


def random_estimate(seed, mu, cuts=4, d=3):
    """An estimate and its definition as a function."""
    rng = np.random.default_rng(seed)
    x0 = rng.standard_normal(d)
    estimate, terms = Estimate(x0, x0, mu=mu), []
    for _ in range(cuts):
        e = Evaluation(rng.standard_normal(d), float(rng.standard_normal()), rng.standard_normal(d))
        a = float(rng.uniform(0.1, 2.0))
        estimate = estimate.cut(a, e)
        terms.append((a, e))

    def psi(x):
        value = 0.5 * np.sum((x - x0) ** 2)
        for a, e in terms:
            value += a * (e.f + e.g @ (x - e.x) + 0.5 * mu * np.sum((x - e.x) ** 2))
        return value

    return estimate, psi, rng


@given(POSITIVE, POSITIVE, MU)
def test_increment_solves_its_equation(A, c, mu):
    if c <= 1.5 * mu:
        return
    a = increment(A, c, mu)
    assert a > 0
    assert c * a * a == pytest.approx((A + a) * (1 + mu * (A + a)), rel=1e-9)


def test_increment_at_mu_equal_to_c_is_large_but_finite():
    """One step reaches the minimiser there: the root is at infinity, a large weight stands in for it."""
    assert 100.0 < increment(1.0, 1.0, 1.0) < math.inf


@given(st.integers(0, 10_000), MU)
def test_cuts_keep_minimum_and_minimiser(seed, mu):
    estimate, psi, rng = random_estimate(seed, mu)
    assert estimate.psi == pytest.approx(psi(estimate.v), rel=1e-9, abs=1e-9)
    for _ in range(5):
        x = estimate.v + rng.standard_normal(3)
        expected = estimate.psi + 0.5 * estimate.kappa * np.sum((x - estimate.v) ** 2)
        assert psi(x) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10_000), MU, POSITIVE)
def test_coupling_point_balances(seed, mu, a):
    estimate, _, rng = random_estimate(seed, mu)
    x = rng.standard_normal(3)
    y = estimate.couple(x, a)
    kappa_next = estimate.kappa + mu * a
    np.testing.assert_allclose(
        estimate.weight * kappa_next * (x - y) + a * estimate.kappa * (estimate.v - y), 0.0, atol=1e-9 * (1 + a)
    )


@given(st.integers(0, 10_000), MU, st.floats(0.0, 3.0))
def test_largest_root_is_the_largest(seed, mu, drop):
    """At the root the inequality is an equality, and 1% beyond it fails."""
    estimate, _, rng = random_estimate(seed, mu)
    e = Evaluation(rng.standard_normal(3), 1.0, rng.standard_normal(3))
    most = e.norm2**2 / (2 * mu) if mu else math.inf  # strong convexity allows no larger decrease
    f_next = e.f - min(drop, 0.9 * most)
    a = estimate.largest_root(e, f_next)
    if math.isnan(a):
        S = estimate.psi - estimate.weight * f_next
        assert S < 1e-6 or not a >= 0
        return

    def slack(a):
        return estimate.cut(a, e).psi - (estimate.weight + a) * f_next

    size = 1 + abs(estimate.psi) + (estimate.weight + a) * abs(f_next)
    assert slack(a) >= -1e-8 * size
    assert slack(a) <= 1e-6 * size
    assert slack(1.01 * a + 1e-3) < slack(a) + 1e-9 * size


@given(st.integers(0, 10_000), MU)
def test_rescaled_cuts_restore_the_invariant(seed, mu):
    estimate, _, rng = random_estimate(seed, mu)
    f = estimate.psi / estimate.weight + abs(float(rng.standard_normal()))
    scaled = estimate.rescaled(f)
    assert scaled.weight <= estimate.weight
    assert scaled.weight * f <= scaled.psi + 1e-9 * (1 + abs(scaled.psi))
    if 0 < scaled.weight < estimate.weight:  # the largest scale: 2% more breaks it
        c = scaled.weight / estimate.weight * 1.02
        s = estimate.kappa * np.linalg.norm(estimate.v - estimate.center)
        m = estimate.psi + s * s / (2 * estimate.kappa)
        assert c * m - c * c * s * s / (2 * (1 + c * mu * estimate.weight)) < c * estimate.weight * f


def test_rescaling_leaves_a_true_invariant_alone():
    estimate, _, _ = random_estimate(0, 0.0)
    assert estimate.rescaled(estimate.psi / estimate.weight - 1.0) is estimate


@given(st.floats(-5, 5), POSITIVE, st.floats(0.0, 3.0), st.sampled_from([0.0, 0.1, 2.0]), st.floats(0.01, 5.0))
def test_certificate_is_the_minimum_over_the_ball(psi, A, reach, mu, radius):
    """(psi + min over ||u|| <= R of kappa/2||u - v||^2 - 1/2||u||^2)/A, by brute force along the ray through v."""
    kappa = 1 + mu * A
    ray = minimize_scalar(
        lambda s: 0.5 * kappa * (s - reach) ** 2 - 0.5 * s * s,
        bounds=(0, radius),
        method="bounded",
        options={"xatol": 1e-12},
    )
    ends = [0.5 * kappa * (s - reach) ** 2 - 0.5 * s * s for s in (0.0, radius)]
    expected = (psi + min(ray.fun, *ends)) / A
    got = Certificate(A, psi, mu, reach).lower(radius)
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-6 / A)
    if mu > 0:
        assert Certificate(A, psi, mu, reach).lower() <= got + 1e-9 * (1 + abs(got))
    assert Certificate(A, psi, mu, reach, offset=1.0).lower(radius) <= got + 1e-9 * (1 + abs(got))


def test_certificate_without_information():
    assert Certificate(0.0, 0.0, 0.0, 0.0).lower(1.0) == -math.inf
    assert Certificate(1.0, 0.0, 0.0, 0.0).lower() == -math.inf


@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
def test_observed_smoothness_never_exceeds_the_truth_and_can_reach_it(p):
    h = np.array([4.0, 1.0])
    L = Lp(p).dual_norm(h) if p == math.inf else 4.0 * 2 ** (1 - 2 / p)
    L = h.sum() if p == math.inf else L
    rng = np.random.default_rng(0)
    seen = 0.0
    for _ in range(500):
        one, two = (Evaluation(x, 0.5 * float(h @ x**2), h * x) for x in rng.standard_normal((2, 2)))
        value = observed_smoothness(Lp(p), one, two)
        assert value <= L * (1 + 1e-9)
        seen = max(seen, value)
    assert seen >= 0.9 * 4.0


def test_observed_smoothness_is_silent_at_rounding_level():
    x = np.array([1.0])
    one = Evaluation(x, 1.0, np.array([1e-9]))
    assert observed_smoothness(Lp(2.0), one, replace(one, x=x + 1e-12, f=1.0 + 2e-16)) == 0.0
