"""compare() with SciPy's methods: counted alike, at the same budgets, and bounded by what ours certify."""

import math

import numpy as np
import pytest
import scipy.optimize

import hasd
from hasd._scipy_methods import SCIPY_METHODS
from support import Known, log_sum_exp, logistic, quadratic, softmax


class Counted:
    """sum cosh(x - 1) with its gradient; it counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return float(np.sum(np.cosh(x - 1.0))), np.sinh(x - 1.0)


def only(comparison):
    (res,) = comparison.results.values()
    return res


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_the_budget_is_what_ends_a_run_and_it_counts_the_calls_of_the_function(method):
    f = Counted()
    res = only(hasd.compare(f, np.linspace(-3.0, 5.0, 12), [method], budget=4, jac=True))
    assert (res.status, res.success, res.method) == (hasd.Status.MAXFUN.code, False, method)
    assert res.nfev == 4 and f.calls == res.nfev + res.nrecord
    assert res.fun == min(res.trace["fun"]) == res.trace["upper"][-1]


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_with_a_budget_no_tolerance_ends_a_run_before_machine_precision(method):
    """SciPy's own tolerances would: they leave gradients of 1e-5 and more."""
    known = quadratic()
    res = only(hasd.compare(known.f, known.x0, [method], budget=400))
    assert res.status in (hasd.Status.MAXFUN.code, hasd.Status.PRECISION.code) and not res.success
    assert res.fun - known.f_star < 1e-9


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_without_a_budget_the_answer_is_that_of_scipy(method):
    known = log_sum_exp()
    res = only(hasd.compare(known.f, known.x0, {"theirs": method.lower()}))
    theirs = scipy.optimize.minimize(known.f.value_and_grad, known.x0, jac=True, method=method)
    np.testing.assert_array_equal(res.x, theirs.x)
    assert (res.fun, res.nit, res.message) == (theirs.fun, theirs.nit, theirs.message)
    assert res.success and theirs.success and res.status == 0
    assert res.nfev >= theirs.nfev and res.nprod == 2 * res.nfev


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_the_trace_counts_evaluations_and_iterations_upwards(method):
    res = only(hasd.compare(log_sum_exp().f, log_sum_exp().x0, [method]))
    trace = res.trace
    assert {len(column) for column in trace.values()} == {res.nfev}
    np.testing.assert_array_equal(trace["nfev"], np.arange(1, res.nfev + 1))
    np.testing.assert_array_equal(trace["upper"], np.minimum.accumulate(trace["fun"]))
    assert trace["iteration"][0] == 0 and 0 < trace["iteration"][-1] <= res.nit
    for name in ("iteration", "nprod", "seconds"):
        assert np.all(np.diff(trace[name]) >= 0.0)
    assert trace["seconds"][-1] <= res.seconds and np.isnan(trace["lower"]).all()


@pytest.mark.parametrize("method", SCIPY_METHODS)
@pytest.mark.parametrize("most", [0, 2])
def test_a_limit_on_iterations_holds_for_every_method(method, most):
    known = log_sum_exp()
    res = only(hasd.compare(known.f, known.x0, [method], maxiter=most))
    assert (res.nit, res.status) == (most, hasd.Status.MAXITER.code)
    assert res.fun <= known.f(known.x0)


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_a_time_limit_of_zero_ends_before_the_first_evaluation(method):
    f = Counted()
    both = hasd.compare(f, np.ones(3), [method], time_limit=0.0, jac=True)
    assert only(both).status == hasd.Status.TIME.code and f.calls == 0
    assert math.isnan(only(both).fun) and "nan" in repr(both) and both.rows()[0]["gap"] == math.inf


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_finite_differences_are_counted_as_ours_are(method):
    calls = []

    def f(x):
        calls.append(0)
        return float(np.sum(np.cosh(x - 1.0)))

    both = hasd.compare(f, np.zeros(3), ["agd", method], budget=21)
    for res in both.results.values():
        assert res.nfev <= 21
    assert both.results[method].nfev % 4 == 0  # one for the point and one for each variable
    assert len(calls) == sum(res.nfev + res.nrecord for res in both.results.values())


def test_options_of_scipy_are_settings_of_its_methods():
    known = log_sum_exp()
    given = {
        "short": {"method": "L-BFGS-B", "maxcor": 1},
        "loose": {"method": "L-BFGS-B", "ftol": 1e-1},
        "it": "L-BFGS-B",
    }
    results = hasd.compare(known.f, known.x0, given).results
    assert results["loose"].nfev < results["it"].nfev and results["short"].fun != results["it"].fun
    with pytest.warns(scipy.optimize.OptimizeWarning, match="maxcr"):
        hasd.compare(known.f, known.x0, {"it": {"method": "L-BFGS-B", "maxcr": 1}})


