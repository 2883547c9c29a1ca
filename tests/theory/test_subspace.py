"""hasd-subspace and hasd-qn: the certified sequence at every iterate, conjugate gradients on quadratics, no drift."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import hasd
from hasd import objectives, theory
from hasd.objectives._images import LocalImages
from reference.pseudocode import psi_minimum
from support import AFFINE, allowance, every_affine, least_squares, log_sum_exp, logistic, minimax, states

both_methods = pytest.mark.parametrize("method", ["hasd-subspace", "hasd-qn"])


def cut_points(method, run):
    """Where each cut was taken: subspace notes the gradient it used, qn the one it arrived at."""
    return [state.at for state in (run[1:] if method == "hasd-subspace" else run)]


@every_affine
@both_methods
@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
def test_the_invariant_holds_at_every_iterate_and_f_never_rises(known, method, p):
    """A_t f(x_t) <= psi*_t, f never rises, and the lower bound is never above f*."""
    known = known()
    run = states(known, method, 40, p=p)
    cuts, weight, value = [], 0.0, math.inf
    for state, at in zip(run[1:], cut_points(method, run), strict=False):
        if state.weight > weight:
            cuts.append((state.weight - weight, at.x, *known.f.value_and_grad(at.x)))
        weight = state.weight
        _, psi = psi_minimum(cuts, known.x0)
        f = known.f(state.x)
        assert state.psi == pytest.approx(psi, rel=1e-8, abs=1e-8)
        assert weight * f <= psi + allowance(weight * f, psi) + 1e-9 * known.R**2
        assert f <= value + allowance(f)
        assert state.estimate.certificate(state.origin).lower(known.R) <= known.f_star + allowance(known.f_star)
        value = f


@pytest.mark.parametrize("known", [log_sum_exp, logistic, least_squares], ids=lambda make: make.__name__)
def test_the_tight_rate_holds_without_any_L(known):
    """The tight form's bound with the true L_2, which the method was never told."""
    known = known()
    for state in states(known, "hasd-subspace", 40)[1:]:
        bound = theory.tight_bound(known.L(2.0), known.R, 1.0, state.iteration)
        assert known.f(state.x) - known.f_star <= bound + allowance(known.f_star)
        assert state.weight >= 0.9 * theory.tight_weight_bound(known.L(2.0), 1.0, state.iteration) or (
            known.f(state.x) - known.f_star < 1e-12
        )


@pytest.mark.parametrize("memory", [None, 6])
@pytest.mark.parametrize("mu", [0.0, 1e-2])
def test_v_stays_in_the_span(memory, mu):
    """What the rate leans on: v_t - x_t lies in the span that x_{t+1} is sought in, also after it was cut down."""
    known = minimax()
    for state in states(known, "hasd-subspace", 40, memory=memory, mu=mu)[1:]:
        apart = state.estimate.v - state.x
        inside = state.span.S.columns @ state.apart
        assert np.linalg.norm(apart - inside) <= 1e-9 * (np.linalg.norm(apart) + np.linalg.norm(state.x))


@both_methods
def test_a_function_without_minimum_is_called_unbounded(method):
    """The paper's problem at mu = 0: every row of A has a positive sum.  And quadratics without curvature."""
    rng = np.random.default_rng(13)
    steep = objectives.LogSumExp(np.abs(rng.standard_normal((60, 8))))
    wide = objectives.LogSumExp(np.abs(rng.standard_normal((300, 200))), b=rng.standard_normal(300))
    flat = objectives.Quadratic(np.zeros((3, 3)), np.ones(3))
    half = objectives.Quadratic(np.diag([1.0, 0.0]), np.ones(2))
    for f in (steep, wide, flat, half):
        for x0 in (np.zeros(f.dimension), np.ones(f.dimension)):
            res = hasd.minimize(f, x0, method=method, maxiter=500)
            assert res.status == 13 and not res.success, (type(f), res.message)
    separable = objectives.Logistic(np.eye(2), [1.0, -1.0])  # infimum 0, not attained: no false alarm
    assert hasd.minimize(separable, np.zeros(2), method=method, tol=1e-10).success


