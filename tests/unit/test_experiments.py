"""The experiments: the same bytes on every rerun, references that an independent solver confirms, honest reports."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.sparse import block_diag
from scipy.special import logsumexp

import hasd
from hasd.experiments import (
    EXPERIMENTS,
    Workers,
    collect,
    dimension,
    figure,
    gradnorm,
    potentials,
    restart,
    save,
    softmax,
    trials,
)
from hasd.experiments.dimension_report import growth, median, panel, slope, winners
from hasd.experiments.experiment import decades, render
from hasd.experiments.families import data, is_unbounded, network, problem
from hasd.experiments.gains import step_gains
from hasd.experiments.potentials import optimum
from hasd.experiments.reference import hessian, reference
from hasd.experiments.style import NORMED
from hasd.experiments.tables import cost_to_reach, csv_text, markdown, select

PAPER = {name: experiment for name, experiment in EXPERIMENTS.items() if not experiment.library}
"""Training needs PyTorch, and is in tests/adapters/test_torch_reproduce.py."""
TINY = {
    **{name: experiment.quick for name, experiment in PAPER.items()},
    "figure": replace(figure.EXPERIMENT.quick, stepsizes=(1e-10, 1e-3, 0.1, 1.0)),
    "softmax": replace(softmax.EXPERIMENT.quick, starts=1),
}
COLUMNS = {
    "dimension": "problem size constant method p start evaluations spent gap error gain bound",
    "figure": "family mu method p stepsize tuned_on iteration nfev fun gap",
    "figure-reference": "family mu fun radius grad_norm certificate decrement floor newton_steps",
    "softmax": "method p d start number iterations gain smallest largest limit",
    "search": "problem p variant iterations evaluations trials_mean trials_most theorem2 gap jump",
    "search-jump": "theta zeta",
    "search-jump-ends": "variant trials theta zeta jump message",
    "restart": "variant epoch iteration nfev gap floor L",
    "restart-epochs": "variant epoch iterations nfev gap_before gap_after ratio completed",
    "gradnorm": "problem method rule point share eps T measured needed gain",
    "linf": "family method products iteration upper lower share bound",
    "linf-ends": "family method minimum products iteration upper lower share",
}


@pytest.fixture(scope="module")
def two():
    """Two workers for all tests of this file."""
    with Workers(2) as workers:
        yield workers


@pytest.fixture(scope="module")
def written(two, tmp_path_factory) -> Path:
    """Everything, tiny, in one directory."""
    out = tmp_path_factory.mktemp("results")
    save([(experiment, TINY[name]) for name, experiment in PAPER.items()], two, out)
    collect(list(PAPER), out)
    return out


@pytest.fixture(scope="module")
def report(written) -> str:
    return (written / "report.md").read_text(encoding="utf-8")


def test_the_experiments_write_their_figures_and_reports(written):
    names = {path.name for path in written.iterdir()}
    figures = ("dimension", "dimension-exponents", "figure", "figure-evaluations")
    figures += ("softmax", "search", "restart", "gradnorm", "linf")
    assert {f"{stem}{suffix}" for stem in figures for suffix in (".png", ".pdf")} <= names
    assert {f"{name}.md" for name in (*PAPER, "report")} <= names
    assert (written / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (written / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("stem", COLUMNS)
def test_every_row_of_a_table_has_its_columns(written, stem):
    with (written / f"{stem}.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == COLUMNS[stem].split()
    assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}


def test_one_worker_and_a_rerun_give_the_same_bytes(written):
    with Workers(1) as one:
        for name, experiment in PAPER.items():
            for stem, rows in experiment.tables(TINY[name], one).items():
                assert csv_text(rows) == (written / f"{stem}.csv").read_text(encoding="utf-8"), stem


def test_figures_are_the_same_bytes_too(written, two, tmp_path):
    save([(gradnorm.EXPERIMENT, TINY["gradnorm"])], two, tmp_path)
    for suffix in (".png", ".pdf"):
        assert (tmp_path / f"gradnorm{suffix}").read_bytes() == (written / f"gradnorm{suffix}").read_bytes()


def test_report_says_what_the_reader_must_know(report):
    assert "ill-posed at μ = 0" in report
    assert "unbounded below: values, not gaps" in report
    assert "gives neither" in report
    assert "(i) significantly better than LC" in report
    assert "(ii) comparable to or slightly better than AGD" in report
    assert "not establish it for p > 2" in report
    assert "holds to 1e-09" in report
    assert "Every rule kept its promise." in report
    assert "it did, in every completed epoch" in report
    assert "Its gap is within this bound in every row." in report
    assert "The fewest products to each gap, of the methods whose whole cost they are:" in report


def test_drawing_leaves_settings_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    rows = [{"variant": "a", "nfev": t + 1, "gap": 0.5**t} for t in range(3)]
    epoch = {"variant": "a", "nfev": 2, "gap_after": 0.5, "completed": 1}
    for epochs in ([], [epoch]):
        drawn = {"restart": rows, "restart-epochs": epochs}
        paths = render((tmp_path / "again", restart.EXPERIMENT.plots["restart"], drawn))
        assert all(path.stat().st_size > 0 for path in paths)
    assert dict(matplotlib.rcParams) == before


def plain(family: str, n: int, d: int, seed: int, mu: float):
    """f and its gradient, written out with SciPy's logsumexp."""
    A, b, signs = data(n, d, seed)
    A = A * signs if family == "signs" else A

    def f(x):
        z = A @ x - b
        value = logsumexp(z)
        return value + 0.5 * mu * x @ x, A.T @ np.exp(z - value) + mu * x

    return f


