"""lp_fit with weights: against planted optima, repeated rows and CVXPY with Clarabel."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import hasd
from hasd.problems._lp_fit import lp_fit
from planted import every_power, planted, value

KINDS = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array, "operator": aslinearoperator}


def weighted_problem(n, d, q, seed=0):
    """A planted optimum of the rows times w^(1/q), and these weights."""
    A, b, x, best = planted(n, d, q, seed)
    w = np.random.default_rng(seed).uniform(0.1, 5.0, n)
    root = w ** (1.0 / q)
    return A / root[:, None], b / root, w, x, best


@pytest.mark.parametrize("kind", KINDS)
@every_power
def test_a_planted_weighted_optimum_is_found_and_certified(q, kind, route):
    """Mutations: rows times w, not w^(1/q); b without its weights; `residual` with weights; `dual` without."""
    A, b, w, x, best = weighted_problem(120, 6, q)
    fit = lp_fit(KINDS[kind](A), b, q, weights=w)
    assert fit.success, fit.message
    assert fit.lower <= best * (1 + 1e-13) and best <= fit.fun * (1 + 1e-13)
    assert 0.0 <= fit.gap == fit.fun - fit.lower <= 1e-8 * fit.fun
    np.testing.assert_allclose(fit.residual, A @ fit.x - b, atol=1e-12)
    assert fit.fun == pytest.approx(value(w ** (1 / q) * fit.residual, q), rel=1e-13)
    np.testing.assert_allclose(fit.x, x, atol=1e-3 * np.linalg.norm(x))
    u, dual = fit.dual, q / (q - 1.0)
    assert value(u / w ** (1 / q), dual) == pytest.approx(1.0, rel=1e-12)
    assert np.abs(A.T @ u).max() <= 1e-8 * np.abs(A.T).max() * np.abs(u).sum()
    assert -b @ u == pytest.approx(fit.lower, rel=1e-6)


@every_power
def test_whole_weights_are_repetitions_and_weight_zero_leaves_a_row_out(q):
    rng = np.random.default_rng(1)
    A, b, count = rng.standard_normal((60, 4)), rng.standard_normal(60), rng.integers(0, 4, 60)
    fit = lp_fit(A, b, q, weights=count, gap_rtol=1e-10)
    repeated = lp_fit(np.repeat(A, count, 0), np.repeat(b, count), q, gap_rtol=1e-10)
    assert fit.fun == pytest.approx(repeated.fun, rel=1e-9)
    np.testing.assert_allclose(fit.x, repeated.x, atol=1e-3)  # a gap of 1e-10 leaves x some 1e-5
    assert fit.residual.shape == (60,) and not fit.dual[count == 0].any()


@pytest.mark.parametrize("q", [2.0, 4.0], ids="q={:g}".format)
def test_a_weighted_fit_agrees_with_clarabel(q):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(2)
    A, b, w = rng.standard_normal((80, 5)), rng.standard_t(3, 80), 10.0 ** rng.uniform(-3, 3, 80)
    x = cvxpy.Variable(5)
    powers = cvxpy.multiply(w, cvxpy.abs(A @ x - b) ** q)
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(powers))).solve(solver=cvxpy.CLARABEL)
    reference = np.sum(w * np.abs(A @ x.value - b) ** q) ** (1 / q)
    fit = lp_fit(A, b, q, weights=w)
    assert fit.success and fit.fun == pytest.approx(reference, rel=1e-6) and fit.lower <= reference


def test_a_single_precision_operator_keeps_its_precision_with_weights():
    """Mutation: the precision of the product of operators, which is float64's."""
    rng = np.random.default_rng(3)
    A, b, w = rng.standard_normal((50, 3)).astype(np.float32), rng.standard_normal(50), rng.uniform(0.5, 2.0, 50)
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, rmatvec=lambda u: A.T @ u, dtype=np.float32)
    fit = lp_fit(operator, b, 4, weights=w)
    exact = lp_fit(A.astype(float), b, 4, weights=w)
    assert fit.lower <= exact.fun and 1e-8 < fit.gap / fit.fun < 1e-3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": [1.0, -1.0, 1.0]}, r"weights must be at least 0, but weights\[1\] is -1"),
        ({"weights": [0.0, 0.0, 0.0]}, "weights must have an entry above 0"),
        ({"weights": [1.0, np.inf, 1.0]}, "weights must be finite"),
        ({"weights": np.ones(4)}, "weights must be 1-D of length 3"),
        (
            {"weights": np.full(3, 1e300), "power": 2.0, "b": np.full(3, 1e200)},
            "times the roots of the weights overflow",
        ),
        ({"power": float("inf")}, "power must be finite, got inf: hasd.chebyshev minimises the largest residual"),
    ],
)
def test_weights_and_powers_that_are_none_are_refused_by_name(given, said):
    with pytest.raises(ValueError, match=said):
        hasd.lp_fit(**({"A": np.ones((3, 1)), "b": [1.0, 0.0, 2.0]} | given))


def test_weights_of_any_size_are_only_units():
    A, b, w, _, _ = weighted_problem(60, 4, 4.0)
    fit = lp_fit(A, b, weights=w)
    for unit in (1e-200, 1e200):
        scaled = lp_fit(A, b, weights=unit * w)
        assert scaled.success and scaled.fun == pytest.approx(unit**0.25 * fit.fun, rel=1e-8)
        np.testing.assert_allclose(scaled.x, fit.x, rtol=1e-3, atol=1e-4)
