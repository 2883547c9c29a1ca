"""Random problems against exact references: what a result says is true, with rounding counted.

A slice of ``python -m benchmarks.rounding``; and that its checks, its references and its reproducers are right.
"""

import math
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from benchmarks import rounding  # noqa: E402
from benchmarks.soak import checks, losses, problems, reproducer  # noqa: E402
from benchmarks.soak.checks import CHECKS, Truth  # noqa: E402
from benchmarks.soak.exact import DIGITS, cholesky, exact  # noqa: E402
from benchmarks.soak.problems import KINDS, Problem, draw  # noqa: E402
from benchmarks.soak.run import RAISES, Run, runs, runs_of_a_problem  # noqa: E402

PROBLEMS = range(len(KINDS) + 7)  # each of them is run six times
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("number", PROBLEMS, ids=lambda number: f"{number}-{KINDS[number % len(KINDS)]}")
def test_what_a_result_says_is_true_with_rounding_counted(number):
    found = [(run.method, run.found) for run in runs_of_a_problem(3, number) if run.found]
    assert not found


# The checks can fail.


class FakeCertificate:
    """A certificate that claims what it is told to."""

    def __init__(self, gap, lower=-math.inf):
        self.claimed, self.bound = gap, lower

    def gap(self, radius=None):
        return self.claimed

    def lower(self, radius=None):
        return self.bound


def fake(**fields):
    """A result without fault where f = 1/2 x^2, x = 1, the gap is 1/2 and the minimum 0."""
    certificate = fields.pop("certificate", FakeCertificate(0.5, 0.0))
    given = {"x": np.ones(1), "fun": 0.5, "jac": np.ones(1), "status": 14, "message": "", "gap": certificate.gap()}
    trace = {"lower": np.array([math.nan, -1.0, 0.0])}
    return SimpleNamespace(**{**given, "certificate": certificate, "trace": trace, **fields})


TRUTH = Truth(Decimal("0.5"), lambda x: (0.5 * float(x @ x), x), Decimal(0), 1.0, False, 0.5)
FAULTS = {
    "gap_below_the_true_one": {"certificate": FakeCertificate(math.nextafter(0.5, 0.0))},
    "gap_without_radius_below_the_true_one": {"certificate": FakeCertificate(math.nextafter(0.5, 0.0))},
    "success_with_a_larger_gap": {},
    "lower_above_the_minimum": {"certificate": FakeCertificate(0.5, 5e-324)},
    "traced_lower_above_the_minimum": {"trace": {"lower": np.array([5e-324, -1.0])}},
    "convex_function_accused": {"status": 15},
    "negative_gap": {"certificate": FakeCertificate(-1e-300)},
    "fields_of_different_points": {"fun": math.nextafter(0.5, 1.0)},
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_check_passes_what_is_right_and_reports_what_is_wrong(check):
    assert check(fake(), TRUTH) == ""
    truth = replace(TRUTH, gap_tol=0.49) if check is checks.success_with_a_larger_gap else TRUTH
    assert check(fake(**FAULTS[check.__name__]), truth) != ""


@pytest.mark.parametrize(
    "fields",
    [
        {"status": 13},
        {"certificate": FakeCertificate(math.inf)},
        {"message": "The function is not convex, or noisy"},
        {"message": "A lower bound, 1, is above a value that was found, 0: the radius is too small"},
    ],
    ids=["unbounded", "withdrawn", "not convex", "contradicted"],
)
def test_every_way_to_accuse_a_convex_function_is_reported(fields):
    assert checks.convex_function_accused(fake(**fields), TRUTH)


def test_a_gradient_of_another_point_is_reported():
    assert checks.fields_of_different_points(fake(jac=np.zeros(1)), TRUTH)


def test_a_gap_is_asked_for_without_radius_only_where_there_is_one():
    unknown = replace(TRUTH, needs_radius=True)
    assert not checks.gap_without_radius_below_the_true_one(fake(certificate=FakeCertificate(0.0)), unknown)


def bowl(x0=(3.0, 4.0), minimum=None):
    """1/2 ||x||^2, its minimum as it is or as claimed."""
    data = {"A": np.eye(2), "b": np.zeros(2), "w": np.ones(2)}
    problem = Problem("bowl", problems.CALLABLES["shifted squares"], losses.WEIGHTED_SQUARES, data, np.array(x0))
    if minimum is not None:
        problem.__dict__["reference"] = replace(problem.reference, minimum=minimum)
    return problem


def run_on(problem, **settings):
    return Run(
        problem, {"jac": True, "method": "gradient-descent", "tol": 1e-6, "maxiter": 5, **settings}, (0, 0)
    ).execute()


def test_a_run_without_fault_has_no_findings_and_one_against_a_false_minimum_has():
    assert run_on(bowl()).found == {}
    assert "gap_below_the_true_one" in run_on(bowl(minimum=Decimal(-1))).found


def test_what_raises_or_warns_is_found():
    assert run_on(bowl(), L=-1.0).found.keys() == {RAISES}
    overflowing = replace(bowl(), code="lambda x: (float(np.float32(1e30) * np.float32(1e30)), x)")
    assert "overflow" in run_on(overflowing).found[RAISES]


# The references are right.


def test_the_reference_of_a_bowl_is_known():
    found = bowl().reference
    assert found.start == Decimal("12.5") and 0 <= found.minimum < Decimal("1e-35")
    assert 5.0 <= found.radius <= math.nextafter(5.0, 6.0)


def test_of_many_minimisers_the_nearest_is_taken():
    A = np.array([[1.0, 1.0], [2.0, 2.0]])
    data = {"A": A, "b": np.array([2.0, 4.0]), "ridge": 0.0}
    code = problems.OBJECTIVES["LeastSquares"]
    found = Problem("", code, losses.SQUARES, data, np.array([3.0, 1.0])).reference
    assert found.radius == pytest.approx(math.sqrt(2.0), rel=1e-15) and found.minimum < Decimal("1e-35")


@every_kind
def test_derivatives_are_those_of_the_formula(kind):
    problem = draw(np.random.default_rng(1), kind)
    with localcontext(DIGITS):
        f, x = problem.exact, exact(problem.x0)
        u = exact(np.arange(1.0, len(x) + 1.0))
        h = Decimal("1e-20") * Decimal(problem.reference.radius)
        g, H = f.derivatives(x)
        slope = (f.value(x + h * u) - f.value(x - h * u)) / (2 * h)
        assert abs(slope - g @ u) <= Decimal("1e-12") * (abs(g) @ u)
        turn = (f.derivatives(x + h * u)[0] - f.derivatives(x - h * u)[0]) / (2 * h)
        assert max(abs(turn - H @ u)) <= Decimal("1e-12") * max(abs(H) @ u)


@cache
def plain(kind):
    """A problem of that kind in float64 and near the origin, where rounding is small."""
    for number in range(1000):
        problem = draw(np.random.default_rng([2, number]), kind)
        types = {problem.x0.dtype, *(value.dtype for value in problem.data.values() if isinstance(value, np.ndarray))}
        if types == {np.dtype(float)} and np.linalg.norm(problem.x0) < 100.0 * problem.reference.radius:
            return problem
    raise AssertionError("none was drawn")


@every_kind
def test_the_formula_is_the_function_that_hasd_is_given(kind):
    problem = plain(kind)
    value, _ = getattr(problem.fun, "value_and_grad", problem.fun)(problem.x0)
    fall = float(problem.reference.start - problem.reference.minimum)
    assert value == pytest.approx(float(problem.reference.start), rel=1e-9, abs=1e-6 * fall)


@every_kind
def test_what_is_promised_of_a_function_holds(kind):
    problem = plain(kind)
    with localcontext(DIGITS):
        _, H = problem.exact.derivatives(exact(problem.x0))
    eigenvalues = np.linalg.eigvalsh(H.astype(float))
    slack = 1e-12 * eigenvalues[-1]
    assert 0.0 <= problem.mu <= eigenvalues[0] + slack and problem.smoothness(2.0) >= eigenvalues[-1] - slack


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    with localcontext(DIGITS):
        assert cholesky(exact(np.array([[1.0, 2.0], [2.0, 4.0]]))) is None


# What the command writes and prints.


def reproduced(run, name, folder):
    """What the file prints, and its exit status."""
    path = reproducer.write(run, name, folder)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, cwd=folder)
    assert not done.stderr or name == RAISES
    return done.returncode, done.stdout + done.stderr


