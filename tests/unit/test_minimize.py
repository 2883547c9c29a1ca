"""minimize() as a user of SciPy would try it."""

import pickle
import time
from dataclasses import FrozenInstanceError
from itertools import islice

import numpy as np
import pytest

import hasd
from hasd.methods.heavy_ball import HeavyBall
from support import METHODS, PROBLEMS, Known, declared_and_not, every_method, log_sum_exp, logistic, quadratic, softmax

FIELDS = (
    "x fun jac nit nfev njev nrecord nprod status success message method p L weight psi gap state trace".split()  # noqa: SIM905
)
CURVATURE = np.geomspace(0.05, 5.0, 6)
TARGET = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0])


class Bowl:
    """A quadratic with its minimum at TARGET that counts its calls; 30 is an L for every p."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.value(x), self.grad(x)

    @staticmethod
    def value(x):
        return 0.5 * float(CURVATURE @ (x - TARGET) ** 2)

    @staticmethod
    def grad(x):
        return CURVATURE * (x - TARGET)


def solve(method="hasd", f=None, x0=None, **options):
    """Minimise the bowl; hasd-restart is told its mu."""
    options.setdefault("mu", 0.05 if method == "hasd-restart" else None)
    options.setdefault("tol", 1e-3)
    return hasd.minimize(f or Bowl(), np.zeros(6) if x0 is None else x0, jac=True, method=method, **options)


def cases():
    """Every method on problems it has a guarantee for."""
    for make in (log_sum_exp, softmax, logistic):
        for method in METHODS:
            for p in (2.0, 3.0, np.inf):
                if method == "heavy-ball" and p > 2.0:
                    continue  # no guarantee outside l_2
                if method == "hasd-restart" and make().mu == 0.0:
                    continue
                yield pytest.param(make, method, p, id=f"{make.__name__}-{method}-{p:g}")


class TestResult:
    @every_method
    @declared_and_not
    @pytest.mark.parametrize("limits", [{}, {"maxiter": 7}, {"maxfun": 9}, {"maxiter": 7, "goal": "gradient"}])
    def test_all_fields_speak_of_one_point(self, method, L, limits):
        res = solve(method, L=L, **limits)
        assert set(FIELDS) <= set(res)
        assert res.fun == Bowl.value(res.x)
        np.testing.assert_array_equal(res.jac, Bowl.grad(res.x))
        assert res.success == (not limits)
        assert res.method == method
        assert res.fun <= Bowl.value(np.zeros(6))

    def test_an_objective_is_evaluated_at_the_returned_point(self):
        known = softmax()
        res = hasd.minimize(known.f, known.x0, maxiter=5)
        f, g = known.f.value_and_grad(res.x)
        assert res.fun == f
        np.testing.assert_array_equal(res.jac, g)

    def test_the_result_reports_what_was_asked_and_its_states_numbers(self):
        res = solve("linear-coupling", p=4, L=30.0)
        assert (res.method, res.p, res.L) == ("linear-coupling", 4.0, 30.0)
        assert res.status == 0 and res.success and res.message.startswith("Converged")
        assert res.weight == res.state.weight > 0.0
        assert res.psi == res.state.psi

    def test_goal_value_returns_the_lowest_value_seen(self):
        res = solve("heavy-ball", L=6.0, maxiter=40, tol=0)
        assert res.fun == res.trace["fun"].min()

    def test_goal_gradient_returns_the_smallest_gradient_seen(self):
        geometry = hasd.Lp(np.inf)
        res = solve("hasd", L=30.0, maxiter=40, tol=0, goal="gradient")
        assert geometry.dual_norm(res.jac) == res.trace["grad_norm"].min()

    @every_method
    def test_a_result_survives_pickling(self, method):
        res = solve(method, maxiter=12)
        twin = pickle.loads(pickle.dumps(res))
        np.testing.assert_array_equal(twin.x, res.x)
        assert twin.certificate.gap(10.0) == res.certificate.gap(10.0)
        np.testing.assert_array_equal(twin.state.estimate.v, res.state.estimate.v)

    def test_what_the_caller_does_to_x_does_not_reach_the_state(self):
        res = solve("hasd", maxiter=10)
        kept = res.state.x.copy(), res.state.at.x.copy(), res.state.at.g.copy()
        res.x[:] = 0.0
        res.jac[:] = 0.0
        for now, before in zip((res.state.x, res.state.at.x, res.state.at.g), kept, strict=True):
            np.testing.assert_array_equal(now, before)


class TestConvergence:
    @pytest.mark.parametrize(("make", "method", "p"), list(cases()))
    @pytest.mark.parametrize("declared", [True, False], ids=["declared", "backtracked"])
    def test_every_method_reaches_the_known_minimum(self, make, method, p, declared):
        known = make()
        L = known.L(p) if declared else None
        mu = known.mu if method == "hasd-restart" else 0.0
        res = hasd.minimize(known.f, known.x0, method=method, p=p, L=L, mu=mu, tol=1e-4, maxfun=4000, trace=False)
        assert res.success, res.message
        assert abs(res.fun - known.f_star) <= 1e-6 * (known.f(known.x0) - known.f_star)

    @pytest.mark.parametrize("make", PROBLEMS)
    def test_finding_L_costs_a_small_multiple_of_knowing_it(self, make):
        known = make()

        def cost(L):
            return hasd.minimize(
                known.f, known.x0, method="hasd", L=L, mu=0.0, tol=1e-5, maxfun=10_000, trace=False
            ).nfev

        assert cost(None) <= 5 * cost(known.L(np.inf))

    def test_auto_with_a_declared_L_is_hasd_at_p_infinity(self):
        auto, named = solve("auto", L=30.0, maxiter=20), solve("hasd", p=np.inf, L=30.0, maxiter=20)
        assert auto.method == "hasd" and auto.p == np.inf
        np.testing.assert_array_equal(auto.x, named.x)

    @every_method
    @pytest.mark.parametrize("L", [None, 1.0])
    def test_mu_may_be_as_large_as_L(self, method, L):
        options = {"method": method, "p": 2, "L": L, "mu": 1.0}
        res = hasd.minimize(lambda x: (0.5 * float(x @ x), x), np.arange(1.0, 4.0), jac=True, **options)
        assert res.fun <= 1e-9 and res.status in (0, 2)

    def test_a_start_at_the_minimum_is_the_answer(self):
        res = solve(x0=TARGET)
        assert res.success and res.nit == 0 and res.nfev == 1

    @pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
    @pytest.mark.parametrize("L", [None, 30.0])
    def test_the_scale_of_f_does_not_matter(self, scale, L):
        res = hasd.minimize(
            lambda x: (scale * Bowl.value(x), scale * Bowl.grad(x)),
            np.zeros(6),
            jac=True,
            L=None if L is None else scale * L,
            maxfun=3000,
        )
        assert res.success
        np.testing.assert_allclose(res.x, TARGET, atol=1e-3)


class TestStopping:
    @every_method
    def test_tol_is_relative_and_gtol_absolute(self, method):
        p = np.inf if method in ("hasd", "hasd-paper", "hasd-restart", "steepest-descent") else 2.0
        norm = hasd.Lp(p).dual_norm
        bound = 1e-2 * norm(Bowl.grad(np.zeros(6)))
        relative = solve(method, p=p, L=30.0, tol=1e-2)
        absolute = solve(method, p=p, L=30.0, tol=0, gtol=bound)
        assert relative.success and absolute.success
        assert norm(relative.jac) <= bound < relative.trace["grad_norm"][:-1].min()
        np.testing.assert_array_equal(relative.x, absolute.x)

    def test_the_larger_of_the_two_tolerances_counts(self):
        assert solve(tol=1e-9, gtol=1e-1, L=30.0).nit == solve(tol=0, gtol=1e-1, L=30.0).nit
        assert solve(tol=1e-2, gtol=1e-12, L=30.0).nit == solve(tol=1e-2, L=30.0).nit

    @every_method
    @pytest.mark.parametrize("L", [None, 1.0])
    def test_with_tol_zero_success_means_a_zero_gradient(self, method, L):
        res = hasd.minimize(
            lambda x: (0.5 * float(x @ x), x.copy()), np.ones(3), jac=True, method=method, p=2, L=L, mu=0.5, tol=0,
            maxiter=200,
        )  # fmt: skip
        assert res.success == (not res.jac.any())

    def test_with_tol_zero_a_zero_gradient_ends_the_run(self):
        res = hasd.minimize(
            lambda x: (0.5 * float(x @ x), x), np.ones(3), jac=True, method="gradient-descent", L=1, tol=0
        )
        assert (res.status, res.nit, res.fun) == (0, 1, 0.0)

    @pytest.mark.parametrize("method", ["gradient-descent", "heavy-ball", "hasd", "agd"])
    @pytest.mark.parametrize("declared", [True, False], ids=["declared", "backtracked"])
    def test_with_tol_zero_machine_precision_ends_the_run(self, method, declared):
        known = logistic()
        L = known.L(2.0) if declared else None
        res = hasd.minimize(known.f, known.x0, method=method, p=2, L=L, tol=0, maxfun=6000, trace=False)
        assert res.status == 2 and not res.success
        assert abs(res.fun - known.f_star) <= 4e-16 * max(1.0, abs(known.f_star))

    def test_with_tol_zero_a_limit_ends_the_run(self):
        res = solve(tol=0, maxiter=30, L=30.0)
        assert (res.status, res.nit, res.success) == (1, 30, False)

    @every_method
    def test_no_iterations_return_x0(self, method):
        f = Bowl()
        res = solve(method, f=f, x0=np.arange(6.0), maxiter=0)
        assert (res.nit, res.nfev, f.calls, res.status) == (0, 1, 1, 1)
        np.testing.assert_array_equal(res.x, np.arange(6.0))
        assert len(res.trace["fun"]) == 1

    @every_method
    @declared_and_not
    @pytest.mark.parametrize("maxfun", [1, 2, 3, 10, 37])
    def test_maxfun_is_never_exceeded(self, method, L, maxfun):
        f = Bowl()
        res = solve(method, f=f, L=L, maxfun=maxfun, tol=0)
        assert res.nfev == f.calls - res.nrecord <= maxfun
        assert res.status == 10 and res.nfev == maxfun

    @pytest.mark.parametrize("maxfun", [1, 5, 20, 50])
    def test_finite_differences_stay_within_maxfun(self, maxfun):
        calls = []
        res = hasd.minimize(lambda x: calls.append(0) or Bowl.value(x), np.zeros(6), maxfun=maxfun, trace=False)
        assert res.nfev == len(calls) - res.nrecord <= maxfun

    def test_a_run_ends_within_two_evaluations_of_its_time_limit(self, monkeypatch):
        """By a clock that only evaluations move."""
        f = Bowl()
        monkeypatch.setattr(time, "perf_counter", lambda: 0.005 * f.calls)
        res = solve(f=f, tol=0, time_limit=0.1)
        assert (res.status, res.success) == (11, False)
        assert res.nit > 0 and 20 <= f.calls <= 22

    def test_a_time_limit_of_zero_returns_x0(self):
        res = solve(time_limit=0.0)
        assert res.status == 11
        np.testing.assert_array_equal(res.x, np.zeros(6))


class TestArguments:
    def test_a_method_object_is_its_name_with_options(self):
        np.testing.assert_array_equal(
            solve(HeavyBall(momentum=0.5), maxiter=30).x, solve("heavy-ball", momentum=0.5, maxiter=30).x
        )

    def test_a_geometry_object_is_its_exponent(self):
        number, geometry = solve(p=3, L=30.0), solve(p=hasd.Lp(3.0), L=30.0)
        assert number.p == geometry.p == 3.0
        np.testing.assert_array_equal(number.x, geometry.x)

    @every_method
    def test_every_way_to_give_the_gradient_takes_the_same_steps(self, method):
        f = hasd.objectives.Quadratic(np.diag(CURVATURE), -CURVATURE * TARGET)
        options = {"method": method, "maxiter": 15, "mu": 0.05, "tol": 0}
        x0 = np.zeros(6)
        objective = hasd.minimize(f, x0, **options)
        pair = hasd.minimize(f.value_and_grad, x0, jac=True, **options)
        two = hasd.minimize(f, x0, jac=None, **options)
        apart = hasd.minimize(lambda x: f(x), x0, jac=lambda x: f.value_and_grad(x)[1], **options)
        for other in (pair, two, apart):
            np.testing.assert_array_equal(objective.x, other.x)
            assert objective.nfev == other.nfev

    @pytest.mark.parametrize("method", ["hasd-qn", "hasd"])
    def test_an_L_without_use_is_said(self, method):
        res = hasd.minimize(lambda x: (x @ x, 2 * x), np.ones(6), jac=True, method=method, L=2.0)
        assert ("Ignored: L" in res.message) == (method == "hasd-qn")

    def test_finite_differences_find_the_minimum_and_are_counted(self):
        res = hasd.minimize(Bowl.value, np.zeros(6), tol=1e-5)
        assert res.success
        np.testing.assert_allclose(res.x, TARGET, atol=1e-3)
        assert res.nfev == 7 * res.njev

    def test_finite_differences_cost_what_the_documentation_says(self):
        assert hasd.minimize(Bowl.value, np.zeros(6), maxiter=0).nfev == 6 + 1

    @pytest.mark.parametrize("args", [(2.0,), 2.0], ids=["tuple", "bare"])
    def test_args_reach_fun_and_jac(self, args):
        res = hasd.minimize(
            lambda x, s: s * Bowl.value(x), np.zeros(6), args, jac=lambda x, s: s * Bowl.grad(x), maxiter=10
        )
        assert res.fun == 2.0 * Bowl.value(res.x)

    def test_x0_is_neither_changed_nor_kept(self):
        x0 = np.zeros(6)
        res = solve(x0=x0, maxiter=0)
        res.x[:] = 7.0
        assert not x0.any()
        solve(x0=x0)
        assert not x0.any()

    @pytest.mark.parametrize(
        "x0", [[0, 0, 0, 0, 0, 0], (0.0,) * 6, np.zeros(6, dtype=int), np.zeros(6, dtype=np.float16)]
    )
    def test_x0_may_be_anything_like_a_vector(self, x0):
        res = solve(x0=x0)
        assert res.success and res.x.dtype == np.float64

    def test_a_start_that_is_one_number_gives_x_of_length_one(self):
        res = hasd.minimize(lambda x: ((x[0] - 3.0) ** 2, 2.0 * (x - 3.0)), 0.0, jac=True)
        assert res.x.shape == (1,)
        np.testing.assert_allclose(res.x, 3.0, atol=1e-5)

    @every_method
    @declared_and_not
    def test_float32_stays_float32(self, method, L):
        seen = set()

        def f(x):
            seen.add(x.dtype)
            return Bowl.value(x), Bowl.grad(x)

        res = solve(method, f=f, x0=np.zeros(6, dtype=np.float32), L=L, tol=1e-3)
        assert res.success
        assert seen == {np.dtype(np.float32)}
        state = res.state
        for array in (res.x, res.jac, state.x, state.at.g, state.estimate.v):
            assert array.dtype == np.float32

    def test_float32_ends_at_its_own_precision(self):
        known = logistic()
        res = hasd.minimize(
            known.f, known.x0.astype(np.float32), method="gradient-descent", tol=0, maxiter=5000, trace=False
        )
        assert res.status == 2

    def test_fun_may_write_into_its_argument_and_reuse_its_buffer(self):
        buffer = np.empty(6)

        def rude(x):
            f = Bowl.value(x)
            buffer[:] = Bowl.grad(x)
            x[:] = np.nan
            return f, buffer

        np.testing.assert_array_equal(solve(f=rude).x, solve().x)

    def test_progress_shows_a_bar(self, capsys):
        solve(progress=True, maxiter=5)
        assert "hasd" in capsys.readouterr().err


class TestStates:
    @pytest.mark.parametrize(
        ("method", "factor"),
        [(method, factor) for method in METHODS for factor in (None, 1.0)] + [("hasd", 0.05)],
        ids=lambda v: {None: "backtracked", 1.0: "declared", 0.05: "too-small"}.get(v, v),
    )
    @pytest.mark.parametrize("make", [quadratic, logistic])
    @pytest.mark.parametrize("p", [2.0, np.inf])
    def test_a_resumed_run_is_the_uninterrupted_one(self, make, method, p, factor):
        known: Known = make()
        options = {"method": method, "p": p, "L": factor and factor * known.L(p), "tol": 0}
        options["mu"] = known.mu if method == "hasd-restart" else 0.0
        whole = hasd.minimize(known.f, known.x0, maxiter=40, **options)
        first = hasd.minimize(known.f, known.x0, maxiter=17, **options)
        second = hasd.minimize(known.f, known.x0, maxiter=40, resume=first.state, **options)
        assert first.nit == 17 and second.nit == whole.nit == 40
        assert second.nfev == whole.nfev - first.nfev
        np.testing.assert_array_equal(second.state.x, whole.state.x)
        np.testing.assert_array_equal(second.state.estimate.v, whole.state.estimate.v)
        for column in ("iteration", "fun", "grad_norm", "weight", "psi", "rho", "theta", "gain", "trials"):
            np.testing.assert_array_equal(second.trace[column], whole.trace[column][17:])

    def test_a_resumed_run_measures_tol_and_radius_from_the_first_start(self):
        first = solve(L=30.0, maxiter=10)
        second = solve(L=30.0, resume=first.state)
        whole = solve(L=30.0)
        assert second.nit == whole.nit
        assert second.certificate.gap(5.0) == whole.certificate.gap(5.0)

    @every_method
    @declared_and_not
    def test_iterate_yields_what_minimize_records(self, method, L):
        mu = 0.05 if method == "hasd-restart" else None
        states = list(islice(hasd.iterate(Bowl(), np.zeros(6), jac=True, method=method, L=L, mu=mu), 31))
        trace = solve(method, L=L, maxiter=30, tol=0).trace
        assert len(states) == len(trace["fun"])
        for name in ("grad_norm", "weight", "psi", "rho", "theta", "gain", "trials"):
            np.testing.assert_array_equal([getattr(state, name) for state in states], trace[name])
        np.testing.assert_array_equal([Bowl.value(state.shown[0]) for state in states], trace["fun"])

    @every_method
    def test_states_are_frozen_and_never_change(self, method):
        run = hasd.iterate(Bowl(), np.zeros(6), jac=True, method=method, mu=0.05)
        early = list(islice(run, 5))
        kept = [(state.x.copy(), state.estimate.v.copy(), state.at.g.copy()) for state in early]
        list(islice(run, 20))
        for state, (x, v, g) in zip(early, kept, strict=True):
            np.testing.assert_array_equal(state.x, x)
            np.testing.assert_array_equal(state.estimate.v, v)
            np.testing.assert_array_equal(state.at.g, g)
        with pytest.raises(FrozenInstanceError):
            early[0].weight = 1.0
        with pytest.raises(FrozenInstanceError):
            early[0].iteration = 1
