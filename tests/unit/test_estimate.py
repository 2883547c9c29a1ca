"""The estimate sequence's arithmetic, against its definition by brute force."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from hasd import Lp
from hasd._math.doubt import Doubt, roundings
from hasd._math.estimate import EPS, Charge, Estimate, EstimateBound, increment, observed_smoothness, rounding
from hasd._math.evaluation import Evaluation

POSITIVE = st.floats(1e-3, 1e3)
MU = st.sampled_from([0.0, 0.01, 0.5, 1.0])
SHIFTS = st.sampled_from([-960, -850, -799, -500, -1, 500, 900])
"""Powers of two, from where products of small numbers underflow to where those of large ones would overflow."""


def estimate_at(center, v, **fields):
    """The estimate with that minimiser."""
    return Estimate(center, v - center, **fields)


def random_estimate(seed, mu, cuts=4, d=3):
    """An estimate and its definition as a function."""
    rng = np.random.default_rng(seed)
    x0 = rng.standard_normal(d)
    estimate, terms = estimate_at(x0, x0, mu=mu), []
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


def test_increment_at_a_c_that_underflowed_is_large_but_finite():
    """In a norm with weights, Algorithm 1 may try a rho of 1e-150 on a function whose L is 1e-300."""
    assert 1e300 < increment(1e290, 1e-150 * 1e-300) < math.inf


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
def test_the_coupling_point_balances_x_and_v(seed, mu, a):
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
    scaled = estimate.rescale(estimate.psi - estimate.weight * f)
    assert scaled.weight <= estimate.weight
    assert scaled.weight * f <= scaled.psi + 1e-9 * (1 + abs(scaled.psi))
    if 0 < scaled.weight < estimate.weight:  # the largest scale: 2% more breaks it
        c = scaled.weight / estimate.weight * 1.02
        s = estimate.kappa * np.linalg.norm(estimate.v - estimate.center)
        m = estimate.psi + s * s / (2 * estimate.kappa)
        assert c * m - c * c * s * s / (2 * (1 + c * mu * estimate.weight)) < c * estimate.weight * f


def test_rescaling_leaves_a_true_invariant_alone():
    estimate, _, _ = random_estimate(0, 0.0)
    assert estimate.rescale(estimate.weight) is estimate


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
    got = EstimateBound(A, psi, mu, reach).lower(radius)
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-6 / A)
    if mu > 0:
        assert EstimateBound(A, psi, mu, reach).lower() <= got + 1e-9 * (1 + abs(got))
    assert EstimateBound(A, psi, mu, reach, offset=1.0).lower(radius) <= got + 1e-9 * (1 + abs(got))


def test_a_certificate_without_information_bounds_nothing():
    assert EstimateBound(0.0, 0.0, 0.0, 0.0).lower(1.0) == -math.inf
    assert EstimateBound(1.0, 0.0, 0.0, 0.0).lower() == -math.inf


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


def test_rounding_is_eight_units_of_the_largest_value():
    assert np.finfo(np.float64).eps == EPS
    assert rounding(3.0, -5.0) == 40.0 * EPS
    assert rounding(-3.0, 2.0, eps=0.5) == 12.0


def test_increment_below_mu_takes_a_c_a_little_above_it():
    assert increment(2.0, 0.5) == increment(2.0, 0.5, 0.0) == pytest.approx(1.0 + math.sqrt(5.0), rel=1e-15)
    a = increment(3.0, 0.1, 1.0)
    assert a == increment(3.0, 1.0, 1.0) == increment(3.0, 1.0 + 2.0**-10, 1.0) != increment(3.0, 1.0 + 2.0**-9, 1.0)


@pytest.mark.parametrize("mu", [0.0, 0.25])
@pytest.mark.parametrize("radius", [1.0, 2500.0, 1e5, None])
@pytest.mark.parametrize("offset", [0.0, 500.0])
@pytest.mark.parametrize("psi", [2.5e6, -7.0, 3.0])
@pytest.mark.parametrize("charge", [Charge(), Charge(value=50.0, slope=0.25), Charge(1.0, 0.5, 2.0, 0.125)])
def test_certificate_takes_off_its_charge_and_its_rounding_and_little_more(mu, radius, offset, psi, charge):
    """Against exact arithmetic.  Mutation: leave out the charge's slope where the minimum is looked for."""
    if mu == 0.0 and radius is None:
        return
    A, D, bend = Fraction(4), Fraction(1000), Fraction(3)
    kappa, c = 1 + Fraction(mu) * A, Fraction(charge.slope) + bend * Fraction(charge.slope_bend)
    free = (kappa * D + c) / (kappa - 1) if mu else Fraction(10) ** 9
    s = free if radius is None else min(Fraction(radius) + Fraction(offset), free)
    low = kappa / 2 * (s - D) ** 2 - s * s / 2 - c * s - Fraction(charge.value) - bend * Fraction(charge.value_bend)
    exact = (Fraction(psi) + low) / A
    certificate = EstimateBound(4.0, psi, mu, 1000.0, offset, charge)
    short = float(exact - Fraction(certificate.lower(radius, 3.0)))
    sizes = abs(psi) + float(kappa * (s + D) ** 2 + c * s)
    assert 0.0 <= short <= 16.0 * EPS * sizes / 4.0
    told = certificate.rounding_charge(radius, 3.0)
    assert told == pytest.approx((charge.value + 3.0 * charge.value_bend + float(c * s)) / 4.0, abs=32 * EPS * sizes)


