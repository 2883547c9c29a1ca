"""hasd.balance: diagonal scalings to given row and column sums.

Mutations that must fail here: in `problems/_balance.py`, `Balance.obstacle`, compare with `short[k] > 1.0`; in
`problems/scaling.py`, `PlanNewton.step`, take `curvature` to be None (quasi-Newton alone).
"""

import numpy as np
import pytest
import scipy.sparse as sp

from hasd._run.status import Status
from hasd.problems._balance import balance


def sums(M):
    return np.asarray(M.sum(axis=1)).ravel(), np.asarray(M.sum(axis=0)).ravel()


def feasible(n=40, density=0.15, seed=0):
    """A sparse pattern and sums that some matrix with it has."""
    rng = np.random.default_rng(seed)
    P = sp.csr_array(sp.random_array((n, n), density=density, random_state=rng)) + sp.eye_array(n, format="csr")
    K = sp.csr_array(P)
    K.data = np.exp(3.0 * rng.standard_normal(K.nnz))
    return K, *sums(P)


def test_a_two_by_two_matrix_is_balanced_to_its_closed_form():
    """Doubly stochastic [[t, 1-t], [1-t, t]] keeps the cross ratio: (t/(1-t))^2 = k11 k22/(k12 k21)."""
    K = np.array([[1.0, 2.0], [3.0, 5.0]])
    t = 1.0 / (1.0 + np.sqrt(6.0 / 5.0))
    res = balance(K, [1.0, 1.0], [1.0, 1.0], error_tol=1e-14)
    assert res.success and res.status == 0 and res.message == "Converged: the sums are within the tolerance."
    assert repr(res.matrix) == "<matrix of shape (2, 2): matrix() computes it>"
    np.testing.assert_allclose(res.matrix(), [[t, 1 - t], [1 - t, t]], atol=1e-13)
    np.testing.assert_allclose(res.row[:, None] * K * res.column, res.matrix(), rtol=1e-13)


def test_a_rank_one_matrix_is_balanced_to_its_closed_form():
    x, y = np.arange(1.0, 6.0), np.arange(2.0, 6.0)
    r, c = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([3.0, 3.0, 4.0, 5.0])
    res = balance(np.outer(x, y), r, c)
    np.testing.assert_allclose(res.matrix(), np.outer(r, c) / 15.0, rtol=1e-8)
    assert res.nit <= 8


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
def test_sparse_and_dense_agree(kind):
    K, r, c = feasible()
    dense, sparse = balance(K.toarray(), r, c, error_tol=1e-12), balance(kind(K), r, c, error_tol=1e-12)
    assert dense.success and sparse.success
    M = sparse.matrix()
    assert type(M) is type(kind(K)) and M.nnz == K.nnz
    np.testing.assert_allclose(M.toarray(), dense.matrix(), atol=1e-10)
    np.testing.assert_allclose(sums(M), (r, c), atol=1e-10)
    np.testing.assert_allclose(sparse.log_row, dense.log_row, atol=1e-8)


