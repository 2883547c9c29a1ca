"""Labels that can be separated: ``hasd solve`` proves that no x is best, early, and says so only where it is proved.

Mutation that must fail here: in `solve/separable.py`, `_exact_direction`, return w without the rational check.
"""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from hasd import cli
from hasd.solve import separable
from hasd.solve.data import Pair
from hasd.solve.separable import separator
from hasd.solve.settings import Settings
from hasd.solve.solvers import SEPARATED, solve


def solution(A, y, **settings):
    """What ``hasd solve`` finds."""
    return solve(Pair(A, y, "y"), Settings("logistic", **settings))


def apart(seed, n=120, d=6, margin=0.0, squeezed=1.0, spread=0.0):
    """Gaussian rows on both sides of a plane: moved away from it, or squeezed towards it; columns of many sizes."""
    rng = np.random.default_rng(seed)
    A, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    y = np.where(A @ w > 0.0, 1.0, -1.0)
    A = A + np.outer(margin * y + (squeezed - 1.0) * (A @ w), w)
    return A * 10.0 ** rng.uniform(-spread, spread, d), y


APART = {
    "a plane between": {},
    "a wide gap": {"margin": 3.0},
    "hardly apart": {"squeezed": 1e-4},
    "by very little": {"squeezed": 1e-7},
    "columns of many sizes": {"spread": 3.0},
    "columns of all sizes": {"spread": 8.0, "n": 60},
    "more columns than rows": {"n": 20, "d": 40},
}


@pytest.mark.parametrize("norm", [None, np.inf, 2.0], ids=str)
@pytest.mark.parametrize("how", APART.values(), ids=APART)
def test_separated_labels_are_named_within_a_thousand_iterations(how, norm):
    A, y = apart(0, **how)
    found = solution(A, y, norm=norm)
    assert not found.solved and found.res.message == SEPARATED and found.res.nit <= 1000
    assert np.all(y * (A @ found.arrays["separator"]) > 0.0)


@pytest.mark.parametrize(("ridge", "code"), [("0", 4), ("0.01", 0)])
def test_separable_labels_without_a_ridge_exit_with_4_and_say_why(capsys, tmp_path, ridge, code):
    A, y = apart(0)
    np.savez(tmp_path / "apart.npz", A=A, y=y)
    argv = ["--problem", "logistic", "--ridge", ridge, "--out", str(tmp_path)]
    assert cli.main(["solve", str(tmp_path / "apart.npz"), *argv]) == code
    text = " ".join(capsys.readouterr().out.split())
    assert (f"NOT SOLVED. {SEPARATED}" in text) == (code == 4)
    scalars = json.loads((tmp_path / "solution.json").read_text())
    assert scalars["status"] == (None if code == 4 else 0)  # no hasd.Status says that there is no minimiser
    assert scalars["lower"] >= 0.0  # as the loss is never below 0


