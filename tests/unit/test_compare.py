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
    assert [row["method"] for row in rows] == list(three.results)
    for row in rows:
        res = three.results[row["method"]]
        assert (row["fun"], row["nfev"], row["nit"]) == (res.fun, res.nfev, res.nit)
        assert row["above_best"] == row["fun"] - three.best >= 0.0
    assert three.best <= min(row["fun"] for row in rows)


def test_labels_name_method_objects():
    known = softmax()
    both = hasd.compare(known.f, known.x0, {"slow": HeavyBall(momentum=0.1), "fast": "heavy-ball"}, budget=20, L=2.0)
    assert [row["method"] for row in both.rows()] == ["slow", "fast"]
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


def test_a_comparison_prints_a_line_for_each_method():
    both = hasd.compare(hasd.objectives.Quadratic(np.eye(2)), np.ones(2), ["agd", "steepest-descent"], budget=9)
    first, second = repr(both).splitlines()
    assert first.startswith("             agd: fun ") and second.startswith("steepest-descent: fun ")


def test_labels_of_a_comparison_may_be_numbers():
    f = hasd.objectives.Quadratic(np.eye(2))
    assert repr(hasd.compare(f, np.ones(2), {1: "agd", 10: "hasd"}, budget=5)).startswith(" 1: fun ")