@pytest.mark.parametrize(("family", "mu"), [("published", 1.0), ("published", 1e-2), ("signs", 0.0), ("signs", 1e-4)])
def test_the_reference_is_confirmed_by_lbfgs(family, mu):
    best = reference(partial(problem, family, 60, 8, 3), mu)
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-12, "maxls": 100}
    f = plain(family, 60, 8, 3, mu)
    res = scipy_minimize(f, np.zeros(8), jac=True, method="L-BFGS-B", options=options)
    assert best.fun <= res.fun + best.floor
    assert res.fun - best.fun <= 1e-10 * max(1.0, abs(best.fun))


@pytest.mark.parametrize("mu", [1e-2, 1e-4, 1e-6])
def test_the_reference_is_certified_to_its_floor(mu):
    best = reference(partial(problem, "published", 60, 8, 3), mu)
    value, g = plain("published", 60, 8, 3, mu)(best.x)
    assert abs(value - best.fun) <= best.floor
    assert g @ g / (2.0 * mu) <= best.floor
    assert best.certificate <= 0.1 * best.floor


def test_the_references_hessian_agrees_with_differences():
    f = problem("symmetric", 20, 5, 0, mu=0.1)
    x, h = np.linspace(-0.5, 0.5, 5), 1e-5
    slopes = [(f.value_and_grad(x + h * e)[1] - f.value_and_grad(x - h * e)[1]) / (2 * h) for e in np.eye(5)]
    assert np.allclose(hessian(f, x), slopes, atol=1e-8)


def test_reference_refuses_a_problem_without_minimiser():
    with pytest.raises(ValueError, match="no minimiser was found"):
        reference(partial(problem, "published", 30, 5, 0), 0.0)


def test_an_unknown_family_is_refused():
    with pytest.raises(ValueError, match="unknown family 'moon'"):
        problem("moon", 3, 2, 0, 0.0)


def test_published_problem_is_unbounded_below():
    f = problem("published", 50, 10, 0, mu=0.0)
    assert is_unbounded("published", 0.0) and not is_unbounded("signs", 0.0)
    assert f(np.full(10, -1e6)) < -1e5


def test_stepsizes_and_data_are_those_of_the_paper():
    assert len(figure.STEPSIZES) == 31
    assert figure.STEPSIZES[0] == 1e-10 and figure.STEPSIZES[-1] == 1.0 and figure.STEPSIZES[13] == 2e-6
    A, b, signs = data(400, 50, 1)
    assert set(np.unique(A)) == {0.0, 1.0} and abs(A.mean() - 0.8) < 0.02
    assert abs(b.mean()) < 0.2 and abs(b.std() - 1.0) < 0.1 and set(np.unique(signs)) == {-1.0, 1.0}


def curve(stepsize, fun, nfev=None):
    nfev = np.arange(len(fun)) if nfev is None else np.array(nfev)
    return figure.MethodCurve(stepsize, nfev, np.array(fun), len(fun) - 1)


