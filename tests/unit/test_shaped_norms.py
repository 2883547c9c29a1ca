"""Weighted l_p, Schatten norms and the largest of several norms: identities, symmetries, extremes, what is refused."""

import math

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hasd import Blocks, Lp, Schatten
from hasd._math.geometry import gain, is_euclidean, label_of, least_gain
from norms import BEYOND_LP, every_norm_beyond_lp

P = (2.0, 2.5, 3.0, 10.0, math.inf)
D = 12
TWELVE = arrays(np.float64, D, elements=st.floats(-1e3, 1e3).filter(lambda v: v == 0 or abs(v) > 1e-9))
EXTREME = arrays(
    np.float64,
    D,
    elements=st.builds(
        lambda sign, mantissa, exponent: sign * mantissa * 10.0**exponent,
        st.sampled_from([-1.0, 0.0, 1.0]),
        st.floats(1.0, 9.0),
        st.integers(-300, 299),
    ),
)
NORMS = st.sampled_from([make(D) for make in BEYOND_LP.values()])


@given(TWELVE, NORMS)
def test_the_steepest_vector_attains_the_dual_norm(g, norm):
    s, N = norm.steepest(g), norm.dual_norm(g)
    assert float(g @ s) == pytest.approx(N**2, rel=1e-9)
    assert norm.norm(s) == pytest.approx(N, rel=1e-9)


@given(TWELVE, TWELVE, NORMS)
def test_hoelders_inequality_holds(x, g, norm):
    assert abs(float(g @ x)) <= norm.dual_norm(g) * norm.norm(x) * (1 + 1e-9) + 1e-300


@given(EXTREME, NORMS)
def test_extremes_give_finite_answers_of_the_right_size(g, norm):
    s, N, top = norm.steepest(g), norm.dual_norm(g), np.abs(g).max()
    assert top / 5.01 <= N <= top * D * 5.01 and norm.norm(g) <= top * D * 5.01
    assert np.all(np.isfinite(s))
    assert norm.norm(s) == pytest.approx(N, rel=1e-6)


@given(TWELVE.map(np.rint), NORMS, st.integers(-900, 900))
def test_norms_and_steepest_map_scale_bit_for_bit_with_powers_of_two(g, norm, k):
    """As in l_p, from a g with entries that are far from the smallest numbers."""
    scale = 2.0**k
    np.testing.assert_array_equal(norm.steepest(scale * g), scale * norm.steepest(g))
    assert norm.dual_norm(scale * g) == scale * norm.dual_norm(g)
    assert norm.norm(scale * g) == scale * norm.norm(g)


@every_norm_beyond_lp
def test_zero_maps_to_zero(norm):
    norm, zero = norm(D), np.zeros(D)
    assert norm.norm(zero) == norm.dual_norm(zero) == 0.0
    np.testing.assert_array_equal(norm.steepest(zero), zero)
    assert gain(norm, zero) == 1.0


@every_norm_beyond_lp
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_handed_on(norm, bad):
    norm, g = norm(D), np.ones(D)
    g[5] = bad
    for value in (norm.norm(g), norm.dual_norm(g)):
        assert math.isnan(value) if math.isnan(bad) else value == math.inf
    assert not np.isfinite(norm.steepest(g)).all()


@every_norm_beyond_lp
def test_float32_stays_float32_and_is_as_exact_as_it_can_be(norm):
    norm, g = norm(D), np.random.default_rng(0).standard_normal(D)
    for scale in (1e-30, 1.0, 1e30):
        single = (scale * g).astype(np.float32)
        assert norm.steepest(single).dtype == np.float32
        assert norm.dual_norm(single) == pytest.approx(scale * norm.dual_norm(g), rel=1e-5)
        assert norm.norm(single) == pytest.approx(scale * norm.norm(g), rel=1e-5)
        np.testing.assert_allclose(norm.steepest(single), scale * norm.steepest(g), rtol=0, atol=1e-4 * scale * 10)


