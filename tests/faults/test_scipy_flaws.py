"""What scipy.optimize.minimize 1.17 gets wrong: false successes, vague ends, a step too many, a cut start."""

import math

import numpy as np
import pytest

import hasd
from hasd import objectives
from support import STRUCTURED

BLACK_BOX = tuple(name for name in hasd.method_names() if name not in STRUCTURED)
every_black_box = pytest.mark.parametrize("method", ["auto", *BLACK_BOX])
every_method = pytest.mark.parametrize("method", ["auto", *hasd.method_names()])
declared_and_not = pytest.mark.parametrize("L", [None, 30.0], ids=["backtracked", "declared"])

H = np.diag(np.geomspace(0.5, 8.0, 5))
TARGET = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
QUADRATIC = objectives.Quadratic(H, -H @ TARGET)


def bowl(x):
    with np.errstate(over="ignore"):
        return 0.5 * float((x - TARGET) @ H @ (x - TARGET)) + 1.0, H @ (x - TARGET)


def solve(f, method, **options):
    if method == "hasd-restart":
        options.setdefault("mu", 0.5)
    return hasd.minimize(f, options.pop("x0", np.zeros(5)), method=method, **options)


class TestNotANumber:
    """SciPy: success=True, fun=nan."""

    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_a_value_that_is_nowhere_finite_is_no_success(self, method, L, value):
        res = solve(lambda x: (value, bowl(x)[1]), method, jac=True, L=L)
        assert (res.status, res.success, res.nit, res.nfev) == (12, False, 0, 1)
        assert "at x0 is not finite" in res.message
        np.testing.assert_array_equal(res.x, np.zeros(5))

    @every_black_box
    def test_a_value_of_nan_with_a_gradient_of_zero_is_no_success(self, method):
        """A stationary point, were it not for the value."""
        res = solve(lambda x: (math.nan, np.zeros(5)), method, jac=True)
        assert (res.status, res.success) == (12, False)

    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_values_not_finite_beyond_the_start_return_x0_without_success(self, method, L, value):
        def f(x):
            f, g = bowl(x)
            return f if not x.any() else value, g

        res = solve(f, method, jac=True, L=L, maxfun=2000)
        assert (res.status, res.success) == (3, False)
        assert res.fun == bowl(np.zeros(5))[0]
        np.testing.assert_array_equal(res.x, np.zeros(5))


class TestWrongLength:
    """SciPy: a vague status.  Here: an error that names both shapes, whenever it happens."""

    @every_black_box
    @pytest.mark.parametrize("shape", [(4,), (6,), (0,), (1,), (5, 1), (1, 5)])
    def test_a_gradient_of_the_wrong_shape_is_refused_with_both_shapes(self, method, shape):
        with pytest.raises(ValueError, match=r"jac must return an array of shape \(5,\), as x0 has, got shape"):
            solve(lambda x: (1.0, np.ones(shape)), method, jac=True)
        with pytest.raises(ValueError, match=r"jac must return an array of shape \(5,\), as x0 has, got shape"):
            solve(lambda x: 1.0, method, jac=lambda x: np.ones(shape))

    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize("after", [1, 4])
    def test_a_gradient_that_changes_its_length_in_a_run_is_refused(self, method, L, after):
        calls = []

        def f(x):
            calls.append(0)
            value, g = bowl(x)
            return value, g if len(calls) <= after else g[:-1]

        with pytest.raises(ValueError, match=r"shape \(5,\), as x0 has, got shape \(4,\)"):
            solve(f, method, jac=True, L=L, tol=0)
        assert len(calls) == after + 1


class TestNoIteration:
    """SciPy: maxiter=0 still steps."""

    @every_black_box
    @declared_and_not
    def test_maxiter_zero_evaluates_a_function_at_x0_only(self, method, L):
        seen = []

        def f(x):
            seen.append(x.copy())
            return bowl(x)

        x0 = np.full(5, 0.25)
        res = solve(f, method, jac=True, L=L, x0=x0, maxiter=0)
        assert (res.status, res.success, res.nit, res.nfev, res.njev) == (1, False, 0, 1, 1)
        assert res.fun == bowl(x0)[0]
        np.testing.assert_array_equal(res.x, x0)
        np.testing.assert_array_equal(np.unique(seen, axis=0), [x0])

    @every_method
    def test_maxiter_zero_returns_x0_for_an_objective(self, method):
        x0 = np.full(5, 0.25)
        res = solve(QUADRATIC, method, x0=x0, maxiter=0)
        assert (res.status, res.success, res.nit) == (1, False, 0)
        assert res.fun == QUADRATIC(x0)
        np.testing.assert_array_equal(res.x, x0)

    @every_method
    def test_maxiter_zero_at_the_optimum_is_a_success(self, method):
        res = solve(objectives.Quadratic(H), method, maxiter=0)
        assert (res.status, res.success, res.nit, res.fun) == (0, True, 0, 0.0)


class TestTinyGradient:
    """SciPy: 'converged' at once, as its tolerance is absolute."""

    @every_black_box
    @declared_and_not
    def test_a_function_times_1e_minus_300_is_solved(self, method, L):
        def f(x):
            value, g = bowl(x)
            return 1e-300 * value, 1e-300 * g

        mu = 0.5e-300 if method == "hasd-restart" else 0.0
        res = solve(f, method, jac=True, L=None if L is None else 1e-300 * L, mu=mu, tol=1e-4, maxfun=3000)
        assert res.success
        np.testing.assert_allclose(res.x, TARGET, atol=1e-2)

    @every_method
    def test_an_objective_times_1e_minus_300_is_solved(self, method):
        f = objectives.Quadratic(1e-300 * H, -1e-300 * (H @ TARGET))
        res = solve(f, method, mu=0.5e-300 if method == "hasd-restart" else None, tol=1e-4, maxfun=3000)
        assert res.success
        np.testing.assert_allclose(res.x, TARGET, atol=1e-2)

    @every_black_box
    def test_a_gradient_that_is_wrong_by_that_factor_is_no_success(self, method):
        """f is as it was: no step that this gradient leads to changes it as promised."""
        res = solve(lambda x: (bowl(x)[0], 1e-300 * bowl(x)[1]), method, jac=True, maxfun=300)
        assert not res.success or np.abs(bowl(res.x)[1]).max() <= 1e-5 * np.abs(bowl(np.zeros(5))[1]).max()
        assert res.fun == bowl(res.x)[0] <= bowl(np.zeros(5))[0]


class TestComplexStart:
    """SciPy: silently cut to its real part."""

    @every_method
    @pytest.mark.parametrize("x0", [[1j] * 5, np.zeros(5, dtype=np.complex64), np.full(5, 1.0 + 0j)])
    def test_a_complex_start_is_refused(self, method, x0):
        with pytest.raises(TypeError, match="x0 must be real, got complex numbers"):
            solve(QUADRATIC, method, x0=x0)
        if method not in STRUCTURED:
            with pytest.raises(TypeError, match="x0 must be real, got complex numbers"):
                solve(bowl, method, jac=True, x0=x0)
