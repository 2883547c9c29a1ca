"""hasd.transport: entropic transport with a feasible plan and a certified gap.

Mutations that must fail here: in `problems/transport.py`, `Rounded.of`, take `keep` to be 1 everywhere (no line 3); in
`objectives/transport.py`, NEGLIGIBLE = -4.
"""

import importlib
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.linalg import aslinearoperator

from hasd._run.status import Status
from hasd.objectives.transport import SemiDual
from hasd.problems._transport import transport


def points(n=30, m=20, seed=0, uniform=False):
    rng = np.random.default_rng(seed)
    C = ((rng.random((n, 1, 2)) - rng.random((1, m, 2))) ** 2).sum(axis=-1)
    a, b = (np.ones(n), np.ones(m)) if uniform else (rng.random(n) ** 2 + 0.01, rng.random(m) ** 2 + 0.01)
    return C / C.max(), a / a.sum(), b / b.sum()


def regularised(C, P, reg):
    return float((C * P).sum() + reg * (P * np.log(np.maximum(P, 1e-300))).sum())


def exact(C, a, b):
    """The unregularised optimum, by linear programming."""
    n, m = C.shape
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    return linprog(C.ravel(), A_eq=np.vstack((rows, columns)), b_eq=np.concatenate((a, b))).fun


def assert_feasible(P, a, b, atol=1e-12):
    assert P.min() >= 0.0
    np.testing.assert_allclose(P.sum(axis=1), a, rtol=0.0, atol=atol * np.sum(a))
    np.testing.assert_allclose(P.sum(axis=0), b, rtol=0.0, atol=atol * np.sum(a))


@pytest.mark.parametrize("reg", [1.0, 1e-1, 2e-2])
def test_transport_agrees_with_sinkhorn_of_another_library(reg):
    ot = pytest.importorskip("ot")
    C, a, b = points()
    theirs = ot.bregman.sinkhorn_log(a, b, C, reg, numItermax=100_000, stopThr=1e-12)
    res = transport(C, a, b, reg, error_tol=1e-9)
    assert res.success and res.status == 0
    np.testing.assert_allclose(res.plan(), theirs, atol=1e-8)
    assert res.cost == pytest.approx((C * theirs).sum(), abs=1e-6)
    assert res.fun == pytest.approx(regularised(C, theirs, reg), abs=1e-6)


@pytest.mark.parametrize("reg", [1e-2, 1e-3, 1e-5, 1e-7])
def test_the_cost_tends_to_the_exact_optimum_within_the_entropic_bound(reg):
    C, a, b = points()
    best = exact(C, a, b)
    res = transport(C, a, b, reg)
    assert res.success
    assert best - 1e-12 <= res.cost <= best + reg * np.log(min(C.shape)) + res.gap + 1e-12


