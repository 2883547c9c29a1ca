"""Progress bars: full where a run succeeds, where it is elsewhere, never backwards, and with the status at the end."""

import io
import math
import sys
import time
from contextlib import redirect_stderr

import numpy as np
import pytest

import hasd
from hasd._run import progress
from hasd._run.bounds import Bounds
from hasd._run.progress import Bar, Way, share_of_budget, share_of_way
from hasd._run.stopping import Tolerances

pytest.importorskip("tqdm")

rng = np.random.default_rng(0)
A, b = rng.standard_normal((60, 8)), rng.standard_normal(60)
COST, MASSES = rng.random((12, 12)), np.full(12, 1.0 / 12.0)
F = hasd.objectives.LogSumExp(A, b, ridge=1e-2)


def minimize(**given):
    return hasd.minimize(F, np.zeros(8), **{"method": "hasd", **given})


SOLVED = {
    "a small gradient": lambda: minimize(progress=True, tol=1e-5),
    "a small gap": lambda: minimize(progress=True, gap_tol=1e-5),
    "both": lambda: minimize(progress=True, tol=1e-4, gap_tol=1e-5),
    "a start that is good enough": lambda: minimize(progress=True, gap_tol=1e9),
    "chebyshev": lambda: hasd.chebyshev(A, b, progress=True),
    "lp_fit": lambda: hasd.lp_fit(A, b, progress=True),
    "transport": lambda: hasd.transport(COST, MASSES, MASSES, reg=1e-3, progress=True),
    "balance": lambda: hasd.balance(np.exp(-200.0 * COST), MASSES, MASSES, progress=True),
}
"""Runs that reach what they ask for, long before their limits."""


@pytest.fixture
def watched(monkeypatch):
    """Runs a call; gives its result, what its bar showed at last, and the bar itself with all its positions."""
    seen = []

    class Spy(Bar):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            self.positions = []
            if self.bar is not None:
                seen.append(self)

        def show(self, *given):
            super().show(*given)
            if self.bar is not None:
                self.positions.append(self.bar.n)

    monkeypatch.setattr(progress, "Bar", Spy)
    monkeypatch.setattr("hasd._minimize.Bar", Spy)
    monkeypatch.setattr("hasd.problems._session.Bar", Spy)

    def run(call):
        seen.clear()
        with redirect_stderr(io.StringIO()) as shown:
            res = call()
        (bar,) = seen
        return res, shown.getvalue().split("\r")[-1].strip(), bar

    return run


@pytest.mark.parametrize("name", SOLVED)
def test_a_run_that_succeeds_ends_at_a_hundred_percent_and_says_so(watched, name):
    res, shown, bar = watched(SOLVED[name])
    assert res.success
    assert ", converged: 100%|" in shown and f"{res.nit} it, f={res.fun:.6g}" in shown
    assert bar.positions[-1] == 1.0


@pytest.mark.parametrize("name", SOLVED)
def test_a_bar_never_goes_back_and_is_full_only_at_the_end(watched, name):
    _, _, bar = watched(SOLVED[name])
    assert bar.positions == sorted(bar.positions)
    assert bar.positions[0] >= 0.0 and all(position <= 0.99 for position in bar.positions[:-1])


def test_a_long_run_is_under_way_between_start_and_end(watched):
    _, _, bar = watched(lambda: minimize(progress=True, gap_tol=1e-8))
    assert sum(0.1 < position < 0.9 for position in bar.positions) > 3


def test_the_share_is_that_of_the_way_on_a_logarithmic_scale(watched):
    res, _, bar = watched(lambda: minimize(progress=True, tol=1e-5))
    norms = res.trace["grad_norm"]
    shares = np.maximum.accumulate(np.log(norms[0] / norms) / np.log(1e5))
    np.testing.assert_allclose(bar.positions[:-1], np.minimum(shares, 0.99))


def test_gradient_and_gap_are_shown_by_the_one_that_is_further_behind(watched):
    _, _, gradient = watched(lambda: minimize(progress=True, tol=1e-12, maxiter=10))
    _, _, both = watched(lambda: minimize(progress=True, tol=1e-12, gap_tol=1e3, maxiter=10))
    assert both.positions == gradient.positions


@pytest.mark.parametrize("asked", [{"tol": 1e-12}, {"gap_tol": 1e-12}])
def test_a_run_that_misses_its_target_ends_where_it_is_with_its_status(watched, asked):
    res, shown, bar = watched(lambda: minimize(progress=True, maxiter=10, **asked))
    assert res.status == hasd.Status.MAXITER.code
    assert shown.startswith("hasd, maxiter: ") and bar.positions[-1] == bar.positions[-2] < 0.9


