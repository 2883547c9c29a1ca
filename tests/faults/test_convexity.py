"""Functions that are not convex, and promises that are not kept: seen, said, and nothing certified."""

import re

import numpy as np
import pytest

import hasd
from hasd.objectives import LeastSquares, LogSumExp, Quadratic
from support import BLACK_BOX, NORMS

BLACK_BOXES = [name for name in BLACK_BOX if name != "hasd-restart"]
RNG = np.random.default_rng(4)
A, RIGHT = RNG.standard_normal((40, 6)), RNG.standard_normal(40)
SENTENCE = re.compile(
    r"cut at iteration (\d+) is (\S+) above the value at iteration (\d+), and .* explains (\S+) of it;"
)


def waves(x):
    """Bounded below, full of hills."""
    return float(np.sum(0.05 * x * x + np.cos(2 * x))), 0.1 * x - 2 * np.sin(2 * x)


def bowl(x):
    z = A @ x - RIGHT
    return float(np.sum(np.sqrt(1 + z * z)) + 0.05 * x @ x), A.T @ (z / np.sqrt(1 + z * z)) + 0.1 * x


def test_hills_are_seen_and_the_certificate_withdrawn():
    seen = 0
    for method in BLACK_BOXES:
        res = hasd.minimize(waves, np.linspace(0.1, 3.0, 6), jac=True, method=method, maxiter=300, radius=20.0)
        assert np.isfinite(res.fun) and res.fun <= waves(np.linspace(0.1, 3.0, 6))[0]
        if SENTENCE.search(res.message):
            seen += 1
            assert res.certificate.lower(20.0) == -np.inf and res.gap == np.inf
            assert np.isnan(res.trace["lower"][-1])
            assert res.status in (0, 1, hasd.Status.NONCONVEX.code)
    assert seen >= len(BLACK_BOXES) - 2  # a run may be lucky


def test_the_pair_and_the_amount_are_true():
    points = []

    def f(x):
        points.append((x.copy(), *waves(x)))
        return points[-1][1:]

    res = hasd.minimize(f, np.linspace(0.1, 3.0, 6), jac=True, method="gradient-descent", L=5.0, maxiter=50)
    at, above, other, noise = (float(part) for part in SENTENCE.search(res.message).groups())
    # gradient descent evaluates its iterates, one an iteration
    (x, fx, gx), (y, fy, _) = points[int(at)], points[int(other)]
    assert above == pytest.approx(fx + gx @ (y - x) - fy, rel=1e-2) and above > noise > 0.0


def test_the_run_goes_on_to_a_stationary_point():
    res = hasd.minimize(waves, np.linspace(0.1, 3.0, 6), jac=True, method="hasd-qn", tol=1e-8)
    assert res.success and "not convex" in res.message and np.linalg.norm(res.jac) < 1e-6


def test_a_gap_is_not_claimed_any_more():
    res = hasd.minimize(waves, np.linspace(0.1, 3.0, 6), jac=True, method="hasd-qn", radius=20.0, gap_tol=1e3)
    assert res.status == hasd.Status.GAP.code  # before anything was seen
    res = hasd.minimize(
        waves, np.linspace(0.1, 3.0, 6), jac=True, method="hasd-qn", radius=20.0, gap_tol=1e-3, tol=1e-8
    )
    assert res.status != hasd.Status.GAP.code


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_a_wrong_gradient_is_seen(factor):
    res = hasd.minimize(lambda x: (bowl(x)[0], factor * bowl(x)[1]), np.ones(6), jac=True, method="hasd-qn")
    assert "not convex" in res.message and res.certificate.gap(10.0) == np.inf


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("method", BLACK_BOXES)
def test_a_convex_function_is_never_called_nonconvex(method, p):
    """To the last digit.  Mutation: NOISE = 0.1."""
    f = LogSumExp(A, RIGHT, alpha=0.1, ridge=1e-3)
    quadratic = Quadratic(A.T @ A, A[0])
    for fun in (bowl, f.value_and_grad, quadratic.value_and_grad, lambda x: (1e9 + bowl(x)[0], bowl(x)[1])):
        res = hasd.minimize(fun, np.ones(6), jac=True, method=method, p=p, tol=0.0, maxiter=400)
        assert "convex" not in res.message and res.certificate.gap(100.0) < np.inf