def test_options_in_scipys_form_are_refused_with_ours():
    own = {"it": {"method": "L-BFGS-B", "options": {"maxcor": 3}}}
    with pytest.raises(TypeError, match=r"settings of their own: .*maxcor"):
        hasd.compare(Counted(), np.zeros(2), own, jac=True)


def test_bounds_are_refused_and_not_left_out():
    known = log_sum_exp()
    with pytest.raises(TypeError, match="compare minimises without bounds"):
        hasd.compare(known.f, known.x0, {"it": {"method": "L-BFGS-B", "bounds": [(0.0, 1.0)] * known.x0.size}})


def test_settings_of_ours_alone_do_not_reach_scipy():
    known = log_sum_exp()
    common = {"p": 3, "L": 50.0, "mu": 0.0, "gap_tol": 1e-4, "radius": known.R, "goal": "value", "disp": False}
    plain = only(hasd.compare(known.f, known.x0, ["BFGS"]))
    beside = hasd.compare(known.f, known.x0, ["hasd", "BFGS"], **common)
    np.testing.assert_array_equal(beside.results["BFGS"].x, plain.x)


def test_tolerances_reach_scipy_in_its_own_sense():
    known = log_sum_exp()
    res = only(hasd.compare(known.f, known.x0, ["BFGS"], budget=500, gtol=1e-2))
    assert res.success and 1e-7 < np.abs(res.jac).max() <= 1e-2
    assert only(hasd.compare(known.f, known.x0, ["BFGS"], tol=1e-9)).nfev > res.nfev


@pytest.mark.parametrize(("given", "meant"), [("L-BFGS", "L-BFGS-B"), ("SLSPQ", "SLSQP"), ("newtoncg", "Newton-CG")])
def test_a_misspelt_method_of_scipy_is_answered_with_the_one_that_was_meant(given, meant):
    said = (
        rf"^unknown method '{given}'; did you mean '{meant}'\? The methods are: auto, hasd, .*, L-BFGS-B, TNC, SLSQP$"
    )
    with pytest.raises(ValueError, match=said):
        hasd.compare(Counted(), np.zeros(2), [given], budget=5, jac=True)


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_a_start_that_is_not_finite_is_an_answer_and_no_error(method):
    both = hasd.compare(lambda x: (math.nan, x), np.ones(2), ["hasd", method], jac=True, budget=9)
    assert [row["status"] for row in both.rows()] == ["nonfinite_start", "nonfinite_start"]
    assert math.isnan(both.best) and "nonfinite_start" in repr(both)


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_a_value_that_is_not_finite_is_never_a_success(method):
    def f(x):  # defined for x < 1 only
        with np.errstate(all="ignore"):
            return float(np.sum(-np.log(1.0 - x) - 40.0 * x)), 1.0 / (1.0 - x) - 40.0

    res = only(hasd.compare(f, np.zeros(2), [method], jac=True, budget=60))
    if res.status == hasd.Status.NONFINITE.code:  # what SciPy answered
        assert math.isnan(res.fun) and not res.success
    else:
        assert res.fun <= 0.0 and np.all(res.x < 1.0)


def test_the_library_and_precision_of_the_start_are_kept():
    x0 = np.ones(15, dtype=np.float32)
    seen = set()

    def f(x):
        seen.add(x.dtype)
        return float(x @ x), 2 * x

    res = only(hasd.compare(f, x0, ["L-BFGS-B"], jac=True))
    assert res.x.dtype == np.float32 and seen == {np.dtype(np.float32)}


# ------------------------------------------------------------------------------------------------- what is certified


@pytest.mark.parametrize("make", [quadratic, log_sum_exp, softmax, logistic])
def test_the_best_lower_bound_of_all_bounds_the_gap_of_each(make):
    known: Known = make()
    names = ["hasd", "agd", "hasd-qn", *SCIPY_METHODS]
    many = hasd.compare(known.f, known.x0, names, budget=25, radius=known.R * (1.0 + 1e-9))
    rounding = 1e-13 * (1.0 + abs(known.f_star))
    assert -math.inf < many.lower <= known.f_star + rounding
    assert many.lower == max(res.lower for res in many.results.values())
    for row in many.rows():
        assert row["fun"] - known.f_star - rounding <= row["gap"] <= row["own_gap"]
        assert (row["own_gap"] == math.inf) == (row["method"] in SCIPY_METHODS)
        assert row["gap"] < math.inf
    assert f"The minimum is at least {many.lower!r}, certified by " in repr(many)


def test_the_certificate_of_a_scipy_run_answers_for_a_radius():
    known = log_sum_exp()
    res = only(hasd.compare(known.f, known.x0, ["BFGS"]))
    assert res.gap == math.inf and res.lower == -math.inf
    assert res.fun - known.f_star <= res.certificate.gap(radius=known.R * (1.0 + 1e-9)) < 1e-3