def test_tuning_takes_the_lowest_end_of_a_run_that_did_not_diverge():
    good, better = curve(0.1, [3.0, 2.0, 1.0]), curve(0.2, [3.0, 2.0, 0.5])
    above, nothing = curve(1.0, [3.0, 1.0, 4.0]), curve(2.0, [3.0, 1.0, math.nan])
    assert figure.tune([good, better, above, nothing], "iterations", None) is better
    costly = curve(0.5, [3.0, 1.5, 0.1], nfev=[1, 3, 5])
    assert figure.tune([good, costly], "iterations", None) is costly
    assert figure.tune([good, costly], "evaluations", None) is good
    assert figure.tune([above, nothing], "iterations", None) is nothing  # all lost: no preference but the stepsize
    assert figure.has_diverged(above.fun) and figure.has_diverged(nothing.fun) and not figure.has_diverged(good.fun)


def test_tuning_at_rounding_level_takes_the_first_to_arrive():
    best = reference(partial(problem, "signs", 40, 4, 0), 0.0)
    early, late = curve(0.1, [9.0, best.fun, best.fun]), curve(0.2, [9.0, 8.0, best.fun - 1e-16])
    assert figure.tune([late, early], "iterations", best) is early


def test_hasd_paper_pays_two_evaluations_an_iteration_and_hasd_fewer():
    f = problem("signs", TINY["figure"].n, TINY["figure"].d, TINY["figure"].seed, 0.0)
    paper, ours = (figure.run(f, method, 1e-3, 20) for method in ("hasd-paper", "hasd"))
    assert paper.nfev[-1] >= 40 and ours.nfev[-1] < 30
    assert (
        len(paper.values_within("evaluations"))
        == int(np.sum(paper.nfev <= 20))
        < len(paper.values_within("iterations"))
        == 21
    )


def test_the_curves_are_those_of_the_iterates_though_traces_show_other_points():
    f = problem("signs", 40, 6, 0, 0.0)
    states = list(islice(hasd.iterate(f, np.zeros(6), method="hasd", L=1e3, mu=0.0), 11))
    fun = [f(state.x) for state in states]
    assert figure.run(f, "hasd", 1e-3, 10).fun == pytest.approx(fun, rel=1e-12)
    assert any(abs(state.at.f - value) > 1e-6 for state, value in zip(states, fun, strict=True))


def test_third_family_has_a_row_of_its_own(two):
    sizes = replace(TINY["figure"], symmetric=True, iterations=3, stepsizes=(0.1,))
    tables = figure.tables(sizes, two)
    assert {row["family"] for row in tables["figure"]} == {"published", "signs", "symmetric"}
    text = figure.EXPERIMENT.report(tables, sizes)
    assert "The third row of panels is another well-posed twin, the symmetric softmax" in text


def test_cost_to_reach_is_that_of_the_first_row_within_the_gap():
    rows = [{"gap": gap, "iteration": t, "nfev": 2 * t} for t, gap in enumerate([1.0, 0.5, 0.05])]
    assert cost_to_reach(rows, 0.1, "iteration") == 2 and cost_to_reach(rows, 0.1, "nfev") == 4
    assert math.isnan(cost_to_reach(rows, 0.01, "iteration"))


@pytest.mark.parametrize("method", softmax.METHODS)
@pytest.mark.parametrize("p", softmax.EXPONENTS)
def test_the_gain_on_softmax_is_that_of_the_formula(method, p):
    row = softmax.solve(TINY["softmax"], method, p, 50)["softmax"][0]
    for name in ("gain", "smallest", "largest"):
        assert row[name] == pytest.approx(50 ** (0.5 - 1.0 / p), rel=1e-9)
    assert softmax.deviation([row]) <= softmax.AGREEMENT


def test_softmax_from_a_random_start_stays_within_the_limits():
    row = softmax.solve(TINY["softmax"], "hasd-paper", math.inf, 50)["softmax"][1]
    assert 1.0 <= row["smallest"] <= row["gain"] <= row["largest"] <= row["limit"]
    assert row["gain"] < 0.95 * row["limit"]


def test_warm_search_beats_bisection():
    sizes = trials.SearchSizes(n=60, d=10, iterations=60)
    runs = [trials.solve(sizes, "logsumexp", math.inf, variant) for variant in trials.VARIANTS]
    warm, cold = (run["search"][0] for run in runs)
    assert warm["trials_mean"] <= 1.1 and cold["trials_mean"] >= 3.0
    assert cold["trials_most"] <= cold["theorem2"]


