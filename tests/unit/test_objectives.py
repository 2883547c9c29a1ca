"""The objectives: gradients, kinds of A, counts of products, precision, bad input, A = None."""

from __future__ import annotations

import copy
import math
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from hasd.objectives import Affine, LeastSquares, Logistic, LogSumExp, Objective, Power, Quadratic, SymmetricSoftmax
from hasd.objectives.losses import SquareLoss

n, d = 9, 5
rng = np.random.default_rng(1)
A0 = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
b0 = rng.standard_normal(n)
y0 = np.where(rng.random(n) < 0.5, -1, 1)
H0 = A0.T @ A0
c0 = rng.standard_normal(d)

KINDS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda A: np.asarray(A, dtype=np.float32),
    "list": lambda A: A.tolist(),
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "coo": sp.coo_array,
    "operator": aslinearoperator,
}
MAKERS = {
    "LogSumExp": lambda A: LogSumExp(A, b0, alpha=0.5, ridge=0.1),
    "LogSumExp plain": lambda A: LogSumExp(A),
    "SymmetricSoftmax": lambda A: SymmetricSoftmax(A, b0, alpha=0.5, ridge=0.1),
    "LeastSquares": lambda A: LeastSquares(A, b0, ridge=0.1),
    "Logistic": lambda A: Logistic(A, y0, ridge=0.1),
    "Power 2": lambda A: Power(A, b0, 2),
    "Power 3": lambda A: Power(A, b0, 3, ridge=0.1),
}


def every(kind):
    """All objectives with their matrix of one kind."""
    return [make(KINDS[kind](A0)) for make in MAKERS.values()] + [Quadratic(KINDS[kind](H0), c0)]


def literal(f, x):
    """The formulas of the docstrings, word for word."""
    if isinstance(f, Quadratic):
        return 0.5 * x @ H0 @ x + c0 @ x
    z = A0 @ x - (0.0 if f.b is None else b0)
    ridge = 0.5 * f.ridge * x @ x
    if isinstance(f, LogSumExp):
        return f.loss.alpha * np.log(np.exp(z / f.loss.alpha).sum()) + ridge
    if isinstance(f, SymmetricSoftmax):
        return f.loss.alpha * np.log((np.exp(z / f.loss.alpha) + np.exp(-z / f.loss.alpha)).sum()) + ridge
    if isinstance(f, Logistic):
        return np.mean(np.log(1 + np.exp(-y0 * (A0 @ x)))) + ridge
    q = f.loss.q if isinstance(f, Power) else 2
    return np.sum(np.abs(z) ** q) / q + ridge


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_the_formulas_and_gradients_their_derivatives(kind):
    single = kind == "float32"
    for f in every(kind):
        for x in (np.zeros(d), rng.standard_normal(d)):
            value, g = f.value_and_grad(x)
            assert type(value) is float and type(f(x)) is float
            assert f(x) == value == pytest.approx(literal(f, x), rel=1e-5 if single else 1e-12)
            h = 1e-2 if single else 1e-5
            steps = h * np.eye(d)
            slopes = [(f(x + e) - f(x - e)) / (2 * h) for e in steps]
            np.testing.assert_allclose(g, slopes, rtol=1e-2 if single else 1e-6, atol=3e-3 if single else 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_counted_exactly(kind):
    for f in every(kind):
        assert f.nprod == 0
        f(np.zeros(d))
        assert f.nprod == 1
        f.value_and_grad(np.zeros(d))
        assert f.nprod == (2 if isinstance(f, Quadratic) else 3)
        f.smoothness(2)
        twin = f.with_own_counter()
        twin(np.zeros(d))
        assert (f.nprod, twin.nprod) == (2 if isinstance(f, Quadratic) else 3, 1)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_count_is_the_number_of_products_an_operator_sees(make):
    seen = []
    spy = LinearOperator(
        (n, d),
        matvec=lambda v: (seen.append("A"), A0 @ v)[1],
        rmatvec=lambda u: (seen.append("AT"), A0.T @ u)[1],
        dtype=float,
    )
    f = make(spy)
    f(np.zeros(d))
    assert seen == ["A"]
    f.value_and_grad(np.zeros(d))
    assert seen == ["A", "A", "AT"] and f.nprod == 3


def test_a_copy_shares_the_data_and_threads_count_for_themselves():
    f = LogSumExp(A0, b0)
    twins = [f.with_own_counter() for _ in range(8)]
    threads = [threading.Thread(target=lambda t=t: [t.value_and_grad(c0) for _ in range(50)]) for t in twins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [t.nprod for t in twins] == [100] * 8 and f.nprod == 0
    assert all(t.A is f.A and type(t) is LogSumExp for t in twins)
    assert f.A is A0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "float32", "csr", "operator"])
