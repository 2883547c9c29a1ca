"""``hasd solve``: the five problems end to end, what is printed and written, exit codes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import linprog

import hasd
from hasd import cli
from hasd.solve import Pair, Settings, options
from hasd.solve.solvers import solve

RNG = np.random.default_rng(5)
A, B = RNG.standard_normal((40, 4)), RNG.standard_normal(40)
LABELS = np.where(A @ [1.0, -1.0, 0.5, 0.0] + RNG.standard_normal(40) > 0, "yes", "no")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = [",".join(map(repr, [*row, b])) for row, b in zip(A.tolist(), B.tolist(), strict=True)]
    path.write_text("\n".join(["one,two,three,four,height", *rows]) + "\n")
    return str(path)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.csv"
    rows = [";".join([*map(repr, row), label]) for row, label in zip(A.tolist(), LABELS, strict=True)]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def solved(capsys, *argv: str, code: int = 0) -> str:
    assert cli.main(["solve", *argv]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def written(out) -> tuple[dict, dict]:
    """The scalars, read by a parser that takes no NaN, and the arrays, read without pickles."""

    def refuse(word):
        raise ValueError(word)

    scalars = json.loads((out / "solution.json").read_text(encoding="utf-8"), parse_constant=refuse)
    with np.load(out / "solution.npz", allow_pickle=False) as arrays:
        return scalars, dict(arrays)


def least_largest(M, b) -> float:
    """The minimax value by SciPy's linear program."""
    n, d = M.shape
    ones = np.ones((n, 1))
    rows, sides = np.vstack((np.hstack((M, -ones)), np.hstack((-M, -ones)))), np.concatenate((b, -b))
    return linprog(np.eye(d + 1)[d], rows, sides, bounds=[(None, None)] * d + [(0, None)]).fun


@pytest.mark.parametrize("intercept", [True, False])
def test_minimax_prints_and_writes_the_least_largest_residual(capsys, table, tmp_path, intercept):
    flag = "--intercept" if intercept else "--no-intercept"
    text = solved(capsys, table, "--problem", "minimax", flag, "--out", str(tmp_path / "out"))
    scalars, arrays = written(tmp_path / "out")
    best = least_largest(np.hstack((A, np.ones((40, 1)))) if intercept else A, B)
    assert scalars["fun"] == pytest.approx(best, rel=1e-8)
    assert scalars["lower"] <= best * (1 + 1e-9)
    residual = A @ arrays["coef"] + arrays["intercept"] - B
    assert np.abs(residual).max() == pytest.approx(scalars["fun"], rel=1e-12)
    np.testing.assert_allclose(np.abs(residual[arrays["active"]]), scalars["fun"], rtol=1e-8)
    assert arrays["columns"].tolist() == ["one", "two", "three", "four"]
    assert (arrays["intercept"] != 0.0) == intercept
    assert f"target: column 4 ('height'); {'with' if intercept else 'no'} intercept" in " ".join(text.split())
    for title in ("problem ", "data ", "status ", "value ", "lower bound ", "gap ", "method ", "work ", "written "):
        assert f"\n{title}" in f"\n{text}"


def test_relative_minimises_the_largest_relative_residual(capsys, table, tmp_path):
    """Mutation: the flag is read and not passed on."""
    text = solved(capsys, table, "--problem", "minimax", "--relative", "--out", str(tmp_path))
    scalars, arrays = written(tmp_path)
    assert scalars["fun"] == pytest.approx(least_largest(A / np.abs(B)[:, None], np.sign(B)), rel=1e-8)
    assert np.max(np.abs(A @ arrays["coef"] - B) / np.abs(B)) == pytest.approx(scalars["fun"], rel=1e-12)
    assert "max_i |<a_i, x> - b_i| / |b_i|" in text and "no x has a largest relative residual below" in text
    assert scalars["settings"]["relative"] is True


