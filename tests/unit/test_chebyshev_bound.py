"""chebyshev's lower bound is one for the numbers given: held against exact minima, in rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import hasd
from hasd.problems import _coordinates as coordinates
from hasd.problems import _multipliers as proof
from hasd.problems._coordinates import Coordinates
from rational import exact_minimum, exactly, solved


def near_dependent(rng, n=8, d=3):
    A = rng.standard_normal((n, d))
    A[:, -1] = A[:, 0] + 10.0 ** -rng.integers(3, 13) * A[:, -1]
    return A, rng.standard_normal(n)


def spread(rng, n=8, d=2):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-8, 8, (n, 1)), rng.standard_normal(n)


def large_fit(rng, n=8, d=2):
    A = rng.standard_normal((n, d))
    return A, 1e6 * (A @ rng.standard_normal(d)) + rng.standard_normal(n)


FAMILIES = {
    "gaussian": lambda rng: (rng.standard_normal((8, 3)), rng.standard_normal(8)),
    "nearly dependent": near_dependent,
    "monomials": lambda rng: (np.vander(rng.uniform(0.9, 1.0, 8), 4), rng.standard_normal(8)),
    "columns of many scales": lambda rng: (
        rng.standard_normal((8, 3)) * 10.0 ** rng.uniform(-100, 100, 3),
        1e-200 * rng.standard_normal(8),
    ),
    "integers": lambda rng: (rng.integers(-2, 3, (8, 3)).astype(float), rng.integers(-3, 4, 8).astype(float)),
    "rows of many scales": spread,
    "small residuals": large_fit,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_x_is_below_the_bound(name):
    for seed in range(12):
        A, b = FAMILIES[name](np.random.default_rng(seed))
        res = hasd.chebyshev(A, b)
        least = exact_minimum(A, b)
        assert Fraction(res.lower) <= least, seed
        if res.rank == A.shape[1] and res.gap > 0.0:  # not cut to a value that rounding took below the minimum
            assert float(least - Fraction(res.lower)) <= 1e-9 * float(least), seed


def test_mutation_rounding_that_is_not_charged_passes_the_minimum():
    """The multipliers as float64, and the residuals as computed: no bound."""
    passed = 0
    for seed in range(24):  # about every second, which ones depends on the order of sums
        A, b = near_dependent(np.random.default_rng(seed))
        res = hasd.chebyshev(A, b)
        naive = abs(res.multipliers @ res.residual[res.active])
        passed += Fraction(float(naive)) > exact_minimum(A, b)
    assert passed >= 1


@pytest.mark.parametrize(("left", "right"), [(-1.0, 1.0), (0.0, 1.0)])
def test_the_bound_for_twelve_monomials_is_just_below_the_exact_minimum(left, right):
    """The exact vertex on the active rows is an x: the bound is below its value, and as near as rounding lets it."""
    t = np.linspace(left, right, 60)
    A, b = np.vander(t, 12), np.abs(t - 0.3)
    res = hasd.chebyshev(A, b)
    assert res.success and res.active.size == 13
    block, (right_side,) = exactly(A[res.active]), exactly(b[res.active])
    signs = [Fraction(int(sign)) for sign in np.sign(res.multipliers)]
    *x, t = solved([[*row, sign] for row, sign in zip(block, signs, strict=True)], right_side)
    residuals = [sum(a * v for a, v in zip(row, x, strict=True)) for row in exactly(A)]
    least = max(abs(r - v) for r, v in zip(residuals, exactly(b)[0], strict=True))
    assert least == abs(t)  # the minimum
    assert Fraction(res.lower) <= least
    assert float(least - Fraction(res.lower)) <= 1e-12 * float(least)


def test_columns_of_condition_a_million_are_certified():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((400, 12), (12, 12)))
    res = hasd.chebyshev(U * np.geomspace(1.0, 1e-6, 12) @ V, rng.standard_normal(400))
    assert res.success and 0.0 <= res.gap <= 1e-9 * res.fun


def test_beyond_what_doubles_can_tell_the_value_is_what_is_uncertain():
    """Columns of condition 1e13: no success is claimed, and the bound is still one, and near the minimum."""
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((9, 3), (3, 3)))
    A, b = U * np.geomspace(1.0, 1e-13, 3) @ V, rng.standard_normal(9)
    res = hasd.chebyshev(A, b)
    least = exact_minimum(A, b)
    assert res.success == (res.gap <= 1e-6 * res.fun)
    assert 0.999 * least <= Fraction(res.lower) <= least


@pytest.mark.parametrize("with_b", [False, True])
def test_rows_over_sixteen_decades_are_certified(with_b):
    """A short row that is active is balanced by long ones, whose weights the linear program takes for 0."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, b = spread(rng, 60, 5)
        if with_b:
            b = b * 10.0 ** rng.uniform(-8, 8, 60)
        res = hasd.chebyshev(A, b)
        assert res.success and 0.0 <= res.gap <= 1e-9 * res.fun, seed