def test_both_searches_end_at_a_jump():
    f, x0, L = trials.jumping_instance()
    assert x0.size == 773 and f.smoothness(math.inf) >= L * (1 - 1e-12)
    tables = trials.jump_rows(81)
    values = np.array([row["zeta"] for row in tables["search-jump"]])
    assert not np.any((values >= 0.5) & (values <= 2.0)) and values[0] > 2.0 > 0.5 > values[-1]
    ends = {row["variant"]: row for row in tables["search-jump-ends"]}
    assert len(ends) == 2
    for end in ends.values():
        assert end["jump"] == 1 and end["zeta"] <= 2.0
        assert end["theta"] == pytest.approx(0.243, abs=1e-3)


def test_the_optimised_form_takes_one_gradient_an_iteration_where_the_search_meets_a_jump():
    f, x0, L = trials.jumping_instance()
    res = hasd.minimize(f, x0, method="hasd", p=math.inf, L=L, mu=0.0, tol=0.0, maxiter=5)
    assert res.trace["nfev"].tolist() == [1, 2, 3, 4, 5, 6] and "jump" not in res.message


def test_every_restart_halves():
    runs = [restart.solve(restart.EXPERIMENT.quick, variant) for variant in restart.VARIANTS]
    epochs = [row for run in runs for row in run["restart-epochs"] if row["completed"]]
    assert len(epochs) >= 3 and all(row["ratio"] <= 0.5 for row in epochs)


@pytest.mark.parametrize("name", gradnorm.PROBLEMS)
@pytest.mark.parametrize("method", ["hasd-paper", "hasd"])
def test_gradient_rules_keep_their_promise(name, method):
    rows = gradnorm.solve(gradnorm.EXPERIMENT.quick, name, method)["gradnorm"]
    assert rows and all(row["measured"] <= row["eps"] for row in rows)
    assert all(row["needed"] <= row["T"] for row in rows)


def test_gradnorm_with_too_few_iterations_is_refused(two):
    sizes = replace(gradnorm.EXPERIMENT.quick, iterations=1, accuracies=(1e-9,))
    with pytest.raises(ValueError, match="raise --iterations"):
        gradnorm.tables(sizes, two)


def small_instance(name, size):
    """One instance of the experiment on the dimension."""
    if name == "softmax":
        return dimension.softmax(size, start=0, seed=0)
    A, b = dimension.graph_data(dimension.EXPERIMENT.quick, size, 0)
    return dimension.graph(A, b, optimum(A, b, dimension.GRAPH_ALPHA))


RUNS = [
    (name, constant, method)
    for name in dimension.EXPONENTS
    for constant, methods in dimension.METHODS.items()
    for method in methods
    if method != dimension.PLANNED  # of many runs only the best counts: below
]


@pytest.mark.parametrize(("name", "constant", "method"), RUNS)
def test_every_method_is_charged_for_all_its_evaluations_up_to_the_first_point_within_the_target(
    name, constant, method
):
    instance = small_instance(name, 30)
    p = math.inf if method in NORMED else 2.0
    row = dimension.solve(instance, 3000, method, p, constant)
    values = []

    def black_box(x):
        value, g = instance.f.value_and_grad(x)
        values.append(value)
        return value, g

    target = instance.least + dimension.TARGET * instance.first_gap
    L = instance.f.smoothness(p) if constant == "declared" else None
    if method == dimension.PEER:
        options = {"ftol": 0.0, "gtol": 0.0, "maxfun": row["spent"] + 20}
        scipy_minimize(black_box, instance.x0, jac=True, method=method, options=options)
        found = math.inf
    else:
        states = hasd.iterate(black_box, instance.x0, jac=True, method=method, p=p, L=L)
        found = next(state.nfev for state in states if instance.f(state.x) <= target)
    evaluated = [count for count, value in enumerate(values, start=1) if value <= target]
    assert row["evaluations"] == row["spent"] == min([*evaluated, found])
    assert row["gap"] <= dimension.TARGET * (1.0 + 1e-9)


