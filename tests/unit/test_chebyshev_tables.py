"""chebyshev on tables as they are: heavy tails, columns that depend on others, rows that are equal but for b.

Rows that agree in every column of A bound every fit from below by half the range of their b, whatever the solver says.
On these tables that bound is the minimum: two rows carry it, and its solutions are a face of many dimensions.
"""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog

import hasd
from hasd.problems import _programs as programs
from planted import table_of_counts


def whole_program(A, b):
    """The dual of the fit on all rows at once, independent of ours: max <b, v - w>, A^T (v - w) = 0, sum(v + w) = 1."""
    n, d = A.shape
    equal = np.vstack((np.hstack((A.T, -A.T)), np.ones(2 * n)))
    return -linprog(np.concatenate((-b, b)), A_eq=equal, b_eq=np.append(np.zeros(d), 1.0)).fun


def largest_of_least_squares(A, b):
    return float(np.abs(A @ np.linalg.lstsq(A, b, rcond=None)[0] - b).max())


def check_bracket(least, res):
    """Products with equal rows may be rounded differently: a few units of the last place."""
    assert res.lower <= least * (1.0 + 1e-12) and least <= res.fun * (1.0 + 1e-12)


def check_optimal(A, b, least, res):
    assert res.success and res.rank == 147, res.message
    assert 0.0 <= res.gap <= 1e-9 * res.fun
    check_bracket(least, res)
    assert res.fun == np.abs(A @ res.x - b).max()
    assert res.fun <= largest_of_least_squares(A, b)


@pytest.mark.parametrize("seed", range(2))
def test_an_optimum_that_two_equal_rows_carry_is_proved_in_ten_programs(seed):
    """Value, certificate and the number of programs; `test_mutation_vertices_alone_stall` shows that this can fail."""
    A, b, least = table_of_counts(seed, 4000)
    res = hasd.chebyshev(A, b)
    check_optimal(A, b, least, res)
    assert res.nlp <= 10
    assert np.all(np.diff(res.trace["fun"]) <= 0.0) and np.all(np.diff(res.trace["lower"]) >= 0.0)


def test_a_tables_value_is_that_of_the_whole_linear_program():
    """Fewer rows, of which no two that agree are far enough apart to carry the minimum."""
    A, b, half_range = table_of_counts(0, 1000)
    res, least = hasd.chebyshev(A, b), whole_program(A, b)
    assert res.success and res.gap <= 1e-9 * res.fun and half_range < res.lower
    assert res.lower <= least * (1.0 + 1e-7) and least <= res.fun * (1.0 + 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_twenty_thousand_rows_are_solved_in_at_most_thirty_programs(seed):
    A, b, least = table_of_counts(seed, 20_000)
    res = hasd.chebyshev(A, b)
    check_optimal(A, b, least, res)
    assert res.nlp <= 30


def test_mutation_vertices_alone_stall(monkeypatch):
    """With no centre (WIDEST = 0) every program has the value of the minimum, and no vertex of it meets all rows."""
    A, b, least = table_of_counts(0, 2000)
    assert hasd.chebyshev(A, b, maxiter=6).success
    monkeypatch.setattr(programs, "WIDEST", 0)
    res = hasd.chebyshev(A, b, maxiter=6)
    assert not res.success and res.status == 1 and res.nlp == 6
    check_bracket(least, res)
    assert res.fun <= largest_of_least_squares(A, b)


@pytest.mark.parametrize("maxiter", [0, 1, 2, 3])
def test_no_answer_is_worse_than_least_squares_or_an_earlier_one(maxiter):
    A, b, least = table_of_counts(1, 4000)
    res = hasd.chebyshev(A, b, maxiter=maxiter)
    check_bracket(least, res)
    assert res.fun <= largest_of_least_squares(A, b) * (1.0 + 1e-9)
    assert res.fun == res.trace["fun"].min() == np.abs(A @ res.x - b).max()


def carried_by_two_rows(rng, n=80, d=6):
    """Rows of which the first two are equal and 4 apart; where these are at 2 and -2 the others can be below 1."""
    Q = rng.standard_normal((n, d))
    Q[1] = Q[0]
    r = rng.uniform(-1.0, 1.0, n)
    r[:2] = 2.0, -2.0
    return Q, r + Q @ rng.uniform(-0.1, 0.1, d)


def test_centre_keeps_away_from_rows_that_need_not_be_active():
    Q, r = carried_by_two_rows(np.random.default_rng(0))
    found = programs.find_centre(Q, r, 2.0)
    assert found.value == pytest.approx(2.0, rel=1e-10)
    np.testing.assert_array_equal(found.support, [0, 1])
    np.testing.assert_allclose(found.weights[:2], [0.5, -0.5], rtol=1e-9)
    assert found.slack[2:].min() > 0.5 and not found.is_unique(2.0)


def test_centre_of_one_solution_is_the_vertex():
    rng = np.random.default_rng(1)
    Q, r = rng.standard_normal((60, 5)), rng.uniform(-1.0, 1.0, 60)
    found = programs.find_centre(Q, r, 2.0)
    both = programs.find_vertex(np.vstack((Q, Q)), np.tile(r, 2), np.repeat([1.0, -1.0], 60), 2.0)
    assert found.is_unique(2.0) and found.support.size == 6
    assert found.value == pytest.approx(both.value, rel=1e-9)
    np.testing.assert_allclose(found.step, both.step, atol=1e-8)
    np.testing.assert_allclose(found.weights, both.weights[:60] + both.weights[60:], atol=1e-8)


def test_the_centre_of_sparse_rows_is_that_of_dense_ones():
    Q, r = carried_by_two_rows(np.random.default_rng(2))
    found, same = programs.find_centre(Q, r, 2.0), programs.find_centre(scipy.sparse.csr_array(Q), r, 2.0)
    np.testing.assert_allclose(same.step, found.step, atol=1e-6)
    assert same.value == pytest.approx(found.value, rel=1e-12)


def test_centre_stays_in_its_box_where_rows_say_nothing():
    """A column of zeros, and fewer rows than columns."""
    found = programs.find_centre(np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 2.0]]), np.array([1.0, 0.5]), 2.0)
    assert found.value == pytest.approx(0.25, rel=1e-9)
    assert np.abs(found.step).max() < 2.0 and found.step[1] == pytest.approx(0.0, abs=1e-9)