def test_certificate_without_a_radius_goes_as_far_as_the_curvature_lets():
    """kappa = 2, D = 3: s = 6, where (kappa/2)(s - D)^2 - s^2/2 = 9 - 18 = -9."""
    assert EstimateBound(4.0, 1.0, 0.25, 3.0).lower() == pytest.approx((1.0 - 9.0) / 4.0, rel=1e-14)
    assert EstimateBound(1.0, 1.0, 1.0, 3.0).lower() == pytest.approx(1.0 - 9.0, rel=1e-14)
    # kappa = 3/2: s = 9, where it is 27 - 81/2
    assert EstimateBound(2.0, 1.0, 0.25, 3.0).lower() == pytest.approx((1.0 - 13.5) / 2.0, rel=1e-14)


@pytest.mark.parametrize("psi", [math.nan, math.inf, -math.inf])
def test_certificate_of_what_is_not_finite_bounds_nothing(psi):
    assert EstimateBound(1.0, psi, 0.0, 1.0).lower(1.0) == -math.inf


def test_a_certificate_holds_what_the_estimate_measured():
    center, v, origin = np.array([1.0, 1.0]), np.array([4.0, 5.0]), np.array([1.0, -11.0])
    charge, unit = Charge(0.5, 0.125), EPS * roundings(2)
    estimate = estimate_at(center, v, weight=2.0, psi=3.0, mu=0.5, charge=charge, rest=1e-17)
    assert estimate.certificate(center) == EstimateBound(2.0, 3.0, 0.5, 5.0, 0.0, charge, unit, 1e-17)
    assert estimate.certificate(origin) == EstimateBound(2.0, 3.0, 0.5, 5.0, 12.0, charge, unit, 1e-17)
    plain = Estimate.around(center, 0.25)
    assert (plain.weight, plain.psi, plain.mu, plain.reach, plain.kappa) == (0.0, 0.0, 0.25, 0.0, 1.0)
    assert plain.charge == Charge()


def exact_minimum(x0, terms, mu, u):
    """psi at u in rational arithmetic."""
    square = lambda vector: sum(part * part for part in vector)  # noqa: E731
    away = [Fraction(a) - Fraction(b) for a, b in zip(u, x0, strict=True)]
    value = square(away) / 2
    for a, e in terms:
        apart = [Fraction(s) - Fraction(t) for s, t in zip(u, e.x, strict=True)]
        slope = sum(Fraction(g) * part for g, part in zip(e.g, apart, strict=True))
        value += a * (Fraction(e.f) + slope + Fraction(mu) / 2 * square(apart))
    return value


@given(st.integers(0, 10_000), MU, st.sampled_from([0.0, 1e3, 1e8]), st.sampled_from([1e-3, 1.0, 1e6]))
def test_the_charge_covers_the_arithmetic_of_the_cuts(seed, mu, far, size):
    """psi* + kappa/2 ||u - v||^2 is the sum of the cuts up to the charge, at any u.  Mutation: tilt = 0."""
    rng = np.random.default_rng(seed)
    x0 = far + rng.standard_normal(3)
    estimate, terms = Estimate.around(x0, mu), []
    for _ in range(12):
        e = Evaluation(x0 + rng.standard_normal(3), float(size * rng.standard_normal()), rng.standard_normal(3))
        before = Fraction(estimate.weight)
        estimate = estimate.cut(float(rng.uniform(0.1, 10.0)), e)
        terms.append((Fraction(estimate.weight) - before, e))
    for _ in range(3):
        u = x0 + 10.0 * rng.standard_normal(3)
        away = [Fraction(a) - Fraction(b) - Fraction(c) for a, b, c in zip(u, x0, estimate.away, strict=True)]
        held = Fraction(estimate.psi) + Fraction(estimate.rest)
        held += (1 + Fraction(mu) * Fraction(estimate.weight)) / 2 * sum(part * part for part in away)
        off = abs(float(held - exact_minimum(x0, terms, mu, u)))
        assert off <= estimate.charge.at(float(np.linalg.norm(u - x0)), 0.0)