@pytest.mark.parametrize("name", dimension.EXPONENTS)
def test_a_plan_is_the_shortest_that_arrives_within_its_own_iterations(name):
    """Beside all plans from 1 on: the search is as good up to a fiftieth."""
    instance = small_instance(name, 30)
    target, L = instance.least + dimension.TARGET * instance.first_gap, instance.f.smoothness(math.inf)

    def arrives(T):
        options = {"method": "nemirovskii-nesterov", "T": T, "R": float(np.abs(instance.x0 - instance.x_star).max())}
        states = hasd.iterate(instance.f, instance.x0, p=math.inf, L=L, **options)
        return any(min(state.at.f, instance.f(state.x)) <= target for state in islice(states, T + 1))

    shortest = next(T for T in range(1, 3000) if arrives(T))
    row = dimension.solve(instance, 3000, dimension.PLANNED, math.inf, "declared")
    assert abs(row["evaluations"] - shortest) <= 2 + shortest / 50
    assert row["spent"] == row["evaluations"] and row["gap"] <= dimension.TARGET * (1.0 + 1e-9)


def test_steepest_descent_arrives_when_a_loop_of_five_lines_does():
    instance = small_instance("softmax", 10)
    x, t, alpha = instance.x0, 0, dimension.SOFTMAX_ALPHA
    while alpha * logsumexp(np.concatenate((x, -x)) / alpha) - instance.least > dimension.TARGET * instance.first_gap:
        weights = np.exp((np.abs(x) - np.abs(x).max()) / alpha)
        r = np.exp(-2.0 * np.abs(x) / alpha)
        g = np.sign(x) * weights * (1.0 - r) / np.sum(weights * (1.0 + r))
        x, t = x - alpha * np.abs(g).sum() * np.sign(g), t + 1
    row = dimension.solve(instance, 3000, "steepest-descent", math.inf, "declared")
    assert row["evaluations"] == pytest.approx(t + 1, abs=1)


def test_a_run_that_does_not_arrive_is_shown_as_above_the_cap(two, tmp_path):
    sizes = replace(TINY["dimension"], d=10, starts=1, evaluations=20)
    tables = dimension.tables(sizes, two)
    rows = select(tables["dimension"], problem="graph")
    assert all(math.isnan(row["evaluations"]) and row["spent"] == 20 and row["gap"] > dimension.TARGET for row in rows)
    text = dimension.EXPERIMENT.report(tables, sizes)
    assert "| > 20 |" in text and "no method arrives" in text
    for stem, plot in dimension.EXPERIMENT.plots.items():
        assert all(path.stat().st_size > 0 for path in render((tmp_path / stem, plot, tables)))


@pytest.mark.parametrize("method", dimension.DECLARED)
@pytest.mark.parametrize("p", [4.0, math.inf])
def test_no_method_needs_more_evaluations_than_its_bound_promises(method, p):
    for name in dimension.EXPONENTS:
        row = dimension.solve(small_instance(name, 20), 5000, method, p if method in NORMED else 2.0, "declared")
        assert math.isnan(row["bound"]) == (name == "graph" and method == "steepest-descent")
        assert not row["evaluations"] > row["bound"] + 1.0


def test_with_l_declared_hasd_is_accelerated_and_free_of_the_dimension():
    """It needs less than half of the evaluations of the others, but for the method that is told the best T."""
    first, last = (small_instance("softmax", d) for d in (10, 1000))
    counts = {}
    for method in dimension.DECLARED:
        p = math.inf if method in NORMED else 2.0
        counts[method] = [dimension.solve(one, 3000, method, p, "declared")["evaluations"] for one in (first, last)]
    assert counts["hasd"][1] <= 3.0 * counts["hasd"][0]
    assert counts["hasd-paper"][1] <= 3.0 * counts["hasd-paper"][0]
    for slow in ("linear-coupling", "agd"):
        assert counts[slow][1] > 3.0 * counts[slow][0]
    planned, ours = counts.pop(dimension.PLANNED), counts.pop("hasd")
    assert ours[1] < planned[1] and all(ours[1] < 0.5 * count[1] for count in counts.values())


def test_with_l_found_hasd_needs_fewer_evaluations_than_lbfgs_on_a_graph():
    sizes = replace(dimension.EXPERIMENT.sizes, starts=3)
    runs = {"hasd": [], dimension.PEER: []}
    for start in range(sizes.starts):
        A, b = dimension.graph_data(sizes, 1000, start)
        instance = dimension.graph(A, b, optimum(A, b, dimension.GRAPH_ALPHA))
        for method, p in (("hasd", math.inf), (dimension.PEER, 2.0)):
            runs[method].append(dimension.solve(instance, 3000, method, p, "found"))
    assert median(runs["hasd"]) < median(runs[dimension.PEER])