def test_the_image_is_exact_to_nearly_twice_the_digits():
    rng = np.random.default_rng(0)
    for m in (1, 2, 7, 32):
        columns = rng.standard_normal((m, 3)) * 10.0 ** rng.uniform(-9, 9, (m, 1))
        high = rng.standard_normal(m)
        low = 2.0**-54 * high * rng.uniform(-1, 1, m)
        got, error = proof.image(columns, high, low)
        weights = [h + v for h, v in zip(*exactly(np.vstack((high, low))), strict=True)]
        for j, column in enumerate(zip(*exactly(columns), strict=True)):
            exact = sum(a * w for a, w in zip(column, weights, strict=True))
            size = float(sum(abs(a * w) for a, w in zip(column, weights, strict=True)))
            assert abs(exact - Fraction(got[j])) <= Fraction(error[j]) + abs(exact) / 2**53
            assert error[j] <= 2.0**-95 * size


def test_reach_bounds_every_point_as_good_as_0():
    rng, inside_the_level = np.random.default_rng(0), 0
    for seed in range(20):
        A, b = near_dependent(np.random.default_rng(seed), 20, 4)
        far, top = proof.reach(A, b, float(np.abs(b).max())), np.abs(b).max()
        for v in rng.standard_normal((50, 4)) @ np.linalg.pinv(A[:4]).T:  # also along what A hardly sees
            inside = v * top / np.abs(A @ v).max() * rng.uniform(0.0, 2.0)
            if np.abs(A @ inside - b).max() <= top:
                inside_the_level += 1
                assert np.all(np.abs(inside) <= far)
    assert inside_the_level > 20


def test_reach_is_infinite_where_rows_do_not_say():
    A, b = np.random.default_rng(0).standard_normal((6, 3)), np.ones(6)
    assert np.isfinite(proof.reach(A, b, 1.0)).all()
    assert np.isinf(proof.reach(A[:2], b, 1.0)).all()
    assert np.isinf(proof.reach(np.column_stack((A[:, :2], A[:, 0])), b, 1.0)).all()
    assert np.isinf(proof.reach(np.column_stack((A[:, :2], A[:, 0] * (1.0 + 2.0**-50))), b, 1.0)).all()
    unseen = proof.reach(A * [1.0, 0.0, 1.0], b, 1.0)
    np.testing.assert_array_equal(np.isinf(unseen), [False, True, False])
    assert np.isinf(proof.reach(np.array([[1e300, 1e-300], [1.0, 1.0]]), b[:2], 1.0)).all()  # digits would be lost


def test_weights_that_leave_something_of_a_column_prove_nothing_without_a_reach():
    A, b = np.random.default_rng(0).standard_normal((6, 3)), np.arange(6.0)
    dual = proof.dual(A, np.ones(6), b)
    assert dual.lower(np.full(3, np.inf)) == 0.0
    assert 0.0 < dual.lower(np.full(3, 1e3)) <= dual.value
    assert proof.dual(A[:3], np.ones(3), b[:3]) is None  # independent rows: A^T w = 0 only for w = 0
    assert proof.dual(np.array([[1e300], [1e-300], [1.0]]), np.ones(3), np.array([1e-300, 1.0, 1e10])) is None


def told_apart_by_one_row(twin):
    rng = np.random.default_rng(3)
    A = scipy.sparse.random_array((400, 6), density=0.5, random_state=rng).toarray()
    A[:, 5] = A[:, 4]
    if not twin:
        A[399, 5] += 0.5
    return scipy.sparse.csr_array(A), rng.standard_normal(400)


@pytest.mark.parametrize("twin", [False, True])
def test_the_bound_ignores_a_sparse_column_only_if_no_row_tells_it_apart(twin):
    """Only where no row tells them apart does the bound ignore one, and the message says so."""
    A, b = told_apart_by_one_row(twin)
    space = Coordinates.of(A)
    found, dependent = proof.spanning_rows(space, np.arange(10))
    assert dependent.size == twin and (399 in found) == (not twin)
    res = hasd.chebyshev(A, b)
    assert res.success and res.gap <= 1e-9 * res.fun and res.rank == 6 - twin
    assert ("5 of the 6 columns of A are independent up to rounding" in res.message) == twin
    nothing, dependent = proof.spanning_rows(space, np.zeros(0, dtype=int))
    assert nothing.size == 6 - twin and dependent.size == twin