def test_the_charge_holds_the_doubt_of_the_evaluations():
    """By weight and by distance from the center; far smaller where there is none."""
    x = np.zeros(2)
    doubtful = Evaluation(np.array([3.0, 4.0]), 1.0, np.ones(2), doubt=Doubt(0.5, 0.25, 9.0, 2.0, 0.125))
    charge = Estimate.around(x).cut(2.0, doubtful).charge
    assert charge == pytest.approx(Charge(2.0 * (0.5 + 0.25 * 5.0), 0.5, 2.0 * (2.0 + 0.125 * 5.0), 0.25), rel=1e-12)
    assert charge.at(2.0, 4.0) == pytest.approx(3.5 + 4.0 * 5.25 + 2.0 * (0.5 + 4.0 * 0.25), rel=1e-12)
    plain = Estimate.around(x).cut(2.0, replace(doubtful, doubt=Doubt())).charge
    assert plain.at(2.0, 4.0) < 1e-13


def test_the_first_coupling_point_is_v():
    x0, x = np.zeros(2), np.ones(2)
    fresh = estimate_at(x0, x0)
    assert fresh.couple(x, 1.0) is x0
    later = estimate_at(x0, x0, weight=3.0)
    assert later.share(1.0) == 0.25
    np.testing.assert_array_equal(later.couple(x, 1.0), [0.75, 0.75])


@given(st.integers(0, 10_000), MU, SHIFTS)
def test_scaling_f_scales_the_weights_and_changes_no_other_bit(seed, mu, k):
    """f and mu times 2^k, weights by 2^-k: v and psi stay, whether or not products underflow on the way."""
    scale, rng = 2.0**k, np.random.default_rng(seed)
    x0 = rng.standard_normal(3)
    plain, other = estimate_at(x0, x0, mu=mu), estimate_at(x0, x0, mu=mu * scale)
    for _ in range(3):
        e = Evaluation(rng.standard_normal(3), float(rng.standard_normal()), rng.standard_normal(3))
        scaled = Evaluation(e.x, e.f * scale, e.g * scale)
        f_next = e.f - float(rng.random())
        a, b = plain.largest_root(e, f_next), other.largest_root(scaled, f_next * scale)
        assert (math.isnan(a) and math.isnan(b)) or a == b * scale
        a = float(rng.uniform(0.1, 2.0))
        plain, other = plain.cut(a, e), other.cut(a / scale, scaled)
        assert other.psi == plain.psi and other.weight * scale == plain.weight
        np.testing.assert_array_equal(other.v, plain.v)


@given(st.integers(0, 10_000), st.sampled_from([2.0, 3.0, math.inf]), SHIFTS)
def test_scaling_f_scales_the_observed_smoothness(seed, p, k):
    h, scale = np.array([4.0, 1.0]), 2.0**k
    one, two = (
        Evaluation(x, 0.5 * float(h @ x**2), h * x) for x in np.random.default_rng(seed).standard_normal((2, 2))
    )
    scaled = [Evaluation(e.x, e.f * scale, e.g * scale) for e in (one, two)]
    seen = observed_smoothness(Lp(p), *scaled) / scale  # divided first: approx allows 1e-12 whatever the size
    assert seen == pytest.approx(observed_smoothness(Lp(p), one, two), rel=1e-12)


def test_observed_smoothness_on_a_line_is_what_a_hand_computes():
    """f = x^2 on a line: L = 2 from any two points; f = |x|^3/3 from 0 to 1: the larger of the two readings."""
    one, two = (Evaluation(np.array([x]), x * x, np.array([2.0 * x])) for x in (1.0, 3.0))
    assert observed_smoothness(Lp(2.0), one, two) == observed_smoothness(Lp(2.0), two, one) == 2.0
    one, two = (Evaluation(np.array([x]), x**3 / 3.0, np.array([x * x])) for x in (0.0, 1.0))
    assert observed_smoothness(Lp(2.0), one, two) == pytest.approx(1.5)  # 1/(2 (1 - 2/3)), above 1/(2/3)