def test_with_l_found_steepest_descent_wins_on_the_softmax():
    instance = small_instance("softmax", 1000)
    counts = {
        method: dimension.solve(instance, 3000, method, math.inf if method in NORMED else 2.0, "found")["evaluations"]
        for method in dimension.METHODS["found"]
    }
    assert min(counts, key=counts.get) == "steepest-descent"


def crafted(evaluations):
    """Rows of a panel, evaluations by method at 10 and at 100."""
    head = {"problem": "softmax", "constant": "found", "p": math.inf, "start": 0, "spent": 50}
    return [
        {**head, "method": method, "size": size, "evaluations": count}
        for method, counts in evaluations.items()
        for size, count in zip((10, 100), counts, strict=True)
    ]


def test_the_winner_is_read_off_the_rows():
    ours, theirs, nobody = {"hasd": (5, 9), "agd": (6, 8)}, {"hasd": (7, 9), "agd": (6, 8)}, {"hasd": (math.nan,) * 2}
    shown = [winners(panel(crafted(rows), "softmax", "found", math.inf), "softmax") for rows in (ours, theirs, nobody)]
    assert shown[0].endswith("those of HASD optimised (ours) at d = 10 (5); of AGD at d = 100 (8)")
    assert shown[1].endswith("those of AGD at d = 10 (6) and 100 (8)")
    assert shown[2] == "no method arrives"


def test_growth_and_slope_are_those_of_the_medians():
    runs = panel(crafted({"hasd": (4, 40), "agd": (4, math.nan)}), "softmax", "found", math.inf)
    assert growth(runs["hasd"]) == 10.0 and growth(runs["agd"]) == math.inf
    assert slope([10, 100, 1000], [3.0, 30.0, math.inf]) == pytest.approx(1.0)
    assert math.isnan(slope([10, 100], [3.0, math.inf]))


def test_the_report_turns_with_the_numbers(two):
    sizes = replace(TINY["dimension"], d=10, starts=1)
    better, worse = ([dict(row) for row in dimension.tables(sizes, two)["dimension"]] for _ in range(2))
    for rows, count in ((better, 5), (worse, 900)):
        for row in select(rows, problem="graph", constant="found", method="hasd"):
            row["evaluations"] = count
    texts = [dimension.EXPERIMENT.report({"dimension": rows}, sizes) for rows in (better, worse)]
    where = "On ℓ∞ potentials on a graph in ℓ∞ with L found, HASD optimised (ours)"
    assert f"{where} needs fewer evaluations than L-BFGS-B at nodes = 100 (5 against" in texts[0]
    assert f"{where} does not need fewer at nodes = 100 (900 against" in texts[1]


def test_one_exponent_takes_the_place_of_all(two):
    sizes = replace(TINY["dimension"], d=10, n=20, p=3.0, starts=1)
    rows = dimension.tables(sizes, two)["dimension"]
    assert {row["p"] for row in rows if row["method"] in NORMED} == {3.0}
    assert {row["p"] for row in rows if row["method"] not in NORMED} == {2.0}
    assert "### The softmax, L found, ℓ₃" in dimension.EXPERIMENT.report({"dimension": rows}, sizes)
    assert softmax.SoftmaxSizes(p=3.0).exponents == (3.0,) and softmax.SoftmaxSizes(d=50).dimensions == (10, 50)


def test_decades_end_at_the_largest_size():
    assert decades(10, 100_000) == (10, 100, 1000, 10_000, 100_000)
    assert decades(100, 250) == (100, 250) and decades(10, 10) == (10,) and decades(10, 3) == (3,)


def test_every_edge_of_a_network_is_a_row_of_two_entries():
    A, b = network(50, seed=3)
    assert A.shape == (150, 50) and b.shape == (150,)
    assert np.array_equal(np.sort(A.toarray(), axis=1)[:, [0, -1]], np.tile([-1.0, 1.0], (150, 1)))
    assert np.all(np.count_nonzero(A.toarray(), axis=1) == 2)
    again, other = network(50, seed=3), network(50, seed=4)
    assert np.array_equal(b, again[1]) and not np.array_equal(b, other[1])
    f = hasd.objectives.SymmetricSoftmax(A, b, alpha=0.01)
    assert float(f.smoothness(math.inf)) == pytest.approx(400.0) and float(f.smoothness(2)) == pytest.approx(200.0)
    with pytest.raises(ValueError, match="at least 2 nodes, got 1"):
        network(1, seed=0)