@pytest.mark.parametrize("memory", [None, 6])
def test_hasd_subspace_is_conjugate_gradients_on_least_squares(memory):
    known = least_squares()
    A, b = known.f.A, known.f.b
    x, r = known.x0, b - A @ known.x0
    s = A.T @ r
    q, size = s, s @ s
    run = states(known, "hasd-subspace", 12, memory=memory)
    for state in run[1:]:
        image = A @ q
        step = size / (image @ image)
        x, r = x + step * q, r - step * image
        s = A.T @ r
        new = s @ s
        q, size = s + new / size * q, new
        np.testing.assert_allclose(state.x, x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("p", "products"), [(2.0, 2), (3.0, 3), (math.inf, 3)])
def test_an_iteration_needs_two_products_at_p_2_and_three_elsewhere(p, products):
    known = log_sum_exp()
    f = objectives.LogSumExp(np.random.default_rng(0).standard_normal((400, 200)), ridge=1e-3)
    res = hasd.minimize(f, np.ones(200), method="hasd-subspace", p=p, tol=0, maxiter=15)
    assert np.all(np.diff(res.trace["nprod"])[1:] == products)
    assert known.f.A is not None


@both_methods
def test_certified_gap_is_what_a_run_can_stop_on(method):
    for known in (make() for make in AFFINE):
        res = hasd.minimize(known.f, known.x0, method=method, mu=0.0, tol=0, gap_tol=1e-3, radius=known.R, maxiter=3000)
        assert res.status == 14 and res.success, (known.name, res.message)
        assert res.fun - known.f_star <= 1e-3
        assert res.gap <= 1e-3 * (1 + 1e-6)
        assert np.all(np.diff(res.trace["lower"]) >= 0) and np.all(np.diff(res.trace["upper"]) <= 0)
        assert res.trace["lower"][-1] <= known.f_star + allowance(known.f_star)
    known = logistic()  # a ridge: no radius needed
    res = hasd.minimize(known.f, known.x0, method=method, tol=0, gap_tol=1e-9)
    assert res.status == 14 and res.fun - known.f_star <= 1e-9


def test_gap_tol_without_a_valid_radius_is_refused():
    known = log_sum_exp()
    with pytest.raises(ValueError, match="gap_tol needs radius"):
        hasd.minimize(known.f, known.x0, gap_tol=1e-3)
    with pytest.raises(ValueError, match="radius must be"):
        hasd.minimize(known.f, known.x0, gap_tol=1e-3, radius=-1.0)


def test_duality_gap_is_true_and_no_more_than_strong_convexity_gives():
    """Against a run of ours; ``tests/unit/test_dual.py`` has the rest."""
    rng = np.random.default_rng(9)
    A, b = rng.standard_normal((50, 7)), rng.standard_normal(50)
    labels = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    for f in (
        objectives.LogSumExp(A, b, alpha=0.3, ridge=0.1),
        objectives.LeastSquares(A, b, ridge=0.1),
        objectives.Logistic(A, labels, ridge=0.1),
    ):
        best = hasd.minimize(f, np.zeros(7), tol=1e-12).fun
        for x in rng.standard_normal((5, 7)):
            value, g = f.value_and_grad(x)
            assert value - best - 1e-12 <= f.duality_gap(x) <= (1.0 + 1e-8) * (g @ g) / 0.2