@every_norm_beyond_lp
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_of_another_library_give_numpys_answers(norm, dtype):
    norm, g = norm(D), np.random.default_rng(1).standard_normal(D).astype(dtype)
    u = array_api_strict.asarray(g)
    rounding = 1e-5 if dtype == "float32" else 1e-13
    assert norm.norm(u) == pytest.approx(norm.norm(g), rel=rounding)
    assert norm.dual_norm(u) == pytest.approx(norm.dual_norm(g), rel=rounding)
    s = norm.steepest(u)
    assert type(s) is type(u) and s.dtype == u.dtype
    np.testing.assert_allclose(np.asarray(s), norm.steepest(g), rtol=0, atol=rounding * norm.norm(norm.steepest(g)))


# Weights -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", P)
def test_weights_multiply_the_entries_before_the_norm_is_taken(p):
    w, x = np.array([1.0, 2.0, 0.25]), np.array([3.0, -1.0, 8.0])
    assert Lp(p, weights=w).norm(x) == Lp(p).norm(w * x)
    assert Lp(p, weights=w).dual_norm(x) == Lp(p).dual_norm(x / w)
    np.testing.assert_allclose(Lp(p, weights=w).steepest(x), Lp(p).steepest(x / w) / w, rtol=1e-15)
    assert Lp(math.inf, weights=w).norm(x) == 3.0 and Lp(2.0, weights=w).norm(x) == math.sqrt(17.0)
    assert Lp(p, weights=w).least_gain == 0.5


def test_norms_take_lists_and_integers():
    assert Lp(2.0).norm([3, 4]) == Lp(2.0).norm(np.array([3, 4])) == 5.0
    assert Lp(math.inf, weights=[1.0, 2.0]).dual_norm([3, 4]) == 5.0
    assert Schatten(math.inf, (2, 2)).norm([[3, 0], [0, 4]]) == pytest.approx(4.0)
    assert Schatten(2.0, (1, 2)).dual_norm([[3, 4]]) == 5.0


@pytest.mark.parametrize("norm", [Lp(2.0, shape=(2, 3)), Lp(2.0, weights=np.ones((2, 3))), Schatten(2.0, (2, 3))])
def test_arrays_of_another_shape_are_refused(norm):
    """A matrix on its side has as many entries, in another order."""
    assert norm.norm(np.ones((2, 3))) == norm.norm(np.ones(6)) == pytest.approx(math.sqrt(6.0))
    for wrong in (np.ones((3, 2)), np.ones(5)):
        with pytest.raises(ValueError, match=r"^this norm is for arrays of shape \(2, 3\), or vectors of 6, got \("):
            norm.norm(wrong)


def test_weights_at_both_ends_keep_the_signs_of_entries_that_underflow():
    norm, g = Lp(3.0, weights=[1e100, 1.0, 1e-100]), np.array([-1e-300, 1.0, 1e-300])
    s = norm.steepest(g)
    assert math.log(-s[0]) == pytest.approx(0.5 * (math.log(1e-300) - math.log(1e100)) - math.log(1e100), rel=1e-9)
    assert s[1] == pytest.approx(1.0) and s[2] == pytest.approx(1.0)  # (1e-300/1e-100)^(1/2)/1e-100
    assert Lp(math.inf, weights=[1e100, 1e100]).dual_norm(np.array([1e-300, 0.0])) == 5e-324  # not 0: g is not
    np.testing.assert_array_equal(
        np.sign(Lp(math.inf, weights=[1e100, 1.0]).steepest(np.array([-1e-300, 1.0]))), [-1, 1]
    )


