"""The trace: what it holds, when it is thinned, and that it costs the method nothing."""

import time
from itertools import islice

import numpy as np
import pandas as pd
import pytest

import hasd
from support import METHODS, every_method

COLUMNS = [
    "iteration",
    "fun",
    "grad_norm",
    "weight",
    "psi",
    "rho",
    "theta",
    "gain",
    "trials",
    "nfev",
    "nprod",
    "seconds",
]
STEP = ["rho", "theta", "gain", "trials"]
FILLS_RHO = ("hasd", "hasd-paper", "hasd-restart", "linear-coupling", "estimate-sequence")
FILLS_THETA = (*FILLS_RHO, "agd", "nemirovskii-nesterov")

CURVATURE = np.geomspace(1e-3, 1.0, 8)
START = np.linspace(1.0, 3.0, 8)


def slope(x):
    return 0.5 * float(CURVATURE @ (x * x)), CURVATURE * x


def solve(method="hasd", **options):
    options.setdefault("mu", 1e-3 if method == "hasd-restart" else None)
    options.setdefault("tol", 0)
    return hasd.minimize(slope, START, jac=True, method=method, **options)


@every_method
@pytest.mark.parametrize("L", [None, 8.0])
def test_columns_are_equal_length_arrays(method, L):
    trace = solve(method, L=L, maxiter=12).trace
    assert list(trace)[: len(COLUMNS)] == COLUMNS
    for name, column in trace.items():
        assert column.shape == (13,)
        assert column.dtype == (np.int64 if name in ("iteration", "nfev", "nprod") else np.float64)
    np.testing.assert_array_equal(trace["iteration"], np.arange(13))


def test_a_data_frame_can_be_made_of_it():
    frame = pd.DataFrame(solve(maxiter=12).trace)
    assert frame.shape[0] == 13 and set(COLUMNS) <= set(frame.columns)
    assert frame.fun.iloc[0] == slope(START)[0]


@every_method
def test_the_start_has_no_step(method):
    trace = solve(method, L=8.0, maxiter=5).trace
    for name in STEP:
        assert np.isnan(trace[name][0])
    assert trace["weight"][0] == trace["psi"][0] == 0.0
    assert trace["nfev"][0] == 1


@every_method
@pytest.mark.parametrize("L", [None, 8.0])
def test_each_method_fills_the_columns_that_the_documentation_says(method, L):
    trace = solve(method, L=L, maxiter=12).trace
    for name in ("fun", "grad_norm", "weight", "psi", "gain", "trials"):
        assert np.isfinite(trace[name][1:]).all(), name
    assert np.isfinite(trace["rho"][1:]).all() == (method in FILLS_RHO)
    assert np.isfinite(trace["theta"][1:]).all() == (method in FILLS_THETA)
    assert np.isnan(trace["rho"]).all() == (method not in FILLS_RHO)
    assert np.isnan(trace["theta"]).all() == (method not in FILLS_THETA)


@pytest.mark.parametrize(
    ("method", "at_the_iterate"),
    [(m, m in ("hasd-paper", "hasd-restart", "gradient-descent", "steepest-descent", "heavy-ball")) for m in METHODS],
)
@pytest.mark.parametrize("L", [None, 8.0])
def test_gradient_and_gain_are_taken_where_the_documentation_says(method, at_the_iterate, L):
    """At x_t for the methods that evaluate there, at the coupling point y otherwise."""
    mu = 1e-3 if method == "hasd-restart" else None
    for state in islice(hasd.iterate(slope, START, jac=True, method=method, p=4, L=L, mu=mu), 2, 8):
        g = slope(state.at.x)[1]
        geometry = hasd.Lp(4.0)
        assert state.grad_norm == geometry.dual_norm(g)
        assert state.gain == pytest.approx(geometry.dual_norm(g) / np.linalg.norm(g), rel=1e-14)
        assert np.array_equal(state.at.x, state.x) == at_the_iterate