def long_row(rng, n=8, d=2):
    """Columns that agree on one row, beside which they are the same to rounding; the other rows tell them apart."""
    A = rng.standard_normal((n, d))
    A[0] = 10.0 ** rng.uniform(17, 20)
    return A, np.append(0.0, rng.standard_normal(n - 1))


def long_row_and_constant(rng):
    A, b = long_row(rng)
    return np.column_stack((A, np.append(0.0, np.ones(7)))), b


@pytest.mark.parametrize("family", [long_row, long_row_and_constant])
@pytest.mark.parametrize("kind", ["rows in order of length", "rows as they are", "sparse"])
def test_columns_that_only_short_rows_tell_apart_count_in_the_bound(family, kind, monkeypatch):
    """`test_mutation_ignoring_columns_on_every_row_passes_the_minimum` shows that this can fail."""
    if kind == "rows as they are":
        monkeypatch.setattr(coordinates, "SORTED", 0)
    for seed in range(10):
        A, b = family(np.random.default_rng(seed))
        res = hasd.chebyshev(scipy.sparse.csr_array(A) if kind == "sparse" else A, b)
        least = exact_minimum(A, b)
        assert Fraction(res.lower) <= least, seed
        assert float(least) <= res.fun * (1 + 1e-9), seed  # fun is max|Ax - b| as it is computed
        if kind == "rows as they are":
            assert res.rank < A.shape[1] and "depend on others up to rounding and get the coefficient 0" in res.message
            assert "independent up to rounding" not in res.message and not res.success
        if kind == "rows in order of length":
            assert res.rank == A.shape[1]


def test_rank_is_judged_row_by_row():
    """Beside the first row both columns are the same to rounding.  Mutation: SORTED = 0."""
    A, b = np.array([[1e16, 1e16], [1.0, -1.0], [0.5, 1.0], [1.0, 0.3]]), np.array([0.0, 1.0, 0.3, -0.2])
    least = exact_minimum(A, b)
    res = hasd.chebyshev(A, b)
    assert Fraction(res.lower) <= least and res.rank == 2
    assert res.fun == pytest.approx(float(least), rel=1e-9)
    # The last digit of x decides whether the first row is off by 0 or by 0.6: the gap counts it.
    x = [Fraction(value) for value in res.x.tolist()]
    true = max(abs(Fraction(r[0]) * x[0] + Fraction(r[1]) * x[1] - Fraction(t)) for r, t in zip(A, b, strict=True))
    assert true - Fraction(res.lower) <= Fraction(res.gap) and res.success == (res.gap <= 1e-9 * res.fun)


def test_mutation_ignoring_columns_on_every_row_passes_the_minimum(monkeypatch):
    """Whatever the multipliers leave of a column that was left out is called rounding: the bound passes the minimum."""
    monkeypatch.setattr(coordinates, "SORTED", 0)
    monkeypatch.setattr(proof, "SAME", np.inf)
    passed = 0
    for seed in range(10):
        A, b = long_row(np.random.default_rng(seed))
        passed += Fraction(hasd.chebyshev(A, b).lower) > exact_minimum(A, b)
    assert passed >= 5


@pytest.mark.parametrize("left", [-1.0, 0.0])
@pytest.mark.parametrize("degree", [40, 60])
def test_monomials_that_rounding_leaves_out_count_in_the_bound(left, degree):
    """The minimum over all polynomials of the degree is known from a good basis."""
    t = np.linspace(left, 1.0, 800)
    basis = np.polynomial.chebyshev.chebvander((2.0 * t - 1.0 - left) / (1.0 - left), degree - 1)
    least = hasd.chebyshev(basis, np.abs(t - 0.3))
    res = hasd.chebyshev(np.vander(t, degree), np.abs(t - 0.3))
    assert least.success and res.rank < degree
    assert res.lower <= least.fun <= res.fun and not res.success


def test_columns_that_depend_to_rounding_are_ignored_and_the_bound_is_sharp():
    """Sums, multiples and products, standardised: entries differ from those of combinations in their last digits."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        B = np.floor(np.exp(2.0 * rng.standard_normal((300, 4))))
        X = np.column_stack((B, B[:, :2] + B[:, 1:3], 3.0 * B[:, 0], B @ rng.standard_normal((4, 2))))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        A = np.column_stack((np.ones(300), X, X * X[:, [0]]))
        res = hasd.chebyshev(A, rng.standard_normal(300))
        assert res.success and res.gap <= 1e-9 * res.fun and res.rank < A.shape[1], seed
        assert "the lower bound holds for combinations of these" in res.message and "coefficient 0" not in res.message