def test_without_a_radius_nothing_is_certified():
    known = log_sum_exp()
    both = hasd.compare(known.f, known.x0, ["hasd", "BFGS"], budget=20)
    assert both.lower == -math.inf and {row["gap"] for row in both.rows()} == {math.inf}
    assert (
        repr(both).splitlines()[-1].startswith("Nothing is certified: that takes a method of hasd and radius= or mu=")
    )


def test_methods_that_certify_nothing_are_marked_in_the_table():
    known = log_sum_exp()
    both = hasd.compare(known.f, known.x0, ["hasd", "BFGS"], budget=20, radius=known.R)
    head, ours, theirs, _ = repr(both).splitlines()
    assert "own gap" in head and "none" in theirs and "none" not in ours


def run_short(known, **given):
    """A run whose radius is half of what it should be, and which is too short to notice it."""
    return {"method": "hasd", "radius": 0.5 * known.R, "maxiter": 1, **given}


def test_a_value_of_one_method_below_the_bound_of_another_withdraws_its_gaps():
    known = log_sum_exp()
    assert only(hasd.compare(known.f, known.x0, {"short": run_short(known)})).lower > known.f_star
    both = hasd.compare(known.f, known.x0, {"short": run_short(known), "BFGS": "BFGS"})
    assert both.results["BFGS"].fun < both.results["short"].lower and both.lower == -math.inf
    assert {row["gap"] for row in both.rows()} == {row["own_gap"] for row in both.rows()} == {math.inf}
    assert "Nothing is certified, because the runs contradict what they assume: a radius is too small" in repr(both)


def test_bounds_with_other_assumptions_stand_beside_one_that_is_refuted():
    known = log_sum_exp()
    runs = {"short": run_short(known), "long": {"method": "hasd", "radius": known.R * (1.0 + 1e-9)}}
    both = hasd.compare(known.f, known.x0, runs)
    short, long = both.rows()
    assert both.lower == both.results["long"].lower <= known.f_star + 1e-13
    assert short["own_gap"] == math.inf and short["fun"] - known.f_star <= short["gap"] < math.inf
    assert long["gap"] == long["own_gap"]


def test_a_run_that_met_a_contradiction_refutes_bounds_under_the_same_assumptions():
    """The function is not convex.  The long run sees it; the short one has seen one point only."""

    def f(x):
        return float(np.sum(x**4 / 4.0 - x**2 / 2.0)), x**3 - x

    runs = {"short": {"method": "hasd", "maxiter": 0}, "long": {"method": "hasd-qn"}}
    both = hasd.compare(f, np.array([0.1, -0.2]), runs, jac=True, radius=30.0)
    assert both.results["long"].certificate.withdrawn and not both.results["short"].certificate.withdrawn
    assert both.results["short"].lower > -math.inf == both.lower
    assert "the function is not convex" in repr(both)


def test_a_start_of_the_norms_shape_is_taken_by_scipys_methods_too():
    target = np.arange(6.0).reshape(2, 3)

    def f(X):
        return 0.5 * float(np.sum((X - target) ** 2)), X - target

    norm = hasd.Schatten(math.inf, (2, 3))
    both = hasd.compare(f, np.zeros((2, 3)), ["hasd", "L-BFGS-B"], jac=True, p=norm)
    for res in both.results.values():
        assert res.x.shape == res.jac.shape == (2, 3)
        np.testing.assert_allclose(res.x, target, atol=1e-4)


def test_a_gradient_tolerance_goes_to_those_that_have_one():
    """SciPy would warn of the others, and warnings are errors here."""
    compared = hasd.compare(lambda x: (float(x @ x), 2.0 * x), np.ones(3), SCIPY_METHODS, jac=True, gtol=1e-8)
    assert all(res.success for res in compared.results.values())


def test_two_methods_of_one_name_are_refused():
    two = [hasd.methods.make("hasd-paper", {"search": search}, hasd.minimize) for search in ("warm", "bisect")]
    for methods in (two, ["agd", "agd"]):
        with pytest.raises(ValueError, match="give a mapping from labels to methods"):
            hasd.compare(lambda x: (float(x @ x), 2.0 * x), np.ones(3), methods, jac=True)


@pytest.mark.parametrize("name", ["L-BFGS-B", "bfgs"])
def test_minimize_says_what_takes_the_place_of_a_method_of_scipy(name):
    for call in (hasd.minimize, hasd.iterate):
        with pytest.raises(ValueError, match=r"is a method of SciPy: here 'auto' takes its place, and hasd\.compare"):
            call(lambda x: (float(x @ x), 2.0 * x), np.ones(3), jac=True, method=name)
