"""Callbacks, as SciPy calls them."""

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

import hasd
from support import every_method

CURVATURE = np.geomspace(0.05, 5.0, 6)


def bowl(x):
    return 0.5 * float(CURVATURE @ (x * x)), CURVATURE * x


def solve(method="hasd", **options):
    return hasd.minimize(bowl, np.arange(1.0, 7.0), jac=True, method=method, mu=0.05, **options)


@every_method
@pytest.mark.parametrize("L", [None, 30.0])
def test_the_callback_is_called_once_an_iteration_with_the_iterate(method, L):
    seen = []
    res = solve(method, L=L, maxiter=15, tol=0, callback=lambda xk: seen.append(xk))
    assert len(seen) == res.nit == 15
    np.testing.assert_array_equal([bowl(x)[0] for x in seen], res.trace["fun"][1:])


@every_method
def test_the_callback_sees_the_last_iterate_of_a_converged_run(method):
    seen = []
    res = solve(method, L=30.0, tol=1e-3, callback=seen.append)
    assert res.success and len(seen) == res.nit


@every_method
@pytest.mark.parametrize("L", [None, 30.0])
def test_intermediate_result_holds_the_point_and_value_of_each_iteration(method, L):
    seen = []

    def callback(*, intermediate_result):
        seen.append(intermediate_result)

    res = solve(method, L=L, maxiter=15, tol=0, callback=callback)
    assert len(seen) == 15
    assert all(isinstance(state, OptimizeResult) for state in seen)
    assert [state.fun for state in seen] == [bowl(state.x)[0] for state in seen] == res.trace["fun"][1:].tolist()


def test_intermediate_result_may_be_positional():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result.fun)

    solve(maxiter=3, tol=0, callback=callback)
    assert len(seen) == 3


@every_method
def test_the_callback_is_given_a_copy(method):
    def callback(x):
        x[:] = np.nan

    def callback_result(intermediate_result):
        intermediate_result.x[:] = np.nan

    plain = solve(method, maxiter=20)
    np.testing.assert_array_equal(solve(method, maxiter=20, callback=callback).x, plain.x)
    np.testing.assert_array_equal(solve(method, maxiter=20, callback=callback_result).x, plain.x)


@every_method
@pytest.mark.parametrize("L", [None, 30.0])
def test_stop_iteration_ends_the_run_with_the_best_point(method, L):
    calls = []

    def callback(x):
        calls.append(x)
        if len(calls) == 4:
            raise StopIteration

    res = solve(method, L=L, tol=0, callback=callback)
    assert (res.status, res.success, res.nit, len(calls)) == (99, False, 4, 4)
    assert "StopIteration" in res.message
    assert res.fun == bowl(res.x)[0] <= bowl(calls[-1])[0]
    assert len(res.trace["fun"]) == 5


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, ZeroDivisionError])
def test_other_exceptions_are_the_callers(error):
    def callback(x):
        raise error("mine")

    with pytest.raises(error, match="mine"):
        solve(callback=callback)


def test_the_return_value_is_ignored_as_in_scipy():
    assert solve(maxiter=5, tol=0, callback=lambda x: True).nit == 5


def test_any_callable_will_do():
    class Counter:
        n = 0

        def __call__(self, x):
            self.n += 1

    counter = Counter()
    solve(maxiter=5, tol=0, callback=counter)
    assert counter.n == 5


@pytest.mark.parametrize("method", ["heavy-ball", "hasd", "hasd-qn"])
def test_the_gap_that_a_callback_is_told_is_that_of_its_own_point(method):
    """Momentum overshoots: the gap of the best point so far would be too small.  Mutation: `bounds.gap`."""
    rng, short = np.random.default_rng(0), []
    for _ in range(5):
        A, x_star = rng.standard_normal((8, 5)) * np.geomspace(1.0, 30.0, 5), rng.standard_normal(5)
        f = hasd.objectives.LeastSquares(A, A @ x_star)  # the minimum is 0

        def callback(*, intermediate_result):
            short.append(intermediate_result.fun > intermediate_result.gap)

        radius = float(np.linalg.norm(x_star)) * (1.0 + 1e-12)
        hasd.minimize(f, np.zeros(5), method=method, radius=radius, maxiter=60, callback=callback)
    assert short and not any(short)
