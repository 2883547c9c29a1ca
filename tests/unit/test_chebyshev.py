"""chebyshev: the value against an independent linear program, the certificate checked by hand, hard data."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import LinearOperator

import hasd
from hasd.problems import _chebyshev
from hasd.problems import _multipliers as proof
from hasd.problems._coordinates import Coordinates
from hasd.problems._matrices import as_dense

RNG = np.random.default_rng(0)
T = np.linspace(-1.0, 1.0, 800)


def by_linear_program(A, b):
    """min t, -t <= Ax - b <= t, all rows at once."""
    A = A.toarray() if scipy.sparse.issparse(A) else np.asarray(A, dtype=float)
    ones = np.ones((len(b), 1))
    bounds = [(None, None)] * A.shape[1] + [(0, None)]
    rows = np.block([[A, -ones], [-A, -ones]])
    return linprog([0.0] * A.shape[1] + [1.0], A_ub=rows, b_ub=np.concatenate((b, -b)), bounds=bounds).fun


def gaussian(n=600, d=12):
    return RNG.standard_normal((n, d)), RNG.standard_normal(n)


def dependent():
    A, b = gaussian(300, 6)
    return np.hstack((A, A @ RNG.standard_normal((6, 3)), np.zeros((300, 1)))), b


def doubled():
    A, b = gaussian(100, 5)
    return np.vstack((A, A, -A)), np.concatenate((b, b, -b))


def outliers():
    A, b = gaussian(500, 8)
    return A, np.where(RNG.random(500) < 0.01, 1e6, 1.0) * b


def scaled():
    A, b = gaussian(500, 10)
    return A * np.geomspace(1e-3, 1e3, 10), b


def sparse(format="csr"):
    return scipy.sparse.random_array((900, 30), density=0.1, random_state=RNG, format=format), RNG.standard_normal(900)


def sparse_dependent():
    A, b = sparse()
    return scipy.sparse.hstack((A, A[:, :5])).tocsr(), b


DATA = {
    "gaussian": gaussian,
    "heavy tails": lambda: (RNG.standard_t(2, (600, 12)), RNG.standard_t(2, 600)),
    "bounded noise": lambda: (RNG.standard_normal((600, 5)), RNG.uniform(-1, 1, 600)),
    "chebyshev basis": lambda: (np.polynomial.chebyshev.chebvander(T, 15), np.abs(T)),
    "monomials": lambda: (np.vander(T, 8), np.abs(T)),
    "dependent columns": dependent,
    "doubled rows": doubled,
    "integers, many ties": lambda: (RNG.integers(-2, 3, (300, 4)), RNG.integers(-3, 4, 300).astype(float)),
    "one column": lambda: gaussian(50, 1),
    "a row more than columns": lambda: gaussian(10, 9),
    "outliers": outliers,
    "scaled columns": scaled,
    "sparse": sparse,
    "sparse, csc": lambda: sparse("csc"),
    "sparse, dependent": sparse_dependent,
    "sparse, empty rows": lambda: (
        scipy.sparse.random_array((900, 30), density=0.005, random_state=RNG, format="coo"),
        RNG.standard_normal(900),
    ),
}


def check_certificate(A, b, res):
    """What a reader would do: weights with A^T w = 0, and their value."""
    residual = A @ res.x - b
    A = A.toarray() if scipy.sparse.issparse(A) else np.asarray(A, dtype=float)
    w = np.zeros(len(b))
    np.add.at(w, res.active, res.multipliers)
    size = np.abs(A[res.active]).max(axis=0)
    assert np.abs(w).sum() <= 1.0 + 1e-12
    assert np.all(np.abs(A.T @ w) <= 1e-12 * size + 1e-300)
    assert abs(w @ b) == pytest.approx(res.lower, rel=1e-8)
    assert res.lower <= res.fun == np.abs(residual).max()
    np.testing.assert_array_equal(res.signs, np.sign((A @ res.x - b)[res.active]))


@pytest.mark.parametrize("name", DATA)
def test_the_value_is_that_of_a_linear_program_and_is_certified(name):
    A, b = DATA[name]()
    res = hasd.chebyshev(A, b)
    assert res.success and res.status == 14, res.message
    assert 0.0 <= res.gap <= 1e-9 * res.fun
    assert res.fun == pytest.approx(by_linear_program(A, b), rel=1e-7)
    check_certificate(A, b, res)


def test_the_value_is_that_of_the_whole_program_to_1e_9():
    """Well-conditioned columns: the program's own tolerance is what is left."""
    A, b = gaussian(1500, 20)
    assert hasd.chebyshev(A, b).fun == pytest.approx(by_linear_program(A, b), rel=1e-9)