@pytest.mark.slow
def test_images_do_not_drift_in_five_thousand_iterations(monkeypatch):
    """Singular values from 1 to 1e-8: what the images are off by, just before each refresh."""
    rng = np.random.default_rng(10)
    U, _ = np.linalg.qr(rng.standard_normal((150, 100)))
    V, _ = np.linalg.qr(rng.standard_normal((100, 100)))
    A = U * np.geomspace(1.0, 1e-8, 100) @ V.T
    f = objectives.LeastSquares(A, A @ (1e6 * rng.standard_normal(100)))
    seen, t = [], 0
    for state in hasd.iterate(f, np.zeros(100), method="hasd-subspace", memory=12, inner=1):
        if state.age == 0 and state.iteration:
            seen.append(state.drift)
        t = state.iteration
        if t >= 5000:
            break
    assert t >= 5000 and len(seen) >= 12
    assert max(seen) < 1e-9
    assert state.fun == pytest.approx(f(state.x), rel=1e-6, abs=1e-12 * f(np.zeros(100)))


def test_mutation_images_off_by_1e_9_are_seen(monkeypatch):
    """The drift that a refresh reports does see wrong images, and their disagreement with g makes them anew."""
    known = minimax()
    honest = max(state.drift for state in states(known, "hasd-subspace", 60, memory=6))
    multiply = LocalImages.multiply
    monkeypatch.setattr(LocalImages, "multiply", lambda self, q: multiply(self, q) * (1 + 1e-7))
    run = states(known, "hasd-subspace", 60, memory=6)
    assert honest < 1e-13 < 1e-9 < max(state.drift for state in run)
    assert any(after.age == 1 and before.age < before.due - 1 for before, after in itertools.pairwise(run[2:]))


@both_methods
@pytest.mark.parametrize("kind", ["csr", "csc", "operator", "float32", "int"])
def test_every_kind_of_matrix_leads_to_the_same_minimiser(method, kind):
    rng = np.random.default_rng(11)
    dense = rng.integers(-2, 3, (80, 12)).astype(float)
    b = rng.standard_normal(80)
    A = {
        "csr": scipy.sparse.csr_array(dense),
        "csc": scipy.sparse.csc_array(dense),
        "operator": LinearOperator(dense.shape, matvec=dense.dot, rmatvec=dense.T.dot, dtype=np.float64),
        "float32": dense.astype(np.float32),
        "int": dense.astype(np.int64),
    }[kind]
    expected = hasd.minimize(objectives.LogSumExp(dense, b, ridge=0.1), np.zeros(12), method=method, tol=1e-10)
    tol = 1e-5 if kind == "float32" else 1e-10
    res = hasd.minimize(objectives.LogSumExp(A, b, ridge=0.1), np.zeros(12), method=method, tol=tol)
    np.testing.assert_allclose(res.x, expected.x, rtol=0, atol=1e-3 if kind == "float32" else 1e-8)
    assert ("converted from int64 to float64, once" in res.message) == (kind == "int")


def test_auto_chooses_by_counted_cost_and_says_so():
    rng = np.random.default_rng(12)

    def dense(d, n=100):
        return rng.standard_normal((n, d))

    def thin(d, n=100):
        return scipy.sparse.random_array((n, d), density=5.0 / d, random_state=rng, format="csr")

    operator = LinearOperator((100, 60), matvec=dense(60).dot, rmatvec=dense(60).T.dot, dtype=np.float64)
    labels, many = np.sign(rng.standard_normal(100)), np.sign(rng.standard_normal(5000))
    chosen = [
        (objectives.LogSumExp(dense(60), ridge=0.1), "hasd-newton"),
        (objectives.LogSumExp(thin(60), ridge=0.1), "hasd-newton"),
        (objectives.LogSumExp(dense(300), ridge=0.1), "hasd-subspace"),
        (objectives.SymmetricSoftmax(dense(300)), "hasd-newton"),
        (objectives.Logistic(dense(300), labels, ridge=0.1), "hasd-newton"),
        (objectives.LogSumExp(dense(1200), ridge=0.1), "hasd-subspace"),
        (objectives.LogSumExp(thin(1200, 50000), ridge=0.1), "hasd-qn"),
        (objectives.SymmetricSoftmax(dense(1200, 5000)), "hasd-qn"),
        (objectives.Logistic(dense(1200, 5000), many, ridge=0.1), "hasd-qn"),
        (objectives.Logistic(thin(60000), labels, ridge=0.1), "hasd-subspace"),
        (objectives.Logistic(thin(1200, 5000), many, ridge=0.1), "hasd-qn"),
        (objectives.LogSumExp(operator, ridge=0.1), "hasd-subspace"),
        (objectives.LeastSquares(dense(60), labels), "hasd-newton"),
        (objectives.LeastSquares(dense(1200), labels), "hasd-cg"),
        (lambda x: (x @ x, 2 * x), "hasd-qn"),
    ]
    for f, name in chosen:
        d = getattr(f, "dimension", 60)
        res = hasd.minimize(f, np.ones(d), jac=None if hasattr(f, "ridge") else True, maxiter=3)
        assert res.method == name and res.reason


