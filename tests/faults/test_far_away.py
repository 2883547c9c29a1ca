"""Minimisers, and functions, of sizes nobody expects: found, or not found, but never called what they are not."""

import numpy as np
import pytest
from scipy.optimize import brentq

import hasd
from hasd.objectives import EntropicTransport, LeastSquares
from support import BLACK_BOX

UNBOUNDED = hasd.Status.UNBOUNDED.code
every_black_box = pytest.mark.parametrize("method", BLACK_BOX)
A, B = np.random.default_rng(0).standard_normal((20, 4)), np.ones(20)
COSTS, ROWS, COLUMNS = np.array([[0.1, 1.0], [0.7, 0.4]]), [0.3, 0.7], [0.5, 0.5]
Q = brentq(lambda q: np.log(q * (0.2 + q) / ((0.3 - q) * (0.5 - q))) - 12.0, 0.2, 0.3 - 1e-9, xtol=1e-15)
PLAN = np.array([[Q, 0.3 - Q], [0.5 - Q, 0.2 + Q]])  # with these sums, the best one at reg = 0.1
TRANSPORT = -float(np.sum(PLAN * (COSTS + 0.1 * np.log(PLAN))))
BEST = LeastSquares(A, B)(np.linalg.lstsq(A, B, rcond=None)[0])


@pytest.mark.parametrize("method", ["auto", "hasd-qn", "hasd-subspace", "hasd-newton", "hasd-cg"])
@pytest.mark.parametrize("size", [1e-120, 1e-60, 1e-20, 1.0, 1e20, 1e60])
def test_least_squares_with_data_of_any_size_are_solved(method, size):
    """The minimiser is 1/size away from x0 = 0."""
    res = hasd.minimize(LeastSquares(size * A, B), np.zeros(4), method=method)
    assert res.success and res.fun == pytest.approx(BEST, rel=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e-40, 1.0, 1e40, 1e150, 1e300])
@pytest.mark.parametrize("is_callable", [False, True], ids=["objective", "callable"])
def test_a_softmax_of_any_unit_is_solved(is_callable, size):
    """Values and variables are in one unit, of any size: how far to step is known from neither x0 = 0 nor the slope."""
    f = EntropicTransport(size * COSTS, ROWS, COLUMNS, reg=0.1 * size)
    given, jac = (f.value_and_grad, True) if is_callable else (f, None)
    res = hasd.minimize(given, np.zeros(4), jac=jac, method="hasd-qn")
    assert res.success
    assert res.fun / size == pytest.approx(TRANSPORT, abs=1e-9)


@pytest.mark.parametrize("far", [1e5, 1e10, 1e20, 1e40, 1e60])
def test_a_minimiser_far_from_the_start_is_found_in_40_evaluations(far):
    """The first step knows nothing of the distance: within a few dozen evaluations it does."""
    res = hasd.minimize(lambda x: (0.5 * float((x - far) @ (x - far)), x - far), np.zeros(2), jac=True)
    assert res.success and res.nfev <= 40
    np.testing.assert_allclose(res.x, far, rtol=1e-5)


@pytest.mark.parametrize("method", ["steepest-descent", "agd", "gradient-descent"])
@pytest.mark.parametrize("size", [1e-150, 1e-40, 1.0, 1e40, 1e150])
def test_a_first_step_of_any_length_is_found(method, size):
    """The minimiser is that far away: a first step of 1 is far too long, or nothing is seen of it."""

    def f(x):
        r = A @ (x / size) - B
        return 0.5 * size * float(r @ r), A.T @ r

    with np.errstate(over="ignore"):
        res = hasd.minimize(f, np.zeros(4), jac=True, method=method, maxfun=20000)
    assert res.success and res.fun / size == pytest.approx(BEST, rel=1e-9)


