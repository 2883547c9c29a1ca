"""NaN and infinity: a rejected trial mid-run, a status where they do not end, never a hang or a false claim."""

import math
from itertools import islice

import numpy as np
import pytest

import hasd
from support import BLACK_BOX, declared_and_not

every_method = pytest.mark.parametrize("method", BLACK_BOX)

CURVATURE = np.geomspace(0.05, 5.0, 6)
TARGET = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0])


def bowl(x):
    with np.errstate(over="ignore"):
        return 0.5 * float(CURVATURE @ (x - TARGET) ** 2), CURVATURE * (x - TARGET)


def broken(x, value=math.nan):
    return value, np.full(x.shape, math.nan)


class Faulty:
    """The bowl, but broken on the calls (or at the points) that `fails(call, x)` names."""

    def __init__(self, fails, value=math.nan):
        self.fails, self.value = fails, value
        self.calls = 0
        self.last_finite = 0

    def __call__(self, x):
        self.calls += 1
        if self.calls > 50_000:
            pytest.fail("this run does not end")
        if self.fails(self.calls, x):
            return broken(x, self.value)
        self.last_finite = self.calls
        return bowl(x)


def solve(f, method, L=None, **options):
    options.setdefault("mu", 0.05 if method == "hasd-restart" else 0.0)
    return hasd.minimize(f, np.zeros(6), jac=True, method=method, L=L, **options)


class TestRegion:
    @staticmethod
    def barrier(x):
        """sum x - log x, with NaN where x <= 0; minimum at 1."""
        if (x <= 0.0).any():
            return broken(x)
        return float((x - np.log(x)).sum()), 1.0 - 1.0 / x

    @every_method
    @pytest.mark.parametrize("x0", [[5.0, 5.0, 5.0, 5.0], [0.2, 6.0, 3.0, 1.0]])
    def test_a_point_outside_the_domain_is_a_rejected_trial(self, method, x0):
        mu = 1e-2 if method == "hasd-restart" else 0.0
        res = hasd.minimize(self.barrier, x0, jac=True, method=method, mu=mu, tol=1e-4, maxfun=3000)
        assert res.success
        np.testing.assert_allclose(res.x, 1.0, atol=1e-2)

    @pytest.mark.parametrize("method", ["hasd", "gradient-descent", "agd"])
    def test_runs_do_try_points_outside_the_domain(self, method):
        """So the test above can fail."""
        left = []

        def f(x):
            left.append((x <= 0.0).any())
            return self.barrier(x)

        hasd.minimize(f, [5.0, 5.0, 5.0, 5.0], jac=True, method=method, maxiter=5)
        assert any(left)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_infinity_is_rejected_as_nan_is(self, value):
        def f(x):
            return self.barrier(x) if (x > 0.0).all() else broken(x, value)

        assert hasd.minimize(f, [0.2, 6.0, 3.0, 1.0], jac=True, method="agd").success

    @every_method
    @declared_and_not
    def test_a_broken_gradient_is_never_returned(self, method, L):
        """f stays finite, but its gradient is NaN on half of the space, beyond the start."""

        def f(x):
            value, g = bowl(x)
            return value, g if x[3] < 0.5 else g * math.nan

        for maxiter in (1, 2, 5, 20):
            res = solve(f, method, L, maxiter=maxiter)
            assert np.isfinite(res.fun) and np.isfinite(res.jac).all()