def test_sparse_is_never_made_dense(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("made dense")

    for kind in (sp.csr_array, sp.csc_array, sp.coo_array):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    K, r, c = feasible()
    assert balance(K, r, c).success and balance(K.tocsc(), r, c).success


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_no_scaling_is_proved(kind):
    K = kind(np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    res = balance(K, np.ones(3), np.ones(3))
    assert not res.success and res.status == Status.UNBOUNDED.code
    assert res.message.startswith("No scaling exists: all entries of rows 1, 2 (2 of them), with a sum of 2,")
    assert "in column 0, with a sum of only 1." in res.message
    assert np.isfinite(res.x).all() and np.isfinite(res.fun)


@pytest.mark.parametrize("seed", range(4))
def test_no_scaling_is_proved_on_large_patterns(seed):
    K, r, c = feasible(200, 0.01, seed)
    rng = np.random.default_rng(seed)
    c = rng.permutation(c) * np.where(np.arange(200) < 100, 3.0, 0.1)
    res = balance(K, r, c * (r.sum() / c.sum()), time_limit=20.0)
    assert res.status == Status.UNBOUNDED.code and res.message.startswith("No scaling exists")


def test_no_scaling_is_proved_also_where_a_limit_came_first():
    K = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    res = balance(K, np.ones(3), np.ones(3), maxiter=1)
    assert res.status == Status.UNBOUNDED.code and res.message.startswith("No scaling exists")


def test_sums_that_can_only_be_approached_are_told():
    res = balance(np.triu(np.ones((4, 4))), np.ones(4), np.ones(4))
    np.testing.assert_allclose(res.matrix(), np.eye(4), atol=1e-7)
    assert res.success and "The sums can be approached but not attained: all entries of row" in res.message
    assert res.message.endswith("so all other entries of these columns would have to be 0.")
    assert "approached" not in balance(np.ones((4, 4)), np.ones(4), np.ones(4)).message
    assert "approached" not in balance(np.kron(np.eye(2), [[1.0, 2.0], [3.0, 4.0]]), np.ones(4), np.ones(4)).message


def test_sums_that_differ_by_less_than_tol_are_equal():
    """Row 1 wants 1 and column 1 has 1 - 1e-9: an error of 1e-9, twice half of it, cannot be avoided."""
    r, c = [1.0, 1.0], [1.0 + 1e-9, 1.0 - 1e-9]
    near, tight = balance(np.eye(2), r, c), balance(np.eye(2), r, c, error_tol=1e-10)
    assert near.success and near.status == 0 and "No scaling exists" not in near.message
    assert (
        near.message.startswith("Converged")
        and "No scaling comes closer than 1.0e-09: all entries of row 1" in near.message
    )
    assert near.fun == pytest.approx(1e-9, rel=1e-6)
    assert not tight.success and tight.status == Status.UNBOUNDED.code and tight.message.startswith("No scaling exists")
    assert "with a sum of 1, are in column 1, with a sum of only 0.999999999" in tight.message


def test_totals_that_differ_are_charged_or_refused():
    """No scaling has both; mutation: leave `mismatch` out of the error."""
    r, c = [1.0, 1.0], [1.0 + 1e-10, 1.0]
    near, tight = balance(np.ones((2, 2)), r, c), balance(np.ones((2, 2)), r, c, error_tol=1e-11)
    M = near.matrix()
    off = (np.abs(M.sum(axis=0) - c).sum() + np.abs(M.sum(axis=1) - r).sum()) / 2.0
    assert near.success and off <= near.fun * (1 + 1e-6) <= near.fun + 1e-8
    assert near.fun >= 4.9e-11
    assert tight.status == Status.UNBOUNDED.code and not tight.success
    assert tight.message == "No scaling exists: r sums to 2, c to 2.0000000001."


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sums_of_a_coarse_type_prove_nothing_beyond_its_rounding(dtype):
    """0.1 + 0.2 and 0.15 + 0.15 differ in either.  Mutations: TIE of float64 for all; the order of v
    alone, which says nothing where no step was made."""
    K = np.kron(np.eye(2), np.ones((2, 2)))
    r, c = np.array([0.1, 0.2, 0.3, 0.4], dtype=dtype), np.array([0.15, 0.15, 0.35, 0.35], dtype=dtype)
    res = balance(K, r, c)
    assert res.status == Status.PRECISION.code and not res.success and res.fun < np.finfo(dtype).eps
    assert "No scaling exists" not in res.message and "none seems to exist" not in res.message
    assert balance(K, r, c, error_tol=1e-3).success
    wrong = balance(K, r, np.array([0.25, 0.25, 0.25, 0.25], dtype=dtype))
    assert wrong.status == Status.UNBOUNDED.code and wrong.message.startswith("No scaling exists")
    ones = np.ones(3, dtype=dtype)
    assert balance([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], ones, ones).status == Status.UNBOUNDED.code


def test_zero_sums_have_zero_scalings():
    K = np.array([[1.0, 1.0, 1.0], [5.0, 1.0, 7.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1.0]])
    for kind in (np.asarray, sp.csr_array):
        res = balance(kind(K), [1.0, 0.0, 0.0, 2.0], [1.0, 2.0, 0.0])
        M = res.matrix() if kind is np.asarray else res.matrix().toarray()
        np.testing.assert_allclose(M.sum(axis=1), [1.0, 0.0, 0.0, 2.0], atol=1e-7)
        np.testing.assert_allclose(M.sum(axis=0), [1.0, 2.0, 0.0], atol=1e-7)
        assert res.success and res.row[1] == res.column[2] == 0.0 and res.log_row[2] == -np.inf


def test_an_empty_row_or_column_that_must_have_a_sum_is_named():
    for K, words in (([[1.0, 1.0], [0.0, 0.0]], "row 1"), ([[0.0, 1.0], [0.0, 1.0]], "column 0")):
        for kind in (np.asarray, sp.csr_array):
            res = balance(kind(K), [1.0, 1.0], [1.0, 1.0])
            assert res.message == f"No scaling exists: {words} is to sum to 1, but has no entries."
            assert not res.success and res.status == Status.UNBOUNDED.code and res.npass == 0
    left = balance([[1.0, 0.0], [1.0, 1.0]], [1.0, 1.0], [0.0, 2.0])  # row 0 loses its only column
    assert left.message.startswith("No scaling exists: row 0")


@pytest.mark.parametrize("tol", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_status_and_success_agree_where_a_row_is_empty(tol):
    """Scalings of 0 leave all rows and all columns at 0, which is an error of 2.  Mutation: an error of 1."""
    res = balance([[1.0, 1.0], [0.0, 0.0]], [1.0, 1.0], [1.0, 1.0], error_tol=tol)
    assert not res.matrix().any() and res.fun == 2.0 and res.lower <= res.fun
    assert res.success == (res.fun <= tol) and res.status == (0 if res.success else Status.UNBOUNDED.code)
    assert res.message.endswith("No scaling exists: row 1 is to sum to 1, but has no entries.")


def test_entries_of_every_size_are_balanced_to_sums_of_1e300():
    rng = np.random.default_rng(0)
    K = np.exp(100.0 * rng.standard_normal((30, 30)))
    res = balance(K, np.full(30, 1e300), np.full(30, 1e300))
    assert res.success and np.isfinite(res.x).all()
    np.testing.assert_allclose(sums(res.matrix()), np.full((2, 30), 1e300), rtol=1e-6)
    tiny = balance(np.full((3, 3), 5e-324), np.ones(3), np.ones(3))
    np.testing.assert_allclose(tiny.matrix(), np.full((3, 3), 1 / 3), rtol=1e-12)
    assert tiny.success


def test_a_long_chain_is_balanced_within_100_iterations():
    n = 300
    rng = np.random.default_rng(0)
    K = sp.csr_array(sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]))
    P = K.copy()
    P.data = rng.random(P.nnz) + 1e-3
    res = balance(K, *sums(P))
    assert res.success and res.nit < 100


def test_a_limit_ends_balancing_with_its_status_and_a_true_error():
    K, r, c = feasible()
    res = balance(K, r, c, maxiter=2)
    assert res.nit == 2 and res.status == Status.MAXITER.code and not res.success
    assert set(res.trace) == {"seconds", "npass", "fun"} and res.trace["fun"][-1] == pytest.approx(res.fun)
    M = res.matrix()
    np.testing.assert_allclose(np.abs(sums(M)[1] - c).sum() / c.sum(), res.fun, rtol=1e-9)
    np.testing.assert_allclose(sums(M)[0], r, rtol=1e-12)
    assert balance(K, r, c, time_limit=0.0).status == Status.TIME.code


def test_duplicates_are_summed_and_stored_zeros_are_no_entries():
    rows, columns = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1])
    K = sp.coo_array((np.array([0.5, 0.5, 2.0, 0.0, 1.0]), (rows, columns)), shape=(2, 2))
    res = balance(K, [2.0, 1.0], [1.0, 2.0])
    np.testing.assert_allclose(res.matrix().toarray(), [[1.0, 1.0], [0.0, 1.0]], atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": [[1.0, -1.0], [1.0, 1.0]]}, "K must not be negative, got an entry of -1"),
        ({"K": sp.csr_array([[1.0, -1.0], [1.0, 1.0]])}, "K must not be negative"),
        ({"r": [1.0, 2.0]}, "r and c must have the same positive and finite sum, got 3 and 2"),
        ({"K": [[1.0, np.nan], [1.0, 1.0]]}, "K must be finite"),
        ({"c": [1.0]}, "c must be 1-D of length 2"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        balance(**{"K": np.ones((2, 2)), "r": [1.0, 1.0], "c": [1.0, 1.0], **change})