def test_observed_smoothness_begins_thirty_two_roundings_above_nothing():
    g = np.array([1.0])
    for units, seen in ((31.0, False), (34.0, True)):
        gap = units * 8.0 * EPS
        one, two = Evaluation(np.zeros(1), 1.0, g), Evaluation(np.zeros(1), 1.0 - gap, -g)
        assert (observed_smoothness(Lp(2.0), one, two) > 0.0) == seen


def test_largest_root_of_a_first_cut_is_what_a_hand_computes():
    """No cut yet, v = y, f(y) = 1, f_next = 1/2, ||g|| = 1: a/2 = a^2/2 gives a = 1; with mu = 1/2, E = 1/4: a = 2."""
    x = np.zeros(1)
    e = Evaluation(x, 1.0, np.ones(1))
    assert estimate_at(x, x).largest_root(e, 0.5) == pytest.approx(1.0, rel=1e-13)
    assert estimate_at(x, x, mu=0.5).largest_root(e, 0.5) == pytest.approx(2.0, rel=1e-13)
    # a decrease that strong convexity does not allow: E is held above 0, and a stays finite
    assert 1.0 < estimate_at(x, x, mu=4.0).largest_root(e, 0.5) < math.inf


def test_largest_root_with_slack_and_a_line_is_what_a_hand_computes():
    """S = 2 and D = -1: -a^2/2 - a + 2 = 0 at a = sqrt(5) - 1; with S < 0 and D < 0 there is none."""
    x = np.zeros(1)
    e = Evaluation(x, 1.0, np.ones(1))
    assert estimate_at(x, x, weight=1.0, psi=4.0).largest_root(e, 2.0) == pytest.approx(math.sqrt(5.0) - 1.0, rel=1e-12)
    # mu = 1, kappa = 2: S = 3/2, D = 3/2 - 3, E = 2, so 2 a^2 + 3/2 a - 3 = 0
    curved = estimate_at(x, x, weight=1.0, psi=4.0, mu=1.0).largest_root(e, 2.5)
    assert curved == pytest.approx((math.sqrt(26.25) - 1.5) / 4.0, rel=1e-12)
    assert math.isnan(estimate_at(x, x, weight=1.0, psi=1.9).largest_root(e, 2.0))
    assert math.isnan(estimate_at(x, x).largest_root(e, 2.0))  # S = 0, D < 0: only a = 0, which is no weight
    # S < 0 < D: the larger of two positive roots, -a^2/2 + a - 3/8 = 0 at 3/2
    assert estimate_at(x, x, weight=1.0, psi=-0.375).largest_root(e, 0.0) == pytest.approx(1.5, rel=1e-12)


def test_no_weight_grows_out_of_rounding():
    """psi and A f_next equal up to half of what rounding may do: S counts as negative."""
    x = np.zeros(1)
    e = Evaluation(x, 1.0, np.ones(1))
    almost = estimate_at(x, x, weight=1.0, psi=1.0 + 8.0 * EPS)
    assert math.isnan(almost.largest_root(e, 1.0))
    assert math.isnan(estimate_at(x, x).largest_root(e, 1.0 - 4.0 * EPS))  # nor does a decrease of rounding's size
    enough = estimate_at(x, x, weight=1.0, psi=1.0 + 40.0 * EPS)
    assert enough.largest_root(e, 1.0) > 0.0


def test_rescaling_without_mu_is_what_a_hand_computes():
    """mu = 0, v - center = 2, A = 1, psi = 0: m = 2; c m - 2 c^2 = c f at c = (2 - f)/2; at f >= 2 nothing is left."""
    center, v = np.array([3.0]), np.array([5.0])
    estimate = estimate_at(center, v, weight=1.0, psi=0.0, charge=Charge(0.5, 0.25))
    half = estimate.rescale(-1.0)
    assert (half.weight, half.psi, half.v[0]) == (0.5, 0.5, 4.0) and half.center is center
    assert half.charge == pytest.approx(Charge(0.25, 0.125), rel=1e-12)
    assert estimate.rescale(0.0) is estimate
    gone = estimate.rescale(-2.0)
    assert (gone.weight, gone.psi, gone.mu) == (0.0, 0.0, 0.0) and gone.center is center and not gone.away.any()
    assert replace(estimate, mu=0.5).rescale(-9.0).mu == 0.5