@pytest.mark.parametrize("given", [{"radius": 1e-3}, {"mu": 50.0}])
def test_a_promise_that_is_not_kept_is_told_and_nothing_certified(given):
    res = hasd.minimize(bowl, 3 * np.ones(6), jac=True, method="hasd-qn", gap_tol=0.0, tol=1e-9, **given)
    assert (
        "A lower bound, " in res.message and res.certificate.gap(100.0) == np.inf and res.status != hasd.Status.GAP.code
    )


@pytest.mark.parametrize("method", ["hasd-qn", "hasd", "agd"])
@pytest.mark.parametrize("given", [{"radius": 1e-3}, {"mu": 50.0}])
def test_a_constant_that_is_wrong_does_not_make_a_stuck_run_nonconvex(given, method):
    """The bounds contradict each other because of the constant; the function of the user's is convex."""
    res = hasd.minimize(bowl, 3 * np.ones(6), jac=True, method=method, tol=0.0, maxiter=3000, **given)
    assert "A lower bound, " in res.message and res.gap == np.inf
    assert res.status in (hasd.Status.PRECISION.code, hasd.Status.CONVERGED.code)


def test_a_stuck_run_says_which():
    """A kink, and a gradient that is off: no method gets on, and the function is not convex there."""

    def roof(x):
        return -float(np.abs(x).sum()) + 0.5 * float(x @ x), -np.sign(x) + x + 0.3

    res = hasd.minimize(roof, np.full(3, 0.4), jac=True, method="hasd-qn", tol=0.0, maxiter=200)
    stuck = (hasd.Status.NONCONVEX.code, hasd.Status.GRADIENT.code)
    assert "not convex" in res.message and res.status in (1, *stuck) and not res.success


def test_nonconvexity_is_remembered_across_a_checkpoint(tmp_path):
    common = {"jac": True, "method": "hasd-qn", "tol": 1e-8}
    x0, path = np.linspace(0.1, 3.0, 6), tmp_path / "run.npz"
    part = hasd.minimize(waves, x0, maxiter=4, checkpoint=path, **common)
    assert "not convex" in part.message
    for resume in (path, part.state):
        assert hasd.minimize(waves, x0, resume=resume, **common).certificate.gap(20.0) == np.inf


def test_affine_objectives_are_convex_by_construction():
    res = hasd.minimize(LeastSquares(A, RIGHT), np.ones(6), tol=0.0)
    assert "convex" not in res.message


def test_numbers_that_overflow_are_no_contradiction():
    """float32, and steps of an L far too small: a cut that is inf above a value proves nothing."""
    H = np.diag(np.linspace(1.0, 600.0, 6)).astype(np.float32)
    x0 = np.ones(6, dtype=np.float32)
    with np.errstate(all="ignore"):
        f = lambda x: (0.5 * float(x @ H @ x), H @ x)  # noqa: E731
        res = hasd.minimize(f, x0, jac=True, method="hasd-paper", p=2.0, L=0.3, maxiter=50)
    assert "inf above" not in res.message


def test_values_in_float32_are_no_reason_to_call_a_function_nonconvex():
    """x0 and the gradient are in float64.  Mutation: the type of the value is ignored."""
    own = np.random.default_rng(0)
    A, b = own.standard_normal((40, 8)), own.standard_normal(40)

    def coarse(x):
        r = A @ x - b
        s = np.sqrt(1.0 + r * r)
        return np.float32(s.sum() + 0.05 * x @ x), A.T @ (r / s) + 0.1 * x

    for f in (coarse, lambda x: (np.array(coarse(x)[0]), coarse(x)[1])):
        res = hasd.minimize(f, np.zeros(8), jac=True, mu=0.1)
        assert res.success and np.isfinite(res.gap)