def test_relative_refuses_a_target_of_0_and_other_problems(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n2,0\n3,0\n4,5\n")
    assert cli.main(["solve", str(path), "--problem", "minimax", "--relative"]) == 3
    said = "row 1 (from 0), column 1 ('b'): the target is 0, one of 2 such rows; --relative needs other targets"
    assert said in capsys.readouterr().err
    with pytest.raises(SystemExit) as usage:
        cli.main(["solve", str(path), "--problem", "lp", "--relative"])
    assert usage.value.code == 2 and "--relative is for minimax, not for lp" in capsys.readouterr().err


def test_lp_writes_a_stationary_fit_in_the_given_power(capsys, table, tmp_path):
    solved(capsys, table, "--problem", "lp", "--power", "6", "--target", "one", "--out", str(tmp_path))
    scalars, arrays = written(tmp_path)
    M = np.column_stack((A[:, 1:], B))
    residual = np.abs(M @ arrays["coef"] - A[:, 0])
    assert scalars["fun"] == pytest.approx(np.sum(residual**6) ** (1 / 6))
    assert scalars["settings"]["power"] == scalars["power"] == 6.0
    gradient = M.T @ (np.sign(M @ arrays["coef"] - A[:, 0]) * residual**5)
    assert np.abs(gradient).max() < 1e-3 * np.abs(M.T @ residual**5).max()


def exact_values(problem, M, b, ridge, x):
    """f(x) and the minimum of f, both with 40 digits, by Newton's method from x."""
    M, b, X = mp.matrix(M.tolist()), mp.matrix(b.tolist()), mp.matrix(x.tolist())

    def expand(X):
        Z, n = M * X, len(b)
        if problem == "lse":
            powers = [mp.exp(Z[i] - b[i]) for i in range(n)]
            value = mp.log(sum(powers))
            slopes = mp.matrix([power / sum(powers) for power in powers])
            bends = mp.diag(slopes) - slopes * slopes.T
        else:
            chances = [1 / (1 + mp.exp(b[i] * Z[i])) for i in range(n)]
            value = -sum(mp.log(1 - chance) for chance in chances) / n
            slopes = mp.matrix([-b[i] * chances[i] / n for i in range(n)])
            bends = mp.diag([chance * (1 - chance) / n for chance in chances])
        square = (X.T * X)[0]
        return value + ridge * square / 2, M.T * slopes + ridge * X, M.T * bends * M + ridge * mp.eye(len(X))

    fun, _, _ = expand(X)
    for _ in range(6):
        _, gradient, hessian = expand(X)
        X -= mp.lu_solve(hessian, gradient)
    assert mp.norm(expand(X)[1]) < 1e-30
    return fun, expand(X)[0]


@pytest.mark.parametrize("ridge", [0.0, 1e-2, 1.0])
@pytest.mark.parametrize("problem", ["logistic", "lse"])
def test_gap_and_lower_bound_hold_for_the_exact_function(problem, ridge):
    for seed, tol in ((seed, tol) for seed in range(5) for tol in (1e-6, 1e-16)):
        rng = np.random.default_rng(seed)
        M, b = rng.standard_normal((20, 3)) + 100.0 * (seed == 4), rng.standard_normal(20)
        M -= (problem == "lse") * M.mean(axis=0)  # so that there is a minimiser without a ridge
        b = rng.permutation(np.sign(np.arange(20) - 9.5)) if problem == "logistic" else 10.0 ** (seed - 2) * b
        res = solve(Pair(M, b, "b"), Settings(problem, ridge=ridge, tol=tol)).res
        with mp.workdps(40):
            fun, best = exact_values(problem, M, b, ridge, res.x)
            assert res.lower <= best and fun - best <= res.gap <= 1e-5 * abs(fun)


@pytest.mark.parametrize("norm", [None, "inf", "3"])
def test_logistic_writes_a_certified_minimum_in_any_norm(capsys, words, tmp_path, norm):
    given = [] if norm is None else ["--norm", norm]
    text = solved(capsys, words, "--problem", "logistic", "--ridge", "0.01", *given, "--out", str(tmp_path))
    scalars, arrays = written(tmp_path)
    f = hasd.objectives.Logistic(A, np.where(LABELS == "yes", 1.0, -1.0), ridge=0.01)
    best = hasd.minimize(f, np.zeros(4), tol=1e-12).fun
    rounding = 1e-14  # two arrays of the same numbers may be summed in different orders
    assert scalars["lower"] - rounding <= best <= scalars["fun"] + rounding
    assert scalars["gap"] < 1e-9
    assert f(arrays["x"]) == pytest.approx(scalars["fun"], abs=rounding)
    assert "Labels: 'no' became -1, 'yes' became +1." in text
    assert scalars["settings"]["norm"] == {None: None, "inf": "inf", "3": 3.0}[norm]
    assert scalars["method"] == ("hasd" if norm else "hasd-newton")


def test_lse_takes_zeros_for_the_target_that_an_npz_lacks(capsys, tmp_path):
    path = tmp_path / "only.npz"
    np.savez(path, A=A, other=B)
    text = solved(capsys, str(path), "--problem", "lse", "--alpha", "0.5", "--ridge", "0.1", "--out", str(tmp_path))
    f = hasd.objectives.LogSumExp(A, alpha=0.5, ridge=0.1)
    scalars, arrays = written(tmp_path)
    assert f(arrays["x"]) == scalars["fun"]
    assert scalars["gap"] < 1e-8 and "target: none: zeros" in text


def test_transport_writes_a_feasible_plan_and_its_cost(capsys, tmp_path):
    C, a = np.abs(RNG.standard_normal((7, 5))), RNG.random(7)
    path = tmp_path / "costs.npz"
    np.savez(path, C=C, a=a)
    text = solved(capsys, str(path), "--problem", "transport", "--reg", "0.1", "--out", str(tmp_path))
    scalars, arrays = written(tmp_path)
    plan = arrays["plan"]
    np.testing.assert_allclose(plan.sum(axis=1), a, atol=1e-12)
    np.testing.assert_allclose(plan.sum(axis=0), a.sum() / 5, atol=1e-12)
    assert scalars["cost"] == pytest.approx(np.vdot(C, plan))
    assert scalars["fun"] == pytest.approx(np.vdot(C, plan) + 0.1 * np.sum(plan * np.log(plan)))
    assert scalars["lower"] <= scalars["fun"] and "Uniform masses b" in text


def test_a_sparse_file_has_the_value_of_a_dense_one(capsys, tmp_path):
    path = tmp_path / "rows.svm"
    lines = [f"{i % 2} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v > 0) for i, row in enumerate(A)]
    path.write_text("\n".join(lines) + "\n")
    text = solved(capsys, str(path), "--problem", "logistic", "--ridge", "0.1", "--intercept")
    assert f"sparse, {np.sum(A > 0)} entries" in " ".join(text.split())
    assert "The ridge penalises the intercept too." in text
    dense = hasd.objectives.Logistic(
        np.hstack((np.where(A > 0, A, 0), np.ones((40, 1)))), (-1.0) ** np.arange(1, 41), 0.1
    )
    best = hasd.minimize(dense, np.zeros(5), tol=1e-10).fun
    assert float(text.split("\nvalue")[1].split()[0]) == pytest.approx(best, rel=1e-10)


def test_not_solved_is_4_and_still_written(capsys, table, tmp_path):
    text = solved(capsys, table, "--problem", "lse", "--maxiter", "1", "--out", str(tmp_path), code=4)
    scalars, arrays = written(tmp_path)
    assert "NOT SOLVED. Maximum number of iterations reached." in text
    assert not scalars["solved"] and scalars["status"] == 1 and arrays["x"].shape == (4,)


def test_without_a_ridge_the_lower_bound_says_how_far_it_holds(capsys, words, tmp_path):
    text = " ".join(solved(capsys, words, "--problem", "logistic", "--out", str(tmp_path)).split())
    reach = 100.0 * np.linalg.norm(written(tmp_path)[1]["x"])
    assert f"(no x of norm at most {reach:.3g} has a value below the lower bound)" in text


def test_a_problem_without_a_minimum_exits_with_4_and_no_lower_bound(capsys, tmp_path):
    """All rows point one way: the value has no lower bound, and JSON has no infinity."""
    np.savez(tmp_path / "down.npz", A=np.ones((3, 2)), b=np.zeros(3))
    text = solved(capsys, str(tmp_path / "down.npz"), "--problem", "lse", "--out", str(tmp_path), code=4)
    assert "none: no certificate" in text and "unbounded below" in text
    assert written(tmp_path)[0]["lower"] is None


def test_an_exact_fit_writes_its_coefficients(capsys, tmp_path):
    np.savez(tmp_path / "exact.npz", A=A, b=A @ np.ones(4))
    for problem in ("minimax", "lp"):
        solved(capsys, str(tmp_path / "exact.npz"), "--problem", problem, "--out", str(tmp_path))
        np.testing.assert_allclose(written(tmp_path)[1]["coef"], 1.0, rtol=1e-9)


def test_a_single_active_row_proves_the_bound(capsys, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n0,1\n0,2\n0,5\n")
    assert "1 row proves the bound: 2 (from 0)" in solved(capsys, str(tmp_path / "t.csv"), "--problem", "minimax")


def test_a_new_folder_gets_the_figure_beside_the_solution(capsys, table, tmp_path):
    solved(capsys, table, "--problem", "minimax", "--out", str(tmp_path / "new" / "folder"))
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "convergence.png",
        "predictions.csv",
        "solution.json",
        "solution.npz",
    ]
    assert (tmp_path / "new" / "folder" / "convergence.png").read_bytes()[:4] == b"\x89PNG"


def predictions(out) -> list[list[str]]:
    return [line.split(",") for line in (out / "predictions.csv").read_text().splitlines()]


def test_coefficients_are_written_by_name_and_predictions_row_by_row(capsys, table, tmp_path):
    text = solved(capsys, table, "--problem", "minimax", "--intercept", "--drop", "two", "--out", str(tmp_path))
    scalars, arrays = written(tmp_path)
    assert list(scalars["coefficients"]) == ["one", "three", "four"]
    assert list(scalars["coefficients"].values()) == arrays["coef"].tolist()
    assert scalars["intercept"] == arrays["intercept"] and scalars["settings"]["drop"] == ["two"]
    head, *rows = predictions(tmp_path)
    assert head == ["row", "target", "prediction", "residual"]
    row, target, prediction, residual = np.array(rows, dtype=float).T
    np.testing.assert_array_equal(row, np.arange(40))
    np.testing.assert_array_equal(target, B)
    np.testing.assert_allclose(prediction, A[:, [0, 2, 3]] @ arrays["coef"] + arrays["intercept"])
    np.testing.assert_array_equal(residual, prediction - target)
    assert np.abs(residual).max() == pytest.approx(scalars["fun"]) and "coefficients one " in text


def test_labels_and_probabilities_are_written_row_by_row(capsys, words, tmp_path):
    solved(capsys, words, "--problem", "logistic", "--ridge", "0.1", "--out", str(tmp_path))
    head, *rows = predictions(tmp_path)
    assert head == ["row", "label", "probability"] and [label for _, label, _ in rows] == LABELS.tolist()
    margin = A @ written(tmp_path)[1]["x"]
    np.testing.assert_allclose([float(row[2]) for row in rows], 1.0 / (1.0 + np.exp(-margin)))


def test_a_plan_has_no_predictions(capsys, tmp_path):
    np.save(tmp_path / "c.npy", np.abs(A))
    text = solved(capsys, str(tmp_path / "c.npy"), "--problem", "transport", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out" / "predictions.csv").exists() and "predictions.csv" not in text


def test_rows_keep_their_numbers_where_some_are_left_out(capsys, tmp_path):
    rows = ["x,y", *(f"{i},{'' if i in (2, 5) else i * i}" for i in range(9))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    argv = ("--problem", "minimax", "--intercept", "--missing", "drop", "--out", str(tmp_path))
    text = " ".join(solved(capsys, str(tmp_path / "t.csv"), *argv).split())
    kept = [0, 1, 3, 4, 6, 7, 8]
    assert [int(row[0]) for row in predictions(tmp_path)[1:]] == kept
    _, arrays = written(tmp_path)
    assert arrays["rows"].tolist() == kept and "7 rows, 1 columns" in text
    assert f"prove the bound: {', '.join(map(str, arrays['rows'][arrays['active']]))} (from 0)" in text
    assert "2 of 9 rows have missing values and were left out" in text


@pytest.mark.parametrize("d", [50, 60])
def test_fifty_coefficients_are_shown_and_of_more_the_largest(capsys, tmp_path, d):
    M = RNG.standard_normal((100, d))
    np.savez(tmp_path / "t.npz", A=M, b=M @ np.arange(1.0, d + 1.0))
    text = " ".join(solved(capsys, str(tmp_path / "t.npz"), "--problem", "minimax").split())
    assert all((f"column {j} {j + 1}" in text) == (d == 50 or j >= 10) for j in range(d))
    assert ("(the 50 largest of 60; --out DIR writes all of them)" in text) == (d == 60)
    argv = ("--problem", "minimax", "--out", str(tmp_path))
    text = " ".join(solved(capsys, str(tmp_path / "t.npz"), *argv).split())
    assert ("(the 50 largest of 60; solution.json has all)" in text) == (d == 60)
    assert list(written(tmp_path)[0]["coefficients"].values()) == pytest.approx(np.arange(1.0, d + 1.0), abs=1e-9)


def test_a_run_that_a_limit_ended_is_solved_only_by_its_certified_gap(capsys, tmp_path):
    """The gradient or the marginals are not within --tol, but the gap is, and the status says that."""
    np.savez(tmp_path / "t.npz", A=A, y=np.sign(B), C=np.abs(A))
    for argv in (("transport", "--reg", "0.1", "--maxiter", "6"), ("logistic", "--maxiter", "2")):
        text = solved(capsys, str(tmp_path / "t.npz"), "--problem", *argv, "--out", str(tmp_path))
        scalars, _ = written(tmp_path)
        assert "status       solved. The certified gap is within the tolerance.\n" in text
        assert scalars["solved"] and scalars["status"] == hasd.Status.GAP.code
        assert scalars["gap"] <= scalars["tol"] * abs(scalars["fun"])


def test_labels_that_matplotlib_would_take_for_formulas_are_plotted(capsys, tmp_path):
    rows = ["x,y", *(f"{i % 7},{('$^', '_文')[i % 2]}" for i in range(20))]
    (tmp_path / "t.csv").write_text("\n".join(rows), encoding="utf-8")
    solved(capsys, str(tmp_path / "t.csv"), "--problem", "logistic", "--ridge", "1", "--out", str(tmp_path / "out"))
    assert (tmp_path / "out" / "convergence.png").exists()


def test_without_matplotlib_no_figure_is_drawn_and_this_is_said(capsys, table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delattr("matplotlib.figure", raising=False)
    text = solved(capsys, table, "--problem", "minimax", "--out", str(tmp_path / "out"))
    assert "convergence.png was not drawn: it needs matplotlib" in text
    assert not (tmp_path / "out" / "convergence.png").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "required: FILE, --problem"),
        (("x.csv",), "required: --problem"),
        (("x.csv", "--problem", "moon"), "invalid choice: 'moon'"),
        (("x.csv", "--problem", "mimimax"), "argument --problem: unknown problem 'mimimax'; did you mean 'minimax'?"),
        (("x.csv", "--problem", "lse", "--power", "3"), "--power is for lp, not for lse"),
        (("x.csv", "--problem", "lp", "--norm", "3"), "--norm is for logistic and lse, not for lp"),
        (("x.csv", "--problem", "lse", "--intercept"), "--intercept is for minimax, lp and logistic, not for lse"),
        (("x.csv", "--problem", "transport", "--target", "a"), "--target is for"),
        (
            ("x.csv", "--problem", "transport", "--missing", "drop"),
            "--missing is for minimax, lp, logistic and lse, not",
        ),
        (("x.csv", "--problem", "lp", "--columns", ""), "--columns: must be columns between commas, got ''"),
        (("x.csv", "--problem", "lp", "--drop", "a,\nb"), "--drop: must be columns between commas, got 'a,\\nb'"),
        (("x.csv", "--problem", "lp", "--decimal", "x"), "--decimal: invalid choice: 'x'"),
        (("x.csv", "--problem", "lp", "--power", "1"), "--power: must be a finite number of at least 2, got '1'"),
        (("x.csv", "--problem", "lse", "--norm", "1.5"), "--norm: must be a number from 2 to inf, got '1.5'"),
        (("x.csv", "--problem", "lse", "--alpha", "nan"), "--alpha: must be a finite number above 0, got 'nan'"),
        (("x.csv", "--problem", "lse", "--tol", "-1"), "--tol: must be a finite number of at least 0, got '-1'"),
        (("x.csv", "--problem", "lse", "--maxiter", "1e3"), "--maxiter: must be a whole number of at least 1"),
        (("x.csv", "--problem", "lse", "--maxiter", "00"), "--maxiter: must be a whole number of at least 1"),
        (("x.csv", "--problem", "lse", "--time-limit", "inf"), "--time-limit: must be a finite number of at least 0"),
        (("x.csv", "--problem", "lse", "--out", ""), "--out: must name a folder, got ''"),
        (("x.csv", "--problem", "lse", "--max-memory", "much"), "--max-memory: must be a size such as 500M or 4G"),
        (("x.csv", "--problem", "lse", "--format", "xls"), "invalid choice: 'xls'"),
    ],
)
def test_wrong_usage_exits_with_2_and_is_named(capsys, argv, message):
    with pytest.raises(SystemExit) as end:
        cli.main(["solve", *argv])
    assert end.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_the_help_names_problems_formats_and_exit_codes(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["solve", "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert all(word in text for word in ("minimax", "transport", "svmlight", "exit codes:", "4  not solved", "1% of"))


@pytest.mark.parametrize(
    ("text", "size"), [("4G", 2**32), ("500M", 500 * 2**20), ("1.5k", 1536), ("7", 7), ("2GiB", 2**31), ("1TB", 2**40)]
)
def test_memory_sizes_are_read_with_their_units(text, size):
    assert options.memory(text) == size


def test_whole_numbers_above_1e18_are_read_as_1e18():
    assert [options.whole_number(text) for text in ("007", "9" * 18, "9" * 5000)] == [7, 10**18 - 1, 10**18]


def test_the_memory_limit_reaches_the_reader(capsys, table):
    assert cli.main(["solve", table, "--problem", "minimax", "--max-memory", "1K"]) == 3
    assert "above the limit of 1 KiB (--max-memory)" in capsys.readouterr().err


def test_an_out_that_cannot_be_written_is_refused_with_the_reason(capsys, table, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("nowhere")
    below = f"{table}/deep/er"
    refusals = [(table, "it is not a folder"), (below, f"{table} is not a folder"), (tmp_path / "link", "it is not a")]
    with monkeypatch.context() as patch:
        patch.setattr("hasd.solve.command.solve", None)  # said before the work
        for out, why in (*refusals, ("x" * 5000, "it cannot be made: File name too long")):
            assert cli.main(["solve", table, "--problem", "minimax", "--out", str(out)]) == 1
            assert capsys.readouterr().err.startswith(f"hasd: error: --out {out}: {why}")
        patch.setattr("os.access", lambda *args: False)
        assert cli.main(["solve", table, "--problem", "minimax", "--out", str(tmp_path)]) == 1
        assert capsys.readouterr().err == f"hasd: error: --out {tmp_path}: no files may be written there\n"
    (tmp_path / "solution.npz").mkdir()
    assert cli.main(["solve", table, "--problem", "minimax", "--out", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "solved" in out and err == f"hasd: error: {tmp_path}/solution.npz: cannot be written: Is a directory\n"


@pytest.mark.parametrize(
    "given", ["minimax", "lp", "logistic", "lse", "transport", "logistic --ridge 1", "lse --norm 3"]
)
def test_a_run_without_time_writes_what_there_is_before_the_first_step(capsys, tmp_path, given):
    """What there is before the first step is told and written: of a smooth problem the value at 0."""
    problem = given.split()[0]
    b = np.sign(B) if problem == "logistic" else B
    np.savez(tmp_path / "data.npz", A=A, C=np.abs(A), **({} if problem == "transport" else {"b": b}))
    argv = ("--problem", *given.split(), "--time-limit", "0", "--out", str(tmp_path))
    assert "NOT SOLVED. Time limit reached." in solved(capsys, str(tmp_path / "data.npz"), *argv, code=4)
    scalars, arrays = written(tmp_path)
    assert scalars["status"] == 11 and scalars["iterations"] == 0 and scalars["lower"] != scalars["fun"]
    at_zero = {"logistic": math.log(2), "lse": float(np.logaddexp.reduce(-b))}
    if problem in at_zero:
        assert scalars["fun"] == pytest.approx(at_zero[problem]) and not arrays["x"].any()
        assert scalars["why"].startswith(
            "the norm was given: p = 3" if "norm" in given else "the Hessian of a function "
        )


@pytest.mark.parametrize("problem", ["minimax", "lp", "logistic", "lse", "transport"])
def test_a_tolerance_of_0_asks_for_all_that_is_possible(capsys, tmp_path, problem):
    b = {} if problem == "transport" else {"b": np.sign(B) if problem == "logistic" else B}
    np.savez(tmp_path / "data.npz", A=A - A.mean(axis=0), C=np.abs(A), **b)
    assert cli.main(
        ["solve", str(tmp_path / "data.npz"), "--problem", problem, "--tol", "0", "--out", str(tmp_path)]
    ) in (0, 4)
    scalars, _ = written(tmp_path)
    assert scalars["tol"] == 0.0 and scalars["gap"] <= 1e-8 * abs(scalars["fun"]) and not capsys.readouterr().err


def test_a_value_not_finite_at_the_start_is_written_as_unsolved(capsys, table, tmp_path):
    """Beyond all numbers at x = 0 itself."""
    solved(capsys, table, "--problem", "lse", "--alpha", "1.7e308", "--out", str(tmp_path), code=4)
    scalars, _ = written(tmp_path)
    assert scalars["status"] == 12 and scalars["fun"] is None and not scalars["solved"]


def test_costs_that_are_all_the_same_get_a_reg_of_one(capsys, tmp_path):
    np.save(tmp_path / "same.npy", np.ones((3, 2)))
    text = solved(capsys, str(tmp_path / "same.npy"), "--problem", "transport")
    assert "--reg was not given: 1, as all costs are the same." in text


def test_a_solver_that_fails_is_one_line(capsys, table, monkeypatch):
    def fail(*args, **options):
        raise OverflowError("too\nlarge")

    monkeypatch.setattr("hasd.solve.solvers.lp_fit", fail)
    assert cli.main(["solve", table, "--problem", "lp"]) == 1
    assert capsys.readouterr().err == f"hasd: error: {table}: solving failed: OverflowError: too\\nlarge\n"


def test_a_value_that_is_no_number_is_not_solved(capsys, table, monkeypatch, tmp_path):
    real = hasd.minimize

    def spoiled(*args, **options):
        res = real(*args, **options)
        res.fun = math.nan
        return res

    monkeypatch.setattr("hasd.solve.solvers.minimize", spoiled)
    solved(capsys, table, "--problem", "lse", "--ridge", "1", "--out", str(tmp_path), code=4)
    assert written(tmp_path)[0]["fun"] is None


def run(*argv: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "hasd.cli", "solve", *argv], capture_output=True, text=True, check=False, **options
    )


def test_a_pipe_gets_no_progress_bar_and_unknown_letters_escaped(table, tmp_path):
    """No progress bar, and letters that the output does not know do no harm."""
    done = run(table, "--problem", "logistic", "--target", "height")
    assert (done.returncode, done.stdout) == (3, "") and len(done.stderr.splitlines()) == 1
    path = tmp_path / "größe.csv"
    path.write_text("a,größe\n1,2\n3,4\n5,5\n", encoding="utf-8")
    done = run(str(path), "--problem", "lp", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
def test_a_reader_that_went_away_causes_no_error(table, tmp_path):
    """As with `| head -0`: no traceback, and the files are written."""
    ours, theirs = os.pipe()
    os.close(ours)
    argv = ["-m", "hasd.cli", "solve", table, "--problem", "minimax", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *argv], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")
    assert written(tmp_path)[0]["solved"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of Unix")
@pytest.mark.parametrize(
    ("streams", "code", "bad"), [(">&-", 0, 3), ("2>&-", 0, 3), (">&- 2>&-", 0, 3), (">/dev/full", 1, 3)]
)
def test_closed_or_full_streams_lose_no_files_and_show_no_traceback(table, tmp_path, streams, code, bad):
    """The exit code and the files are as ever; only what cannot be printed is a failure."""
    if "full" in streams and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    for name, wanted in ((table, code), (f"{table}.none", bad)):
        argv = [sys.executable, "-m", "hasd.cli", "solve", name, "--problem", "minimax", "--out", str(tmp_path)]
        shell = ["sh", "-c", f'exec "$@" {streams}', "sh", *argv]
        done = subprocess.run(shell, capture_output=True, text=True, check=False)
        assert done.returncode == wanted and "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 1
    assert written(tmp_path)[0]["solved"]


def on_a_terminal(code: str) -> str:
    """What a program shows on a terminal as its stderr."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, text=True, check=False)
    os.write(theirs, b"\n")  # something to read, where nothing was shown
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0 and "%|" not in done.stdout, shown
    return shown


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("minimax", "chebyshev"),
        ("lp", "lp_fit"),
        ("logistic --target label", "hasd-newton"),
        ("lse --ridge 0.1", "hasd-newton"),
        ("transport", "transport"),
    ],
)
def test_on_a_terminal_every_problem_has_a_bar_that_ends_full(tmp_path, given, name):
    pytest.importorskip("tqdm")
    np.savez(tmp_path / "data.npz", A=A, b=B, label=np.where(LABELS == "yes", 1.0, -1.0))
    np.savez(tmp_path / "costs.npz", C=np.abs(A))
    file = tmp_path / ("costs.npz" if given == "transport" else "data.npz")
    argv = ["solve", str(file), "--problem", *given.split()]
    shown = on_a_terminal(f"import sys; from hasd.cli import main; sys.exit(main({argv!r}))")
    assert f"{name}, converged: 100%|" in shown


def test_import_stays_light():
    """Neither the package nor the command line loads what only some files or figures need."""
    heavy = "{'pandas', 'sklearn', 'matplotlib', 'pyarrow', 'tqdm', 'torch', 'jax', 'optax', 'optimistix', 'dask'}"
    code = f"import sys, hasd, hasd.cli; sys.exit(len({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
