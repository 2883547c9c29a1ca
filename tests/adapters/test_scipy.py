"""hasd.minimize as a method of scipy.optimize.minimize."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy
import scipy.optimize as so

import hasd
from support import every_method

FEATURES = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 0, 0]])
MEANS = np.array([1.0, 0.3, 0.5])
SOLUTION = np.array([0.0, -0.524869316, 0.487525860])  # as SciPy gives it: good to 2e-6
DIGITS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])
RNG = np.random.default_rng(20)
DATA, SIGNS = RNG.standard_normal((60, 20)), np.sign(RNG.standard_normal(60))
STEEP = np.geomspace(1.0, 1e4, 30)


def entropy(x):
    """The maximum entropy problem of SciPy's test_optimize.py; flat along x[0]."""
    z = FEATURES @ x
    log_sum = np.log(np.exp(z).sum())
    return log_sum - MEANS @ x, FEATURES.T @ np.exp(z - log_sum) - MEANS


def value(x):
    return entropy(x)[0]


def grad(x):
    return entropy(x)[1]


def distance(x, c=DIGITS):
    """test_minimize_coerce_args_param."""
    return np.sum((x - c) ** 2), 2.0 * (x - c)


def parabola(x):
    """test_bfgs_double_evaluations; the value is an array of one."""
    return 10.0 * x**2, 20.0 * x


def hyperbola(x):
    """test_bfgs_gh_2169: convex on x > 0, as good as infinite elsewhere."""
    return (x + 1.0 / x, 1.0 - 1.0 / x**2) if x[0] > 0 else (1.79769313e308, 0.0 * x)


def steep(x):
    return 0.5 * STEEP @ (x - 1.0) ** 2, STEEP * (x - 1.0)


def exponentials(x):
    return np.sum(np.exp(x) + np.exp(-2.0 * x)) + 0.5 * x @ x, np.exp(x) - 2.0 * np.exp(-2.0 * x) + x


def logistic(x):
    margin = SIGNS * (DATA @ x)
    return np.logaddexp(0.0, -margin).sum() + 0.05 * x @ x, 0.1 * x - DATA.T @ (SIGNS / (1.0 + np.exp(margin)))


CONVEX = {
    entropy: np.zeros(3),
    distance: np.linspace(-1.0, 1.0, 11),
    parabola: np.array([-100.0]),
    steep: np.zeros(30),
    exponentials: np.linspace(-2.0, 2.0, 10),
    logistic: np.zeros(20),
}
convex = pytest.mark.parametrize(("f", "x0"), CONVEX.items(), ids=[f.__name__ for f in CONVEX])


class Calls:
    """A function that remembers where it was called."""

    def __init__(self, f):
        self.f, self.points = f, []

    def __call__(self, x, *args):
        self.points.append(x.copy())
        return self.f(x, *args)


def through(f=entropy, x0=(0.0, 0.0, 0.0), jac=True, **given):
    """Through SciPy."""
    return so.minimize(f, np.array(x0), jac=jac, method=hasd.minimize, **given)


def direct(f=entropy, x0=(0.0, 0.0, 0.0), jac=True, options=None, **given):
    return hasd.minimize(f, x0, jac=jac, **given, **(options or {}))


both_ways = pytest.mark.parametrize("call", [through, direct])


def same(one, other):
    """The same run, to the last bit."""
    np.testing.assert_array_equal(one.x, other.x)
    for name in ("fun", "nit", "nfev", "njev", "nrecord", "status", "success", "message", "method", "p"):
        assert one[name] == other[name]


