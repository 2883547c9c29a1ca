"""The l_p geometry: identities, symmetries, extremes, continuity in p."""

import math
import pickle
from fractions import Fraction

import array_api_strict
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hasd import Geometry, Lp, convert_smoothness
from hasd._math.geometry import FAINT, LIFT, POWER, dot, gain, largest_gain, lift, norm2, unit
from support import NORMS

P = st.sampled_from([2.0, 2.0 + 1e-12, 2.5, 3.0, 4.0, 10.0, 1e6, math.inf])
VECTORS = arrays(np.float64, st.integers(1, 8), elements=st.floats(-1e3, 1e3).filter(lambda v: v == 0 or abs(v) > 1e-9))
EXTREME = arrays(
    np.float64,
    st.integers(1, 8),
    elements=st.builds(
        lambda sign, mantissa, exponent: sign * mantissa * 10.0**exponent,
        st.sampled_from([-1.0, 1.0]),
        st.floats(1.0, 9.0),
        st.integers(-300, 299),
    ),
)


@given(VECTORS, P)
def test_the_steepest_vector_attains_the_dual_norm(g, p):
    """<g, s> = ||g||_{p*}^2 and ||s||_p = ||g||_{p*}."""
    geometry = Lp(p)
    s, N = geometry.steepest(g), geometry.dual_norm(g)
    assert dot(g, s) == pytest.approx(N**2, rel=1e-9)
    assert geometry.norm(s) == pytest.approx(N, rel=1e-9)


@given(VECTORS, VECTORS, P)
def test_hoelders_inequality_holds(x, g, p):
    n = min(x.size, g.size)
    x, g = x[:n], g[:n]
    geometry = Lp(p)
    assert abs(dot(g, x)) <= geometry.dual_norm(g) * geometry.norm(x) * (1 + 1e-9) + 1e-300


@given(EXTREME, P)
def test_extremes_give_finite_answers_of_the_right_size(g, p):
    geometry = Lp(p)
    s, N, top = geometry.steepest(g), geometry.dual_norm(g), np.abs(g).max()
    assert top <= N * (1 + 1e-12) and top * g.size * (1 + 1e-12) >= N
    assert np.all(np.isfinite(s))
    assert geometry.norm(s) == pytest.approx(N, rel=1e-6)
    np.testing.assert_array_equal(np.sign(s), np.sign(g))


@given(EXTREME.map(lambda g: g[:1] * np.linspace(1e-9, 1.0, g.size)), P, st.integers(-20, 20))
def test_norms_and_steepest_map_scale_bit_for_bit_with_powers_of_two(g, p, k):
    scale = 2.0**k
    top, least = np.abs(g).max(), np.abs(g).min()
    assume(least > 1e-290 and top < 1e290 and top * 1e-30 < least)
    geometry = Lp(p)
    np.testing.assert_array_equal(geometry.steepest(scale * g), scale * geometry.steepest(g))
    assert geometry.dual_norm(scale * g) == scale * geometry.dual_norm(g)
    assert geometry.norm(scale * g) == scale * geometry.norm(g)


@given(VECTORS, P, st.randoms())
def test_steepest_map_and_dual_norm_follow_permutations_and_signs(g, p, random):
    geometry = Lp(p)
    order = list(range(g.size))
    random.shuffle(order)
    signs = np.array([random.choice([-1.0, 1.0]) for _ in order])
    np.testing.assert_allclose(geometry.steepest((signs * g)[order]), (signs * geometry.steepest(g))[order], rtol=1e-12)
    assert geometry.dual_norm((signs * g)[order]) == pytest.approx(geometry.dual_norm(g), rel=1e-12)


