"""The benchopt benchmark: it runs offline, cuts no accelerated method short, and forgets timings of other code."""

import doctest
import importlib
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("benchopt", minversion="1.10")
pytest.importorskip("sklearn")
pytest.importorskip("pyarrow")

import pandas as pd
from benchopt.benchmark import Benchmark
from benchopt.stopping_criterion import SufficientProgressCriterion

import hasd

pytestmark = pytest.mark.xdist_group("benchopt")  # one process runs the benchmark for all tests

SOURCE = Path(__file__).parents[2] / "benchmarks" / "benchopt"
LOSSES = ("log-sum-exp", "minimax", "logistic", "least-squares")
ACCELERATED = ("AGD", "hasd", "hasd-lp[p=inf]", "hasd-qn", "hasd-subspace")
PEERS = ("CG", "L-BFGS-B[memory=10]", "Newton-CG")
SKLEARN = "scikit-learn lbfgs"
OFFLINE = """
import socket, sys

def refuse(*args):
    raise OSError("the benchmark asked for the network")

socket.socket.connect = socket.getaddrinfo = refuse
from benchopt.cli import benchopt
benchopt(prog_name="benchopt")
"""
DATA = "gaussian[n_samples=300,n_features=40,condition=10]"
QUICK = ("--config", "bench/quick.yml", "-d", DATA, "--timeout", "60")
"""The quick configuration on its generated data; on a busy machine the time limit must not decide."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with copies of the benchmark and of hasd's source: nothing is written into the repository."""
    root = tmp_path_factory.mktemp("benchopt")
    leave = shutil.ignore_patterns("__cache__", "outputs", "__pycache__")
    shutil.copytree(SOURCE, root / "bench", ignore=leave)
    shutil.copytree(Path(hasd.__file__).parent, root / "src" / "hasd", ignore=leave)
    return root


def benchopt(home, *arguments):
    """What the command prints; it has no network, and the copy of hasd."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("BENCHOPT_")}
    env |= {
        "PYTHONPATH": str(home / "src"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), env["PATH"])),
        "MPLBACKEND": "Agg",
    }
    command = [sys.executable, "-c", OFFLINE, *arguments]
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(home, name, *arguments):
    """The rows of a run."""
    benchopt(home, "run", "bench", "--output", name, *arguments)
    return pd.read_parquet(home / "bench" / "outputs" / f"{name}.parquet")


@pytest.fixture(scope="module")
def quick(home):
    """Its rows, with the relative gap of each."""
    rows = run(home, "quick", *QUICK)
    values = rows.groupby("p_obj_loss")["objective_value"]
    least = values.transform("min")
    rows["gap"] = (rows["objective_value"] - least) / (values.transform("first") - least)
    return rows


@pytest.mark.slow
def test_every_solver_runs_on_every_loss_with_finite_results(quick):
    """Mutation: a solver that cannot be imported is left out by benchopt without an error."""
    for loss in LOSSES:
        found = set(quick.loc[quick["p_obj_loss"] == loss, "solver_name"])
        assert found == {*ACCELERATED, *PEERS, *([SKLEARN] if loss == "logistic" else [])}
    assert np.isfinite(quick[["time", "objective_value", "objective_grad_norm"]]).all(axis=None)


@pytest.mark.slow
def test_nobody_is_cut_short(quick):
    """Mutation: benchopt's default criterion, see the next test."""
    ends = quick.groupby(["p_obj_loss", "solver_name"])["gap"].last()
    assert (ends <= 1e-6).all(), ends[ends > 1e-6]


@pytest.mark.slow
def test_the_default_criterion_would_have_cut_one_short(quick):
    """Benchopt's patience of three evaluations ends one of these very curves before a tenth of the gap is gone."""
    ends = {}
    for key, curve in quick[quick["solver_name"].isin(ACCELERATED)].groupby(["p_obj_loss", "solver_name"]):
        rows = curve.to_dict("records")
        criterion = SufficientProgressCriterion(strategy="callback").get_runner_instance(max_runs=len(rows))
        reached = (k for k in range(1, len(rows) + 1) if criterion.check_convergence(rows[:k])[0])
        ends[key] = curve["gap"].iloc[: next(reached, len(rows))].min()
    assert max(ends.values()) > 0.1, ends