def touching(kind):
    """Labels that a plane separates but for rows that lie in it, some of either label."""
    rng = np.random.default_rng(5)
    if kind == "a word of one class":  # only rows of label 1 have it
        A, y = rng.standard_normal((150, 4)), rng.choice([-1.0, 1.0], 150)
        A[:, 0] = (y > 0.0) & (rng.random(150) < 0.2)
        return A, y
    if kind == "one column":
        x = rng.standard_normal(80)
        y = np.where(x > 0.3, 1.0, -1.0)
        x[:6], y[:6] = 0.3, [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
        return np.column_stack((x, np.ones(80))), y
    if kind == "numbers that are no decimals":
        A = rng.standard_normal((90, 3)).astype(np.float32).astype(np.float64)  # whose sums here are exact
        A[:30, 2] = 0.5 * A[:30, 0] + 0.25 * A[:30, 1]
        z = A @ [0.5, 0.25, -1.0]
        return A, np.where(z == 0.0, rng.choice([-1.0, 1.0], 90), np.where(z > 0.0, 1.0, -1.0))
    A, w = rng.integers(-3, 4, (300, 4)).astype(float), np.array([1.0, -2.0, 0.0, 1.0])
    z = A @ w
    return A, np.where(z == 0.0, rng.choice([-1.0, 1.0], 300), np.sign(z))


TOUCHING = ["a word of one class", "one column", "numbers that are no decimals", "whole numbers"]


@pytest.mark.parametrize("norm", [None, np.inf], ids=str)
@pytest.mark.parametrize("kind", TOUCHING)
def test_labels_separated_but_for_rows_in_the_plane_are_recognised(kind, norm):
    A, y = touching(kind)
    found = solution(A, y, norm=norm)
    assert not found.solved and found.res.message == SEPARATED and found.res.nit <= 1000
    margins = y * (A @ found.arrays["separator"])
    assert margins.min() > -1e-12 and margins.max() > 1e-3


def test_sparse_labels_that_only_an_intercept_separates_are_recognised():
    """No plane through 0 separates these, one beside it does: with a column of ones only."""
    rng = np.random.default_rng(2)
    A = np.where(rng.random((60, 3)) < 0.5, rng.random((60, 3)), 0.0)
    A[:5] = 0.2
    y = np.where(A.sum(axis=1) > 0.8, 1.0, -1.0)
    plain, beside = (solution(csr_array(A), y, intercept=intercept) for intercept in (False, True))
    assert plain.solved and "separator" not in plain.arrays
    assert beside.res.message == SEPARATED and not beside.solved
    w = beside.arrays["separator"]
    assert np.all(y * (A @ w[:3] + w[3]) > 0.0)


def mixed(kind):
    """Labels that nothing separates, as sum_i u_i y_i a_i = 0 exactly for some u > 0 (Stiemke)."""
    rng = np.random.default_rng(3)
    if kind == "noise":
        A = rng.standard_normal((100, 4))
        return np.vstack((A, A)), np.repeat([1.0, -1.0], 100)  # each row with both labels
    if kind == "one row against all others":
        M = rng.integers(0, 9, (60, 4)).astype(float)
        M = np.vstack((M, -M.sum(axis=0)))
    elif kind == "one tiny row against all others":
        M = rng.integers(0, 9, (60, 4)).astype(float)
        M = np.vstack((M, -(2.0**-40) * M.sum(axis=0)))
    elif kind == "one unit in the last place":
        x = np.append(rng.uniform(-2.0, 2.0, 60), [0.3, np.nextafter(0.3, 1.0)])
        y = np.where(x > 0.3, 1.0, -1.0)
        y[-2:] = 1.0, -1.0
        return np.column_stack((x, np.ones(62))), y
    else:
        M = rng.integers(0, 9, (60, 4)) * [2.0**30, 1.0, 2.0**-30, 2.0**-60]
        M = np.vstack((M, -M.sum(axis=0)))
    y = rng.choice([-1.0, 1.0], len(M))
    return M * y[:, None], y


MIXED = [
    "noise",
    "one row against all others",
    "one tiny row against all others",
    "one unit in the last place",
    "sizes",
]


@pytest.mark.parametrize("kind", MIXED)
def test_labels_that_nothing_separates_are_never_called_so(kind):
    A, y = mixed(kind)
    assert separator(A, y) is None and separator(csr_array(A), y) is None
    for given in ({}, {"norm": np.inf, "maxiter": 600}):
        found = solution(A, y, **given)
        assert found.res.message != SEPARATED and "separator" not in found.arrays


@pytest.mark.parametrize("seed", range(30))
def test_random_labels_are_called_separated_only_where_a_direction_is_shown(seed):
    """Few rows of small whole numbers, of which some can be separated, in all their rows or in some."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 12)), int(rng.integers(1, 5))
    A, y = rng.integers(-2, 3, (n, d)).astype(float), rng.choice([-1.0, 1.0], n)
    w = separator(A, y)
    if w is None:  # then weights u >= 1 with sum_i u_i y_i a_i = 0 exist: Stiemke
        found = separable.linprog(np.zeros(n), A_eq=(y[:, None] * A).T, b_eq=np.zeros(d), bounds=[(1.0, None)] * n)
        assert found.status == 0
    else:
        margins = y * (A @ w)
        assert margins.min() > -1e-12 and margins.max() > 1e-6


def test_what_is_too_large_or_too_late_is_not_decided(monkeypatch):
    A, y = apart(1)
    assert separator(A, y) is not None and separator(A, y, seconds=0.0) is None
    for tiny in (1e-290, 5e-324):  # beside 1e20 these are no numbers any more, but each row has its own unit
        rows, labels = np.vstack((1e20 * A, np.full((1, 6), tiny))), np.append(y, 1.0)
        w = separator(rows, labels)
        assert w is None or all(
            sum(Fraction(a) * Fraction(part) for a, part in zip(row, w.tolist(), strict=True)) * int(label) > 0
            for row, label in zip(rows.tolist(), labels, strict=True)
        )
    monkeypatch.setattr(separable, "LARGEST", A.size - 1)
    assert separator(A, y) is None


@pytest.mark.parametrize("how", APART.values(), ids=APART)
def test_with_a_ridge_there_is_a_best_x(how):
    found = solution(*apart(0, **how), ridge=0.01, maxiter=300)
    assert found.res.message != SEPARATED and "separator" not in found.arrays
