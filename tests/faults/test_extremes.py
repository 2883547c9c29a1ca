"""Extremes of scale, shape and budget: the same iterates at any power of two, and never a point worse than x0."""

import math
import subprocess
import sys
import tracemalloc
from itertools import islice, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import hasd
from hasd import objectives
from hasd._math.geometry import Lp, norm2
from support import BLACK_BOX, STRUCTURED

every_black_box = pytest.mark.parametrize("method", BLACK_BOX)
every_method = pytest.mark.parametrize("method", hasd.method_names())
declared_and_not = pytest.mark.parametrize("declared", [False, True], ids=["backtracked", "declared"])

rng = np.random.default_rng(0)
TARGET = 3.0 * rng.standard_normal(8)
CURVATURE = np.geomspace(0.05, 5.0, 8)
ROWS = rng.standard_normal((30, 8))
SHIFTS = rng.standard_normal(30)


def bowl(x):
    return 0.5 * float(CURVATURE @ (x - TARGET) ** 2) - 3.0, CURVATURE * (x - TARGET)


def softmax(x):
    z = ROWS @ x
    w = np.exp(z - z.max())
    return float(z.max() + np.log(w.sum())), ROWS.T @ (w / w.sum())


OBJECTIVES = {
    "quadratic": lambda k: objectives.Quadratic(2.0**k * np.diag(CURVATURE), -(2.0**k) * CURVATURE * TARGET),
    "squares": lambda k: objectives.LeastSquares(2.0 ** (k // 2) * ROWS, 2.0 ** (k // 2) * SHIFTS),
    "ridge": lambda k: objectives.LeastSquares(2.0 ** (k // 2) * ROWS, 2.0 ** (k // 2) * SHIFTS, ridge=2.0 ** (k - 4)),
    "quartic": lambda k: objectives.Power(2.0 ** (k // 4) * ROWS, 2.0 ** (k // 4) * SHIFTS, q=4),
}


def convexity(method, k=0):
    """What hasd-restart must be told; the others do without."""
    return 2.0 ** (k - 4) if method == "hasd-restart" else 0.0


LEFT_OUT = [("hasd-cg", "quartic"), *(("hasd-newton", name) for name in ("quadratic", "squares", "ridge"))]
"""One needs a quadratic, the other is done with it after one step."""


class TestScale:
    """2^k f has the iterates of f, to the last bit, while its own numbers can be told from zero and infinity."""

    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize("f", [bowl, softmax])
    @pytest.mark.parametrize("mu", [0.0, 0.05])
    def test_scaling_a_function_by_a_power_of_two_keeps_every_bit(self, method, declared, f, mu):
        def states(k):
            def scaled(x):
                value, g = f(x)
                return 2.0**k * value, 2.0**k * g

            options = {"L": 2.0**k * 60.0 if declared else None, "mu": 2.0**k * mu if mu else convexity(method, k)}
            runs = hasd.iterate(scaled, np.zeros(8), jac=True, method=method, **options)
            return list(islice(runs, 12 if method == "hasd-qn" else 40))  # it is soon done

        plain = states(0)
        for k in (-996, -500, 500, 996):
            self.compare(plain, states(k), k)

    @every_black_box
    @declared_and_not
    def test_scaling_by_a_power_of_two_keeps_whole_runs_with_mu(self, method, declared):
        """With mu the weights grow geometrically: they, too, stay within what can be represented."""

        def run(k):
            def scaled(x):
                value, g = bowl(x)
                return 2.0**k * value, 2.0**k * g

            options = {"L": 2.0**k * 40.0 if declared else None, "mu": 2.0**k * 0.05, "tol": 1e-6, "maxfun": 1000}
            return hasd.minimize(scaled, np.zeros(8), jac=True, method=method, trace=False, **options)

        plain = run(0)
        for k in (-996, 996):
            res = run(k)
            assert (res.status, res.nit, res.nfev) == (plain.status, plain.nit, plain.nfev)
            np.testing.assert_array_equal(res.x, plain.x)
            assert res.gap == pytest.approx(math.ldexp(plain.gap, k), rel=1e-6)

    @pytest.mark.parametrize(
        ("method", "name"),
        [pair for pair in product(hasd.method_names(), OBJECTIVES) if pair not in LEFT_OUT],
    )
    def test_scaling_the_data_by_a_power_of_two_keeps_every_bit(self, method, name):
        def states(k):
            mu = convexity(method, k) or None
            return list(islice(hasd.iterate(OBJECTIVES[name](k), np.ones(8), method=method, mu=mu), 7))

        plain = states(0)
        for k in (-996, -500, 500, 996):
            self.compare(plain, states(k), k)

    @staticmethod
    def compare(plain, scaled, k):
        assert len(plain) == len(scaled) > 3
        for one, other in zip(plain, scaled, strict=True):
            np.testing.assert_array_equal(one.x, other.x)
            assert math.ldexp(one.fun, k) == other.fun or math.isnan(one.fun)
            assert math.ldexp(one.weight, -k) == other.weight
            assert one.psi == other.psi
            assert one.certificates == () or len(one.certificates) == len(other.certificates)

    @given(st.lists(st.floats(-4.0, 4.0).filter(lambda v: v == 0.0 or abs(v) > 1e-6), min_size=1, max_size=9))
    def test_norm2_scales_exactly_with_powers_of_two(self, entries):
        x = np.array(entries)
        for k in (-1000, -600, -340, -300, 300, 340, 600, 1000):
            assert norm2(2.0**k * x) == math.ldexp(norm2(x), k)

    @pytest.mark.parametrize("size", [1e-30, 1e-22, 1e-18, 1e18, 1e22, 1e30])
    def test_norm2_in_single_precision_neither_overflows_nor_vanishes(self, size):
        x = np.array([3.0, 4.0], dtype=np.float32) * np.float32(size)
        assert norm2(x) == pytest.approx(5.0 * size, rel=1e-6)


class TestMixture:
    WEIGHTS = np.array([1e-300, 1.0, 1e300])

    @every_black_box
    @declared_and_not
    def test_a_gradient_with_entries_of_all_sizes_is_still_brought_down(self, method, declared):
        def f(x):
            return float(self.WEIGHTS @ np.logaddexp(x - 1.0, 1.0 - x)), self.WEIGHTS * np.tanh(x - 1.0)

        L = 2e300 if declared else None
        res = hasd.minimize(f, np.zeros(3), jac=True, method=method, L=L, mu=convexity(method), maxfun=2000)
        assert res.status in (0, 2)
        assert np.abs(res.jac).max() <= 1e-6 * 1e300
        assert abs(res.x[2] - 1.0) < 1e-5

    @every_black_box
    def test_steps_are_finite_where_the_squares_of_gradients_are_not(self, method):
        """Separable, with minimisers that no other entry's size hides."""
        w = np.array([1e-200, 1e200])
        res = hasd.minimize(
            lambda x: (float(w @ np.cosh(np.clip(x - 1.0, -700.0, 700.0))), w * np.sinh(np.clip(x - 1.0, -700, 700))),
            np.zeros(2),
            jac=True,
            method=method,
            mu=convexity(method),
            maxfun=500,
        )
        assert np.isfinite(res.x).all() and math.isfinite(res.fun)
        assert res.fun <= float(w @ np.cosh(np.ones(2)))


class TestNorms:
    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize(("p", "limit"), [(2.0 + 1e-12, 2.0), (1e6, math.inf)])
    def test_an_exponent_next_to_the_end_does_as_the_end_does(self, method, declared, p, limit):
        def run(p):
            L = 40.0 if declared else None
            options = {"jac": True, "method": method, "L": L, "mu": convexity(method), "tol": 1e-4, "maxfun": 4000}
            return hasd.minimize(bowl, np.zeros(8), p=p, **options)

        near, end = run(p), run(limit)
        # the prox term of nemirovskii-nesterov is another at inf, p = ln d, and next to it the method is slow
        assert end.success and (near.success or method == "nemirovskii-nesterov")
        assert near.fun - -3.0 <= 1e-3 and end.fun - -3.0 <= 1e-3

    @every_method
    def test_every_method_solves_a_problem_of_one_variable(self, method):
        f = objectives.Quadratic([[4.0]], [-8.0])
        res = hasd.minimize(f, [0.0], method=method, mu=convexity(method) or None)
        assert res.success and res.x.shape == res.jac.shape == (1,)
        assert res.x[0] == pytest.approx(2.0, abs=1e-5)


class TestDegenerate:
    @every_black_box
    @declared_and_not
    def test_a_constant_function_succeeds_after_one_evaluation(self, method, declared):
        L = 1.0 if declared else None
        res = hasd.minimize(lambda x: (3.0, 0.0 * x), np.ones(3), jac=True, method=method, L=L, mu=convexity(method))
        assert (res.status, res.success, res.nit, res.nfev, res.fun) == (0, True, 0, 1, 3.0)

    @every_black_box
    @declared_and_not
    def test_a_linear_function_ends_without_success_at_a_finite_point(self, method, declared):
        c = np.array([1.0, -2.0, 3.0])
        options = {"L": 1.0 if declared else None, "mu": convexity(method), "maxfun": 400}
        res = hasd.minimize(lambda x: (float(c @ x), c), np.ones(3), jac=True, method=method, **options)
        assert not res.success and res.status in (3, 10, 13)
        assert np.isfinite(res.x).all() and res.fun == float(c @ res.x) < 2.0

    @every_method
    def test_a_linear_objective_ends_without_success_at_a_finite_value(self, method):
        f = objectives.Quadratic(np.zeros((2, 2)), [1.0, -1.0])
        res = hasd.minimize(f, np.ones(2), method=method, mu=convexity(method), maxfun=400)
        assert not res.success and math.isfinite(res.fun)
        if method in (*STRUCTURED, "hasd-qn"):
            assert res.status == 13

    @every_method
    def test_a_start_at_the_optimum_succeeds_after_one_evaluation(self, method):
        f = objectives.Quadratic(np.diag([2.0, 4.0]), [-2.0, -4.0])
        res = hasd.minimize(f, np.ones(2), method=method, mu=convexity(method) or None, tol=0)
        assert (res.status, res.success, res.nit, res.nfev) == (0, True, 0, 1)

    CONDITION = np.geomspace(1e-16, 1.0, 8)

    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize("tol", [1e-5, 0.0])
    def test_black_boxes_of_condition_1e16_end_near_their_minimum(self, method, declared, tol):
        h, start = self.CONDITION, np.geomspace(0.5, 2.0, 8)
        options = {"L": 8.0 if declared else None, "mu": convexity(method), "tol": tol, "maxfun": 1200}
        res = hasd.minimize(lambda x: (0.5 * float(h @ x**2), h * x), start, jac=True, method=method, **options)
        assert res.status in (0, 2, 10)
        assert 0.0 <= res.fun <= (0.05 if method == "hasd-restart" else 1e-3) * (0.5 * float(h @ start**2))

    @every_method
    @pytest.mark.parametrize("tol", [1e-5, 0.0])
    def test_objectives_of_condition_1e16_end_near_their_minimum(self, method, tol):
        f = objectives.Quadratic(np.diag(self.CONDITION))
        res = hasd.minimize(f, np.geomspace(0.5, 2.0, 8), method=method, mu=convexity(method), tol=tol, maxfun=200)
        assert res.status in (0, 2, 10, 15)
        assert -1e-30 <= res.fun <= 2e-3

    @pytest.mark.parametrize("seed", range(25))
    def test_a_singular_quadratic_is_not_unbounded(self, seed):
        """At rounding level all meet directions without curvature."""
        rng = np.random.default_rng(seed)
        rank = rng.integers(2, 10)
        B = rng.standard_normal((rank, 12)) * np.geomspace(1.0, 10.0 ** rng.integers(0, 4), rank)[:, None]
        x_star = 10.0 ** rng.integers(-2, 4) * rng.standard_normal(12)
        f = objectives.Quadratic(B.T @ B, -B.T @ (B @ x_star))
        for x0 in (np.zeros(12), x_star, x_star + 1e-3):
            for method in (*STRUCTURED, "hasd-qn"):
                assert hasd.minimize(f, x0, method=method, tol=0, maxiter=100).status != 13

    @pytest.mark.parametrize("scale", [1e-280, 1.0, 1e280])
    def test_a_quadratic_that_falls_along_its_kernel_is_unbounded(self, scale):
        f = objectives.Quadratic(scale * np.diag([1.0, 2.0, 3.0, 0.0]), scale * np.ones(4))
        res = hasd.minimize(f, np.zeros(4), method="hasd-cg", tol=0, maxiter=500)
        assert res.status == 13


class TestLimits:
    """A limit returns the best point seen, never one worse than x0."""

    @settings(max_examples=150, deadline=None)
    @given(
        method=st.sampled_from(hasd.method_names()),
        declared=st.booleans(),
        structured=st.booleans(),
        seed=st.integers(0, 50),
        limit=st.sampled_from(["maxiter", "maxfun", "time_limit"]),
        amount=st.integers(0, 12),
        goal=st.sampled_from(["value", "gradient"]),
        p=st.sampled_from([None, 2.0, 3.0, math.inf]),
    )
    def test_a_limit_returns_nothing_worse_than_x0(self, method, declared, structured, seed, limit, amount, goal, p):
        rng = np.random.default_rng(seed)
        Q = rng.standard_normal((6, 6))
        f = objectives.Quadratic(Q.T @ Q + 0.01 * np.eye(6), rng.standard_normal(6))
        x0 = 10.0 ** rng.integers(-3, 4) * rng.standard_normal(6)
        budget = {"maxiter": amount, "maxfun": amount + 1, "time_limit": 1e-4 * (amount + 1)}[limit]
        options = {limit: budget, "goal": goal, "p": p, "mu": 0.01 if method == "hasd-restart" else 0.0, "tol": 1e-12}
        # the smallest L_p of a quadratic is not above sum |H_ij|; a tenth of it is too small an L
        options["L"] = float(np.abs(Q.T @ Q).sum()) * (0.1 if seed % 2 else 1.0) if declared else None
        if structured or method in STRUCTURED:
            res = hasd.minimize(f, x0, method=method, **options)
        else:
            res = hasd.minimize(f.value_and_grad, x0, jac=True, method=method, **options)
        if limit == "time_limit" and res.nfev == 0:
            np.testing.assert_array_equal(res.x, x0)
            return
        value, g = f.value_and_grad(res.x)
        assert res.fun == value
        np.testing.assert_array_equal(res.jac, g)
        if goal == "value":
            assert value <= f(x0)
        else:
            dual = Lp(res.p).dual_norm
            assert res.success or dual(g) <= dual(f.value_and_grad(x0)[1])
        assert res.nfev <= (budget if limit == "maxfun" else math.inf)
        assert res.nit <= (budget if limit == "maxiter" else math.inf)

    @every_method
    def test_a_time_limit_of_zero_returns_x0_without_an_evaluation(self, method):
        f = objectives.Quadratic(np.eye(3))
        res = hasd.minimize(f, np.ones(3), method=method, mu=convexity(method), time_limit=0)
        assert (res.status, res.success, res.nfev) == (11, False, 0)
        np.testing.assert_array_equal(res.x, np.ones(3))


VECTORS = {"hasd-qn": 84, "hasd-cg": 25, "hasd-subspace": 420}
MANY = 170
"""The same for a long run of hasd-qn, which copies its pairs from time to time."""
PLAIN = 24
"""Vectors of the length of x that a run may hold at its peak, the caller's own not counted."""

LARGE = """
import sys, tracemalloc
import numpy as np, hasd

tracemalloc.start()
h = np.linspace(1.0, 2.0, 10_000_000)

def bowl(x):
    g = x - 1.0
    g *= h
    return 0.5 * (float(np.vdot(g, x)) - float(g.sum())), g

res = hasd.minimize(bowl, np.zeros(h.size), jac=True, method=sys.argv[1], maxiter=2, trace=False)
print(res.status, res.nit, res.fun < 0.1 * 0.75 * h.size, tracemalloc.get_traced_memory()[1])
"""


class TestSize:
    @pytest.mark.parametrize("method", sorted(set(hasd.method_names()) - {"hasd-newton"}))  # it holds matrices
    @pytest.mark.parametrize("p", [2.0, math.inf])
    def test_a_run_holds_no_more_vectors_than_its_method_needs(self, method, p):
        d = 20_000
        H = sparse.diags(np.tile([2.0, 1.0], d // 2)).tocsr()
        f = objectives.Quadratic(H, -H @ np.ones(d))
        fun, jac = (f, None) if method in STRUCTURED else (f.value_and_grad, True)
        x0 = np.linspace(0.0, 0.5, d)
        tracemalloc.start()
        try:
            options = {"mu": convexity(method), "tol": 0, "maxiter": 6, "trace": False}
            hasd.minimize(fun, x0, jac=jac, method=method, p=p, **options)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak / x0.nbytes <= VECTORS.get(method, PLAIN)

    def test_a_long_run_holds_no_more_vectors_than_its_pairs_need(self):
        """Variables of different scales, neighbours coupled: D changes several times.  Mutation: not block by block."""
        d = 20_000
        scales = np.geomspace(1.0, 1e4, d)

        def f(x):
            y = x - 1.0 + 0.7 * np.roll(x - 1.0, 1)
            return 0.5 * float(y @ (scales * y)), scales * y + 0.7 * np.roll(scales * y, -1)

        x0 = np.linspace(0.0, 0.5, d)
        tracemalloc.start()
        try:
            res = hasd.minimize(f, x0, jac=True, method="hasd-qn", tol=0, maxiter=120, trace=False)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert res.nit == 120
        assert VECTORS["hasd-qn"] < peak / x0.nbytes <= MANY

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["hasd", "gradient-descent"])
    def test_ten_million_variables_need_less_than_2_5_gigabytes(self, method):
        command = [sys.executable, "-c", LARGE, method]
        status, nit, fell, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert status in ("0", "1") and (nit, fell) == ("2", "True")
        assert int(peak) < 2.5e9