@pytest.mark.parametrize("reg", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("maxiter", [0, 1, 3, 10, None])
def test_bounds_hold_wherever_the_run_ends(reg, maxiter):
    C, a, b = points()
    best = transport(C, a, b, reg, error_tol=1e-12)
    res = transport(C, a, b, reg, maxiter=maxiter)
    assert res.lower <= best.fun + 1e-13 and best.lower <= res.fun + 1e-13
    assert res.gap == res.fun - res.lower and res.gap >= res.fun - best.fun - 1e-13 and res.gap >= 0.0
    assert res.fun == pytest.approx(regularised(C, res.plan(), reg), abs=1e-13)
    assert res.cost == pytest.approx((C * res.plan()).sum(), abs=1e-14)
    assert_feasible(res.plan(), a, b)


def test_potentials_make_the_plan_before_rounding():
    C, a, b = points()
    res = transport(C, 3 * a, 3 * b, 1e-2, error_tol=1e-10)
    P = np.exp((res.u[:, None] + res.v - C) / 1e-2)
    np.testing.assert_allclose(P, res.plan(), atol=1e-9)
    np.testing.assert_array_equal(res.x, np.concatenate((res.u, res.v)))
    assert res.lower == pytest.approx(3 * a @ res.u + 3 * b @ res.v, abs=1e-11)
    assert res.message == "Converged: the marginals are within the tolerance." and res.fun == pytest.approx(
        regularised(C, P, 1e-2), abs=1e-8
    )


def test_the_error_is_that_of_the_plan_before_rounding():
    C, a, b = points()
    res = transport(C, a, b, 1e-2, maxiter=4)
    P = np.exp((res.u[:, None] + res.v - C) / 1e-2)
    assert res.marginal_error == pytest.approx(np.abs(P.sum(axis=0) - b).sum() + np.abs(P.sum(axis=1) - a).sum())
    assert not res.success and res.status == Status.MAXITER.code and res.nit == 4


def test_points_without_mass_get_no_plan():
    C, a, b = points()
    a[[0, 7]], b[3] = 0.0, 0.0
    a, b = a / a.sum(), b / b.sum()
    res = transport(C, a, b, 1e-2)
    P = res.plan()
    assert res.success and not P[[0, 7]].any() and not P[:, 3].any()
    assert_feasible(P, a, b)
    assert np.all(res.u[[0, 7]] == -np.inf) and res.v[3] == -np.inf and np.isfinite(res.x).sum() == 47
    small = transport(np.delete(np.delete(C, [0, 7], 0), 3, 1), a[a > 0], b[b > 0], 1e-2)
    assert small.fun == pytest.approx(res.fun, rel=1e-13) and small.npass == res.npass
    again = transport(C, a, b, 1e-2, x0=res.x)
    assert again.success and again.nit <= 1


def test_rows_and_columns_may_come_in_any_order():
    C, a, b = points()
    rng = np.random.default_rng(1)
    i, j = rng.permutation(len(a)), rng.permutation(len(b))
    one, other = (transport(*data, 1e-3, error_tol=1e-10) for data in ((C, a, b), (C[i][:, j], a[i], b[j])))
    np.testing.assert_allclose(one.plan()[i][:, j], other.plan(), atol=1e-10)
    flipped = transport(C.T, b, a, 1e-3, error_tol=1e-10)
    np.testing.assert_allclose(one.plan().T, flipped.plan(), atol=1e-10)


def test_single_precision_and_integers_are_solved():
    C, a, b = points()
    res = transport(C.astype(np.float32), a.astype(np.float32), b.astype(np.float32), 1e-2)
    assert res.success and res.fun == pytest.approx(transport(C, a, b, 1e-2).fun, abs=1e-6)
    assert_feasible(res.plan(), a, b, atol=1e-6)
    whole = transport([[0, 1], [1, 0]], [1, 1], [1, 1], 1)
    assert whole.success and whole.cost == pytest.approx(2 / (1 + np.e))


@pytest.mark.parametrize("data", ["points", "random", "clouds", "negative", "constant"])
@pytest.mark.parametrize("reg", [1e3, 1e1, 1e-1, 1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-300])
def test_every_reg_ends_with_a_status_and_a_plan(data, reg):
    C, a, b = points(20, 20)
    rng = np.random.default_rng(3)
    if data == "random":
        C = rng.random((20, 20))
    if data == "clouds":
        C, b = ((a[:, None] - a) ** 2), a  # the optimum is 0
    if data == "negative":
        C = -C
    if data == "constant":
        C = np.full((20, 20), 7.0)
    res = transport(C, a, b, reg, time_limit=60.0)
    assert_feasible(res.plan(), a, b)
    assert np.isfinite([res.cost, res.fun, res.lower, res.gap, res.marginal_error]).all() and res.gap >= 0.0
    assert np.isfinite(res.x).all()
    assert res.success or (reg < 1e-10 and res.status == Status.PRECISION.code)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_units_of_costs_and_masses_do_not_change_the_solution(scale):
    C, a, b = points()
    one, other = transport(C, a, b, 1e-2), transport(scale * C, a, b, 1e-2 * scale)
    assert other.success and one.nit == other.nit
    assert other.fun / scale == pytest.approx(one.fun, rel=1e-6)
    mass = transport(C, a * scale, b * scale, 1e-2)
    assert mass.success and mass.cost / scale == pytest.approx(one.cost, rel=1e-9)
    assert_feasible(mass.plan(), a * scale, b * scale)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2), (300, 3), (3, 300)])
def test_small_and_thin_problems_get_a_feasible_plan(shape):
    C, a, b = points(*shape)
    for reg in (1e-1, 1e-4):
        res = transport(C, a, b, reg)
        assert res.success
        assert_feasible(res.plan(), a, b)


def test_the_trace_ends_at_the_results_numbers_and_lower_never_falls():
    C, a, b = points(60, 60)
    res = transport(C, a, b, 1e-3)
    trace = res.trace
    assert set(trace) == {"seconds", "fun", "lower", "marginal_error", "reg", "npass"}
    assert len({len(column) for column in trace.values()}) == 1
    assert np.all(np.diff(trace["lower"]) >= 0) and np.all(np.diff(trace["seconds"]) >= 0)
    assert trace["lower"][-1] == pytest.approx(res.lower, abs=1e-12) and trace["fun"][-1] == pytest.approx(
        res.fun, 1e-6
    )
    assert trace["marginal_error"][-1] == pytest.approx(res.marginal_error) and trace["reg"][-1] == pytest.approx(1e-3)
    assert np.ceil(trace["npass"][-1]) == res.npass