def test_the_exchange_of_rows_alone_gets_there_in_more_programs(monkeypatch):
    """Without the smoothed stage the exchange alone gets there, in more programs."""
    A, b = gaussian(3000, 30)
    res = hasd.chebyshev(A, b)
    module = _chebyshev
    monkeypatch.setattr(module, "LEVELS", ())
    monkeypatch.setattr(module, "MOST", 4)  # and idle rows are let go on the way
    cold = hasd.chebyshev(A, b)
    assert cold.success and cold.nlp > res.nlp
    assert cold.fun == pytest.approx(res.fun, rel=1e-9)
    assert np.all(np.diff(cold.trace["lower"]) >= 0.0) and np.all(np.diff(cold.trace["fun"]) <= 0.0)


@pytest.mark.parametrize("shape", [(5, 9), (6, 6), (200, 6)])
def test_an_exact_fit_is_found_and_named(shape):
    A = RNG.standard_normal(shape)
    b = A @ RNG.standard_normal(shape[1])
    res = hasd.chebyshev(A, b)
    assert res.success and "Exact fit" in res.message
    assert res.fun <= 1e-13 and res.lower == 0.0


def test_a_zero_matrix_leaves_b_and_a_zero_b_leaves_x_at_zero():
    res = hasd.chebyshev(np.zeros((4, 2)), [1.0, -3.0, 2.0, 0.0])
    assert res.success and res.fun == 3.0 and res.lower == pytest.approx(3.0)
    assert res.message == "Converged: no x does better by more than the tolerance."
    np.testing.assert_array_equal(res.active, [1])
    zero = hasd.chebyshev(RNG.standard_normal((20, 3)), np.zeros(20))
    assert zero.fun == 0.0 and not zero.x.any()


def test_ill_conditioned_columns_are_told_the_truth():
    """Forty monomials: what is left of the gap is rounding, and the answer says so; HiGHS is off by a third there."""
    res = hasd.chebyshev(np.vander(T, 40), np.abs(T))
    good = hasd.chebyshev(np.polynomial.chebyshev.chebvander(T, 39), np.abs(T))
    assert good.success and not res.success and "the remaining gap is within rounding or" in res.message
    assert good.fun <= res.fun <= 1.2 * good.fun
    assert res.rank < 40 and "columns of A" in res.message


def test_scale_changes_nothing():
    A, b = gaussian(400, 6)
    res = hasd.chebyshev(A, b)
    for a, c in ((2.0**300, 2.0**-300), (2.0**-400, 1.0), (1.0, 2.0**490)):
        other = hasd.chebyshev(a * A, c * b)
        assert other.success
        np.testing.assert_allclose(other.x * (a / c), res.x, rtol=1e-6, atol=1e-9)
        assert other.fun / c == pytest.approx(res.fun, rel=1e-8)


def test_float32_data_gives_a_float64_answer():
    A, b = gaussian(400, 6)
    res = hasd.chebyshev(A.astype(np.float32), b)
    assert res.success and res.x.dtype == np.float64
    exact = hasd.chebyshev(A.astype(np.float32).astype(float), b)
    assert res.fun == pytest.approx(exact.fun, rel=1e-9)


def test_limits_end_with_their_status_and_a_loose_gap_succeeds():
    A, b = gaussian(3000, 10)
    res = hasd.chebyshev(A, b, maxiter=0)
    assert res.status == 1 and not res.success and res.nlp == 0
    assert res.fun == np.abs(A @ res.x - b).max()
    late = hasd.chebyshev(A, b, time_limit=1e-9)
    assert late.status == 11 and not late.success and math.isfinite(late.fun)
    loose = hasd.chebyshev(A, b, gap_rtol=0.5)
    assert loose.success and loose.gap <= 0.5 * loose.fun


def test_input_is_not_changed_and_errors_name_it():
    A, b = gaussian(50, 3)
    before = A.copy(), b.copy()
    A.flags.writeable = b.flags.writeable = False
    hasd.chebyshev(A, b)
    np.testing.assert_array_equal(A, before[0])
    with pytest.raises(ValueError, match="b must be 1-D of length 50"):
        hasd.chebyshev(A, b[:-1])
    with pytest.raises(ValueError, match="A must be finite"):
        hasd.chebyshev(np.array([[np.nan], [1.0]]), [0.0, 1.0])
    with pytest.raises(TypeError, match="needs the rows of A"):
        hasd.chebyshev(LinearOperator((50, 3), matvec=A.dot, dtype=float), b)
    with pytest.raises(ValueError, match="A must have entries below 1e\\+150"):
        hasd.chebyshev(1e200 * A, b)
    with pytest.raises(ValueError, match="tol must be"):
        hasd.chebyshev(A, b, gap_rtol=-1.0)
    with pytest.raises(ValueError, match="at least one row and one column"):
        hasd.chebyshev(np.zeros((0, 3)), [])


