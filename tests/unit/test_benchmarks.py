"""The benchmark's own arithmetic, at tiny size; nothing is timed."""

import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_info

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from benchmarks import (  # noqa: E402
    classifier,
    cli,
    insides,
    machine,
    plot,
    problems,
    publish,
    reference,
    report,
    run,
    saved,
    summary,
    targets,
)
from benchmarks.oracle import History  # noqa: E402
from benchmarks.problems import Problem, Spec, alone  # noqa: E402
from benchmarks.run import MAIN, TARGETS, Row, Settings, measure, rows_of  # noqa: E402
from benchmarks.solvers import BASELINE, LINEAR_CG, OURS, SCIPY, Run, solvers_for  # noqa: E402

from hasd.objectives import LogSumExp  # noqa: E402


class Counting(LinearOperator):
    """A matrix that knows how often it was used."""

    def __init__(self, A):
        super().__init__(float, A.shape)
        self.A, self.made = A, 0

    def _matvec(self, x):
        self.made += 1
        return self.A @ x

    def _rmatvec(self, u):
        self.made += 1
        return self.A.T @ u


SMALL = {
    "lse": lambda: problems.log_sum_exp(40, 8, 1e-2, 0),
    "linf": lambda: problems.l_inf(lambda rng: (rng.standard_normal((30, 4)), rng.standard_normal(30)), 1e-1, 0),
    "sparse": lambda: problems.sparse_logistic(60, 12, 0.3, 1e-2, 0),
    "decaying": lambda: problems.decaying_logistic(60, 8, 1e-2, 1e-2, 0),
    "one-hot": lambda: problems.one_hot_logistic(400, 1e-2, 0),
    "text": lambda: problems.text_logistic(50, 80, 12, 1e-2, 0),
    "lsq": lambda: problems.least_squares(30, 6, 1e-1, 0),
    "quadratic": lambda: problems.quadratic(8, 1e-1, 0),
    "transport": lambda: problems.transport(6, 1e-1, 0),
}


def row(**fields):
    """A row with something in every field."""
    given = {"seed": 0, "repeat": 0, "target": MAIN, "reached": True, "capped": False, "work": 10, "seconds": 1.0}
    rest = {"family": "LogSumExp", "n": 1000, "d": 500, "nnz": 500_000, "method": "", "unit": "products"}
    ends = {"best_gap": 0.0, "last_gap": 0.0, "final_gap": 0.0, "f_star": 0.0, "reference": "hand"}
    return Row(**{"problem": "one", "solver": OURS, **given, **rest, **ends, **fields})


@pytest.mark.parametrize("solver", [BASELINE, OURS, "CG", "TNC", "Newton-CG", "trust-ncg", "AGD restart", "AGD"])
def test_products_counted_are_products_made(solver):
    A, b = problems.bernoulli(40, 8, 0)
    matrix = Counting(A)
    problem = Problem(LogSumExp(matrix, b, ridge=1e-2), lambda: alone(LogSumExp(A, b, ridge=1e-2)))
    ref = reference.find(SMALL["lse"]())
    run = solvers_for(problem)[solver](problem, ref.value(TARGETS[0]), math.inf)
    extra = 2 if solver == OURS or "AGD" in solver else 0  # f and g of the returned point, for the record only
    assert run.history.best <= ref.value(TARGETS[0])
    assert 0 <= matrix.made - run.history.work[-1] <= extra


def test_black_box_is_counted_in_evaluations():
    problem = problems.transport(6, 1e-1, 0, black_box=True)
    run = solvers_for(problem)[BASELINE](problem, -math.inf, math.inf)
    assert problem.unit == "evaluations"
    assert run.history.work == list(range(1, len(run.history.work) + 1))


