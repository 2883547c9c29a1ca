"""compare(): equal budgets, one table, one plot."""

import matplotlib as mpl
import numpy as np
import pytest

import hasd
from hasd.methods.heavy_ball import HeavyBall
from support import softmax

mpl.use("Agg")


@pytest.fixture(scope="module")
def three():
    known = softmax()
    methods = ["hasd", "linear-coupling", "steepest-descent"]
    return hasd.compare(known.f, known.x0, methods, budget=60, p=np.inf, L=known.L(np.inf))


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


def test_every_method_has_the_whole_budget_and_no_more(three):
    assert list(three.results) == ["hasd", "linear-coupling", "steepest-descent"]
    assert three.budget == 60
    for res in three.results.values():
        assert res.nfev == 60 and res.status == 10


@pytest.mark.parametrize("L", [None, 30.0])
def test_what_the_user_function_sees_is_within_the_budget(L):
    calls = []

    def f(x):
        calls.append(0)
        return 0.5 * float(x @ x), x

    both = hasd.compare(f, np.arange(1.0, 7.0), ["hasd", "hasd-paper"], budget=15, L=L, jac=True)
    assert len(calls) == sum(res.nfev + res.nrecord for res in both.results.values())
    assert all(res.nfev <= 15 for res in both.results.values())


def test_each_row_repeats_its_result_and_its_distance_above_the_best(three):
    rows = three.rows()
    assert [row["label"] for row in rows] == list(three.results)
    for row in rows:
        res = three.results[row["label"]]
        for name in ("method", "fun", "nfev", "nprod", "nit", "seconds", "success"):
            assert row[name] == res[name]
        assert row["status"] == hasd.Status.of(res.status).word == "maxfun"
        assert row["above_best"] == row["fun"] - three.best >= 0.0
    assert three.best <= min(row["fun"] for row in rows)


def test_labels_name_method_objects():
    known = softmax()
    both = hasd.compare(known.f, known.x0, {"slow": HeavyBall(momentum=0.1), "fast": "heavy-ball"}, budget=20, L=2.0)
    assert [row["label"] for row in both.rows()] == ["slow", "fast"]
    assert [row["method"] for row in both.rows()] == ["heavy-ball", "heavy-ball"]
    assert both.results["slow"].fun != both.results["fast"].fun


def test_plot_has_a_labelled_line_for_each_method(three, axes):
    assert three.plot(axes) is axes
    assert [line.get_label() for line in axes.get_lines()] == list(three.results)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(three.results)
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() and axes.get_ylabel()
    for line, res in zip(axes.get_lines(), three.results.values(), strict=True):
        x, y = line.get_data()
        assert set(x) <= set(res.trace["nfev"]) and x.max() <= three.budget
        assert (np.asarray(y) > 0.0).all()


def test_a_plot_over_a_reference_shows_the_distance_above_it(three, axes):
    known = softmax()
    three.plot(axes, reference=known.f_star)
    line = axes.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata()[0], known.f(known.x0) - known.f_star)
    assert "reference" in axes.get_ylabel()


def test_plot_makes_its_own_axes(three, axes):
    assert three.plot() is not axes


def test_no_method_is_an_error():
    with pytest.raises(ValueError, match="method"):
        hasd.compare(lambda x: 0.0, [1.0], [], budget=10)


def test_a_single_name_is_not_taken_apart():
    known = softmax()
    assert list(hasd.compare(known.f, known.x0, "hasd", budget=5).results) == ["hasd"]


@pytest.mark.parametrize("common", [{"trace": False}, {"maxfun": 3}])
def test_what_compare_sets_itself_must_not_be_given(common):
    known = softmax()
    with pytest.raises(TypeError, match=next(iter(common))):
        hasd.compare(known.f, known.x0, ["hasd"], budget=5, **common)


def test_the_table_has_aligned_columns_and_a_line_for_each_method_in_the_order_given():
    both = hasd.compare(hasd.objectives.Quadratic(np.eye(2)), np.ones(2), {"two": "agd", "1": "auto"}, budget=9)
    head, first, second, certified = repr(both).splitlines()
    assert head.split() == ["method", "fun", "above", "best", "nfev", "nprod", "nit", "seconds", "status"]
    assert first.startswith("two  agd          ") and second.startswith("1    hasd-newton  ")
    for name in ("nfev", "nprod", "nit", "seconds"):
        end = head.index(f" {name}") + 1 + len(name)
        assert all(line[end - 1] != " " and line[end] == " " for line in (head, first, second))
    assert certified.startswith("Nothing is certified: ")


def test_columns_that_say_nothing_are_not_printed():
    both = hasd.compare(lambda x: (float(x @ x), 2 * x), np.ones(2), ["agd", "hasd"], budget=5, jac=True)
    assert repr(both).splitlines()[0].split() == ["fun", "above", "best", "nfev", "nit", "seconds", "status"]


def test_labels_of_a_comparison_may_be_numbers():
    f = hasd.objectives.Quadratic(np.eye(2))
    both = hasd.compare(f, np.ones(2), {1: "agd", 10: "hasd"}, budget=5)
    assert [line.split()[0] for line in repr(both).splitlines()[1:3]] == ["1", "10"]
    assert list(both.results) == [1, 10]