def test_memory_beside_A_is_at_most_half_of_A():
    """A few vectors and some thousand rows: far from a copy of A."""
    A, b = RNG.standard_normal((200_000, 40)), RNG.standard_normal(200_000)
    tracemalloc.start()
    res = hasd.chebyshev(A, b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert res.success and peak <= 0.5 * A.nbytes


def test_coordinates_are_orthonormal():
    """From the squares where that is good enough, from the rows where it is not."""
    for A in (RNG.standard_normal((9000, 7)), np.vander(np.linspace(-1, 1, 9000), 12), RNG.standard_normal((4, 7))):
        coordinates = Coordinates.of(A)
        Q = coordinates.rows(np.arange(len(A)))
        np.testing.assert_allclose(Q.T @ Q / len(A), np.eye(coordinates.rank), atol=1e-6)
        y = RNG.standard_normal(coordinates.rank)
        np.testing.assert_allclose(A @ coordinates.x(y), Q @ y, rtol=1e-6, atol=1e-6)
    assert as_dense(A[:2]).shape == (2, 7)


def test_mutation_unprojected_multipliers_prove_too_much():
    """Multipliers off by 1e-4, as a loose solver leaves them: without the projection the bound passes the optimum."""
    A, b = gaussian(300, 8)
    res = hasd.chebyshev(A, b)
    rows = A[res.active]
    blurred = res.multipliers * (1.0 + 1e-3 * RNG.standard_normal(res.active.size))
    raw = [abs((blurred / np.abs(blurred).sum()) @ (rows @ (res.x + 100.0 * v) - b[res.active])) for v in np.eye(8)]
    assert max(raw) > res.fun  # not a bound at all
    dual = proof.dual(rows, blurred, b[res.active])
    assert dual.value == pytest.approx(res.fun, rel=1e-9) and dual.left.max() <= 1e-25


@pytest.mark.parametrize("degree", [11, 40])
def test_rows_along_a_curve_need_at_most_fifteen_programs(degree):
    """The largest residuals are neighbours in one peak: rows that tell different things are taken, in few programs."""
    t = np.cos(math.pi * np.arange(20_001) / 20_000)
    t[10_000] = 0.0
    res = hasd.chebyshev(np.polynomial.chebyshev.chebvander(t, degree), np.abs(t))
    assert res.success and res.gap <= 1e-9 * res.fun and res.nlp <= 15
    assert degree + 2 <= res.active.size <= 2 * (degree + 2)  # a peak between two rows may be held by both


def test_a_long_row_has_a_small_weight():
    A = np.random.default_rng(5).standard_normal((200, 5))
    A[0] *= 1e9
    res = hasd.chebyshev(A, np.random.default_rng(6).standard_normal(200))
    rounding = 2.0**-52 * np.max(np.abs(A) @ np.abs(res.x))  # of the long row's product: the value knows no more
    assert res.success and 0.0 <= res.gap <= 1e-9 * res.fun + rounding


def test_the_bound_never_passes_the_value():
    """Nearly dependent columns, where rounding takes the bound too far."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((12, 3))
        A[:, -1] = A[:, 0] + 10.0 ** -rng.integers(7, 14) * A[:, -1]
        res = hasd.chebyshev(A, rng.standard_normal(12))
        assert res.gap >= 0.0


@pytest.mark.parametrize("scale", [1e-160, 1e-300])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_whose_squares_vanish_are_columns_all_the_same(scale, sparse):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 4)), rng.standard_normal(60)
    expected = hasd.chebyshev(A, b)
    A[:, 2] *= scale
    res = hasd.chebyshev(scipy.sparse.csr_array(A) if sparse else A, b)
    assert res.rank == 4 and res.fun == pytest.approx(expected.fun, rel=1e-9)
    assert res.fun == pytest.approx(np.abs(A @ res.x - b).max(), rel=1e-12)


def test_a_gap_that_rounding_leaves_wide_open_is_no_success():
    t = np.linspace(0.0, 1.0, 400)
    res = hasd.chebyshev(np.vander(t, 40), np.abs(t - 0.4))
    assert res.success == (res.gap <= 1e-6 * res.fun)


def test_maxiter_is_a_whole_number():
    with pytest.raises(ValueError, match="maxiter must be a whole number"):
        hasd.chebyshev([[1.0], [2.0]], [1.0, 0.0], maxiter=2.7)


@pytest.mark.parametrize(
    ("A", "b", "said"),
    [
        (np.zeros((4, 2)), [1.0, -3.0, 2.0, 0.0], "Converged: no x does better by more than the tolerance."),
        (np.eye(2, 5), [1.0, 2.0], "Exact fit: the residuals are no larger than rounding errors."),
        (np.ones((2, 2)), [1.0, 2.0], "1 of the 2 columns of A are independent up to rounding; the lower bound holds"),
    ],
    ids=["A = 0", "exact", "dependent"],
)
def test_dependent_columns_are_named_only_where_the_bound_depends_on_them(A, b, said):
    """Mutation: a sentence about 0 of the columns, or about a bound of 0."""
    res = hasd.chebyshev(A, b)
    assert res.success and said in res.message and ("independent" in res.message) == ("independent" in said)