def test_linear_cg_needs_one_product_an_iteration_on_a_quadratic_and_two_on_least_squares():
    for kind, least, each in (("quadratic", 1, 1), ("lsq", 2, 2)):
        problem = SMALL[kind]()
        run = solvers_for(problem)[LINEAR_CG](problem, reference.find(problem).value(TARGETS[-1]), math.inf)
        assert run.history.work == [least + each * k for k in range(len(run.history.work))]
        assert len(run.history.work) <= problem.x0.size + 1


@pytest.mark.parametrize("kind", SMALL)
def test_references_are_stationary_and_no_solver_goes_below(kind):
    problem = SMALL[kind]()
    ref = reference.find(problem)
    assert ref.grad_norm <= 1e-9 * np.linalg.norm(problem.objective.with_own_counter().value_and_grad(problem.x0)[1])
    for name in (BASELINE, OURS):
        run = solvers_for(problem)[name](problem, ref.value(1e-9), 5.0)
        assert -1e-12 <= ref.gap(run.history.best) <= 1e-9


def test_dense_and_iterative_references_agree(monkeypatch):
    A, y = problems.sparse_logistic(60, 12, 0.3, 1e-2, 0).matrix.toarray(), np.sign(np.arange(60) - 29.5)
    dense = reference.find(problems.logistic(A, y, 1e-2))
    monkeypatch.setattr(reference, "DENSE", 1)
    monkeypatch.setattr(reference, "_diagonal", lambda f, x: np.ones_like(x))
    iterative = reference.find(problems.logistic(A, y, 1e-2))
    assert "CG" in iterative.how and "Cholesky" in dense.how
    assert iterative.fun == pytest.approx(dense.fun, rel=1e-14)


@pytest.mark.parametrize("kind", ["lse", "sparse", "quadratic", "transport"])
def test_hessian_products_are_derivatives_of_the_gradient(kind):
    f = reference.with_hessian(SMALL[kind]().objective)
    rng = np.random.default_rng(1)
    x, p = 0.1 * rng.standard_normal((2, f.dimension))
    h = 1e-5
    slope = (f.value_and_grad(x + h * p)[1] - f.value_and_grad(x - h * p)[1]) / (2.0 * h)
    assert f.hessp(x, p) == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_a_cached_reference_is_the_same(tmp_path):
    problem = SMALL["linf"]()
    first, again = (reference.find(problem, tmp_path, "linf") for _ in range(2))
    assert (first.fun, again.how) == (again.fun, "cached")