def test_centre_ends_where_time_is_up():
    Q, r = carried_by_two_rows(np.random.default_rng(3))
    found = programs.find_centre(Q, r, 2.0, time_limit=0.0)
    assert not found.step.any() and found.value == np.abs(r).max()
    A, b, _ = table_of_counts(0, 2000)
    late = hasd.chebyshev(A, b, time_limit=1e-9)
    assert late.status == 11 and late.fun <= largest_of_least_squares(A, b) * (1.0 + 1e-9)


@pytest.mark.parametrize("noise", [1e-6, None])
def test_sparse_columns_that_nearly_depend_are_solved(noise):
    """A unique vertex at the edge of the box is not one of many.  Mutation: judge that after the box has grown."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((200, 5))
        if noise is None:  # a sum, rounded to float32
            A = np.column_stack((A, A[:, 0] + A[:, 1])).astype(np.float32)
        else:
            A[:, 0] = A[:, 1] + noise * rng.standard_normal(200)
        res = hasd.chebyshev(scipy.sparse.csr_array(A), rng.standard_normal(200))
        assert res.success and res.gap <= 1e-6 * res.fun


def test_rows_of_very_different_lengths_never_end_worse_than_nothing():
    A = np.array([[-2e-16, 3e-16], [2e13, 3e13], [-3e-5, 2e-5]])
    assert hasd.chebyshev(A, [-1.0, 0.0, 2.0]).fun <= 2.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.integers(-3, 4, (5, 2)) * 10.0 ** rng.integers(-16, 17, (5, 1))
        b = rng.integers(-3, 4, 5).astype(float)
        res = hasd.chebyshev(A, b)
        assert res.lower <= res.fun <= np.abs(b).max()


@pytest.mark.parametrize(("long", "short"), [(1e16, 4.0), (1e13, 0.004)])
def test_a_long_row_does_not_make_other_residuals_rounding(long, short):
    """Mutation: hold every residual against the rounding of the longest row."""
    A = np.array([[long, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    res = hasd.chebyshev(A, [long, 0.0, short, short])
    assert res.fun == pytest.approx(0.5 * short, rel=1e-9) and res.success and res.lower > 0.0