def test_passes_are_counted(monkeypatch):
    C, a, b = points()
    made = []

    class Counting(SemiDual):
        def rows(self, shift, buffer, here):
            made.append(here.stop - here.start)
            return super().rows(shift, buffer, here)

    monkeypatch.setattr(importlib.import_module("hasd.problems._transport"), "SemiDual", Counting)
    monkeypatch.setattr("hasd.objectives.transport._kernel_pass", lambda dual, shift: None)
    res = transport(C, a, b, 1e-1)
    assert sum(made) == len(a) * (res.npass + 2)  # the two are the result's


def test_kept_exponentials_give_what_a_pass_gives(monkeypatch):
    C, a, b = points(60, 50)
    f = SemiDual(C, a, b, 0.05)
    x = 3.0 * np.random.default_rng(0).standard_normal(50)
    f.value_and_grad(np.zeros(50))
    quick = f.value_and_grad(x)
    assert f.nprod == 3
    monkeypatch.setattr("hasd.objectives.transport.LEAST", 1e300)
    far = f.value_and_grad(1e3 * x)  # as if sums had underflown: two products in vain, and a pass
    assert f.nprod == 6
    monkeypatch.setattr("hasd.objectives.transport._kernel_pass", lambda dual, shift: None)
    slow = SemiDual(C, a, b, 0.05)
    for one, other in ((quick, slow.value_and_grad(x)), (far, slow.value_and_grad(1e3 * x))):
        assert one[0] == pytest.approx(other[0], rel=1e-14)
        np.testing.assert_allclose(one[1], other[1], atol=1e-14)


@pytest.mark.parametrize("reg", [1e-1, 1e-3])
def test_memory_is_three_matrices_at_most(reg):
    C, a, b = points(400, 400)
    transport(C, a, b, reg, maxiter=1)
    tracemalloc.start()
    res = transport(C, a, b, reg)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert res.success and peak < 3 * C.nbytes


def test_a_warm_start_saves_iterations_and_a_time_limit_ends_the_run():
    C, a, b = points(60, 60)
    res = transport(C, a, b, 1e-3)
    near = transport(C, a, b, 0.9e-3, x0=res.x)
    assert near.success and near.nit < res.nit
    assert transport(C, a, b, 1e-3, x0=np.full(120, np.nan)).success
    late = transport(C, a, b, 1e-3, time_limit=0.0)
    assert late.status == Status.TIME.code and not late.success and late.gap > 0.0


def test_newton_is_used_where_the_plan_is_sparse():
    C, a, b = points(60, 60, uniform=True)
    f = SemiDual(C, a, b, 1e-3)
    x = np.zeros(60)
    value = f.value_and_grad(x)[0]
    assert f.nprod == 1 and f.pass_at(x).plan is not None and f.nprod == 1
    curvature, d = f.curvature(x), np.random.default_rng(0).standard_normal(60)
    change = (f.value_and_grad(x + 1e-6 * d)[1] - f.value_and_grad(x - 1e-6 * d)[1]) / 2e-6
    np.testing.assert_allclose(curvature.times(d), change, atol=1e-6 * np.abs(change).max())
    assert SemiDual(C, a, b, 1.0).curvature(x) is None
    x += 1.0  # a caller's own array: nothing is looked up by it
    x[0] = 3.0
    assert f.value_and_grad(x)[0] != value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": [0.5, 0.6]}, "the same positive and finite sum, got 1.1.* and 1"),
        ({"a": [1.5, -0.5]}, r"a must not be negative, but a\[1\] is -0.5"),
        ({"a": [0.0, 0.0], "b": [0.0, 0.0]}, "the same positive"),
        ({"a": [1.0]}, "a must be 1-D of length 2"),
        ({"C": [[np.inf, 1.0], [1.0, 0.0]]}, "C must be finite"),
        ({"reg": 0.0}, "reg must be finite and greater than 0, got 0.0"),
        ({"error_tol": -1.0}, "error_tol must be"),
        ({"x0": [1.0]}, "x0 must be 1-D of length 4"),
        ({"C": [[1.7e308, -1.7e308], [0.0, 0.0]]}, "C must have a finite range"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"C": [[0.0, 1.0], [1.0, 0.0]], "a": [0.5, 0.5], "b": [0.5, 0.5], "reg": 0.1, **change}
    with pytest.raises(ValueError, match=message):
        transport(**given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": sp.csr_array([[0.0, 1.0], [1.0, 0.0]])}, "C must be a dense array of costs, got a csr_array"),
        ({"C": aslinearoperator(np.eye(2))}, "C must be a dense array of costs, got a MatrixLinearOperator"),
        ({"reg": "1"}, "reg must be a number, got '1'"),
        ({"reg": True}, "reg must be a number, got True"),
        ({"x0": ["a", "b", "c", "d"]}, "x0 must be a real vector"),
        ({"x0": [1j] * 4}, "x0 must be a real vector"),
    ],
    ids=["sparse", "operator", "string", "bool", "words", "complex"],
)
def test_what_is_no_number_is_refused(change, message):
    given = {"C": [[0.0, 1.0], [1.0, 0.0]], "a": [0.5, 0.5], "b": [0.5, 0.5], "reg": 0.1, **change}
    with pytest.raises(TypeError, match=message):
        transport(**given)