def test_subspace_names_what_it_misses():
    with pytest.raises(TypeError, match=r"needs an objective f\(x\) = phi\(Ax - b\)"):
        hasd.minimize(lambda x: x @ x, np.ones(3), method="hasd-subspace")


@both_methods
def test_resuming_gives_the_same_bits(method):
    known = log_sum_exp()
    whole = hasd.minimize(known.f, known.x0, method=method, tol=0, maxiter=20, trace=False)
    half = hasd.minimize(known.f, known.x0, method=method, tol=0, maxiter=9, trace=False)
    rest = hasd.minimize(known.f, known.x0, method=method, tol=0, maxiter=20, trace=False, resume=half.state)
    again = hasd.minimize(known.f, known.x0, method=method, tol=0, maxiter=20, trace=False, resume=half.state)
    np.testing.assert_array_equal(rest.state.x, whole.state.x)
    np.testing.assert_array_equal(again.state.x, whole.state.x)  # a state that was gone on from before


def test_reported_value_is_recomputed_from_x():
    for make in AFFINE:
        known = make()
        res = hasd.minimize(known.f, known.x0, method="hasd-subspace", maxiter=25)
        assert res.fun == known.f(res.x)
        np.testing.assert_array_equal(res.jac, known.f.value_and_grad(res.x)[1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_beyond_A_is_at_most_2m_plus_12_vectors(dtype, order):
    """At most 2m + 12 vectors of length n and d; no temporary of the size of A in any product."""
    n, d, m = 30_000, 200, 16
    A = np.asarray(np.random.default_rng(14).standard_normal((n, d)), dtype=dtype, order=order)
    f = objectives.LogSumExp(A, ridge=1e-3)
    tracemalloc.start()
    hasd.minimize(f, np.zeros(d), method="hasd-subspace", memory=m, maxiter=40, tol=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= (2 * m + 12) * (n + d) * 8


def test_counted_products_are_those_that_were_made():
    """Through a LinearOperator that counts for itself: the method's products and the record's add up."""
    made = [0]
    dense = np.random.default_rng(15).standard_normal((60, 30))

    def counted(matrix):
        def product(v):
            made[0] += 1
            return matrix @ v

        return product

    A = LinearOperator(dense.shape, matvec=counted(dense), rmatvec=counted(dense.T), dtype=np.float64)
    for method in ("hasd-subspace", "hasd-qn"):
        made[0] = 0
        res = hasd.minimize(objectives.LogSumExp(A, ridge=0.1), np.ones(30), method=method, tol=1e-8)
        assert made[0] == res.nprod + 2 * res.nrecord  # the answer is evaluated anew from x: value and gradient
        assert res.nrecord == 1


def test_maxfun_is_never_exceeded_by_quasi_newton():
    calls = [0]

    def f(x):
        calls[0] += 1
        return float(np.sum(np.cosh(x))), np.sinh(x)

    for budget in (1, 2, 5, 9):
        calls[0] = 0
        res = hasd.minimize(f, np.linspace(1.0, 3.0, 20), jac=True, method="hasd-qn", tol=0, maxfun=budget)
        assert calls[0] == res.nfev + res.nrecord <= budget + 1
        assert res.nfev <= budget


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_quasi_newton_backs_away_from_where_f_is_not_finite(bad):
    def f(x):
        if np.max(np.abs(x)) > 3.0:
            return bad, np.full_like(x, math.nan)
        return float(np.sum(x**2 - np.log(9.0 - x**2))), 2 * x + 2 * x / (9.0 - x**2)

    res = hasd.minimize(f, np.full(5, 2.9), jac=True, method="hasd-qn")
    assert res.success
    np.testing.assert_allclose(res.x, 0.0, atol=1e-4)


@both_methods
@pytest.mark.parametrize("x_dtype", [np.float32, np.float64])
def test_certificates_stay_true_where_A_is_float32(method, x_dtype):
    """Products good to 1e-7 only: the bounds must allow for it."""
    rng = np.random.default_rng(16)
    A, b = rng.standard_normal((300, 40)).astype(np.float32), rng.standard_normal(300)
    for make in (
        lambda A: objectives.LogSumExp(A, b, alpha=0.1, ridge=1e-3),
        lambda A: objectives.LeastSquares(A, b, ridge=1e-3),
    ):
        exact = make(A.astype(np.float64))
        best = hasd.minimize(exact, np.zeros(40), tol=1e-12, trace=False)
        res = hasd.minimize(make(A), np.zeros(40, dtype=x_dtype), method=method, tol=1e-12, maxiter=300)
        true = exact(res.x.astype(np.float64)) - best.fun
        R = float(np.linalg.norm(best.x))
        assert res.gap >= true and res.certificate.gap(R) >= true


def test_a_resumed_run_counts_its_own_products():
    f = objectives.LogSumExp(np.random.default_rng(17).standard_normal((60, 30)), ridge=0.01)
    whole = hasd.minimize(f, np.ones(30), method="hasd-subspace", tol=0, maxiter=12, trace=False)
    half = hasd.minimize(f, np.ones(30), method="hasd-subspace", tol=0, maxiter=6, trace=False)
    rest = hasd.minimize(f, np.ones(30), method="hasd-subspace", tol=0, maxiter=12, trace=False, resume=half.state)
    assert half.nprod + rest.nprod == whole.nprod


def test_a_function_that_falls_without_end_is_called_unbounded():
    """The paper's problem at mu = 0, by the quasi-Newton method."""
    A = np.abs(np.random.default_rng(18).standard_normal((80, 50)))
    res = hasd.minimize(objectives.LogSumExp(A), np.zeros(50), method="hasd-qn")
    assert res.status == 13 and not res.success


@pytest.mark.parametrize("method", hasd.method_names())
def test_a_start_at_the_optimum_ends_at_once(method):
    f = objectives.Quadratic(np.diag([1.0, 4.0]))
    assert len(list(hasd.iterate(f, np.zeros(2), method=method, mu=0.5))) == 1
    assert hasd.minimize(f, np.zeros(2), method=method, mu=0.5, tol=0).success


def test_a_run_ends_by_itself_at_machine_precision():
    """tol = 0: neither f nor the gradient falls any more, and the method says so instead of going on for ever."""
    y = np.random.default_rng(15).standard_normal(300)

    def smoothing(x):
        d = np.diff(x)
        s = np.sqrt(0.0025 + d * d)
        slope = np.concatenate(([0.0], d / s)) - np.concatenate((d / s, [0.0]))
        return 0.5 * float((x - y) @ (x - y)) + s.sum(), x - y + slope

    res = hasd.minimize(smoothing, np.zeros(300), jac=True, mu=1.0, tol=0, maxiter=2000)
    assert res.status == 2 and res.nit < 1000
    f = objectives.Quadratic(np.diag(np.geomspace(1.0, 1e-2, 200)), np.ones(200))
    res = hasd.minimize(f, np.zeros(200), method="hasd-cg", tol=0, maxiter=2000)
    assert res.status in (0, 2) and res.nit < 1000