@pytest.mark.parametrize(
    ("weights", "error", "said"),
    [
        ([1.0, 0.0], ValueError, r"^weights must be between 1e-100 and 1e100, but weights\[1\] is 0.0$"),
        ([1.0, -2.0], ValueError, r"weights\[1\] is -2.0$"),
        ([math.nan, 1.0], ValueError, r"weights\[0\] is nan$"),
        ([[1.0, math.inf]], ValueError, r"weights\[0, 1\] is inf$"),
        ([1e101], ValueError, r"weights\[0\] is 1e\+101$"),
        ([], ValueError, "^weights must not be empty$"),
        (2.0, TypeError, "^weights must be an array of real numbers, got 2.0$"),
        (["a"], TypeError, "^weights must be an array of real numbers"),
        ([1.0 + 1.0j], TypeError, "^weights must be an array of real numbers"),
        ([True], TypeError, "^weights must be an array of real numbers"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), ValueError, "^weights must have no masked entries"),
    ],
)
def test_weights_that_are_not_positive_and_finite_are_refused(weights, error, said):
    with pytest.raises(error, match=said):
        Lp(2.0, weights=weights)


def test_weights_are_copied_and_cannot_be_changed():
    w = np.ones(3)
    norm = Lp(2.0, weights=w)
    w[0] = 5.0
    assert norm.weights[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        norm.weights[0] = 5.0


def test_norms_are_equal_where_their_exponents_weights_and_shapes_are():
    w = np.array([1.0, 2.0])
    assert Lp(3.0) == Lp(3) and hash(Lp(3.0)) == hash(Lp(3))
    assert Lp(3.0, weights=w) == Lp(3.0, weights=w.copy()) != Lp(3.0, weights=w[::-1])
    assert Lp(3.0) != Lp(3.0, weights=w) and Lp(3.0, shape=(2,)) != Lp(3.0) and Lp(3.0) != 3.0
    assert Blocks([Lp(2.0, weights=w)]) == Blocks((Lp(2.0, weights=w.copy()),))
    assert len({Lp(2.0, weights=w), Lp(2.0, weights=w.copy()), Schatten(2, (1, 2)), Schatten(2.0, (1, 2))}) == 2
    assert (repr(Lp(3.0)), repr(Lp(2.0, shape=(2, 3)))) == ("Lp(p=3.0)", "Lp(p=2.0, shape=(2, 3))")
    assert repr(Lp(3.0, weights=w)) == "Lp(p=3.0, weights=array([1., 2.]))"


# Schatten ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (1, 4), (4, 1)])
def test_a_diagonal_matrix_has_the_l_p_norm_of_its_diagonal(p, shape):
    z = np.array([3.0, -1.0, 0.5])[: min(shape)]
    X = np.zeros(shape)
    np.fill_diagonal(X, z)
    norm = Schatten(p, shape)
    assert norm.norm(X) == pytest.approx(Lp(p).norm(z), rel=1e-14)
    assert norm.dual_norm(X) == pytest.approx(Lp(p).dual_norm(z), rel=1e-14)
    np.testing.assert_allclose(np.diag(norm.steepest(X)), Lp(p).steepest(z), rtol=1e-13)


@pytest.mark.parametrize("p", P)
def test_rotations_do_not_change_schatten_norms(p):
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    R, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    G, norm = rng.standard_normal((3, 4)), Schatten(p, (3, 4))
    assert norm.dual_norm(Q @ G @ R) == pytest.approx(norm.dual_norm(G), rel=1e-13)
    np.testing.assert_allclose(norm.steepest(Q @ G @ R), Q @ norm.steepest(G) @ R, atol=1e-12)


def test_the_spectral_step_of_a_matrix_of_rank_one_has_rank_one():
    """Singular values that are only rounding are taken for 0, whatever the BLAS makes of them."""
    rng = np.random.default_rng(0)
    G = np.outer(rng.standard_normal(6), rng.standard_normal(5))
    for p in (3.0, 1e6, math.inf):
        np.testing.assert_allclose(Schatten(p, (6, 5)).steepest(G), G, atol=1e-13)


@pytest.mark.parametrize(
    ("p", "shape", "error", "said"),
    [
        (1.5, (2, 2), ValueError, "p must satisfy 2 <= p <= inf"),
        ("2", (2, 2), TypeError, "p must be a number"),
        (2.0, (4,), ValueError, "^shape must have two dimensions"),
        (2.0, (2, 0), ValueError, "^shape must be a tuple of whole numbers of at least 1"),
        (2.0, (2, 2.5), ValueError, "^shape must be a tuple of whole numbers"),
        (2.0, 4, ValueError, "^shape must be a tuple of whole numbers"),
        (2.0, (True, 2), ValueError, "^shape must be a tuple of whole numbers"),
    ],
)
def test_what_is_no_schatten_norm_is_refused(p, shape, error, said):
    with pytest.raises(error, match=said):
        Schatten(p, shape)


# Blocks --------------------------------------------------------------------------------------------------------------


def test_blocks_have_the_largest_norm_and_the_sum_of_the_dual_norms():
    parts = [Schatten(math.inf, (2, 2)), Lp(3.0, weights=[1.0, 2.0, 3.0]), Lp(2.0, shape=(2, 2))]
    norm, rng = Blocks(parts), np.random.default_rng(0)
    x = [rng.standard_normal((2, 2)), rng.standard_normal(3), rng.standard_normal((2, 2))]
    flat = np.concatenate([part.ravel() for part in x])
    assert norm.norm(x) == norm.norm(flat) == max(part.norm(piece) for part, piece in zip(parts, x, strict=True))
    assert norm.dual_norm(x) == norm.dual_norm(flat) == sum(map(lambda part, piece: part.dual_norm(piece), parts, x))
    steps = norm.steepest(x)
    assert [step.shape for step in steps] == norm.shape == [(2, 2), (3,), (2, 2)]
    np.testing.assert_array_equal(np.concatenate([step.ravel() for step in steps]), norm.steepest(flat))
    for part, step in zip(parts, steps, strict=True):
        assert part.norm(step) == pytest.approx(norm.dual_norm(x), rel=1e-13)  # all parts move equally far
    assert (norm.p, norm.dual_convexity, norm.least_gain) == (math.inf, 0.0, 1.0 / 3.0)
    assert norm.label == "largest of Schatten-inf, weighted l_3, l_2"


def test_a_part_without_a_gradient_stays_where_it_is():
    norm = Blocks([Lp(math.inf, shape=(2,)), Lp(2.0, shape=(2,))])
    np.testing.assert_array_equal(norm.steepest(np.array([0.0, 0.0, 3.0, 4.0])), [0.0, 0.0, 3.0, 4.0])


def test_a_part_with_the_smallest_gradient_moves_as_far_as_the_others():
    norm = Blocks([Lp(2.0, shape=(1,)), Lp(2.0, shape=(1,))])
    np.testing.assert_allclose(norm.steepest(np.array([1e300, 5e-324])), [1e300, 1e300], rtol=1e-15)


def test_blocks_of_single_entries_are_the_maximum_norm():
    norm, g = Blocks([Lp(2.0, shape=(1,))] * 3), np.array([1.0, -2.0, 0.0])
    assert norm.dual_norm(g) == Lp(math.inf).dual_norm(g)
    np.testing.assert_allclose(norm.steepest(g), Lp(math.inf).steepest(g), rtol=1e-15)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([], ValueError, "^parts must not be empty"),
        (3.0, TypeError, "^parts must be a list of geometries"),
        ([3.0], TypeError, "^parts must be geometries such as Schatten or Lp, got 3.0"),
        ([Lp(2.0)], ValueError, r"^parts\[0\] must know its shape"),
        ([Blocks([Lp(2.0, shape=(2,))])], TypeError, r"^parts\[0\] must not be Blocks itself"),
    ],
)
def test_parts_that_cannot_be_joined_are_refused(parts, error, said):
    with pytest.raises(error, match=said):
        Blocks(parts)


def test_what_is_known_of_a_geometry():
    class Own:
        p = "own"

    assert [is_euclidean(norm) for norm in (Lp(2), Lp(2, weights=[1.0]), Schatten(2, (1, 1)), Own())] == [
        True,
        False,
        True,
        False,
    ]
    assert least_gain(Own()) is None and label_of(Own()) == "own"

    class Part(Lp):
        least_gain = None

    assert Blocks([Part(2.0, shape=(3,))]).least_gain is None