def test_rescaling_with_mu_is_what_a_hand_computes():
    """mu A = 1, kappa = 2, v - center = 1: s = 2, m = 1; c (m - f) = 2 c^2/(1 + c) at f = 1/5 gives c = 2/3."""
    estimate = estimate_at(np.zeros(1), np.ones(1), weight=1.0, psi=0.0, mu=1.0)
    got = estimate.rescale(-0.2)
    assert got.weight == pytest.approx(2.0 / 3.0, rel=1e-14)
    assert got.kappa == pytest.approx(5.0 / 3.0, rel=1e-14)
    assert got.v[0] == pytest.approx((2.0 / 3.0) * 2.0 / (5.0 / 3.0), rel=1e-14)
    assert got.psi == pytest.approx(0.2 * 2.0 / 3.0, rel=1e-13)


@pytest.mark.parametrize(("f", "f_next"), [(0.0, -1000.0), (1000.0, 0.0)])
@pytest.mark.parametrize("precision", [0.0, 1e-7])
def test_a_decrease_is_seen_against_the_larger_of_both_values(f, f_next, precision):
    """<g, v - y> leaves f(y) + <g, v - y> - f_next = delta: half of the rounding grows no weight, twice of it does."""
    noise = 8.0 * max(EPS, precision) * 1000.0
    for delta, grows in ((0.5 * noise, False), (2.0 * noise, True)):
        e = Evaluation(np.zeros(1), f, np.ones(1), precision)
        estimate = estimate_at(np.zeros(1), np.array([f_next - f + delta]))
        assert (estimate.largest_root(e, f_next) > 0.0) == grows


def test_the_slack_is_lowered_by_eight_roundings_of_its_terms():
    """psi = 1 + delta, A f_next = 1: sixteen units of delta are rounding, the seventeenth is not."""
    e = Evaluation(np.zeros(1), 1.0, np.ones(1))
    for units, grows in ((15.0, False), (17.0, True)):
        estimate = estimate_at(np.zeros(1), np.zeros(1), weight=1.0, psi=1.0 + units * EPS)
        assert (estimate.largest_root(e, 1.0) > 0.0) == grows


TINY, LARGE = 2.0**-850, 2.0**200
"""One would have to be lifted, the other does not bear it."""


@pytest.mark.parametrize(("f", "g"), [(LARGE, TINY), (0.0, LARGE), (TINY, LARGE)])
def test_a_cut_of_numbers_of_very_different_sizes_keeps_every_digit(f, g):
    e = Evaluation(np.zeros(1), f, np.array([g]))
    estimate = estimate_at(np.zeros(1), np.ones(1)).cut(2.0**-300, e)
    assert estimate.psi == pytest.approx(2.0**-300 * (f + g) - 0.5 * (2.0**-300 * g) ** 2, rel=1e-15, abs=0.0)


def test_a_gradient_far_larger_than_the_values_still_has_a_root():
    x = np.zeros(1)
    assert estimate_at(x, x).largest_root(Evaluation(x, TINY, np.array([LARGE])), 0.0) >= 0.0


@pytest.mark.parametrize("back", [False, True])
def test_observed_smoothness_of_one_large_gradient_is_half_of_it(back):
    """From g = 0 at 0 to g = LARGE at 1, both values tiny: L = LARGE/2."""
    pair = Evaluation(np.zeros(1), TINY, np.zeros(1)), Evaluation(np.ones(1), TINY, np.array([LARGE]))
    assert observed_smoothness(Lp(2.0), *(pair[::-1] if back else pair)) == 0.5 * LARGE


@pytest.mark.parametrize("values", [(1.0, 1000.0), (1000.0, 1.0)])
@pytest.mark.parametrize("precision", [0.0, 1e-7])
def test_observed_smoothness_is_silent_below_the_rounding_of_the_larger_value(values, precision):
    """The Bregman distance f(x) - f(y) - <g_y, x - y> is set to a number of roundings."""
    noise = 8.0 * max(EPS, precision) * 1000.0
    for units, seen in ((20.0, False), (50.0, True)):
        f, other = values
        one = Evaluation(np.ones(1), f, np.array([1.0]), precision)
        two = Evaluation(np.zeros(1), other, np.array([f - other - units * noise]), precision)
        # the other reading, <g_x, x - y> - (f(x) - f(y)), is put below 0
        one = replace(one, g=np.array([f - other - 1.0]))
        assert (observed_smoothness(Lp(2.0), one, two) > 0.0) == seen
