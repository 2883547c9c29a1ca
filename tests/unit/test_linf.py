"""The l_inf regression over the box: brackets that hold for exact numbers, one problem for all, honest words."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

import hasd
from hasd.experiments import linf
from hasd.experiments.box_duality import lower_value, upper_value
from hasd.experiments.linf_report import NAMES, counts, report, title, winners

QUICK = linf.EXPERIMENT.quick


def exact(values):
    """As Fractions."""
    return [Fraction(float(value)) for value in values]


def exact_bracket(A, b, x, u):
    """||Ax - b||_inf and (-||A^T u||_1 - <u, b>)/||u||_1, without rounding."""
    A, b, x, u = [exact(row) for row in A], exact(b), exact(x), exact(u)
    residual = [sum(a * c for a, c in zip(row, x, strict=True)) - right for row, right in zip(A, b, strict=True)]
    pulled = [sum(row[j] * c for row, c in zip(A, u, strict=True)) for j in range(len(x))]
    dual = -sum(map(abs, pulled)) - sum(c * right for c, right in zip(u, b, strict=True))
    return max(map(abs, residual)), dual / sum(map(abs, u))


def cancelling_data(seed):
    """A fit that is good to about rounding, with multipliers that are nearly orthogonal to the columns."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 4)) * 10.0 ** rng.integers(-3, 4)
    x = rng.uniform(-1.0, 1.0, 4)
    b = A @ x + 1e-13 * rng.standard_normal(12)
    u = rng.standard_normal(12)
    u -= A @ np.linalg.lstsq(A, u, rcond=None)[0]
    return A, b, x, -u * np.sign(u @ b)


@pytest.mark.parametrize("seed", range(40))
def test_both_sides_hold_for_the_exact_numbers(seed):
    A, b, x, u = cancelling_data(seed)
    above, below = exact_bracket(A, b, x, u)
    for M in (A, csr_array(A)):
        assert Fraction(upper_value(M, b, x)) >= above
        assert Fraction(lower_value(M, b, u)) <= max(below, 0)


def test_without_the_charge_for_rounding_a_side_would_be_wrong():
    wrong = 0
    for seed in range(40):
        A, b, x, u = cancelling_data(seed)
        above, below = exact_bracket(A, b, x, u)
        plain = (-np.abs(A.T @ u).sum() - u @ b) / np.abs(u).sum()
        wrong += Fraction(float(np.abs(A @ x - b).max())) < above or Fraction(float(plain)) > below
    assert wrong > 0


def test_the_charge_for_rounding_is_small():
    rng = np.random.default_rng(0)
    A, b, x, u = rng.standard_normal((30, 5)), rng.standard_normal(30), rng.uniform(-1, 1, 5), rng.standard_normal(30)
    u -= A @ np.linalg.lstsq(A, u, rcond=None)[0]
    u = -u * np.sign(u @ b)
    above, below = exact_bracket(A, b, x, u)
    assert upper_value(A, b, x) <= float(above) * (1.0 + 1e-12)
    assert lower_value(A, b, u) >= float(below) * (1.0 - 1e-10) > 0.0


def test_multipliers_that_prove_nothing_give_zero():
    A, b = np.eye(2), np.array([1.0, 2.0])
    assert lower_value(A, b, np.zeros(2)) == 0.0 == lower_value(A, b, b)


@pytest.mark.parametrize("family", linf.FAMILIES)
def test_all_runs_bracket_the_same_minimum(family):
    problems = {family: linf.instance(QUICK, family)}
    runs = {method: linf.solve(QUICK, problems, family, method) for method in linf.RUNS}
    ends = {method: run["linf-ends"][0] for method, run in runs.items()}
    assert max(end["lower"] for end in ends.values()) <= min(end["upper"] for end in ends.values())
    assert ends["chebyshev"]["share"] <= 1e-9 and ends["highs"]["share"] <= 1e-9
    for run in runs.values():
        gaps = [row["share"] for row in run["linf"]]
        assert gaps == sorted(gaps, reverse=True) and gaps[-1] > 0.0
    assert all(row["share"] <= row["bound"] for row in runs["area-proven"]["linf"])


