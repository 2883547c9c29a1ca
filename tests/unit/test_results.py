"""One contract for results: every solver returns the same fields with the same meaning."""

import json
import math

import matplotlib
import numpy as np
import pytest

import hasd

matplotlib.use("Agg")

rng = np.random.default_rng(0)
A, b = rng.standard_normal((40, 3)), rng.standard_normal(40)
SOLVERS = {
    "minimize": lambda: hasd.minimize(hasd.objectives.LogSumExp(A, b, ridge=1e-2), np.zeros(3)),
    "chebyshev": lambda: hasd.chebyshev(A, b),
    "lp_fit": lambda: hasd.lp_fit(A, b, power=6),
    "transport": lambda: hasd.transport(rng.random((4, 5)), np.ones(4) / 4, np.ones(5) / 5, reg=0.1),
    "balance": lambda: hasd.balance(rng.random((4, 4)) + 0.1, np.ones(4), np.ones(4)),
}
FIELDS = {
    **{"fun": float, "gap": float, "lower": float, "seconds": float},
    **{"success": bool, "status": int, "message": str, "method": str, "nit": int, "nfev": int, "nprod": int},
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)


@every_solver
def test_every_solver_returns_the_fields_of_the_contract(solver):
    res = SOLVERS[solver]()
    assert isinstance(res, hasd.Result)
    for name, kind in FIELDS.items():
        assert isinstance(res[name], kind), (name, type(res[name]))
    assert (res.success and res.status == 0) or res.status == hasd.Status.GAP.code
    assert res.x.ndim == 1 and 0.0 <= res.gap < math.inf and res.lower <= res.fun
    assert res.seconds > 0.0 and res.nfev > 0 and res.nprod > 0
    lengths = {len(column) for column in res.trace.values()}
    assert len(lengths) == 1 and lengths.pop() > 0 and "fun" in res.trace


@every_solver
def test_a_result_prints_on_one_screen_without_what_is_not_known(solver):
    text = repr(SOLVERS[solver]())
    assert len(text.splitlines()) <= 24 and max(map(len, text.splitlines())) <= 200
    assert "nan" not in text and "inf" not in text.replace("infty", "") and "message:" in text and "trace:" in text


@every_solver
def test_a_result_can_be_drawn(solver):
    axes = SOLVERS[solver]().plot()
    assert axes.get_xlabel() in ("iteration", "row of the trace") and len(axes.lines) == 1
    matplotlib.pyplot.close(axes.figure)


def test_a_result_without_a_trace_has_nothing_to_draw():
    res = hasd.minimize(lambda x: (float(x @ x), 2 * x), np.ones(2), jac=True, trace=False)
    with pytest.raises(ValueError, match="recorded no trace"):
        res.plot()


@every_solver
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_saved_result_holds_the_fields(solver, suffix, tmp_path):
    res, path = SOLVERS[solver](), tmp_path / f"res{suffix}"
    res.save(path)
    if suffix == ".json":
        saved = json.loads(path.read_text())
        assert saved["fun"] == res.fun and saved["x"] == res.x.tolist()
        assert saved["trace.fun"] == pytest.approx(res.trace["fun"].tolist(), nan_ok=True)
    else:
        with np.load(path, allow_pickle=False) as saved:
            assert np.array_equal(saved["x"], res.x) and json.loads(str(saved["fields"]))["message"] == res.message
            assert np.array_equal(saved["trace.fun"], res.trace["fun"], equal_nan=True)


def test_a_result_lists_its_fields_and_what_can_be_done_with_them():
    """Mutation: __dir__ of SciPy's result, which lists the fields alone."""
    assert {"fun", "gap", "plot", "save", "items"} <= set(dir(hasd.Result(fun=1.0, gap=0.0)))


def test_a_result_is_saved_under_a_known_ending_only(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.json or \.npz"):
        SOLVERS["chebyshev"]().save(tmp_path / "res.txt")


def test_without_radius_and_strong_convexity_nothing_is_certified_and_the_certificate_asks_for_a_radius():
    res = hasd.minimize(lambda x: (float(x @ x), 2 * x), np.ones(2), jac=True)
    assert res.gap == math.inf and res.lower == -math.inf
    assert res.certificate.gap(radius=2.0) < 1e-6
    assert res.certificate.assumes == "f is convex; the radius given to gap() or lower()"
    with pytest.raises(ValueError, match="needs radius"):
        res.certificate.gap()


def test_a_certificate_says_what_it_assumes():
    res = hasd.minimize(hasd.objectives.LogSumExp(A, b, ridge=0.25), np.zeros(3), radius=9.0)
    assert res.certificate.assumes == "mu = 0.25; radius = 9" and res.certificate.convex
    assert res.gap == res.certificate.gap() == res.certificate.gap(9.0) and res.lower == res.certificate.lower()


def test_a_set_of_rows_that_lacks_room_bounds_the_error_of_every_scaling_from_below():
    K = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])  # the first two rows have the first column alone
    res = hasd.balance(K, [1.0, 1.0, 1.0], [1.0, 2.0])
    assert not res.success and res.status == hasd.Status.UNBOUNDED.code
    assert 0.0 < res.lower <= res.fun and res.lower == pytest.approx(2.0 / 3.0, abs=1e-9)