def plain_potentials(A, b, alpha):
    """The smoothed potentials, written out with SciPy's logsumexp."""

    def f(x):
        z = np.concatenate((A @ x - b, b - A @ x)) / alpha
        value = logsumexp(z)
        weights = np.exp(z - value)
        return alpha * value, A.T @ (weights[: len(b)] - weights[len(b) :])

    return f


@pytest.mark.parametrize(("nodes", "alpha"), [(2, 0.01), (30, 0.01), (30, 1.0), (100, 0.05)])
def test_the_optimum_on_a_graph_is_confirmed_by_lbfgs(nodes, alpha):
    A, b = network(nodes, seed=1)
    best, f = optimum(A, b, alpha), plain_potentials(A, b, alpha)
    options = {"maxiter": 5000, "maxfun": 5000, "ftol": 1e-16, "gtol": 1e-12}
    res = scipy_minimize(f, np.zeros(nodes), jac=True, method="L-BFGS-B", options=options)
    first = f(np.zeros(nodes))[0] - best.fun
    assert 0.0 <= best.error <= 1e-5 * first
    assert best.fun - best.error - 1e-12 <= res.fun
    assert res.fun - best.fun <= 1e-6 * first


def test_the_lower_bound_on_a_graph_holds_at_every_point():
    A, b = network(30, seed=1)
    f, best = hasd.objectives.SymmetricSoftmax(A, b, alpha=0.1), optimum(A, b, 0.1)
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.01, 1.0, 100.0):
        for system in ((1e-1, 1), potentials.TIGHT):
            step = potentials._newton(f, scale * rng.standard_normal(30), 0.1, *system)
            assert potentials._lower_bound(f, step.u, 30.0 * (step.fun + np.abs(b).max())) <= best.fun


def test_a_graph_in_two_parts_is_refused():
    A, b = network(4, seed=0)
    with pytest.raises(ValueError, match="graph of 8 nodes is not connected"):
        optimum(block_diag((A, A)).tocsr(), np.concatenate((b, b)), 0.1)


def test_steps_of_the_optimised_form_count_the_smaller_of_guess_and_what_is_left_of_it():
    assert step_gains("hasd", [2.0, 4.0, 2.0, 3.0]).tolist() == [2.0, 2.0, 1.0]
    assert step_gains("hasd-paper", [2.0, 4.0, 2.0]).tolist() == [4.0, 2.0]


def test_a_twin_without_minimiser_is_left_out_and_named(two):
    sizes = replace(TINY["figure"], n=4, d=4, iterations=1, stepsizes=(0.1,))
    tables = figure.tables(sizes, two)
    assert (
        {row["family"] for row in tables["figure"]}
        == {"published"}
        == {row["family"] for row in tables["figure-reference"]}
    )
    (line,) = figure.EXPERIMENT.remarks(tables, sizes)
    assert "the same A with random signs, is left out" in line and "n = 4, d = 4" in line
    text = figure.EXPERIMENT.report(tables, sizes)
    assert line[1:] in text and "second row" not in text
    whole = replace(TINY["figure"], iterations=1, stepsizes=(0.1,))
    assert figure.EXPERIMENT.remarks(figure.tables(whole, two), whole) == []


def test_the_norm_of_the_figure_is_that_of_its_steps(two):
    sizes = replace(TINY["figure"], p=4.0, iterations=2, stepsizes=(0.1,))
    tables = figure.tables(sizes, two)
    norms = {row["method"]: row["p"] for row in tables["figure"]}
    assert norms == {"gradient-descent": 2.0, "agd": 2.0, "linear-coupling": 4.0, "hasd-paper": 4.0, "hasd": 4.0}
    assert "LC and HASD step in ℓ₄" in figure.EXPERIMENT.report(tables, sizes)
    f = problem("signs", sizes.n, sizes.d, sizes.seed, 0.0)
    assert figure.run(f, "hasd", 0.1, 2, p=4.0).fun[-1] != figure.run(f, "hasd", 0.1, 2).fun[-1]


def test_workers_give_the_environment_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with Workers(1):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ


def test_tables_become_csv_and_markdown():
    assert csv_text([{"a": 0.1 + 0.2, "b": math.inf, "c": "x,y"}]) == 'a,b,c\n0.30000000000000004,inf,"x,y"\n'
    with pytest.raises(ValueError, match="at least one row"):
        csv_text([])
    assert markdown(["a"], [[None], [math.nan], [1.23456]]) == "| a |\n|---|\n| – |\n| – |\n| 1.235 |"
