"""The experiments: the same bytes on every rerun, references that an independent solver confirms, honest reports."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.special import logsumexp

from hasd.experiments import EXPERIMENTS, Workers, collect, figure, gradnorm, restart, save, softmax, trials
from hasd.experiments.experiment import render
from hasd.experiments.families import data, is_unbounded, problem
from hasd.experiments.reference import hessian, reference
from hasd.experiments.tables import cost_to_reach, csv_text, markdown

TINY = {
    **{name: experiment.quick for name, experiment in EXPERIMENTS.items()},
    "figure": replace(figure.EXPERIMENT.quick, stepsizes=(1e-10, 1e-3, 0.1, 1.0)),
    "softmax": replace(softmax.EXPERIMENT.quick, starts=1),
}
COLUMNS = {
    "figure": "family mu method stepsize tuned_on iteration nfev fun gap",
    "figure-reference": "family mu fun radius grad_norm certificate decrement floor newton_steps",
    "softmax": "method p d start number iterations gain smallest largest limit",
    "search": "problem p variant iterations evaluations trials_mean trials_most theorem2 gap jump",
    "search-jump": "theta zeta",
    "search-jump-ends": "variant trials theta zeta jump message",
    "restart": "variant epoch iteration nfev gap floor L",
    "restart-epochs": "variant epoch iterations nfev gap_before gap_after ratio completed",
    "gradnorm": "problem method rule point share eps T measured needed",
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
    save([(experiment, TINY[name]) for name, experiment in EXPERIMENTS.items()], two, out)
    collect(list(EXPERIMENTS), out)
    return out


@pytest.fixture(scope="module")
def report(written) -> str:
    return (written / "report.md").read_text(encoding="utf-8")


def test_the_experiments_write_their_figures_and_reports(written):
    names = {path.name for path in written.iterdir()}
    figures = ("figure", "figure-evaluations", "softmax", "search", "restart", "gradnorm")
    assert {f"{stem}{suffix}" for stem in figures for suffix in (".png", ".pdf")} <= names
    assert {f"{name}.md" for name in (*EXPERIMENTS, "report")} <= names
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
        for name, experiment in EXPERIMENTS.items():
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
    return figure.MethodCurve(stepsize, nfev, np.array(fun), "", len(fun) - 1)


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


def test_third_family_has_a_row_of_its_own(two):
    sizes = replace(TINY["figure"], symmetric=True, iterations=3, stepsizes=(0.1,))
    tables = figure.tables(sizes, two)
    assert {row["family"] for row in tables["figure"]} == {"published", "signs", "symmetric"}
    assert "third the symmetric softmax" in figure.EXPERIMENT.report(tables, sizes)


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
    runs = [trials.solve(sizes, "logsumexp", math.inf, variant) for variant in list(trials.VARIANTS)[:2]]
    warm, cold = (run["search"][0] for run in runs)
    assert warm["trials_mean"] <= 1.1 and cold["trials_mean"] >= 3.0
    assert cold["trials_most"] <= cold["theorem2"]


def test_the_published_search_ends_at_a_jump_and_the_tight_form_does_not():
    f, x0, L = trials.jumping_instance()
    assert x0.size == 773 and f.smoothness(math.inf) >= L * (1 - 1e-12)
    tables = trials.jump_rows(81)
    values = np.array([row["zeta"] for row in tables["search-jump"]])
    assert not np.any((values >= 0.5) & (values <= 2.0)) and values[0] > 2.0 > 0.5 > values[-1]
    ends = {row["variant"]: row for row in tables["search-jump-ends"]}
    for variant in list(trials.VARIANTS)[:2]:
        assert ends[variant]["jump"] == 1 and ends[variant]["zeta"] <= 2.0
        assert ends[variant]["theta"] == pytest.approx(0.243, abs=1e-3)
    assert ends["hasd (tight form)"]["jump"] == 0 and 0.5 <= ends["hasd (tight form)"]["zeta"] <= 1.0


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