@pytest.mark.slow
def test_each_loss_gets_one_figure_per_axis(home, quick):
    """Mutation: names with dots, which benchopt cuts so that figures overwrite each other."""
    figures = {path.name for path in (home / "bench" / "outputs").glob("relative_gap_*.pdf")}
    for loss in LOSSES:
        assert sum(f"loss={loss}," in name for name in figures) == 2


@pytest.mark.slow
def test_timings_of_other_code_are_forgotten(home, quick):
    """Mutation: a digest that leaves out hasd; the rows then come from benchopt's cache, times and all."""
    with (home / "src" / "hasd" / "loop.py").open("a") as file:
        file.write("# changed\n")
    anew = run(
        home, "anew", *QUICK, "-s", "hasd", "-o", "smooth-fit[loss=logistic,ridge=0.01,smoothing=0.1]", "--no-plot"
    )
    before = quick[(quick["p_obj_loss"] == "logistic") & (quick["solver_name"] == "hasd")]
    assert anew["objective_name"].iloc[0] == before["objective_name"].iloc[0]  # the digest is no part of the name
    assert anew["time"].tolist() != before["time"].tolist()
    assert set(anew["p_obj_code"]).isdisjoint(before["p_obj_code"])


@pytest.mark.slow
def test_the_benchmark_passes_benchopts_own_tests(home):
    """Without those that would make conda environments."""
    printed = benchopt(home, "test", "bench", "--skip-install", "-q", "-p", "no:cacheprovider")
    assert " passed" in printed and " failed" not in printed and " error" not in printed


def problem(bench, loss, data, **parameters):
    """The benchmark's objective on the data, whether it was skipped, and why."""
    objective = bench.get_benchmark_objective().get_instance(loss=loss, **parameters)
    skip, reason = objective.skip(**data)
    if not skip:
        objective.set_data(**data)
    return objective, skip, reason