def test_a_crossing_is_the_first_value_low_enough():
    history = History([5.0, 2.0, 3.0, 1.0, math.nan], [2, 4, 6, 8, 10], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert history.crossing(2.5) == (4, 0.2)
    assert history.crossing(0.5) is None
    assert (history.spent, history.best) == ((10, 0.5), 1.0)


def test_rows_hold_the_crossings_and_what_was_spent_without_one():
    problem, spec = SMALL["lse"](), Spec("tiny", "LogSumExp", lambda seed: SMALL["lse"]())
    ref = reference.find(problem)
    history = History([ref.value(1.0), ref.value(1e-4), ref.value(1e-7)], [2, 4, 6], [1.0, 2.0, 3.0])
    rows = rows_of(spec, problem, ref, 0, 0, OURS, Run(history, capped=True))
    assert [(one.reached, one.work, one.seconds) for one in rows] == [(True, 4, 2.0), (True, 6, 3.0), (False, 6, 3.0)]


def test_ratios_compare_medians_and_capped_runs_only_bound_them():
    rows = [row(seed=seed, solver=BASELINE, work=work) for seed, work in enumerate((20, 50, 30))]
    rows += [row(seed=seed) for seed in range(3)]
    rows += [row(problem="two", solver=BASELINE, reached=False, capped=True, work=90), row(problem="two", work=30)]
    rows += [row(solver="CG", reached=False, capped=True, work=80), row(solver="TNC", reached=False)]
    rows += [row(problem="too hard for all", solver=solver, reached=False, capped=True) for solver in (OURS, BASELINE)]
    results = summary.Results(rows)
    assert results.ratio("one", OURS, MAIN, "work").value == 3.0
    assert str(results.ratio("two", OURS, MAIN, "work")) == ">=3"
    assert str(results.ratio("one", "CG", MAIN, "work")) == "<=0.25"
    assert str(results.ratio("one", "TNC", MAIN, "work")) == "no"
    assert summary.geometric_mean([1.0, 4.0, 0.0]) == pytest.approx(2.0)
    profile = results.profile(MAIN, "work")
    assert profile[OURS].tolist() == [1.0, 1.0, math.inf]
    assert profile[BASELINE].tolist() == [2.0, math.inf, math.inf]


def test_the_least_seconds_of_the_rounds_count():
    rounds = [row(repeat=repeat, seconds=seconds) for repeat, seconds in enumerate((3.0, 1.0, 2.0))]
    assert summary.Results(rounds).seconds("one", OURS, MAIN) == 1.0


def test_short_runs_are_repeated_on_every_seed(monkeypatch):
    """Mutation: repeated on the first seed alone."""
    seconds = {BASELINE: 2.0 * run.SHORT, OURS: 0.5 * run.SHORT, "CG": 0.5 * run.SHORT}

    def solver(name):
        return lambda problem, goal, cap: Run(History([goal], [1], [seconds[name]]), capped=False)

    monkeypatch.setattr(run, "PAUSE", 0.0)
    monkeypatch.setattr(run, "solvers_for", lambda problem: {name: solver(name) for name in seconds})
    monkeypatch.setattr(run, "sklearn_solvers", lambda problem: {})
    spec = Spec("tiny", "LogSumExp", lambda seed: SMALL["lse"](), repeats=2)
    rows = list(run.measure(spec, Settings(seeds=2, repeats=2, say=lambda text: None)))
    made = Counter((one.seed, one.solver) for one in rows if one.target == MAIN)
    first = {(0, BASELINE): 2, (0, OURS): run.ROUNDS, (0, "CG"): run.ROUNDS}
    assert made == {**first, (1, BASELINE): 1, (1, OURS): run.ROUNDS}


def test_verdicts_say_what_was_missed():
    rows = [row(solver=BASELINE, work=30, seconds=4.0), row(), row(problem="two", solver=BASELINE, seconds=0.5)]
    rows += [row(problem="fast", solver=BASELINE, seconds=0.005), row(problem="fast")]  # too fast to be judged
    rows += [
        row(problem="sharp", family=targets.SHARP, solver=solver, seconds=1.2 if solver == BASELINE else 1.0)
        for solver in (BASELINE, OURS)
    ]
    results = summary.Results([*rows, row(problem="two")])
    judged = targets.verdicts(results, None, [])
    assert [one.passed for one in judged] == [False, False, True, False, None, None, None, None]
    assert str(judged[0]).startswith("MISS") and "1 of 3 below: two 0.5" in str(judged[0])
    assert "1.34 over 3 problems; least 0.5 (two)" in str(judged[1])
    slow = summary.Results([row(solver=BASELINE), row(reached=False)])  # ours gave up: never a pass
    assert not any(one.passed for one in targets.verdicts(slow, None, []))


@pytest.mark.parametrize(
    ("ratios", "passed", "said"),
    [
        ([summary.Ratio(0.5, ">=")], None, "1 of 2 not known, as a run was cut off: a >=0.5"),
        ([summary.Ratio(2.0, ">=")], True, "least 1.5 (last)"),
        ([summary.Ratio(0.5)], False, "1 of 2 below: a 0.5"),
        ([summary.Ratio(0.5, ">="), summary.Ratio(0.7)], False, "1 of 3 below: b 0.7; 1 of 3 not known"),
        ([summary.Ratio(2.0, "<=")], False, "1 of 2 below: a <=2"),
    ],
)
def test_a_ratio_that_may_be_above_the_limit_is_neither_a_pass_nor_a_miss(ratios, passed, said):
    judged = targets._least("aim", dict(zip("ab", ratios, strict=False)) | {"last": summary.Ratio(1.5)}, 1.0)
    assert judged.passed is passed and said in judged.found


def test_products_are_compared_with_those_of_an_earlier_run_on_the_same_seeds():
    now = summary.Results([row(seed=seed, work=10, method="new") for seed in (0, 1)] + [row(problem="unknown then")])
    for work, passed in ((10, True), (9, False)):
        rows = [row(seed=seed, work=work, method="old") for seed in (1, 2)]
        judged = targets.verdicts(now, None, [], saved.Saved(rows, "abc", 1, []))[5]
        assert judged.passed == passed and "abc" in judged.aim and "one (by new now, old then)" in judged.found


def test_below_reference_and_disagreement_are_told():
    assert summary.below_reference([row(best_gap=-1e-11)]) and not summary.below_reference([row(best_gap=-1e-13)])
    assert summary.disagreements([row(final_gap=1e-9)]) and not summary.disagreements([row(final_gap=math.nan)])


def test_the_stopwatch_gives_every_second_to_one_part():
    watch = insides.Stopwatch()
    with watch.running(), watch.part("images"), watch.part("phi"):
        pass
    assert set(watch.seconds) == set(insides.PARTS) and min(watch.seconds.values()) >= 0.0
    found = insides.split(SMALL["lse"](), 5)
    assert found.iterations == 5 and sum(map(found.share, insides.PARTS)) == pytest.approx(1.0)
    assert found.seconds["products"] > 0.0 and found.seconds["phi"] > 0.0


def test_the_exponent_of_linear_growth_is_one():
    rows = [insides.Growth(n, 2, 2 * n, 5, 1e-3 * n, 1e-6 * n**1.5) for n in (10, 40, 160)]
    assert insides.exponent(rows) == pytest.approx(1.0) and math.isnan(insides.exponent([]))
    assert insides.exponent(rows, "product") == pytest.approx(1.5)


@pytest.mark.parametrize(("iteration", "product", "passed"), [(1.3, 1.5, True), (1.3, 1.0, False), (1.05, 1.0, True)])
def test_growth_is_called_linear_where_it_is_that_of_a_product(iteration, product, passed):
    rows = [insides.Growth(n, 2, 2 * n, 5, 1e-3 * n**iteration, 1e-6 * n**product) for n in (10, 40, 160)]
    assert targets.verdicts(summary.Results([]), None, rows)[-1].passed is passed


def test_peers_are_those_that_can_run():
    assert set(SCIPY) <= set(solvers_for(SMALL["lse"]()))
    black_box = solvers_for(problems.transport(6, 1e-1, 0, black_box=True))
    assert not {"Newton-CG", "trust-ncg", LINEAR_CG} & set(black_box)


def test_a_spec_becomes_rows_a_report_a_csv_and_plots(tmp_path):
    spec = Spec("tiny-lsq", "quadratic", lambda seed: problems.least_squares(30, 6, 1e-1, seed))
    rows = list(measure(spec, Settings(seeds=2, repeats=1, cap=5.0, say=lambda line: None)))
    seeds = {name: {one.seed for one in rows if one.solver == name} for name in (OURS, LINEAR_CG, "TNC")}
    assert seeds == {OURS: {0, 1}, LINEAR_CG: {0, 1}, "TNC": {0}}
    results = summary.Results(rows)
    text = report.report(results, targets.verdicts(results, None, []), None, [], ["here"])
    assert "tiny-lsq" in text and "geometric mean" in text
    plot.plot(plot.work_and_time(results), [tmp_path / "profile.png", tmp_path / "profile.pdf"])
    assert (tmp_path / "profile.png").stat().st_size > 0 and (tmp_path / "profile.pdf").stat().st_size > 0


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    split, growth = insides.Split(3, 2, "hasd-qn", 5, {"products": 1.0}), [insides.Growth(3, 2, 6, 5, 0.1, 0.2)]
    run = saved.Saved([row(reached=False), row(seed=1, work=-1)], "abc", 2, ["here"], split, growth)
    saved.save(run, tmp_path)
    assert saved.load(tmp_path) == run


def test_the_page_shows_every_problem_its_ratio_and_the_worst_one(tmp_path):
    rows = [
        row(problem=name, seed=seed, solver=BASELINE, seconds=ratio, work=20)
        for name, ratio in (("good", 4.0), ("bad", 0.25))
        for seed in (0, 1, 2)
    ]
    rows += [
        row(problem=name, seed=seed, method=method)
        for name, method in (("good", "hasd-newton"), ("bad", "hasd-qn"))
        for seed in (0, 1, 2)
    ]
    rows.append(row(problem="good", solver="CG", seconds=2.0))
    for threads in (1, 2):
        (tmp_path / str(threads)).mkdir()
        saved.save(saved.Saved(rows, "abc", threads, [f"machine {threads}"]), tmp_path / str(threads))
    (tmp_path / "1" / publish.SPECIALISTS).write_text("## Fits\n")
    assert publish.main([str(tmp_path / "1"), str(tmp_path / "2"), "--docs", str(tmp_path)]) == 0
    lines = (tmp_path / publish.PAGE).read_text().splitlines()
    cells = {
        line.split("|")[1].strip(): [one.strip() for one in line.split("|")[4:-1]] for line in lines if "|" in line
    }
    assert cells["good"] == ["hasd-newton", "4", "1", "4", "(2)", "CG", "2"]
    assert cells["bad"] == ["hasd-qn", "0.25", "1", "0.25", "2", BASELINE, "0.25"]
    assert cells["any time"] == ["0.25 (bad)", "2 (1)"]
    assert {"- machine 1", "- machine 2", "## Fits"} <= set(lines)
    assert (tmp_path / publish.PICTURE).stat().st_size > 0


def test_the_machine_is_named():
    commit, where, versions = machine.describe(2, ("numpy", "no-such-package"))
    before, kernels = where.split(", kernels for ")
    assert commit.split()[1] and before.endswith("BLAS threads 2") and not before.startswith(",")
    assert set(kernels.split(" and ")) <= {"unknown", *(one.get("architecture") for one in threadpool_info())}
    assert f"numpy {np.__version__}" in versions and "no-such-package" not in versions


def test_the_command_line_that_is_published_has_no_paths():
    options = cli.parser().parse_args(["--threads", "2", "--out", "/somewhere", "--cache", "/else", "--only", "lse*"])
    assert cli.command(options) == "python -m benchmarks --only 'lse*' --seeds 5 --repeats 3 --cap 60 --threads 2"


def test_the_table_of_categories_has_one_entry_a_group_and_text_has_rows_of_norm_one():
    A = problems.one_hot_logistic(400, 1e-2, 0).matrix
    assert A.shape == (400, 123) and (A.sum(axis=1) == 14).all() and set(A.data) == {1.0}
    T = problems.text_logistic(50, 80, 12, 1e-2, 0).matrix
    assert T.power(2).sum(axis=1) == pytest.approx(np.ones((50, 1)))


def test_the_classifier_is_compared_on_the_data_that_are_named_or_on_all(monkeypatch):
    compared = []
    monkeypatch.setattr(classifier, "compare", compared.append)
    classifier.main([])
    classifier.main(["digits"])
    assert compared == [*classifier.DATA, "digits"]
    with pytest.raises(SystemExit):
        classifier.main(["digit"])


def test_patterns_choose_problems(capsys):
    assert {spec.family for spec in cli.chosen(False, "lse-*")} == {"LogSumExp"}
    assert all(spec.quick for spec in cli.chosen(True, None))
    assert cli.main(["--only", "nothing-like-this"]) == 2 and "known ones" in capsys.readouterr().out
