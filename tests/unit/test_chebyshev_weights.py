"""chebyshev with weights and relative errors: against a linear program, and its bound against exact minima."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog

import hasd
from hasd.problems import _multipliers as proof
from hasd.problems._coordinates import Coordinates
from rational import exact_minimum


def by_linear_program(A, b, w):
    """min t, -t <= w (Ax - b) <= t, all rows at once."""
    A, b = w[:, None] * (A.toarray() if scipy.sparse.issparse(A) else A), w * b
    ones = np.ones((len(b), 1))
    bounds = [(None, None)] * A.shape[1] + [(0, None)]
    rows = np.block([[A, -ones], [-A, -ones]])
    return linprog([0.0] * A.shape[1] + [1.0], A_ub=rows, b_ub=np.concatenate((b, -b)), bounds=bounds).fun


def problem(seed=0, n=400, d=6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), 3.0 + rng.standard_normal(n), rng.uniform(0.1, 10.0, n)


def check_certificate(A, b, w, res):
    """What a reader would do: A^T u = 0, sum |u|/w = 1, and the value |<u, b>|."""
    A, u, on = A.toarray() if scipy.sparse.issparse(A) else A, res.multipliers, res.active
    assert np.sum(np.abs(u) / w[on]) == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.abs(A[on].T @ u) <= 1e-12 * np.abs(A[on]).T @ np.abs(u))
    assert abs(u @ b[on]) == pytest.approx(res.lower, rel=1e-9)
    np.testing.assert_allclose(w[on] * np.abs(res.residual[on]), res.fun, rtol=1e-7)
    np.testing.assert_array_equal(res.signs, np.sign(res.residual[on]))
    np.testing.assert_allclose(res.residual, A @ res.x - b, rtol=0.0, atol=1e-12)
    assert res.fun == np.max(w * np.abs(res.residual)) and 0.0 <= res.gap <= 1e-9 * res.fun


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array, np.float32])
@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_a_weighted_fit_has_the_value_of_the_linear_program_and_is_certified(kind, spread):
    """Mutations: weights in the program only, or in the residuals only; multipliers that sum to 1 without weights."""
    A, b, w = problem()
    w[::3] *= spread
    A = kind(A * (np.abs(A) > 0.5))
    res = hasd.chebyshev(A, b, weights=w)
    assert res.success, res.message
    assert res.fun == pytest.approx(by_linear_program(A, b, w), rel=1e-7)
    check_certificate(A, b, w, res)


def test_the_largest_relative_residual_is_minimised():
    A, b, _ = problem(1)
    res = hasd.chebyshev(A, b, relative=True)
    assert res.success and res.fun == pytest.approx(by_linear_program(A, b, 1.0 / np.abs(b)), rel=1e-7)
    assert res.fun == pytest.approx(np.max(np.abs(res.residual / b)), rel=1e-14)
    check_certificate(A, b, 1.0 / np.abs(b), res)
    assert hasd.chebyshev(A, b, weights=1.0 / np.abs(b)).fun == res.fun


def test_a_centred_program_is_weighted_too():
    """Two rows carry the optimum, whose solutions are a face of many dimensions."""
    rng = np.random.default_rng(0)
    A, b, w = rng.standard_normal((300, 8)), rng.uniform(-1.0, 1.0, 300), rng.uniform(0.5, 1.0, 300)
    A[1], b[:2], w[:2] = A[0], (40.0, -40.0), (1.0, 3.0)
    res = hasd.chebyshev(A, b, weights=w)
    assert res.success and res.fun == pytest.approx(60.0, rel=1e-12)  # 80 apart, weights 1 and 3
    np.testing.assert_array_equal(res.active, [0, 1])
    np.testing.assert_allclose(np.abs(res.multipliers), 0.75, rtol=1e-12)


def test_weights_that_are_powers_of_two_give_the_fit_to_rows_times_weights():
    A, b, _ = problem(2)
    w = 2.0 ** np.random.default_rng(0).integers(-3, 4, len(b))
    res, scaled = hasd.chebyshev(A, b, weights=w), hasd.chebyshev(w[:, None] * A, w * b)
    assert res.fun == pytest.approx(scaled.fun, rel=1e-12)
    np.testing.assert_allclose(res.x, scaled.x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_a_row_of_weight_zero_does_not_count_but_has_its_residual(kind):
    """Mutation: rows of `active` counted among those that count."""
    A, b, w = problem(3)
    w[[0, 7, 200]] = 0.0
    b[7] = 1e6
    res, there = hasd.chebyshev(kind(A), b, weights=w), w > 0.0
    without = hasd.chebyshev(kind(A[there]), b[there], weights=w[there])
    assert res.fun == pytest.approx(without.fun, rel=1e-12) and res.success
    np.testing.assert_array_equal(res.active, np.flatnonzero(there)[without.active])
    check_certificate(A, b, np.where(there, w, 1e-100), res)
    assert res.residual[7] == pytest.approx(A[7] @ res.x - 1e6, rel=1e-12)


def gaussian(rng):
    return rng.standard_normal((8, 3)), rng.standard_normal(8), rng.uniform(0.1, 10.0, 8)


def small_residuals(rng):
    A = rng.standard_normal((8, 2))
    return A, 1e6 * (A @ rng.standard_normal(2)) + rng.standard_normal(8), rng.uniform(0.1, 10.0, 8)


def nearly_dependent(rng):
    A = rng.standard_normal((8, 3))
    A[:, -1] = A[:, 0] + 10.0 ** -rng.integers(3, 13) * A[:, -1]
    return A, rng.standard_normal(8), rng.uniform(0.1, 10.0, 8)


def weights_of_many_scales(rng):
    A, b, _ = gaussian(rng)
    return A, b, 10.0 ** rng.uniform(-8, 8, 8)


def weights_too_far_apart(rng):
    A, b, _ = gaussian(rng)
    return A, b, 10.0 ** rng.uniform(-45, 45, 8)


def tiny_columns(rng):
    A, b, w = gaussian(rng)
    return A * [1.0, 1e-139, 1e-300], b, 1e-40 * w


FAMILIES = (gaussian, small_residuals, nearly_dependent, weights_of_many_scales, weights_too_far_apart, tiny_columns)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("relative", [False, True])
def test_no_x_is_below_the_weighted_bound(family, relative):
    """`test_mutation_rows_times_rounded_weights_pass_the_minimum` shows that this can fail."""
    for seed in range(12):
        A, b, w = family(np.random.default_rng(seed))
        res = hasd.chebyshev(A, b, relative=True) if relative else hasd.chebyshev(A, b, weights=w)
        least = exact_minimum(A, b, [1 / abs(Fraction(v)) for v in b] if relative else w)
        assert Fraction(res.lower) <= least, seed
        sharp = relative or family is not weights_too_far_apart
        if sharp and res.rank == A.shape[1] and res.gap > 0.0:  # not cut where rounding took fun below the minimum
            assert float(least - Fraction(res.lower)) <= 1e-9 * float(least), seed


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gap_counts_from_the_true_value(weighted):
    """In fractions: terms that cancel make the computed value wrong in its tenth digit.

    Mutation: the gap is the computed value less the lower bound.
    """
    rng, violated = np.random.default_rng(0), 0
    for _ in range(40):
        A, b = rng.standard_normal((8, 3)) * [1e-3, 1.0, 1e3], 100.0 * rng.standard_normal(8)
        w = 10.0 ** rng.integers(-6, 7, 8) if weighted else np.ones(8)
        res = hasd.chebyshev(A, b, weights=w if weighted else None)
        x = [Fraction(value) for value in res.x.tolist()]
        rows = zip(A.tolist(), b.tolist(), w.tolist(), strict=True)
        residuals = [(v, sum(Fraction(a) * c for a, c in zip(row, x, strict=True)) - Fraction(t)) for row, t, v in rows]
        true = max(Fraction(v) * abs(r) for v, r in residuals)
        assert res.success and true - Fraction(res.lower) <= Fraction(res.gap)
        violated += true > Fraction(res.fun)
    assert violated > 0


def test_mutation_rows_times_rounded_weights_pass_the_minimum():
    """The bound of the fit to fl(w a), fl(w b) is one for these numbers, and not for the weights, A and b given."""
    passed = 0
    for seed in range(24):
        A, b, w = small_residuals(np.random.default_rng(seed))
        lower = hasd.chebyshev(w[:, None] * A, w * b).lower
        passed += Fraction(lower) > exact_minimum(A, b, w)
    assert passed >= 3


def test_multipliers_of_weighted_rows_become_those_of_the_rows():
    """Mutation: weighted rows' multipliers taken as those of the rows, and projected onto A^T u = 0."""
    A, b, w = np.ones((4, 1)), np.array([1.0, 2.0, -3.0, 5.0]), np.array([1.0, 100.0, 3.0, 0.01])
    u = np.array([1.0, -2.0, 4.0, -3.0])  # sums to 0
    certificate = proof.MinimaxBound(Coordinates.of(A, w), b)
    certificate.bound(np.arange(4), u / w, np.zeros(0, dtype=int))
    np.testing.assert_allclose(certificate.weights, u / np.sum(np.abs(u) / w), rtol=1e-14)
    assert certificate.lower == pytest.approx(abs(u @ b) / np.sum(np.abs(u) / w), rel=1e-14)