class TestForEver:
    @every_method
    @declared_and_not
    @pytest.mark.parametrize("after", [1, 2, 3, 4, 15, 16])
    def test_twenty_in_a_row_end_with_the_best_finite_point(self, method, L, after):
        f = Faulty(lambda call, x: call > after)
        res = solve(f, method, L, tol=0, trace=False)
        assert (res.status, res.success) == (3, False)
        # 21 where the first of them only probed for a longer step than one that was good already
        assert 20 <= f.calls - res.nrecord - f.last_finite <= 21
        assert res.fun == bowl(res.x)[0] <= bowl(np.zeros(6))[0]
        np.testing.assert_array_equal(res.jac, bowl(res.x)[1])

    @every_method
    def test_fewer_than_twenty_do_not_end_a_run(self, method):
        f = Faulty(lambda call, x: 4 <= call < 4 + 19)
        assert solve(f, method, 30.0, maxiter=40, tol=0).status in (0, 1)

    @every_method
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_a_value_not_finite_at_the_start_ends_the_run_after_one_call(self, method, value):
        f = Faulty(lambda call, x: True, value)
        res = solve(f, method)
        assert (res.status, res.success, res.nit, res.nfev, f.calls) == (12, False, 0, 1, 1)
        np.testing.assert_array_equal(res.x, np.zeros(6))

    @pytest.mark.parametrize("method", [name for name in hasd.method_names() if name != "hasd-cg"])
    def test_an_objective_that_overflows_at_the_start_returns_x0(self, method):
        f = hasd.objectives.Power(np.eye(2), np.zeros(2), q=4)
        res = hasd.minimize(f, np.full(2, 1e100), method=method, mu=0.05 if method == "hasd-restart" else 0.0)
        assert (res.status, res.success, res.nit) == (12, False, 0)
        np.testing.assert_array_equal(res.x, [1e100, 1e100])

    @pytest.mark.parametrize("method", [name for name in hasd.method_names() if name != "hasd-cg"])
    def test_an_objective_that_overflows_next_to_x0_ends_finite_and_no_worse(self, method):
        """4.5e76^4 is within a factor of 50 of the largest number there is."""
        f = hasd.objectives.Power(np.diag([1.0, 3.0]), np.zeros(2), q=4)
        x0 = np.full(2, 1.5e76)
        mu = 1e150 if method == "hasd-restart" else 0.0
        res = hasd.minimize(f, x0, method=method, mu=mu, maxfun=300, tol=1e-3)
        assert math.isfinite(res.fun) and res.fun <= f(x0)
        assert np.isfinite(res.x).all() and np.isfinite(res.jac).all()

    def test_a_broken_gradient_at_the_start_is_called_a_nonfinite_start(self):
        assert hasd.minimize(lambda x: (1.0, x * math.nan), np.ones(2), jac=True).status == 12

    @pytest.mark.parametrize(
        ("f", "g", "said"),
        [
            (math.nan, [1.0, 1.0, 1.0, 1.0], "The value is nan."),
            (math.inf, [1.0, 1.0, 1.0, 1.0], "The value is inf."),
            (1.0, [1.0, 1.0, math.nan, math.inf], "Entry {} of the gradient is nan."),
        ],
    )
    def test_the_message_names_what_is_not_finite_at_the_start(self, f, g, said):
        vector = hasd.minimize(lambda x: (f, np.array(g)), np.ones(4), jac=True)
        matrix = hasd.minimize(
            lambda X: (f, np.reshape(g, (2, 2))), np.ones((2, 2)), jac=True, p=hasd.Lp(2, shape=(2, 2))
        )
        assert vector.message.endswith(said.format("[2]")) and matrix.message.endswith(said.format("[1, 0]"))

    @every_method
    def test_iterate_does_not_hang_on_a_broken_start(self, method):
        f = Faulty(lambda call, x: True)
        assert len(list(islice(hasd.iterate(f, np.zeros(6), jac=True, method=method, mu=0.05), 50))) <= 1
        assert f.calls <= 21