@given(VECTORS)
def test_steepest_and_dual_norm_are_continuous_at_both_ends_of_p(g):
    np.testing.assert_allclose(Lp(2.0 + 1e-12).steepest(g), g, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(Lp(1e9).steepest(g), Lp(math.inf).steepest(g), rtol=1e-6, atol=1e-6)
    assert Lp(1e9).dual_norm(g) == pytest.approx(Lp(math.inf).dual_norm(g), rel=1e-6)


def test_entries_that_underflow_against_the_largest_keep_their_sign():
    g = np.array([1e300, -1e-300, 0.0])
    s = Lp(1e6).steepest(g)
    assert s[1] / s[0] == pytest.approx(-(10.0 ** (-600 / (1e6 - 1))), rel=1e-9)
    assert s[2] == 0.0
    np.testing.assert_array_equal(Lp(math.inf).steepest(g), [1e300, -1e300, 0.0])


@pytest.mark.parametrize("p", NORMS)
def test_norms_of_integers_agree_with_exact_arithmetic(p):
    """Integers, where the norm of an integer exponent is a rational root."""
    x = np.array([3.0, -4.0, 12.0])
    if p == int(p) if math.isfinite(p) else False:
        exact = sum(Fraction(int(abs(v))) ** int(p) for v in x)
        assert Lp(p).norm(x) == pytest.approx(float(exact) ** (1 / p), rel=1e-14)
    assert Lp(math.inf).norm(x) == 12.0
    assert Lp(2.0).norm(x) == 13.0


@pytest.mark.parametrize("p", NORMS)
def test_zero_maps_to_zero(p):
    zero = np.zeros(3)
    assert Lp(p).norm(zero) == Lp(p).dual_norm(zero) == 0.0
    np.testing.assert_array_equal(Lp(p).steepest(zero), zero)
    assert gain(Lp(p), zero) == 1.0


@given(VECTORS, P)
def test_gain_lies_between_one_and_its_limit(g, p):
    if np.any(g != 0):
        assert 1 - 1e-9 <= gain(Lp(p), g) <= largest_gain(p, g.size) * (1 + 1e-9)


@given(VECTORS)
def test_norm2_agrees_with_numpy(x):
    assert norm2(x) == pytest.approx(np.linalg.norm(x), rel=1e-12)


@given(P, P, st.integers(1, 50), st.integers(0, 1000))
def test_converted_constants_hold(source, target, d, seed):
    """The quadratic <g, x>^2/2 has L_q = ||g||_{q*}^2: its constant in one norm, converted, covers the other."""
    g = np.random.default_rng(seed).standard_normal(d)
    L = Lp(source).dual_norm(g) ** 2
    assert Lp(target).dual_norm(g) ** 2 <= convert_smoothness(L, source, target, d) * (1 + 1e-9)


def test_float32_stays_float32():
    g = np.array([1.0, -2.0], dtype=np.float32)
    for p in NORMS:
        assert Lp(p).steepest(g).dtype == np.float32


@pytest.mark.parametrize("p", [1.0, 1.999, -2.0, math.nan])
def test_exponents_below_two_are_refused(p):
    with pytest.raises(ValueError, match="2 <= p <= inf"):
        Lp(p)


def test_lp_is_a_geometry():
    assert isinstance(Lp(3.0), Geometry)


@given(VECTORS, st.integers(-1000, 1000))
def test_norm2_scales_with_powers_of_two_to_the_last_bit(x, k):
    """From numbers whose squares vanish to those whose squares overflow."""
    x = np.rint(x)  # so that the smallest are still normal numbers
    assert norm2(x * 2.0**k) == norm2(x) * 2.0**k


@pytest.mark.parametrize("k", [-120, -90, -70, -66, -20, 0, 20, 60, 70, 90, 115])
def test_norm2_in_float32_is_right_though_squares_vanish_or_overflow(k):
    """Squares of 2^-120 vanish in float32, those of 2^-66 lose digits, those of 2^115 overflow."""
    x = np.array([1.1, -2.3, 0.7], dtype=np.float32)
    expected = float(np.linalg.norm(x.astype(np.float64)))
    assert norm2(x * np.float32(2.0**k)) / 2.0**k == pytest.approx(expected, rel=1e-6)


def test_norm2_is_exact_for_the_smallest_numbers_of_float32():
    """Below 2^-126 they are multiples of 2^-149, and the power that would bring them to 1 is no float32."""
    assert norm2(np.array([12.0, -16.0], dtype=np.float32) * np.float32(2.0**-149)) == 20.0 * 2.0**-149


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("p", NORMS)
def test_what_is_not_finite_is_handed_on(p, bad):
    g = np.array([1.0, bad])
    with np.errstate(all="ignore"):
        for value in (norm2(g), Lp(p).norm(g), Lp(p).dual_norm(g)):
            assert math.isnan(value) if math.isnan(bad) else value == math.inf
        assert Lp(p).steepest(g) is g


@given(st.floats(1e-290, 1e290))
def test_unit_brings_a_number_below_one(size):
    assert 0.5 <= size * unit(size) < 1.0
    assert math.frexp(unit(size))[0] == 0.5  # a power of two


def test_unit_has_ends():
    assert unit(0.0) == 1.0
    assert unit(5e-324) == 2.0**POWER == 2.0**1000 and unit(1.7e308) == 2.0**-1000
    assert (unit(1e300, 100), unit(1e-300, 100)) == (2.0**-100, 2.0**100)


def test_lift_is_for_numbers_that_are_all_faint():
    below = math.nextafter(FAINT, 0.0)
    assert (FAINT, LIFT) == (2.0**-800, 2.0**900)
    assert lift(below) == lift(-below, below) == LIFT
    assert lift(FAINT) == lift(-FAINT) == lift(below, -1.0) == 1.0


def test_dual_exponents_gain_limits_and_conversions_are_exact():
    assert (Lp(2.0).dual, Lp(3.0).dual, Lp(5.0).dual, Lp(math.inf).dual) == (2.0, 1.5, 1.25, 1.0)
    assert (largest_gain(2.0, 16), largest_gain(4.0, 16), largest_gain(math.inf, 16)) == (1.0, 2.0, 4.0)
    assert (convert_smoothness(3.0, 2.0, 4.0, 16), convert_smoothness(3.0, 4.0, 2.0, 16)) == (12.0, 3.0)
    assert convert_smoothness(3.0, 4.0, 4.0, 16) == 3.0


def test_steepest_vector_and_gain_are_those_of_the_formula():
    """p = 3: s = ||g||_{3/2}^{1/2} sign(g) |g|^{1/2}; at entries 1, 4, 16 the norm is (1 + 8 + 64)^{2/3}."""
    norm = 73.0 ** (2.0 / 3.0)
    np.testing.assert_allclose(Lp(3.0).steepest(np.array([1.0, -4.0, 16.0])), norm**0.5 * np.array([1.0, -2.0, 4.0]))
    assert Lp(3.0).dual_norm(np.array([1.0, -4.0, 16.0])) == pytest.approx(norm, rel=1e-14)
    g = np.array([3.0, -4.0])
    assert Lp(2.0).steepest(g) is g
    assert gain(Lp(math.inf), g) == gain(Lp(math.inf), g * 2.0**-9) == 7.0 / 5.0


@pytest.mark.parametrize("p", [2.5, 3.0, 10.0])
@pytest.mark.parametrize("tiny", [1e-300, 2.0**-1012, 2.0**-1010, 1e-320])
def test_entries_near_the_smallest_number_keep_their_digits(p, tiny):
    """Against logarithms: s[1]/s[0] = (tiny/1)^{1/(p-1)}, whether or not the entry underflows beside the largest."""
    s = Lp(p).steepest(np.array([8.0, tiny]))
    assert math.log(s[1] / s[0]) == pytest.approx((math.log(tiny) - math.log(8.0)) / (p - 1.0), rel=1e-11)


def test_dot_is_the_inner_product_as_a_float():
    assert dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0
    assert type(dot(np.ones(2), np.ones(2))) is float


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", [-140, -70, 0, 60, 120])
def test_the_geometry_of_another_librarys_arrays_is_that_of_numpys(dtype, power):
    """Inner products, norms and the steepest vector are NumPy's, squares that under- or overflow included."""
    if dtype == "float64":
        power *= 8
    x = np.array([3.0, -4.0, 12.0], dtype=dtype) * np.dtype(dtype).type(2.0**power)
    y = np.array([1.0, 2.0, -0.5], dtype=dtype)
    u, v = array_api_strict.asarray(x), array_api_strict.asarray(y)
    assert dot(u, v) == dot(x, y) == -11.0 * 2.0**power
    with np.errstate(over="ignore"):  # as in a run
        assert norm2(u) == norm2(x) == pytest.approx(13.0 * 2.0**power, rel=1e-6 if dtype == "float32" else 1e-15)
    for p in (2.0, 3.0, math.inf):
        with np.errstate(over="ignore"):
            assert Lp(p).norm(u) == Lp(p).norm(x)
        assert Lp(p).dual_norm(v) == Lp(p).dual_norm(y)
        np.testing.assert_array_equal(np.asarray(Lp(p).steepest(v)), Lp(p).steepest(y))


@pytest.mark.parametrize("shapes", [((3,), (5,)), ((5,), (3,)), ((2, 2), (4,))])
def test_inner_products_of_unlike_shapes_are_refused(shapes):
    with pytest.raises(ValueError, match="not aligned"):
        dot(*map(np.ones, shapes))


@given(EXTREME)
def test_inner_products_and_norms_are_the_same_for_a_vector_that_was_pickled(x):
    """Its type is an object of its own."""
    with np.errstate(all="ignore"):
        again = pickle.loads(pickle.dumps(x))
        assert (dot(again, again), norm2(again)) == (dot(x, x), norm2(x))


def test_inner_products_of_empty_vectors_are_0():
    assert dot(np.zeros(0), np.zeros(0)) == norm2(np.zeros(0)) == 0.0