@pytest.fixture
def bench():
    return Benchmark(SOURCE)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 4)), rng.standard_normal(30)
    return {"A": A, "b": b, "y": np.sign(b)}


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_judge_and_oracle_agree(bench, data, loss, form):
    """The plain NumPy that judges against what the solvers minimise; mutation: a factor in either."""
    objective, *_ = problem(bench, loss, {**data, "A": form(data["A"])}, ridge=0.3, smoothing=0.2)
    told = objective.get_objective()
    told.pop("threads")
    f = importlib.import_module("benchmark_utils.oracle").objective(**told)
    x = np.random.default_rng(1).standard_normal(4)
    judged, (value, g) = objective.evaluate_result(x), f.value_and_grad(x)
    assert judged["value"] == pytest.approx(value, rel=1e-12)
    assert judged["grad_norm"] == pytest.approx(np.linalg.norm(g), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_hessian_products_agree_with_differences_of_gradients(bench, data, loss):
    """Against differences of gradients, at two points in turn; mutation: a curvature kept for the wrong point."""
    objective, *_ = problem(bench, loss, data, ridge=0.3, smoothing=0.5)
    told = objective.get_objective()
    told.pop("threads")
    oracle = importlib.import_module("benchmark_utils.oracle")
    f = oracle.objective(**told)
    product, p, h = oracle.HessianProducts(f), np.array([1.0, -2.0, 0.5, 0.0]), 1e-5
    for x in np.random.default_rng(2).standard_normal((2, 4)):
        difference = (f.value_and_grad(x + h * p)[1] - f.value_and_grad(x - h * p)[1]) / (2 * h)
        np.testing.assert_allclose(product(x, p), difference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("loss", "change", "parameters", "why"),
    [
        ("logistic", {"y": None}, {}, "no two classes"),
        ("log-sum-exp", {}, {"ridge": 0.0}, "unbounded"),
        ("hinge", {}, {}, "the known ones are log-sum-exp"),
    ],
)
def test_what_cannot_be_posed_is_skipped(bench, data, loss, change, parameters, why):
    _, skip, reason = problem(bench, loss, {**data, **change}, **parameters)
    assert skip and why in reason


@pytest.mark.parametrize(("loss", "ridge", "why"), [("minimax", 1.0, "logistic loss only"), ("logistic", 0.0, "ridge")])
def test_sklearn_is_skipped_where_its_objective_differs(bench, loss, ridge, why):
    solver = next(solver for solver in bench.get_solvers() if solver.name == SKLEARN).get_instance()
    skip, reason = solver.skip(loss=loss, ridge=ridge)
    assert skip and why in reason


def rows_of(iterations, values, norms):
    return [
        {"stop_val": t, "objective_value": value, "objective_grad_norm": norm}
        for t, value, norm in zip(iterations, values, norms, strict=True)
    ]


def test_a_long_wait_is_endured(bench):
    """AGD stays above its start for hundreds of iterations here; mutation: an end where no new best value came."""
    t = np.cos(math.pi * (np.arange(200) + 0.5) / 200)
    f = hasd.objectives.LogSumExp(np.polynomial.chebyshev.chebvander(t, 11), np.abs(t), ridge=1e-4)
    trace = hasd.minimize(f, np.zeros(12), method="agd", tol=1e-10).trace
    spacing, iterations = bench.get_solvers()[0].get_instance().get_next, [0]
    while spacing(iterations[-1]) < len(trace["fun"]):
        iterations.append(spacing(iterations[-1]))
    values, norms = trace["fun"][iterations], trace["grad_norm"][iterations]
    assert max(values[np.array(iterations) > 200]) > values[0]
    rows, settled = rows_of(iterations, values, norms), importlib.import_module("benchmark_utils.stopping").Settled()
    end = next((k for k in range(len(rows)) if settled.check_convergence(rows[: k + 1])[0]), len(rows) - 1)
    assert values[end] - values.min() <= 1e-6 * (values[0] - values.min())


def test_a_run_ends_when_its_value_rests_or_its_gradient_vanishes(bench):
    settled = importlib.import_module("benchmark_utils.stopping").Settled()
    iterations = [0, *range(10, 210, 10)]
    slow, rest = np.linspace(1.0, 0.9, 21), np.r_[1.0, np.full(20, 0.9)]
    for values, norms, ended in (
        (slow, np.ones(21), False),
        (rest, np.ones(21), True),
        (1e6 * slow, np.ones(21), False),
        (1e6 + 1e-9 * slow, np.ones(21), True),  # what moves is rounding
        (slow, np.r_[np.ones(20), 1e-10], True),
    ):
        stop, progress = settled.check_convergence(rows_of(iterations, values, norms))
        assert bool(stop) is ended and 0.0 <= progress <= 1.0
    assert not settled.check_convergence(rows_of(iterations[:10], rest[:10], np.ones(10)))[0]


def test_the_digest_sees_the_sources(bench, tmp_path):
    """Mutation: names without contents, or contents without names."""
    module = importlib.import_module("benchmark_utils.fingerprint")
    assert set(module.ROOTS) == {Path(hasd.__file__).parent, SOURCE / "benchmark_utils"}
    (tmp_path / "inner").mkdir()
    digests = [module.fingerprint([tmp_path])]
    for name, content in (("a.py", ""), ("a.py", "x = 1"), ("inner/a.py", ""), ("inner/a.py", "x = 1")):
        (tmp_path / name).write_text(content)
        digests.append(module.fingerprint([tmp_path]))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    digests.append(module.fingerprint([tmp_path]))
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("name", ["fingerprint", "losses", "oracle", "stopping"])
def test_doctests_of_the_benchmark_utilities_pass(bench, name):
    failed, attempted = doctest.testmod(importlib.import_module(f"benchmark_utils.{name}"))
    assert attempted > 0 and failed == 0