class TestUnbounded:
    def test_minus_infinity_at_the_start_is_called_unbounded(self):
        res = hasd.minimize(lambda x: (-math.inf, x), np.ones(2), jac=True)
        assert (res.status, res.success) == (13, False)

    @every_method
    @declared_and_not
    def test_minus_infinity_ends_the_run_with_the_best_finite_point(self, method, L):
        def cliff(x):
            return (-math.inf if x[0] < -3.0 else float(x[0])), np.array([1.0, 0.0])

        mu = 0.01 if method == "hasd-restart" else 0.0
        res = hasd.minimize(cliff, np.ones(2), jac=True, method=method, L=L, mu=mu, maxfun=5000)
        assert (res.status, res.success) == (13, False)
        assert -3.0 <= res.fun <= 1.0
        assert res.fun == res.x[0]

    @every_method
    def test_a_linear_function_ends_without_a_warning(self, method):
        c = np.array([1.0, -2.0, 3.0])
        mu = 1e-3 if method == "hasd-restart" else 0.0
        res = hasd.minimize(lambda x: (float(c @ x), c), np.ones(3), jac=True, method=method, mu=mu, maxiter=300)
        assert not res.success
        assert np.isfinite(res.x).all() and np.isfinite(res.fun)

    @pytest.mark.parametrize("factor", [10.0, 100.0, 1e4])
    def test_a_diverging_run_ends_in_a_status(self, factor):
        """raise_L=False with an L far too small: values grow until they overflow."""
        res = solve(bowl, "hasd", 5.0 / factor, p=2, raise_L=False, maxiter=1000)
        assert not res.success
        assert np.isfinite(res.fun) and res.fun <= bowl(np.zeros(6))[0]
        assert res.certificate.gap(float(np.linalg.norm(TARGET))) >= res.fun


class TestAtRandom:
    @staticmethod
    def faulty(seed):
        rng = np.random.default_rng(seed)
        return Faulty(lambda call, x: call > 1 and rng.random() < 0.2)

    @every_method
    @declared_and_not
    def test_every_method_ends_with_a_status_that_is_true(self, method, L):
        f = self.faulty(0)
        res = solve(f, method, L, maxfun=2500, trace=False)
        assert res.fun == bowl(res.x)[0]
        assert f.calls == res.nfev + res.nrecord
        assert res.status in (0, 2, 3, 10)
        if res.status == 2:  # machine precision is claimed only where it is reached
            assert np.abs(res.jac).max() < 1e-6

    @declared_and_not
    @pytest.mark.parametrize("seed", range(5))
    def test_hasd_converges(self, L, seed):
        res = solve(self.faulty(seed), "hasd", L, tol=1e-6, maxfun=20_000, trace=False)
        assert res.success
        np.testing.assert_allclose(res.x, TARGET, atol=1e-2)


@every_method
@pytest.mark.parametrize("seed", range(6))
def test_a_gap_is_certified_at_a_finite_point_or_not_at_all(method, seed):
    """f is NaN or infinite now and then, at the answer too: no success without a value."""
    rng, calls = np.random.default_rng(seed), []

    def sometimes(x):
        calls.append(x)
        value = float(np.cosh(x).sum())
        return (rng.choice([np.nan, np.inf]) if len(calls) > 1 and rng.random() < 0.1 else value), np.sinh(x)

    mu = {"mu": 1.0} if method == "hasd-restart" else {}
    res = hasd.minimize(sometimes, [1.0, 2.0], jac=True, method=method, gap_tol=1e-3, radius=10.0, maxfun=400, **mu)
    assert np.isfinite(res.fun) and np.isfinite(res.x).all()
    assert not res.success or float(np.cosh(res.x).sum()) - 2.0 <= 1e-3 or np.linalg.norm(res.jac) <= 1e-4


@pytest.mark.parametrize("method", ["hasd-newton", "hasd-qn", "hasd-subspace"])
@pytest.mark.parametrize("size", [1e-58, 1e-50, 1e-45])
def test_an_answer_beyond_float32_is_none(method, size):
    """The minimiser is at 1e45 and beyond, and x0 is in float32: x must not be inf, nor a tiny gradient become 0."""
    A = [[size, 0.0], [0.0, size], [-size, -size]]
    f = hasd.objectives.LogSumExp(A, [1.0, 2.0, -3.0], alpha=6e-4)
    res = hasd.minimize(f, np.zeros(2, np.float32), method=method)
    assert np.isfinite(res.x).all() and res.fun <= 3.0 and not res.success and res.jac.any()


def test_a_gradient_too_large_for_float32_gives_no_warning():
    f = hasd.objectives.Logistic([[1e60, -1e60], [1e60, 2e60]], [1, -1])
    res = hasd.minimize(f, np.ones(2, np.float32))
    assert res.status in (2, 12) and not res.success