def test_settings_of_a_method_come_before_the_common_ones():
    known = softmax()
    norms = {"two": {"method": "hasd", "p": 2}, "common": {"method": "hasd"}, "auto": {"maxiter": 3}}
    three = hasd.compare(known.f, known.x0, norms, budget=30, p=np.inf)
    assert [res.p for res in three.results.values()] == [2.0, np.inf, np.inf]
    assert three.results["auto"].nit == 3 and three.results["auto"].method == "hasd"
    alone = hasd.minimize(known.f, known.x0, method="hasd", p=2, tol=0.0, maxfun=30)
    assert three.results["two"].fun == alone.fun


def test_a_list_may_hold_method_objects():
    known = softmax()
    both = hasd.compare(known.f, known.x0, [HeavyBall(momentum=0.1), "hasd"], budget=10)
    assert list(both.results) == ["heavy-ball", "hasd"]


def test_without_a_budget_every_method_runs_until_its_own_tolerance():
    known = softmax()
    both = hasd.compare(known.f, known.x0, {"loose": {"tol": 1e-2}, "tight": {"tol": 1e-8}})
    assert both.budget is None
    assert all(res.success for res in both.results.values())
    assert both.results["loose"].nit < both.results["tight"].nit


def test_tolerances_that_are_given_end_runs_within_the_budget():
    known = softmax()
    res = hasd.compare(known.f, known.x0, ["hasd"], budget=10_000, tol=1e-3).results["hasd"]
    assert res.success and res.nfev < 10_000


@pytest.mark.parametrize("own", [{"trace": False}, {"maxfun": 3}, {"x0": 1}, {"fun": 1}])
def test_what_compare_sets_itself_is_refused_in_the_settings_of_a_method_too(own):
    known = softmax()
    with pytest.raises(TypeError, match=f"compare sets {next(iter(own))} itself"):
        hasd.compare(known.f, known.x0, {"mine": own}, budget=5)


def test_arguments_of_the_function_are_the_same_for_all_methods():
    def f(x, scale):
        return float(x @ x) * scale, 2 * scale * x

    both = hasd.compare(f, np.ones(2), ["hasd", "BFGS"], jac=True, args=(3.0,), maxiter=0)
    assert [row["fun"] for row in both.rows()] == [6.0, 6.0]
    with pytest.raises(TypeError, match="args must be given to compare itself"):
        hasd.compare(f, np.ones(2), {"mine": {"args": (3.0,)}}, jac=True)


def test_a_common_method_is_refused():
    with pytest.raises(TypeError, match="method must not be given"):
        hasd.compare(softmax().f, softmax().x0, ["hasd"], budget=5, method="agd")


@pytest.mark.parametrize("bad", ["hsad", {"method": "heavy-ball", "momentun": 0.5}, {"method": "Newton", "p": 2}])
def test_nothing_is_run_before_all_names_and_options_are_known(bad):
    calls = []

    def f(x):
        calls.append(0)
        return float(x @ x), 2 * x

    with pytest.raises((TypeError, ValueError), match=r"unknown (method|option) '\w+'; did you mean '"):
        hasd.compare(f, np.ones(2), {"good": "hasd", "bad": bad}, budget=5, jac=True)
    assert not calls


@pytest.mark.parametrize("against", ["products", "seconds"])
def test_a_plot_may_be_against_products_or_seconds(three, axes, against):
    three.plot(axes, against=against)
    column = {"products": "nprod", "seconds": "seconds"}[against]
    for line, res in zip(axes.get_lines(), three.results.values(), strict=True):
        assert set(line.get_xdata()) <= {*res.trace[column], res[column]}
    assert against in axes.get_xlabel()


def test_a_plot_against_what_was_not_counted_is_refused(axes):
    both = hasd.compare(lambda x: (float(x @ x), 2 * x), np.ones(2), ["agd"], budget=5, jac=True)
    with pytest.raises(ValueError, match="no products were counted"):
        both.plot(axes, against="products")
    with pytest.raises(ValueError, match="against must be 'evaluations' or 'products' or 'seconds', got 'nfev'"):
        both.plot(axes, against="nfev")


def test_curves_never_rise_and_end_at_the_value_of_the_result(three, axes):
    three.plot(axes, reference=softmax().f_star)
    for line, res in zip(axes.get_lines(), three.results.values(), strict=True):
        assert np.all(np.diff(line.get_ydata()) <= 0.0)
        assert line.get_xdata()[-1] == res.nfev
        assert line.get_ydata()[-1] <= res.fun - softmax().f_star


def test_certified_gaps_are_dashed_and_above_the_errors(axes):
    known = softmax()
    both = hasd.compare(known.f, known.x0, ["hasd", "BFGS"], budget=40, radius=known.R)
    both.plot(axes, reference=known.f_star, certified=True)
    ours, theirs, gap, _ = axes.get_lines()  # the last one is for the legend
    assert gap.get_linestyle() == "--" and gap.get_color() == ours.get_color() != theirs.get_color()
    error = dict(zip(*ours.get_data(), strict=True))
    assert all(error[x] <= y + 1e-12 for x, y in zip(*gap.get_data(), strict=True))
    assert "dashed: certified gap" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_many_methods_are_all_told_apart(axes):
    f = hasd.objectives.Quadratic(np.diag([1.0, 9.0]))
    many = hasd.compare(f, np.ones(2), {k: {"method": "hasd", "p": 2.0 + k} for k in range(16)}, budget=6)
    many.plot(axes)
    assert len({(line.get_color(), line.get_marker()) for line in axes.get_lines()}) == 16


def test_a_new_figure_has_its_legend_below_the_axes(three, axes):
    own = three.plot()
    (legend,) = own.figure.legends
    assert own.get_legend() is None and [text.get_text() for text in legend.get_texts()] == list(three.results)