def light(n=10, seed=0, low=-13.0):
    """Ordinary masses beside some that are nearly 0."""
    C, a, b = points(n, n, seed)
    rng = np.random.default_rng(seed)
    for mass in (a, b):
        some = 1 + rng.permutation(n - 1)[: n // 2]
        mass[some] = 10.0 ** rng.uniform(low, -12.0, some.size)
    return C, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("low", [-13.0, -30.0, -300.0])
@pytest.mark.parametrize("reg", [1e-3, 1e-5, 1e-7])
def test_masses_near_zero_cost_no_steps(reg, low):
    """Mutation: `solve` in place of `solve_heavy` (thousands of steps, or none that helps)."""
    for seed in range(6):
        C, a, b = light(seed=seed, low=low)
        res = transport(C, a, b, reg, time_limit=20.0)
        assert res.success and res.nit < 150, (seed, res.nit)
        assert_feasible(res.plan(), a, b)
        best = exact(C, a, b)
        assert best - 1e-9 <= res.cost <= best + reg * np.log(10) + res.gap + 1e-9
        P = np.exp((res.u[:, None] + res.v - C) / reg)
        assert np.abs(P.sum(axis=0) - b).sum() == pytest.approx(res.marginal_error, rel=1e-4, abs=1e-8)
        assert res.trace["lower"].max() <= res.fun and np.isfinite(res.x).all()


def test_light_columns_get_their_masses():
    """Mutation: leave their potentials at 0."""
    C, a, b = light(seed=1)
    res = transport(C, a, b, 1e-1)
    P, few = np.exp((res.u[:, None] + res.v - C) / 1e-1), b < 1e-9
    assert few.any()
    np.testing.assert_allclose(P.sum(axis=0)[few], b[few], rtol=1e-4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mass", [1.0, 7.0])
def test_every_bound_of_the_trace_is_one(seed, mass):
    """One row: the plan is b.  Mutations: no charge for rounding; the part's bound taken for the whole's."""
    rng = np.random.default_rng(seed)
    C, b = 1e3 + rng.random((1, 12)), rng.dirichlet(np.ones(12))
    if seed % 2:  # without its cheapest columns, too light to matter, the optimum is larger
        b[:4], C[:, :4] = 1e-11, 0.0
        b /= b.sum()
    res = transport(C, [mass], mass * b, 1e-5)
    value = mass * (C[0] @ b + 1e-5 * (b @ np.log(mass * b)))
    assert np.all(res.trace["lower"] <= value) and res.lower <= value
    assert res.trace["lower"][-1] == pytest.approx(res.lower, abs=mass * (1e-12 if seed % 2 == 0 else 1e-6))


def test_the_dual_of_a_plan_that_exists_is_not_unbounded():
    """One column: the gradient is rounding, and f falls along it without end; mutation: the status as it ended."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        res = transport(rng.integers(0, 3, (n, 1)), rng.dirichlet(np.ones(n)), [1.0], 1e-6, error_tol=0.0)
        assert res.status in (Status.CONVERGED.code, Status.PRECISION.code) and res.marginal_error < 1e-15


def test_one_row_has_one_plan():
    """The plan is b: its value is known, and no certificate may be below it."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        m = int(rng.integers(2, 36))
        C, b, reg = rng.random((1, m)), rng.dirichlet(np.ones(m)), 10.0 ** rng.uniform(-6, 0)
        res = transport(C, [1.0], b, reg)
        value = C[0] @ b + reg * (b @ np.log(b))
        assert res.lower - 1e-12 <= value <= res.fun + 1e-12
        np.testing.assert_allclose(res.plan()[0], b, atol=1e-14)


@pytest.mark.parametrize("b", [[0.5, 0.2, 0.3], [0.2, 0.3, 0.5]])
def test_the_last_potentials_of_the_callback_are_those_of_the_result(b):
    C, seen = np.random.default_rng(0).random((4, 3)), []

    def callback(*, intermediate_result):
        seen.append(intermediate_result.x)

    res = transport(C, [0.1, 0.2, 0.3, 0.4], b, 0.1, error_tol=1e-10, callback=callback)
    np.testing.assert_allclose(seen[-1], res.x, atol=1e-6)