def test_reach_allows_more_where_a_row_has_a_small_weight():
    """Mutation: the value at 0 allowed in every row alike, whatever its weight."""
    rng = np.random.default_rng(0)
    A, b, w = rng.standard_normal((12, 3)), rng.standard_normal(12), 10.0 ** rng.uniform(-3, 0, 12)
    far = proof.MinimaxBound(Coordinates.of(A, w), b)._reach(np.arange(12))
    far = far[np.argsort(Coordinates.of(A, w).kept)]
    at_zero, inside = np.max(w * np.abs(b)), 0
    for v in rng.standard_normal((400, 3)):
        v = v * at_zero / np.max(w * np.abs(A @ v)) * rng.uniform(0.0, 2.0)
        if np.max(w * np.abs(A @ v - b)) <= at_zero:
            inside += 1
            assert np.all(np.abs(v) <= far)
    assert inside > 50


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": [1.0, -1.0, 1.0]}, r"weights must be at least 0, but weights\[1\] is -1"),
        ({"weights": [1.0, 1.0, 1e51]}, r"weights must be 0, or between 1e-50 and 1e\+50, but weights\[2\] is 1e\+51"),
        ({"weights": [1.0, np.nan, 1.0]}, "weights must be finite"),
        ({"weights": [1.0, 1.0]}, "weights must be 1-D of length 3"),
        ({"weights": np.zeros(3)}, "weights must have an entry above 0"),
        ({"weights": np.ones(3), "relative": True}, "give weights or relative=True, not both"),
        ({"relative": True}, r"b must not be 0 for relative errors, but b\[1\] is 0; give weights"),
        ({"b": [0.0, 0.0, 1.0], "relative": True}, r"b\[0\] is 0, one of 2 such entries"),
        ({"b": [1.0, 1e-120, 1.0], "relative": True}, r"between 1e-50 and 1e\+50 in size .* b\[1\] is 1e-120"),
        ({"b": [1.0, 1e120, 1.0], "weights": [1e45, 1.0, 1.0]}, "times the largest weight must be below 1e\\+150"),
        ({"relative": 1}, "relative must be True or False"),
    ],
)
def test_weights_that_are_none_are_refused_by_name(given, said):
    with pytest.raises((ValueError, TypeError), match=said):
        hasd.chebyshev(**({"A": np.ones((3, 1)), "b": [1.0, 0.0, 2.0]} | given))


def test_weights_are_not_changed_and_masked_ones_are_refused():
    A, b, w = problem(4, 40)
    before = w.copy()
    w.flags.writeable = False
    hasd.chebyshev(A, b, weights=w)
    np.testing.assert_array_equal(w, before)
    with pytest.raises(ValueError, match="weights must have no masked entries"):
        hasd.chebyshev(A, b, weights=np.ma.masked_less(w, 1.0))


def test_an_exact_weighted_fit_and_one_without_columns_are_solved():
    A, b, w = problem(5, 40, 3)
    exact = hasd.chebyshev(A, A @ [1.0, 2.0, 3.0], weights=w)
    assert exact.success and "Exact fit" in exact.message
    nothing = hasd.chebyshev(np.zeros((40, 2)), b, weights=w)
    assert nothing.success and nothing.fun == np.max(w * np.abs(b))
    assert nothing.lower == pytest.approx(nothing.fun, rel=1e-14)