def test_a_reproducer_runs_by_itself_and_says_what_is_wrong(tmp_path):
    run = run_on(bowl(minimum=Decimal(-1)))
    status, text = reproduced(run, "gap_below_the_true_one", tmp_path)
    assert status == 1 and run.found["gap_below_the_true_one"] in text


def test_a_reproducer_of_what_is_mended_says_so(tmp_path):
    run = run_on(bowl())
    run.found["negative_gap"] = "the certified gap was -1"
    status, text = reproduced(run, "negative_gap", tmp_path)
    assert status == 0 and "nothing is wrong any more" in text


def test_a_reproducer_of_an_exception_raises_it(tmp_path):
    status, text = reproduced(run_on(bowl(), L=-1.0), RAISES, tmp_path)
    assert status == 1 and "ValueError: L must be" in text


@every_kind
def test_every_kind_of_problem_can_be_written_down_to_the_last_bit(kind):
    problem = draw(np.random.default_rng(4), kind)
    names = {"np": np, "inf": math.inf}
    for value in (*problem.data.values(), problem.x0):
        again = eval(reproducer.shown(value), names)
        assert np.array_equal(again, value) and getattr(again, "dtype", None) == getattr(value, "dtype", None)


def test_two_findings_of_one_name_are_two_files(tmp_path):
    run = run_on(bowl(minimum=Decimal(-1)))
    paths = {reproducer.write(run, "gap_below_the_true_one", tmp_path) for _ in range(3)}
    assert len(paths) == 3


def test_the_same_seed_gives_the_same_runs():
    first, again = ([run.settings for run in islice(runs(5), 8)] for _ in range(2))
    assert first == again != [run.settings for run in islice(runs(6), 8)]


def test_findings_are_counted_and_written(tmp_path):
    summary = rounding.collect([run_on(bowl()), run_on(bowl(minimum=Decimal(-1)))], tmp_path)
    assert summary.total == 2 and summary.violations == len(list(tmp_path.iterdir())) > 0
    assert "2 runs" in summary.text() and "gap below the true one: 1" in summary.text()


def test_minutes_end_the_runs():
    ticks = iter([0.0, 1.0, 2.0, 61.0])
    assert len(list(rounding.until(60.0, lambda: next(ticks)))) == 3


def test_a_command_without_findings_succeeds(tmp_path, capsys):
    assert rounding.main(["--runs", "0", "--out", str(tmp_path / "none")]) == 0
    assert "0 runs, 0 violations" in capsys.readouterr().out and not list(tmp_path.iterdir())


def test_a_command_with_findings_fails(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rounding, "runs", lambda seed: iter([run_on(bowl(minimum=Decimal(-1)))]))
    assert rounding.main(["--runs", "1", "--out", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().out