@every_method
@pytest.mark.parametrize("L", [None, 8.0])
def test_fun_is_f_at_the_iterates_or_for_hasd_at_its_newest_gradient(method, L):
    mu = 1e-3 if method == "hasd-restart" else None
    states = list(islice(hasd.iterate(slope, START, jac=True, method=method, L=L, mu=mu), 21))
    points = [state.shown[0] for state in states]
    assert method == "hasd" or all(x is state.x for x, state in zip(points, states, strict=True))
    np.testing.assert_array_equal(solve(method, L=L, maxiter=20).trace["fun"], [slope(x)[0] for x in points])


@every_method
def test_counts_and_clock_never_go_back(method):
    res = solve(method, maxiter=50)
    for name in ("iteration", "nfev", "nprod", "seconds"):
        assert (np.diff(res.trace[name]) >= 0).all()
    assert res.trace["nfev"][-1] <= res.nfev
    assert res.trace["seconds"][0] >= 0.0


def test_products_are_in_the_trace():
    res = hasd.minimize(hasd.objectives.LeastSquares(np.eye(3), np.ones(3)), np.zeros(3), L=3.0, maxiter=4, tol=0)
    np.testing.assert_array_equal(res.trace["nprod"], 2 * res.trace["nfev"])


def test_a_long_trace_is_thinned():
    full = solve("hasd", L=8.0, p=2, maxiter=5000).trace
    res = solve("hasd", L=8.0, p=2, maxiter=5000, trace=100)
    rows = res.trace["iteration"]
    assert 100 <= len(rows) <= 201
    assert rows[0] == 0 and rows[-1] == res.nit == 5000
    assert (np.diff(rows)[:-1] == rows[1]).all()
    for name in set(COLUMNS) - {"seconds"}:
        np.testing.assert_array_equal(res.trace[name], full[name][rows])
    assert res.nrecord < 1000


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("maxiter", [0, 1, 2, 13, 100])
def test_the_first_and_the_last_row_survive_any_thinning(rows, maxiter):
    trace = solve(L=8.0, maxiter=maxiter, trace=rows).trace
    assert trace["iteration"][0] == 0
    assert trace["iteration"][-1] == maxiter
    assert min(rows, maxiter + 1) <= len(trace["iteration"]) <= 2 * rows + 1


def test_a_short_trace_is_not_thinned():
    np.testing.assert_array_equal(solve(maxiter=50, trace=100).trace["iteration"], np.arange(51))


@pytest.mark.parametrize("off", [False, 0, np.False_])
def test_no_trace_is_kept_when_it_is_turned_off(off):
    res = solve(L=8.0, maxiter=20, trace=off)
    assert res.trace is None
    assert res.nrecord == 1  # the returned point's own value and gradient


def test_a_numpy_true_is_true():
    assert len(solve(maxiter=20, trace=np.True_).trace["fun"]) == 21


@every_method
@pytest.mark.parametrize("L", [None, 8.0])
def test_recording_changes_nothing(method, L):
    with_trace, without = solve(method, L=L, maxiter=25), solve(method, L=L, maxiter=25, trace=False)
    np.testing.assert_array_equal(with_trace.x, without.x)
    assert with_trace.nfev == without.nfev
    assert with_trace.nrecord >= without.nrecord


def test_the_clock_stands_still_in_a_callback():
    calls, nap = [], 0.002

    def callback(x):
        calls.append(x)
        time.sleep(nap)

    began = time.perf_counter()
    res = hasd.minimize(slope, START, jac=True, maxiter=25, tol=0, callback=callback)
    elapsed = time.perf_counter() - began
    assert len(calls) > 5
    assert res.trace["seconds"][-1] <= elapsed - nap * len(calls)


def test_the_clock_stands_still_while_it_records():
    nap = 0.002

    def slow(x):
        time.sleep(nap)
        return slope(x)

    began = time.perf_counter()
    res = hasd.minimize(slow, START, jac=True, method="linear-coupling", L=8.0, maxiter=25, tol=0)
    elapsed = time.perf_counter() - began
    assert res.nrecord >= 25
    assert res.trace["seconds"][-1] <= elapsed - nap * res.nrecord
    assert res.trace["seconds"][-1] >= nap * (res.trace["nfev"][-1] - 1)
