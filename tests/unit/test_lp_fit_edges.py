"""lp_fit at its edges: degenerate data, exact fits of all rows but some, scales to the ends of floating point, types,
refused input, limits.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from hasd._math.doubt import Sizes
from hasd._run.status import Status
from hasd.objectives.affine import Affine
from hasd.objectives.losses import PowerLoss
from hasd.problems import _lp_spaces as lp_spaces
from hasd.problems._lp_fit import lp_fit
from planted import every_power, planted, value

KINDS = {"dense": np.asarray, "csr": sp.csr_array, "operator": aslinearoperator}


def _exact(rng):
    A = rng.standard_normal((40, 5))
    return A, A @ rng.standard_normal(5), 0.0


def _wide(rng):
    return rng.standard_normal((5, 9)), rng.standard_normal(5), 0.0


DEGENERATE = {
    "exact fit": _exact,
    "wide": _wide,
    "1 x 1": lambda rng: ([[2.0]], [3.0], 0.0),
    "b = 0": lambda rng: (rng.standard_normal((20, 3)), np.zeros(20), 0.0),
    "A = 0": lambda rng: (np.zeros((9, 3)), np.ones(9), 9.0),
    "A = 0, b = 0": lambda rng: (np.zeros((9, 3)), np.zeros(9), 0.0),
    "zero column": lambda rng: ([[1.0, 0.0], [1.0, 0.0]], [1.0, -1.0], 2.0),
    "one row": lambda rng: ([[0.0, 3.0]], [1.0], 0.0),
    "equal rows, two values": lambda rng: (np.ones((6, 1)), [1.0, -1.0] * 3, 6.0),
    "rank 1 of 3": lambda rng: (np.ones((6, 3)), [1.0, -1.0] * 3, 6.0),
    "wide of rank 1": lambda rng: (np.ones((2, 5)), [1.0, -1.0], 2.0),
}


@pytest.mark.parametrize("name", DEGENERATE)
@every_power
def test_degenerate_data_are_fitted_in_few_iterations(name, q, route):
    """`best` is sum |z*|^q with |z*| = 1, or 0.  Mutations: no test for an exact fit; rank taken to be d."""
    A, b, best = DEGENERATE[name](np.random.default_rng(9))
    fit = lp_fit(A, b, q)
    assert fit.success, fit.message
    assert np.isfinite(fit.x).all()
    assert fit.fun == pytest.approx(best ** (1 / q), rel=1e-9, abs=1e-11)
    assert 0.0 <= fit.lower <= fit.fun
    assert ("exact" in fit.message) == (best == 0.0) and fit.status == Status.GAP.code
    assert fit.nit < 200


@pytest.mark.parametrize("scale", [1e-250, 1e-100, 1e100, 1e250], ids="{:g}".format)
@pytest.mark.parametrize("q", [4.0, 100.0], ids="q={:g}".format)
@pytest.mark.parametrize("kind", KINDS)
def test_scaling_A_and_b_keeps_x_and_scaling_b_alone_scales_it(q, scale, kind, route):
    """A and b times the same: x as before; b alone: x and fun times it.  Mutation: no D, or no size."""
    make = KINDS[kind]
    A, b, _, best = planted(100, 5, q, seed=6)
    fit = lp_fit(make(A), b, q)
    both, right = lp_fit(make(A * scale), b * scale, q), lp_fit(make(A), b * scale, q)
    assert fit.success and both.success and right.success
    np.testing.assert_allclose(both.x, fit.x, rtol=1e-3)
    np.testing.assert_allclose(right.x / scale, fit.x, rtol=1e-3)
    assert both.fun / scale == pytest.approx(best, rel=1e-8) == right.fun / scale
    assert both.lower <= both.fun and both.trace["fun"][-1] / scale == pytest.approx(best, rel=1e-8)


def test_columns_of_very_different_size_are_fitted(route):
    A, b, x, best = planted(100, 5, 4.0, seed=7)
    sizes = np.geomspace(1e-120, 1e120, 5)
    fit = lp_fit(A * sizes, b, 4)
    assert fit.success and fit.fun == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(fit.x * sizes, x, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool], ids=lambda t: np.dtype(t).name)
def test_data_of_any_type_are_fitted_in_double_precision(dtype, route):
    """The problem is that of the numbers as they are; mutation: products in float32."""
    rng = np.random.default_rng(11)
    A, b = (3 * rng.standard_normal((80, 4))).astype(dtype), (5 * rng.standard_normal(80)).astype(dtype)
    fit, same = lp_fit(A, b, 4), lp_fit(A.astype(float), b.astype(float), 4)
    assert fit.success and fit.x.dtype == np.float64 and fit.fun == same.fun


def test_a_float32_operator_is_honest(monkeypatch):
    """Its products carry 7 digits: no success at 1e-8, and no bound above the optimum."""
    monkeypatch.setattr(lp_spaces, "WHOLE", 0)
    A, b, _, best = planted(100, 4, 4.0, seed=12)
    fit = lp_fit(aslinearoperator(A.astype(np.float32)), b, 4)
    assert not fit.success and fit.lower <= best * (1 + 1e-6)
    assert fit.fun == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(
    ("A", "b", "options", "error", "text"),
    [
        (np.zeros((0, 2)), [], {}, ValueError, "at least one row"),
        (np.zeros((3, 0)), np.ones(3), {}, ValueError, "at least one row and one column"),
        (np.ones(3), np.ones(3), {}, ValueError, "2-D"),
        (np.ones((3, 2)), np.ones(2), {}, ValueError, "length 3"),
        (np.ones((3, 2)), np.ones((3, 1)), {}, ValueError, "1-D of length 3"),
        ([[np.nan], [1.0]], [0.0, 1.0], {}, ValueError, "A must be finite"),
        ([[1.0], [1.0]], [0.0, np.inf], {}, ValueError, "b must be finite"),
        ([[1j], [1.0]], [0.0, 1.0], {}, TypeError, "real"),
        ([[1.0], [1.0]], [0.0, 1.0], {"power": 1.5}, ValueError, "power must be finite and at least 2"),
        ([[1.0], [1.0]], [0.0, 1.0], {"power": np.inf}, ValueError, "power must be finite"),
        ([[1.0], [1.0]], [0.0, 1.0], {"power": np.nan}, ValueError, "power must be finite"),
        ([[1.0], [1.0]], [0.0, 1.0], {"power": "4"}, TypeError, "power must be a number"),
        ([[1.0], [1.0]], [0.0, 1.0], {"gap_rtol": -1.0}, ValueError, "gap_rtol must be"),
        ([[1.0], [1.0]], [0.0, 1.0], {"maxiter": -1}, ValueError, "maxiter must be"),
        ([[1.0], [1.0]], [0.0, 1.0], {"time_limit": np.nan}, ValueError, "time_limit must be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_data_and_settings_are_refused(A, b, options, error, text):
    with pytest.raises(error, match=text):
        lp_fit(A, b, **options)


@pytest.mark.parametrize(
    ("limit", "status"),
    [({"maxiter": 0}, 1), ({"maxiter": 3}, 1), ({"time_limit": 0.0}, 11)],
    ids=["no iteration", "three", "no time"],
)
def test_limits_end_honestly(limit, status, route):
    """What is returned is a point with its value and a true bound; mutation: limits for each stage anew."""
    A, b, _, best = planted(100, 5, 30.0, seed=13)
    fit = lp_fit(A, b, 30, **limit)
    assert not fit.success and fit.status == status and fit.nit <= limit.get("maxiter", 0)
    assert fit.lower <= best <= fit.fun * (1 + 1e-14)
    assert fit.fun == pytest.approx(value(A @ fit.x - b, 30), rel=1e-12)
    assert "above the tolerance" in fit.message


def test_overflow_is_not_a_success():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, b = (10.0 ** rng.uniform(300, 308, shape) * rng.choice([-1.0, 1.0], shape) for shape in ((6, 3), (6,)))
        res = lp_fit(A, b, power=6)
        assert np.isfinite(res.fun) or not res.success


@every_power
@pytest.mark.parametrize("seed", range(12))
def test_a_fit_that_is_exact_in_all_rows_but_some_is_certified(seed, q, route):
    """Rows of zeros, which nothing fits, beside rows that are fitted up to rounding, whose weights are none.

    Mutation: no bound from phi'(z) projected without weights (no success in 26 of 60, factored).
    """
    rng = np.random.default_rng(seed)
    d, some = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    A = rng.standard_normal((some + d + int(rng.integers(1, 6)), d))
    b = A @ rng.standard_normal(d)
    A[:some], b[:some] = 0.0, rng.uniform(0.5, 2.0, some)
    fit, best = lp_fit(A, b, q), value(b[:some], q)
    assert fit.success, fit.message
    assert fit.lower <= best * (1 + 1e-15) and best * (1 - 1e-8) <= fit.lower
    assert fit.fun == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e305], ids="{:g}".format)
def test_columns_at_the_ends_of_floating_point_are_fitted(scale, kind):
    """Mutation: no lift, 1/D overflows (2^-1030) or c/D is subnormal (2^1015)."""
    rng = np.random.default_rng(0)
    A, x = rng.integers(-9, 10, (12, 2)).astype(float), np.array([1.0, -2.0])
    whole = A @ x + rng.integers(-3, 4, 12)
    one = lp_fit(A, whole, 4)
    fit = lp_fit(KINDS[kind](A * scale), whole * scale, 4)
    np.testing.assert_allclose(fit.x, one.x, rtol=1e-4)
    assert fit.success and fit.lower <= fit.fun
    sizes, shrunk = np.array([scale, 1.0]), 1e-30 if scale < 1.0 else 1.0  # so that x is a number
    fit = lp_fit(KINDS[kind](A * sizes), whole * shrunk, 4)
    np.testing.assert_allclose(fit.x * sizes / shrunk, one.x, rtol=1e-4)
    assert fit.success and fit.fun / shrunk == pytest.approx(one.fun, rel=1e-8)


def test_an_answer_beyond_floating_point_is_told():
    fit = lp_fit([[1e-310], [2e-310]], [1.0, 2.5], 4)
    assert not fit.success and fit.status == 3 and fit.fun == np.inf
    assert fit.message == "x or Ax - b overflows at the answer: rescale A or b."
    assert fit.lower <= lp_fit([[1.0], [2.0]], [1.0, 2.5], 4).fun


def test_an_exact_fit_that_underflows_is_none():
    """x = 4e-474 is 0, which fits nothing; mutation: the message of the point before it was rounded."""
    fit = lp_fit([[4e190]], [1.6e-283], 4)
    assert fit.x == 0.0 and fit.fun == 1.6e-283 and not fit.success and "exact" not in fit.message


def test_an_operator_may_have_columns_of_any_size():
    """It is factored, and its columns are seen; mutation: one size for all (lower = 1.35, the optimum 0)."""
    A = np.array([[-9.5e161, -2.2e60], [-1.5e161, 2.5e59]])
    fit = lp_fit(aslinearoperator(A), [2.1, -1.1], 4)
    assert fit.success and fit.fun < 1e-14
    counted = []
    operator = LinearOperator((2, 2), matvec=lambda v: (counted.append(1), A @ v)[1], rmatvec=lambda u: A.T @ u)
    assert lp_fit(operator, [2.1, -1.1], 4).success and len(counted) <= 4


def test_columns_of_zeros_and_a_tolerance_of_zero_end_at_rounding():
    """Mutation: the stages of an empty factor."""
    fit = lp_fit(np.zeros((3, 2)), [1.0, 2.0, 2.0], 100, gap_rtol=0.0)
    assert not fit.success and fit.status == 2 and fit.gap <= 1e-13 * fit.fun and "1.0e+00" not in fit.message


def test_an_operator_that_returns_its_own_buffer_is_fitted_as_its_matrix_is(route):
    """SciPy's default product with a matrix keeps views of that buffer.  Mutation: apply(A, np.eye(d))."""
    rng = np.random.default_rng(0)
    A, b, rooms = rng.standard_normal((30, 4)), rng.standard_normal(30), (np.empty(30), np.empty(4))
    forth, back = (
        lambda v, M=M, room=room: np.matmul(M, v.ravel(), out=room) for M, room in zip((A, A.T), rooms, strict=True)
    )
    reused = LinearOperator(A.shape, matvec=forth, rmatvec=back, dtype=float)
    fit, same = lp_fit(reused, b, 4), lp_fit(A, b, 4)
    assert fit.success and fit.fun == pytest.approx(same.fun, rel=1e-9) and fit.lower <= same.fun * (1 + 1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_rounding_is_judged_by_the_data_that_a_stage_computes_with(kind):
    """Columns divided by D, b by size.  Mutation: the sizes of A and b as given."""
    rng = np.random.default_rng(1)
    A, b, c = rng.standard_normal((60, 3)) * [1e-9, 1.0, 1e9], rng.standard_normal(60), rng.standard_normal(3)
    data = lp_spaces.ScaledFit(kind(A), b)
    stage = lp_spaces.LpColumns(data).objective(PowerLoss(4), 1e-3)
    plain = Affine(PowerLoss(4), A / data.D, b / 1e-3)
    assert stage.sizes() == pytest.approx(plain.sizes(), rel=1e-14)
    at = Sizes(f=plain(c), g=1.0, x=1.0, top=1.0, d=3, eps=2.0**-52)
    assert stage.doubt(at) == pytest.approx(plain.doubt(at), rel=1e-12)


def test_a_stage_is_sharpened_in_its_own_coordinates():
    """Mutation: A c in place of A D^-1 c."""
    rng = np.random.default_rng(2)
    A, b, c = rng.standard_normal((60, 3)) * [1e-9, 1.0, 1e9], rng.standard_normal(60), rng.standard_normal(3)
    stage = lp_spaces.LpColumns(lp_spaces.ScaledFit(A, b)).objective(PowerLoss(4), 1e-3)
    sharp = stage.sharpen(c, Sizes(f=stage(c), g=1.0, x=1.0, top=1.0, d=3, eps=2.0**-52))
    assert (sharp is None) == (np.finfo(np.longdouble).eps == 2.0**-52)  # on some systems it is float64
    value, g = stage.value_and_grad(c)
    assert sharp is None or sharp[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g if sharp is None else sharp[1], g, rtol=1e-9)


@pytest.mark.parametrize("q", [2.0, 4.0])
def test_the_method_is_the_one_that_ran(q):
    """Least squares by a factorisation takes no iterations.  Mutation: "hasd-subspace" from the start."""
    A, b, _, _ = planted(60, 3, q)
    fit = lp_fit(A, b, q)
    assert fit.success and fit.method == ("least-squares" if fit.nit == 0 else "hasd-subspace")
    assert (fit.nit == 0) == (q == 2.0)
    assert lp_fit(A, b, q, maxiter=0).method == "least-squares"


def test_a_callback_that_ends_a_fit_is_told_with_the_gap_that_is_left():
    def stop(intermediate_result):
        raise StopIteration

    A, b, _, _ = planted(60, 3, 4.0)
    fit = lp_fit(A, b, 4, callback=stop)
    assert fit.status == Status.CALLBACK.code and not fit.success and "certified gap is 1.0e+00" in fit.message