@pytest.mark.parametrize("method", ["hasd", "hasd-paper", "steepest-descent", "linear-coupling"])
@pytest.mark.parametrize("weight", [1e-90, 1e-40, 1e40, 1e90])
def test_the_unit_of_the_weights_does_not_matter(method, weight):
    """A first step of 1 in a norm with weights would be one of 1/weight in x.

    The iterates are those of weights 1, up to rounding, so that about as many evaluations are needed.
    """
    f = LeastSquares(A, B).value_and_grad
    norms = [hasd.Lp(np.inf, weights=np.full(4, w)) for w in (1.0, weight)]
    plain, res = (hasd.minimize(f, np.zeros(4), jac=True, method=method, p=norm, maxfun=3000) for norm in norms)
    assert res.success and res.fun == pytest.approx(BEST, rel=1e-9)
    assert res.nfev <= 1.1 * plain.nfev + 5


@every_black_box
@pytest.mark.parametrize("far", [1e15, 1e100, 1e150])
def test_too_far_away_is_not_unbounded(method, far):
    """What falls without anything to be seen of it proves nothing."""

    def f(x):
        return 0.5 * float((x - far) @ (x - far)), x - far

    res = hasd.minimize(f, np.zeros(2), jac=True, method=method, mu=1.0 if method == "hasd-restart" else 0, maxfun=500)
    assert res.status != UNBOUNDED and np.isfinite(res.x).all() and res.fun <= f(np.zeros(2))[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x[0] ** 2 - x[1], np.array([2.0 * x[0], -1.0])),
        lambda x: (1e4 * x[0] ** 2 - x[1], np.array([2e4 * x[0], -1.0])),
        lambda x: (np.exp(x[0]) - x[1], np.array([np.exp(x[0]), -1.0])),
        lambda x: (np.hypot(1.0, x[0]) - 2.0 * x[0] + x[1] ** 2, np.array([x[0] / np.hypot(1, x[0]) - 2, 2.0 * x[1]])),
    ],
    ids=["parabola", "steep parabola", "exponential", "hyperbola"],
)
def test_what_falls_without_end_is_unbounded(f):
    with np.errstate(over="ignore"):
        res = hasd.minimize(f, np.array([1.0, 2.0]), jac=True, method="hasd-qn", tol=0, maxfun=2000)
    assert res.status == UNBOUNDED and not res.success and res.fun < -1e10


@pytest.mark.parametrize("fall", [1e-1, 1e-3, 1e-8])
def test_a_parabola_that_slowly_falls_sideways_is_unbounded(fall):
    """Directions with a trace of the curved variables find "minimisers" 1e30 away, and from there others."""

    def f(x):
        return 0.5 * x[0] ** 2 + 0.5 * x[1] ** 2 + fall * x[2], np.array([x[0], x[1], fall])

    res = hasd.minimize(f, np.array([1.0, 0.5, 0.3]), jac=True, tol=1e-9)
    assert res.status == UNBOUNDED and res.nfev < 3000


@every_black_box
@pytest.mark.parametrize(
    ("f", "x0"),
    [
        (lambda x: (1e-300 * float(np.abs(x).sum()), 1e-300 * np.sign(x)), [1e30]),
        (lambda x: (1e-310 * float(x @ x), 2e-310 * x), [1.0, 2.0]),
        (lambda x: (1e-308 * float(np.exp(x).sum()), 1e-308 * np.exp(x)), [1.0, 2.0]),
    ],
    ids=["a curvature below all numbers", "values below the normal ones", "a minimum at infinity"],
)
def test_tiny_functions_end_at_a_finite_x_no_worse_than_x0(method, f, x0):
    """No error of ours, no x at infinity, nothing worse than x0."""
    mu = {"mu": 1e-320} if method == "hasd-restart" else {}
    with np.errstate(all="ignore"):
        res = hasd.minimize(f, x0, jac=True, method=method, maxfun=1000, **mu)
    assert np.isfinite(res.x).all() and res.fun <= f(np.asarray(x0))[0]