def test_the_status_is_that_of_the_result_and_not_of_the_loop(watched):
    """Images are kept in float64 and meet the tolerance; x is handed back in float32 and does not."""
    f, x0 = hasd.objectives.LeastSquares(A, b, ridge=0.1), np.zeros(8, dtype=np.float32)
    res, shown, _ = watched(lambda: hasd.minimize(f, x0, method="hasd-subspace", tol=1e-9, progress=True))
    assert res.status == hasd.Status.PRECISION.code
    assert shown.startswith("hasd-subspace, precision: ") and "100%" not in shown


@pytest.mark.parametrize("limits", [{"maxiter": 8}, {"maxfun": 8}, {"maxiter": 8, "maxfun": 90}])
def test_without_a_target_the_bar_counts_the_nearest_limit(watched, limits):
    res, _, bar = watched(lambda: minimize(progress=True, tol=0.0, **limits))
    iterations = res.trace["iteration"] / limits.get("maxiter", math.inf)
    np.testing.assert_allclose(
        bar.positions[:-1], np.maximum(iterations, res.trace["nfev"] / limits.get("maxfun", math.inf))
    )
    assert bar.positions[-1] == bar.positions[-2]


@pytest.mark.parametrize(("ago", "least", "most"), [(15.0, 0.75, 1.0), (21.0, 1.0, 1.0)])
def test_seconds_are_counted_where_they_are_the_limit(ago, least, most):
    way = Way(Tolerances(0.0, 0.0, Bounds(None, 0.0)), (math.inf, math.inf, 20.0), time.perf_counter() - ago)
    assert least <= way.share(next(hasd.iterate(F, np.zeros(8))), nfev=10**9) <= most


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimize(progress=True, tol=0.0, method="hasd-newton"),
        lambda: hasd.balance(np.exp(-COST), MASSES, MASSES, error_tol=0.0, progress=True),
    ],
)
def test_without_target_and_limit_the_bar_is_a_counter(watched, call):
    res, shown, bar = watched(call)
    assert "%" not in shown and f": {res.nit}it [" in shown and bar.positions[-1] == res.nit


def test_stages_share_the_way_among_them(watched):
    """Each of the stages of transport starts with a larger error than the one before it reached."""
    res, _, bar = watched(SOLVED["transport"])
    regs = res.trace["reg"]
    stage = np.searchsorted(-np.unique(regs)[::-1], -regs)
    count = stage[-1] + 1
    assert count > 1
    for position, number in zip(bar.positions, stage, strict=False):
        assert number / count <= position <= (number + 1) / count


def test_a_run_that_goes_on_counts_time_from_where_it_began(watched):
    first = minimize(maxiter=12, tol=1e-10)
    _, _, bar = watched(lambda: minimize(tol=1e-10, resume=first.state, progress=True))
    assert bar.bar.initial == bar.positions[0] > 0.1


@pytest.mark.parametrize(
    "solve", [lambda **given: minimize(tol=1e-9, **given), lambda **given: hasd.chebyshev(A, b, **given)]
)
def test_an_error_of_the_user_leaves_no_open_bar(monkeypatch, solve):
    from tqdm.auto import tqdm

    def fail(intermediate_result):
        raise ZeroDivisionError

    before = len(tqdm._instances)
    with redirect_stderr(io.StringIO()), pytest.raises(ZeroDivisionError):
        solve(progress=True, callback=fail)
    assert len(tqdm._instances) == before


def test_a_run_without_a_bar_needs_no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert minimize(tol=1e-3).success and hasd.chebyshev(A, b).success


@pytest.mark.parametrize(
    ("first", "now", "target", "share"),
    [
        (1.0, 1e-3, 1e-6, 0.5),
        (1e200, 1e-200, 1e-200, 1.0),
        (1e300, 1.0, 1e-300, 0.5),
        (1.0, 2.0, 1e-6, 0.0),
        (1.0, math.inf, 1e-6, 0.0),
        (1.0, math.nan, 1e-6, 0.0),
        (math.inf, 1.0, 1e-6, 0.0),
        (1.0, 1e-3, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0),
    ],
)
def test_the_way_is_measured_for_all_numbers(first, now, target, share):
    assert share_of_way(first, now, target) == pytest.approx(share, rel=1e-12)


def test_a_budget_of_nothing_is_spent():
    assert (
        share_of_budget((0, 0)) == 1.0 and share_of_budget((0.0, 0.0), (1, 2)) == 1.0 and share_of_budget((9, 3)) == 1.0
    )