class TestConvexFunctions:
    @convex
    @pytest.mark.parametrize("tol", [1e-6, 1e-8])
    def test_hasd_needs_at_most_1_3_times_the_evaluations_of_l_bfgs_b(self, f, x0, tol):
        res = through(f, x0, tol=tol)
        equal = {"gtol": tol * np.abs(f(x0)[1]).max(), "ftol": 0.0, "maxiter": 10_000}
        peer = so.minimize(f, x0, jac=True, method="L-BFGS-B", options=equal)
        assert res.success and peer.success
        assert res.nfev <= 1.3 * peer.nfev

    @convex
    def test_the_answer_is_that_of_l_bfgs_b(self, f, x0):
        res = through(f, x0, tol=1e-11)
        peer = so.minimize(f, x0, jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 0.0, "maxiter": 10_000})
        np.testing.assert_allclose(res.fun, np.squeeze(peer.fun), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(res.x, peer.x, rtol=1e-6, atol=1e-6)

    @convex
    @pytest.mark.parametrize("p", [2.0, 3.0, np.inf])
    def test_convex_functions_are_solved_in_every_norm(self, f, x0, p):
        res = through(f, x0, tol=1e-4, options={"p": p, "maxiter": 20_000, "trace": False})
        assert res.success and res.p == p and res.method == "hasd"
        norm = hasd.Lp(p).dual_norm
        assert norm(res.jac) <= 1e-4 * norm(np.asarray(f(x0)[1], dtype=float))

    @every_method
    def test_logistic_is_solved_by_every_method_of_hasd(self, method):
        mu = 0.1 if method == "hasd-restart" else None
        res = through(logistic, np.zeros(20), tol=1e-4, options={"method": method, "mu": mu, "maxfun": 20_000})
        assert res.success and res.method == method

    @convex
    def test_finite_differences_reach_the_minimum_and_count_every_call(self, f, x0):
        counted = Calls(lambda x: f(x)[0])
        res = through(counted, x0, jac=None, tol=1e-5)
        assert res.success and res.nfev + res.nrecord == len(counted.points)
        best = through(f, x0, tol=1e-9).fun
        assert abs(res.fun - best) <= 1e-6 * max(1.0, abs(f(x0)[0] - best))

    def test_the_known_solution_is_found(self):
        np.testing.assert_allclose(through(tol=1e-8).x, SOLUTION, atol=3e-6)

    @pytest.mark.parametrize("jac", [True, None], ids=["gradient", "differences"])
    def test_a_function_with_a_pole_is_minimised(self, jac):
        res = through(hyperbola if jac else lambda x: hyperbola(x)[0], [10.0], jac=jac)
        assert res.success
        np.testing.assert_allclose(res.x, [1.0], atol=1e-4)

    @pytest.mark.parametrize("scale", [1e-50, 1.0, 1e50])
    def test_the_first_step_does_not_go_far(self, scale):
        def f(x):
            assert abs(x[0]) < 1e4
            return scale * (x[0] - 1.0) ** 2, 2.0 * scale * (x - 1.0)

        res = through(f, [-1.0])
        assert res.success
        np.testing.assert_allclose(res.x, [1.0])

    @convex
    def test_no_point_is_evaluated_twice_in_a_row(self, f, x0):
        counted = Calls(f)
        res = through(counted, x0)
        assert len(counted.points) == res.nfev + res.nrecord
        assert not any(np.array_equal(a, b) for a, b in itertools.pairwise(counted.points))

    def test_an_objective_brings_its_gradient_and_its_matrix(self):
        res = through(hasd.objectives.LeastSquares(DATA, SIGNS), np.zeros(20), jac=None, tol=1e-9)
        assert res.success and res.nprod > 0
        np.testing.assert_allclose(res.x, np.linalg.lstsq(DATA, SIGNS, rcond=None)[0], atol=1e-7)


class TestWhatIsPassed:
    """Through SciPy a run takes the steps that it takes when called directly."""

    @convex
    @pytest.mark.parametrize("options", [{}, {"p": np.inf}, {"method": "agd", "maxiter": 30}, {"maxfun": 5}])
    def test_options_and_jac_true_give_the_run_of_a_direct_call(self, f, x0, options):
        same(through(f, x0, options=options), direct(f, x0, options=options))

    def test_jac_true_and_a_jac_apart_count_alike(self):
        pair, apart = Calls(entropy), Calls(grad)
        together, parts = through(pair), through(value, jac=apart)
        same(parts, direct(value, jac=grad))
        assert together.nfev == parts.nfev == len(pair.points)
        assert together.njev == parts.njev == len(apart.points)

    def test_a_function_may_have_a_derivative_and_a_fun_of_its_own(self):
        class Mine:
            fun = "a label"

            def __call__(self, x):
                return value(x)

            def derivative(self, x):
                return grad(x)

        mine = Mine()
        same(through(mine, jac=mine.derivative), through(value, jac=grad))

    @pytest.mark.parametrize("jac", [None, False, "2-point", "3-point", "cs"])
    def test_no_jac_means_forward_differences(self, jac):
        res = through(value, jac=jac)
        same(res, direct(value, jac=None))
        assert res.success and res.nfev == 4 * res.njev

    @pytest.mark.parametrize("args", [(2.0,), 2.0, [2.0]], ids=["tuple", "number", "list"])
    @pytest.mark.parametrize("way", ["pair", "apart", "none"])
    def test_args_reach_the_function_as_in_a_direct_call(self, args, way):
        def f(x, s):
            return np.sum(s) * value(x)

        def g(x, s):
            return np.sum(s) * grad(x)

        fun, jac = {"pair": (lambda x, s: (f(x, s), g(x, s)), True), "apart": (f, g), "none": (f, None)}[way]
        res = through(fun, jac=jac, args=args)
        same(res, direct(fun, jac=jac, args=args))
        assert res.success and res.fun == 2.0 * value(res.x)

    def test_tol_is_passed_on_and_the_tol_of_options_overrides_it(self):
        same(through(tol=1e-9), direct(tol=1e-9))
        same(through(tol=None), direct())
        same(through(tol=1e-2, options={"tol": 1e-9}), direct(tol=1e-9))
        assert through(tol=1e-2).nit < through(tol=1e-9).nit

    def test_gtol_is_absolute(self):
        res = through(tol=0.0, options={"gtol": 1e-3})
        assert res.success and np.linalg.norm(res.jac) <= 1e-3 < res.trace["grad_norm"][-2]

    @pytest.mark.parametrize("x0", [17, 17.0, [17], np.array(17.0), np.array([17], dtype=np.int8)])
    def test_one_variable_may_be_given_as_a_number_or_an_array(self, x0):
        res = through(lambda x: x * x, x0, jac=lambda x: 2.0 * x)
        assert res.success and res.x.shape == res.jac.shape == (1,) and np.shape(res.fun) == ()


REFUSED = [
    {"bounds": [(0, 1)] * 3},
    {"bounds": [(None, None), (None, 1.0), (None, None)]},
    {"bounds": so.Bounds(0.0, np.inf)},
    {"bounds": so.Bounds(np.inf, np.inf)},
    {"bounds": 3},
    {"bounds": [(0, 1), (0,), ()]},
    {"constraints": {"type": "eq", "fun": np.sum}},
    {"constraints": [{"type": "ineq", "fun": np.sum}]},
    {"constraints": so.LinearConstraint(np.eye(3), 0, 1)},
    {"constraints": so.NonlinearConstraint(np.sum, 0, 1)},
]
EXCLUDES_NOTHING = [
    {"bounds": [(None, None)] * 3},
    {"bounds": np.array([[-np.inf, np.inf]] * 3)},
    {"bounds": so.Bounds()},
    {"constraints": []},
    {"constraints": {}},
    {"constraints": None},
]
RENAMED = {
    "maxfev": "maxfun",
    "maxcor": "memory",
    "iprint": "disp",
    "return_all": "trace",
    **dict.fromkeys(("ftol", "fatol"), "gap_tol"),
    **dict.fromkeys(("xtol", "xatol"), "gtol"),
}


class TestWhatIsForeign:
    @both_ways
    @pytest.mark.parametrize("given", REFUSED, ids=lambda given: next(iter(given)))
    def test_bounds_and_constraints_are_refused_before_any_evaluation(self, call, given):
        (name,) = given
        with pytest.raises(ValueError, match=f"^{name} must not be given: hasd minimises without {name}; "):
            call(lambda x: pytest.fail("evaluated"), **given)

    @both_ways
    @pytest.mark.parametrize("given", EXCLUDES_NOTHING, ids=lambda given: next(iter(given)))
    def test_bounds_and_constraints_that_exclude_nothing_change_nothing(self, call, given):
        same(call(**given), call())

    @both_ways
    @pytest.mark.parametrize("names", [("hess",), ("hessp",), ("hess", "hessp")])
    def test_second_derivatives_are_ignored_and_the_message_says_so(self, call, names):
        res = call(**{name: lambda *_: pytest.fail("asked for second derivatives") for name in names})
        np.testing.assert_array_equal(res.x, call().x)
        assert f"Ignored: {' and '.join(names)}," in res.message
        assert "Ignored" not in call().message

    @pytest.mark.parametrize("name", RENAMED)
    def test_options_of_other_methods_are_named(self, name):
        with pytest.raises(TypeError, match=f"unknown option {name!r}: give .*{RENAMED[name]}"):
            through(options={name: 1})

    def test_options_as_a_dictionary_are_scipys_alone(self):
        with pytest.raises(TypeError, match="keywords of their own"):
            hasd.minimize(entropy, np.zeros(3), jac=True, options={"maxiter": 3})


class TestCallback:
    @both_ways
    def test_intermediate_result_holds_the_point_and_value_of_each_iteration(self, call):
        seen = []

        def callback(*, intermediate_result):
            seen.append(intermediate_result)

        res = call(callback=callback)
        assert [state.nit for state in seen] == list(range(1, res.nit + 1))
        assert all(isinstance(state, so.OptimizeResult) for state in seen)
        assert [state.fun for state in seen] == [value(state.x) for state in seen] == res.trace["fun"][1:].tolist()

    @both_ways
    def test_a_built_in_without_a_signature_may_be_the_callback(self, call):
        assert call(callback=max).success

    @both_ways
    @pytest.mark.parametrize("stop_at", [1, 3])
    @pytest.mark.parametrize("form", ["xk", "intermediate_result"])
    def test_stop_iteration_is_status_99_and_the_last_thing(self, call, stop_at, form):
        counted, at = Calls(entropy), []

        def on_x(xk):
            at.append(len(counted.points))
            if len(at) == stop_at:
                raise StopIteration

        def on_result(intermediate_result):
            on_x(intermediate_result.x)

        res = call(counted, callback=on_x if form == "xk" else on_result)
        assert (res.status, res.success, res.nit) == (99, False, stop_at)
        assert res.message.startswith("`callback` raised `StopIteration`.")
        assert at[-1] == len(counted.points)
        np.testing.assert_array_equal(res.x, call(options={"maxiter": stop_at}).x)


STATUS = [
    ({}, 0),
    ({"options": {"maxiter": 2}}, 1),
    ({"f": logistic, "x0": np.zeros(20), "tol": 0.0}, 2),
    ({"f": lambda x: (1.0, x) if np.all(x == 1.0) else (math.nan, x), "x0": np.ones(2), "options": {"p": 2}}, 3),
    ({"options": {"maxfun": 3}}, 10),
    ({"options": {"time_limit": 0.0}}, 11),
    ({"f": lambda x: (math.nan, x)}, 12),
    ({"f": lambda x: (-math.inf, x)}, 13),
    ({"tol": 0.0, "options": {"gap_tol": 1e-3, "radius": 1.0}}, 14),
]


class TestAnswer:
    def test_the_result_has_the_fields_and_types_that_scipy_users_read(self):
        res, peer = through(), so.minimize(entropy, np.zeros(3), jac=True, method="L-BFGS-B")
        assert set(peer) - {"hess_inv"} <= set(res)
        assert all(type(res[name]) is int for name in ("nit", "nfev", "njev", "status"))
        assert type(res.success) is bool and type(res.message) is str and type(res.fun) is float
        assert res.fun == value(res.x) and "message: Converged" in str(res)
        np.testing.assert_array_equal(res.jac, grad(res.x))

    @pytest.mark.parametrize(("given", "status"), STATUS, ids=[str(status) for _, status in STATUS])
    def test_status_success_and_message_tell_the_same_end(self, given, status, capsys):
        res = through(**{**given, "options": {"disp": True} | given.get("options", {})})
        (named,) = [s for s in hasd.Status if s.code == status]
        assert (res.status, res.success) == (status, status in (0, 14))
        assert res.message.startswith(named.message)
        assert capsys.readouterr().out.startswith(res.message)

    @both_ways
    def test_disp_prints_a_summary(self, call, capsys):
        res = call(options={"disp": True})
        rows = {"Current function value": f"{res.fun:.6g}", "Iterations": res.nit}
        rows |= {"Function evaluations": res.nfev, "Gradient evaluations": res.njev}
        want = [res.message, *(f"         {name}: {number}" for name, number in rows.items())]
        assert capsys.readouterr().out.splitlines() == want
        call(options={"disp": False})
        assert capsys.readouterr() == ("", "")


class TestGlobalMethods:
    """Those of SciPy's global methods that take a local one of the user's own."""

    @pytest.mark.parametrize(("f", "jac"), [(entropy, True), (value, grad), (value, None)])
    def test_basinhopping_takes_hasd_as_its_local_method(self, f, jac):
        counted = Calls(f)
        local = {"method": hasd.minimize, "jac": jac, "options": {"p": 2}}
        res = so.basinhopping(counted, np.zeros(3), niter=3, minimizer_kwargs=local)
        assert res.success and res.minimization_failures == 0
        assert res.nfev == len(counted.points)
        np.testing.assert_allclose(res.x[1:], SOLUTION[1:], atol=1e-4)

    @pytest.mark.parametrize("jac", [grad, None])
    def test_dual_annealing_takes_hasd_as_its_local_method(self, jac):
        local = {"method": hasd.minimize, "jac": jac}
        res = so.dual_annealing(value, [(-5.0, 5.0)] * 3, maxiter=5, minimizer_kwargs=local)
        np.testing.assert_allclose(res.fun, value(SOLUTION), atol=1e-8)
        assert res.njev > 0

    @pytest.mark.skipif(scipy.__version__ < "1.17", reason="before SciPy 1.17 polish is True or False")
    def test_differential_evolution_gives_its_bounds_to_polish(self):
        evolve = functools.partial(so.differential_evolution, value, [(-5.0, 5.0)] * 3, maxiter=3)
        res = evolve(polish=lambda f, x0, bounds, constraints: hasd.minimize(f, x0))
        np.testing.assert_allclose(res.fun, value(SOLUTION), atol=1e-8)
        for polish in (hasd.minimize, functools.partial(so.minimize, method=hasd.minimize)):
            with pytest.raises(ValueError, match="bounds must not be given"):
                evolve(polish=polish)