CALLED = {
    "chebyshev": lambda **told: hasd.chebyshev(A, b, **told),
    "lp_fit": lambda **told: hasd.lp_fit(A, b, power=30, **told),
    "transport": lambda **told: hasd.transport(np.abs(A[:20] @ A[20:].T), np.ones(20), np.ones(20), reg=1e-3, **told),
    "balance": lambda **told: hasd.balance(
        np.exp(A[:9, [0]] * 5 + A[9:18, 1] * A[:9, [2]]), np.ones(9), np.ones(9), **told
    ),
}


@pytest.mark.parametrize("solver", CALLED)
def test_a_callback_sees_every_row_of_the_trace_and_can_end_the_run(solver):
    """Mutation: the row of the trace for nit."""
    rows = []
    whole = CALLED[solver](callback=lambda intermediate_result: rows.append(intermediate_result))
    assert len(rows) == len(whole.trace["fun"]) >= 2 and [row.fun for row in rows] == whole.trace["fun"].tolist()
    assert all(isinstance(row, hasd.Result) for row in rows)
    assert [row.gap for row in rows] == [math.inf if solver == "transport" else row.fun - row.lower for row in rows]
    assert rows[-1].fun == pytest.approx(whole.fun, rel=1e-3, abs=1e-6)
    counts = [row.nit for row in rows]
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == whole.nit > 0
    seen = []

    def stop(intermediate_result):
        seen.append(intermediate_result)
        if len(seen) == 2:
            raise StopIteration

    early = CALLED[solver](callback=stop)
    assert early.status == hasd.Status.CALLBACK.code and not early.success and len(early.trace["fun"]) == 2
    assert early.lower <= early.fun and early.nit == seen[1].nit and "StopIteration" in early.message


@pytest.mark.parametrize(("solver", "norm"), [("chebyshev", np.inf), ("lp_fit", 30)])
def test_a_callback_of_a_fit_gets_the_point_that_its_value_belongs_to(solver, norm):
    rows = []
    whole = CALLED[solver](callback=lambda intermediate_result: rows.append(intermediate_result))
    for row in rows:
        assert row.fun == pytest.approx(np.linalg.norm(A @ row.x - b, norm), rel=1e-12)
    assert np.array_equal(rows[-1].x, whole.x)


def test_a_callback_of_transport_gets_potentials_from_which_a_run_can_start():
    masses, points = np.array([1e-30, 1.0, 1.0, 2.0]), []  # the first column is too light for the steps
    C, told = np.abs(A[:4] @ A[4:8].T), {"reg": 0.01, "error_tol": 1e-9}
    whole = hasd.transport(
        C, np.ones(4), masses, callback=lambda intermediate_result: points.append(intermediate_result.x), **told
    )
    heavy = [0, 1, 2, 3, 5, 6, 7]
    np.testing.assert_allclose(points[-1][heavy], whole.x[heavy], atol=1e-9)
    assert points[-1][4] == -np.inf and hasd.transport(C, np.ones(4), masses, x0=points[-1], **told).nit <= 2


@pytest.mark.parametrize("solver", CALLED)
@pytest.mark.parametrize("flag", ["progress", "disp"])
@pytest.mark.parametrize("value", ["yes", 1, None])
def test_flags_are_true_or_false(solver, flag, value):
    with pytest.raises(TypeError, match=f"{flag} must be True or False, got"):
        CALLED[solver](**{flag: value})


@pytest.mark.parametrize("solver", CALLED)
def test_progress_and_disp_say_something(solver, capsys):
    res = CALLED[solver](progress=True, disp=True)
    told = capsys.readouterr()
    assert res.message in told.out and "Iterations:" in told.out and solver in told.err


@pytest.mark.parametrize("solver", CALLED)
def test_a_time_limit_of_zero_ends_at_once_with_an_answer(solver):
    res = CALLED[solver](time_limit=0.0)
    assert np.isfinite(res.fun) and res.lower <= res.fun