def test_the_gradient_has_the_precision_of_x(kind, dtype):
    for f in every(kind):
        value, g = f.value_and_grad(np.ones(d, dtype=dtype))
        assert g.dtype == dtype and type(value) is float
        assert f.value_and_grad(np.ones(d, dtype=int))[1].dtype == np.float64


def test_a_product_never_copies_a_float32_matrix():
    for A in (np.ones((2000, 500), dtype=np.float32), sp.csr_array(np.ones((2000, 500), dtype=np.float32))):
        f, x = LeastSquares(A, np.zeros(2000)), np.ones(500)
        f.value_and_grad(x)
        tracemalloc.start()
        f.value_and_grad(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200_000  # A itself takes 4 MB


def test_integers_are_converted_once_and_other_floats_kept():
    assert LogSumExp(np.eye(2, dtype=bool)).A.dtype == np.float64
    assert LogSumExp(sp.eye_array(2, dtype=int, format="csr")).A.dtype == np.float64
    assert LogSumExp(np.eye(2, dtype=np.float32)).A.dtype == np.float32
    assert LogSumExp(sp.coo_array(np.eye(2))).A.format == "csr"
    assert LeastSquares(aslinearoperator(np.eye(2, dtype=int)), [0.5, 0])([0.0, 0.0]) == 0.125


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_callers_is_written_to_or_handed_out(kind):
    x = rng.standard_normal(d)
    x.flags.writeable = False
    before = x.copy()
    for f in every(kind):
        _, g = f.value_and_grad(x)
        kept = g.copy()
        f.value_and_grad(x + 1)
        np.testing.assert_array_equal(g, kept)
        assert not np.shares_memory(g, x)
    np.testing.assert_array_equal(x, before)


def test_the_offset_is_ours_and_an_operators_buffer_is_copied():
    b = b0.copy()
    f = LeastSquares(A0, b)
    value = f(c0)
    b[:] = 0.0
    assert f(c0) == value
    buffer = np.zeros(d)

    def reuse(u):
        buffer[:] = A0.T @ u
        return buffer

    operator = LinearOperator((n, d), matvec=lambda v: A0 @ v, rmatvec=reuse, dtype=float)
    g = LeastSquares(operator, b0).value_and_grad(c0)[1]
    kept = g.copy()
    buffer[:] = 7.0
    np.testing.assert_array_equal(g, kept)
    identity = LinearOperator((d, d), matvec=lambda v: v, rmatvec=lambda v: v, dtype=float)
    assert not np.shares_memory(LogSumExp(identity).image(c0), c0)


def test_an_objective_without_a_matrix_takes_the_identity():
    f = SymmetricSoftmax(alpha=0.5, ridge=0.2)
    full = SymmetricSoftmax(np.eye(3), alpha=0.5, ridge=0.2)
    x = np.array([1.0, -2.0, 0.5])
    value, g = f.value_and_grad(x)
    assert value == full(x)
    np.testing.assert_allclose(g, full.value_and_grad(x)[1], rtol=1e-15)
    assert f.dimension is None and f.nprod == 2 and not np.shares_memory(g, x)
    assert f([1.0]) == pytest.approx(0.5 * math.log(math.exp(2) + math.exp(-2)) + 0.1)
    shifted = SymmetricSoftmax(b=[1.0, 2.0])
    assert shifted.dimension == 2 and shifted([1.0, 2.0]) == pytest.approx(math.log(4))
    with pytest.raises(ValueError, match="x must be 1-D of length 2, got shape"):
        shifted(x)
    with pytest.raises(ValueError, match="x must be 1-D and not empty, got shape"):
        f(np.eye(2))


@pytest.mark.parametrize("make", [LogSumExp, lambda A: Affine(SquareLoss(), A), lambda A: Power(A, None, 2)])
def test_only_the_symmetric_softmax_takes_no_matrix(make):
    with pytest.raises(TypeError, match="A must be a real ndarray, sparse matrix or LinearOperator"):
        make(None)


@given(st.floats(-1e300, 1e300), st.sampled_from(list(KINDS)))
@settings(deadline=None, max_examples=50)
def test_no_x_makes_a_warning(size, kind):
    with np.errstate(all="raise"):
        for f in every(kind):
            value, g = f.value_and_grad(size * np.ones(d))
            assert type(value) is float and g.shape == (d,)


def test_objectives_at_extremes_are_exact_or_infinite():
    sharp = LogSumExp([[1.0], [-1.0]], alpha=1e-8)
    value, g = sharp.value_and_grad([1e6])
    assert value == 1e6 and g[0] == 1.0
    value, g = SymmetricSoftmax(alpha=1e-8).value_and_grad(np.array([0.0, -1e6]))
    assert value == 1e6
    np.testing.assert_array_equal(g, [0.0, -1.0])
    assert Power([[1.0]], [0.0], 8)([1e100]) == math.inf
    assert Logistic([[1.0]], [1])([-1e300]) == 1e300
    assert LeastSquares([[1.0]], [0.0], ridge=1.0)([1e200]) == math.inf


def nan_at(array):
    array = np.array(array, dtype=float)
    array.flat[0] = np.nan
    return array


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LogSumExp(b0), ValueError, "A must be 2-D"),
        (lambda: LogSumExp(np.zeros((0, 3))), ValueError, "A must be 2-D with at least one row"),
        (lambda: LogSumExp(A0 + 0j), TypeError, "A must be a real .* got dtype complex128"),
        (lambda: LogSumExp(sp.csr_array(A0 + 0j)), TypeError, "A must be a real"),
        (lambda: LogSumExp(aslinearoperator(A0 + 0j)), TypeError, "A must be a real"),
        (lambda: LogSumExp(np.array([["a"]])), TypeError, "A must be a real"),
        (lambda: LogSumExp(nan_at(A0)), ValueError, "A must be finite"),
        (lambda: LogSumExp(sp.csr_array(nan_at(A0))), ValueError, "A must be finite"),
        (lambda: LogSumExp(np.array([[math.inf]])), ValueError, "A must be finite"),
        (lambda: LogSumExp(A0, b0[1:]), ValueError, "b must be 1-D of length 9, got shape"),
        (lambda: LogSumExp(A0, nan_at(b0)), ValueError, "b must be finite"),
        (lambda: LogSumExp(A0, b0 + 0j), TypeError, "b must be a real vector"),
        (lambda: LogSumExp(A0, alpha=0), ValueError, "alpha must be finite and greater than 0, got 0"),
        (lambda: LogSumExp(A0, alpha="one"), TypeError, "alpha must be a number, got 'one'"),
        (lambda: LogSumExp(A0, ridge=-1), ValueError, "ridge must be finite and at least 0, got -1"),
        (lambda: Power(A0, b0, 1), ValueError, "q must be finite and at least 2, got 1"),
        (lambda: Power(A0, b0, math.inf), ValueError, "q must be finite and at least 2"),
        (lambda: Logistic(A0, (y0 + 1) // 2), ValueError, r"y must hold .* convert 0/1 labels with 2\*y - 1"),
        (lambda: Logistic(A0, y0[1:]), ValueError, "y must be 1-D of length 9"),
        (lambda: Quadratic(A0), ValueError, "H must be square"),
        (lambda: Quadratic(np.triu(np.ones((2, 2)))), ValueError, "H must be symmetric"),
        (lambda: Quadratic(sp.csr_array(np.triu(np.ones((2, 2))))), ValueError, "H must be symmetric"),
        (lambda: Quadratic(H0, b0), ValueError, "c must be 1-D of length 5"),
        (lambda: LogSumExp(A0).smoothness(1.5), ValueError, "p must satisfy 2 <= p <= inf"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("x", [np.zeros(d + 1), np.zeros((d, 1)), 0.0])
def test_a_wrong_x_is_refused_before_the_product(x):
    for f in every("operator"):
        for evaluate in (f, f.value_and_grad):
            with pytest.raises(ValueError, match="x must be 1-D of length 5, got shape"):
                evaluate(x)
            with pytest.raises(TypeError, match="x must be a real vector"):
                evaluate(np.zeros(d, dtype=complex))
        assert f.nprod == 0


def test_symmetry_up_to_rounding_passes():
    nearly = H0 * (1 + 1e-15 * rng.standard_normal((d, d)))
    assert Quadratic(nearly)(c0) == pytest.approx(Quadratic(H0)(c0), rel=1e-12)
    assert Quadratic(sp.csr_array((d, d)))(c0) == 0.0


def test_objectives_are_objectives_and_travel():
    for f in every("csr"):
        assert isinstance(f, Objective) and f.dimension == d
        for twin in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
            assert twin(c0) == f.with_own_counter()(c0)
    assert Quadratic(H0).ridge == 0.0 and LogSumExp(A0, ridge=0.25).ridge == 0.25


def test_images_serve_methods_that_keep_them():
    f = LogSumExp(A0, b0)
    z = f.image(c0)
    np.testing.assert_allclose(z, A0 @ c0 - b0)
    np.testing.assert_allclose(f.adjoint(f.loss.value_and_slope(z)[1]), f.value_and_grad(c0)[1])
    assert f.nprod == 4


def test_a_product_with_a_matrix_that_has_gaps_copies_nothing_of_it() -> None:
    """Such as every other column of an array, or a part of a file that does not fit into memory."""
    whole = np.ones((300, 1600))
    f = LeastSquares(whole[:, ::2], np.ones(300))
    x = np.ones(800)
    tracemalloc.start()
    try:
        f.adjoint(f.forward(x))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.1 * f.A.nbytes