@pytest.mark.parametrize("family", linf.FAMILIES)
def test_the_minimiser_is_inside_the_box_and_the_box_changes_nothing(family):
    problem = linf.instance(linf.LinfSizes(n=80, d=7, seed=1), family)
    free = hasd.chebyshev(problem.A, problem.b)
    boxed = linf.Bracket(problem, 1)
    linf.follow_program(boxed)
    assert 0.5 <= np.abs(free.x).max() < 1.0
    assert boxed.upper == pytest.approx(free.fun, rel=1e-8) and problem.minimum == pytest.approx(free.fun, rel=1e-8)
    assert issparse(problem.A) == (family == "sparse")


def test_a_sparse_row_has_three_entries_or_as_many_as_there_are_columns():
    for d, entries in ((9, 3), (4, 3), (2, 2), (1, 1)):
        A = linf.sparse_rows(30, d, np.random.default_rng(0))
        assert np.all(np.count_nonzero(A.toarray(), axis=1) == entries)


def test_problems_without_a_minimiser_to_speak_of_are_refused():
    with pytest.raises(ValueError, match=r"--n must be above --d.*got n = 5 and d = 5"):
        linf.instance(linf.LinfSizes(n=5, d=5, seed=0), "dense")


def test_a_point_outside_the_box_gives_no_value():
    bracket = linf.Bracket(linf.instance(linf.LinfSizes(n=20, d=3, seed=0), "dense"), 100)
    bracket.see(2, 0, np.full(3, 1.5), 0.1)
    assert math.isinf(bracket.upper) and bracket.lower == 0.1 and not bracket.is_over
    bracket.see(4, 1, np.zeros(3), 0.0)
    assert math.isfinite(bracket.upper) and bracket.lower == 0.1


def test_seconds_are_written_only_where_they_are_asked_for():
    problems = {"dense": linf.instance(QUICK, "dense")}
    for wanted in (False, True):
        tables = linf.solve(replace(QUICK, seconds=wanted, products=20), problems, "dense", "hasd")
        assert ("seconds" in tables["linf-ends"][0]) == wanted


def test_the_mean_multipliers_of_a_stage_are_a_mean_of_multipliers():
    problem = linf.instance(linf.LinfSizes(n=40, d=4, seed=2), "dense")
    function = linf.RecordedSoftmax(problem, 0.05)
    steps = [u for _, (_, u) in zip(range(30), linf.stage(function, np.zeros(4)), strict=False)]
    assert len(steps) == 30 and max(np.abs(u).sum() for u in steps) <= 1.0 + 1e-12
    lower = [lower_value(problem.A, problem.b, u) for u in steps]
    assert lower[-1] > lower[0] and max(lower) <= problem.minimum * (1.0 + 1e-8)


def crafted(shares):
    """Rows of the curves of a family: the gap of each method after 10 and 100 products, a part of the minimum."""
    head = {"family": "dense", "iteration": 1, "upper": 2.0, "lower": 1.0, "bound": 5.0}
    return [
        {**head, "method": method, "products": products, "share": share}
        for method, pair in shares.items()
        for products, share in zip((10, 100), pair, strict=True)
    ]


CURVES = {"area-proven": (3.0, 2.0), "area-smaller": (0.5, 0.3), "hasd": (0.9, 0.005), "chebyshev": (4.0, 1e-12)}


def test_the_winners_are_read_off_the_rows():
    rows = crafted(CURVES)
    assert winners(rows).startswith("1: area convexity, smaller constants, 10; 0.1: HASD (ours), 100")
    assert winners(rows).endswith("0.001: none; 0.0001: none")
    assert list(counts(rows, 0.01).items())[:2] == [("hasd", 100), ("chebyshev", 100)]
    assert title(rows).startswith(
        "products to 1%: HASD 100, chebyshev and linear programs 100,\narea convexity (proven) > 100"
    )


def test_the_report_says_so_where_a_row_breaks_the_bound():
    ends = [
        {"family": "dense", "method": method, "minimum": 1.0, "products": 1, "iteration": 1, "upper": 2.0}
        | {"lower": 1.0, "share": 1.0}
        for method in NAMES
    ]
    kept, broken = crafted(CURVES), crafted({**CURVES, "area-proven": (3.0, 6.0)})
    texts = [report({"linf": rows, "linf-ends": ends}, QUICK) for rows in (kept, broken)]
    assert "Its gap is within this bound in every row." in texts[0]
    assert "1 ROWS BREAK THIS BOUND." in texts[1]
