"""hasd-newton: the certified sequence at every iterate, Newton's own speed, and what a softer loss is good for."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import hasd
from hasd import objectives
from hasd._run.layout import VECTOR
from hasd.methods import hasd_newton
from hasd.objectives import _images
from hasd.objectives._images import LocalImages
from reference.pseudocode import psi_minimum
from support import AFFINE, allowance, every_affine, log_sum_exp, logistic, minimax, states


@every_affine
@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
def test_the_invariant_holds_at_every_iterate(known, p):
    """A_t min_s f(x_s) <= psi*_t, psi* is the minimum of the cuts, and the lower bound is never above f*.

    The cuts are those of f at the iterates, up to what the method says that rounding may have done to them.
    """
    known = known()
    cuts, weight, best = [], 0.0, known.f(known.x0)
    for before, state in itertools.pairwise(states(known, "hasd-newton", 40, p=p)):
        if state.weight > weight:
            cuts.append((state.weight - weight, before.at.x, before.at.f, before.at.g))
        f, g = known.f.value_and_grad(before.at.x)  # from x, not from a moved image
        assert abs(before.at.f - f) <= 2.0 * before.at.df()
        assert np.linalg.norm(before.at.g - g) <= 2.0 * before.at.doubt.true
        weight, best = state.weight, min(best, known.f(state.x))
        _, psi = psi_minimum(cuts, known.x0)
        assert state.psi == pytest.approx(psi, rel=1e-8, abs=1e-8)
        assert weight * best <= psi + allowance(weight * best, psi) + 1e-9 * known.R**2
        assert state.estimate.certificate(state.origin).lower(known.R) <= known.f_star + allowance(known.f_star)


def test_mutation_weights_beyond_the_largest_root_break_the_invariant(monkeypatch):
    def heavy(estimate, e, f):
        a = estimate.largest_root(e, f)
        return estimate.cut(1.5 * a, e) if a > 0.0 else estimate

    monkeypatch.setattr(hasd_newton, "add_cut", heavy)
    last = states(logistic(), "hasd-newton", 3)[-1]
    assert last.weight * last.best > last.psi + 1e-6 * abs(last.psi)


def dense_hessian(f, x, step=1e-5):
    """The Hessian by central differences of the gradient."""
    columns = [
        (f.value_and_grad(x + step * unit)[1] - f.value_and_grad(x - step * unit)[1]) / (2 * step)
        for unit in np.eye(x.size)
    ]
    return np.array(columns)


@pytest.mark.parametrize("known", [log_sum_exp, logistic], ids=lambda make: make.__name__)
def test_near_the_minimiser_every_step_is_newtons_where_hessians_are_cheap(monkeypatch, known):
    """x+ = x - H^{-1} g, and the distance to the minimiser is squared each time."""
    few_columns(monkeypatch)
    known = known()
    x = known.x_star + 0.03 * np.random.default_rng(0).standard_normal(known.x0.size)
    for _ in range(3):
        state = list(itertools.islice(hasd.iterate(known.f, x, method="hasd-newton"), 2))[-1]
        g = known.f.value_and_grad(x)[1]
        textbook = x - np.linalg.solve(dense_hessian(known.f, x), g)
        np.testing.assert_allclose(state.x, textbook, rtol=0, atol=1e-7 * np.linalg.norm(x - textbook) + 1e-12)
        before, after = np.linalg.norm(x - known.x_star), np.linalg.norm(state.x - known.x_star)
        assert after <= 20.0 * before**2 + 1e-9
        x = state.x


def test_a_quadratic_takes_one_step_where_hessians_are_cheap(monkeypatch):
    few_columns(monkeypatch)
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    for f in (objectives.LeastSquares(A, b), objectives.Quadratic(A.T @ A, -A.T @ b)):
        res = hasd.minimize(f, np.ones(6), method="hasd-newton", tol=1e-10)
        assert res.success and res.nit == 1
        np.testing.assert_allclose(res.x, np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-10)


MATRICES = {
    "dense": lambda A: A,
    "columns first": np.asfortranarray,
    "float32": lambda A: A.astype(np.float32),
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("price", [0.0, math.inf], ids=["as sparse products", "in dense blocks"])
@pytest.mark.parametrize("block", [7, 1024])
def test_the_hessian_is_the_derivative_of_the_gradient(monkeypatch, kind, price, block):
    monkeypatch.setattr(_images, "SPARSE_PRICE", price)
    monkeypatch.setattr(_images, "BLOCK", block)
    rng = np.random.default_rng(2)
    A = rng.integers(-2, 3, (40, 5)).astype(float)
    b, labels = rng.standard_normal(40), np.sign(rng.standard_normal(40))
    given = MATRICES[kind](A)
    for make in (
        lambda A: objectives.LogSumExp(A, b),
        lambda A: objectives.SymmetricSoftmax(A, b, alpha=0.05),
        lambda A: objectives.Logistic(A, labels),
        lambda A: objectives.Power(A, b, q=3),
        lambda A: objectives.LeastSquares(A, b),
    ):
        x = rng.standard_normal(5)
        images = make(given).images()
        H = images.hessian(images.at(x))
        expected = dense_hessian(make(A), x, 1e-6)
        np.testing.assert_allclose(
            H, expected, rtol=0, atol=(1e-3 if kind == "float32" else 1e-6) * abs(expected).max()
        )
        np.testing.assert_array_equal(H, H.T)


def test_only_rows_that_count_are_multiplied():
    """Weights below e^-60 are 0: a Hessian of a few rows, however many there are."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((5000, 4))
    f = objectives.LogSumExp(A, -100.0 * rng.random(5000), alpha=1e-3)
    images = f.images()
    point = images.at(np.zeros(4))
    alive = np.flatnonzero(point.expansion.diagonal)
    assert alive.size < 50
    few = LocalImages(objectives.LogSumExp(A[alive], f.b[alive], alpha=1e-3))
    np.testing.assert_allclose(images.hessian(point), few.hessian(few.at(np.zeros(4))), rtol=1e-12)


def few_columns(monkeypatch):
    """Let a Hessian cost nothing, so that every step has its own."""
    monkeypatch.setattr(hasd_newton.Costs, "hessian", lambda *_: 0.0)


def test_what_a_step_moves_is_the_variance_of_its_image_over_the_weights():
    """-<g, d>/alpha = Var_w(A d)/alpha^2, for the undamped step without a ridge."""
    known = log_sum_exp()
    problem, state = first_state_of(known.f, known.x0)
    model = hasd_newton._make_model(problem, state, 2.0)
    w, change = model.point.expansion.slope, known.f.A @ model.step
    variance = w @ change**2 - (w @ change) ** 2
    assert model.images.width == 2.0 * known.f.loss.alpha
    assert model.moved == pytest.approx(variance / model.images.width**2, rel=1e-9)


@pytest.mark.parametrize("softness", [1.0, 8.0, 1e3, 1e9])
def test_what_a_step_moves_at_least_is_a_lower_bound_that_takes_no_hessian(monkeypatch, softness):
    known = log_sum_exp()
    ridged = objectives.LogSumExp(known.f.A, known.f.b, ridge=0.1)
    for f in (known.f, ridged, minimax().f):
        problem, state = first_state_of(f, 0.1 * np.ones(f.dimension))
        moved = hasd_newton._make_model(problem, state, softness).moved
        with monkeypatch.context() as patch:
            patch.setattr(LocalImages, "hessian", None)
            least = hasd_newton._least_move(problem, state, softness)
        assert 0.0 < least <= (1.0 + 1e-9) * moved


def test_a_run_that_begins_softly_makes_one_hessian_at_its_start(monkeypatch):
    """A mutation without the lower bound makes one for every alpha."""
    made = []
    hessian = LocalImages.hessian
    monkeypatch.setattr(LocalImages, "hessian", lambda images, point: made.append(point) or hessian(images, point))
    problem, state = first_state_of(sharp(0, 1e-4), np.zeros(20))
    assert hasd_newton._first_model(problem, state).softness > 1.0
    assert len(made) == 1
    monkeypatch.setattr(hasd_newton, "_least_move", lambda *_: 0.0)
    hasd_newton._first_model(problem, state)
    assert len(made) > 2


def first_state_of(f, x0):
    problem, _ = hasd._minimize._problem(x0, VECTOR, f, None, (), hasd_newton.HASDNewton(), None, None, 0.0)
    return problem, hasd_newton.HASDNewton().init(problem, problem.oracle.evaluate(x0))


def sharp(seed, alpha, n=400, d=20):
    """A minimax fit whose curvature vanishes at the start: one row has all the weight."""
    rng = np.random.default_rng(seed)
    return objectives.SymmetricSoftmax(rng.standard_normal((n, d)), rng.standard_normal(n), alpha=alpha)


@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-3, 1e-4])
def test_a_sharp_maximum_takes_a_few_dozen_steps_however_sharp_it_is(alpha):
    for seed in range(3):
        res = hasd.minimize(sharp(seed, alpha), np.zeros(20), method="hasd-newton", tol=1e-6)
        assert res.success and res.nit <= 60


def test_mutation_without_a_softer_loss_it_takes_more_than_twice_as_many(monkeypatch):
    f = sharp(0, 1e-4)
    soft = hasd.minimize(f, np.zeros(20), method="hasd-newton", tol=1e-6).nit
    monkeypatch.setattr(hasd_newton, "COVERED", math.inf)
    assert hasd.minimize(f, np.zeros(20), method="hasd-newton", tol=1e-6, maxiter=400).nit > 2 * soft


def test_alpha_is_lowered_faster_after_steps_that_hardly_move(monkeypatch):
    """A mutation that halves it after every step takes a quarter more of them."""
    rng = np.random.default_rng(5)
    problems = [
        objectives.LogSumExp((rng.random((200, 20)) < 0.8).astype(float), rng.standard_normal(200), ridge=1e-2)
        for _ in range(3)
    ]

    def steps():
        runs = [hasd.minimize(f, np.zeros(20), method="hasd-newton", tol=1e-6) for f in problems]
        assert all(res.success for res in runs)
        return sum(res.nit for res in runs)

    fast = steps()
    monkeypatch.setattr(hasd_newton, "GROWTH", math.inf)
    assert steps() >= 1.25 * fast


def test_the_loss_itself_is_taken_where_no_softness_makes_the_step_short():
    """All rows of A nearly the same: the mean row is far from 0 in units of the rows' spread, whatever alpha is."""
    rng = np.random.default_rng(4)
    A = np.vstack((rng.standard_normal((50, 3)) + 30.0, [[-30.0, -30.0, -30.0]]))
    f = objectives.LogSumExp(A)
    problem, state = first_state_of(f, np.zeros(3))
    assert hasd_newton._first_model(problem, state).softness == 1.0
    assert hasd.minimize(f, np.zeros(3), method="hasd-newton", tol=1e-8).success


def test_softness_falls_to_one_and_f_is_the_users_own():
    known = minimax()
    run = states(known, "hasd-newton", 40)
    softness = [state.softness for state in run[1:]]
    assert softness[0] > 1.0 and softness[-1] == 1.0
    assert all(after <= before for before, after in itertools.pairwise(softness))
    for state in run:
        assert state.fun == pytest.approx(known.f(state.x), rel=1e-10)
        np.testing.assert_allclose(state.at.g, known.f.value_and_grad(state.x)[1], rtol=1e-7, atol=1e-9)


def test_certified_gap_is_what_a_run_can_stop_on():
    for known in (make() for make in AFFINE):
        settings = {"method": "hasd-newton", "mu": 0.0, "tol": 0, "gap_tol": 1e-3, "radius": known.R}
        res = hasd.minimize(known.f, known.x0, **settings)
        assert res.status == 14 and res.success, (known.name, res.message)
        assert res.fun - known.f_star <= 1e-3


def test_a_function_without_minimum_is_called_unbounded():
    rng = np.random.default_rng(13)
    steep = objectives.LogSumExp(np.abs(rng.standard_normal((60, 8))))
    flat = objectives.Quadratic(np.zeros((3, 3)), np.ones(3))
    half = objectives.Quadratic(np.diag([1.0, 0.0]), np.ones(2))
    for f in (steep, flat, half):
        for x0 in (np.zeros(f.dimension), np.ones(f.dimension)):
            res = hasd.minimize(f, x0, method="hasd-newton", maxiter=500)
            assert res.status == 13 and not res.success, (type(f), res.message)
    separable = objectives.Logistic(np.eye(2), [1.0, -1.0])  # infimum 0, not attained: no false alarm
    assert hasd.minimize(separable, np.zeros(2), method="hasd-newton", tol=1e-10).success


@pytest.mark.parametrize("kind", [*MATRICES, "int"])
def test_every_kind_of_matrix_leads_to_the_same_minimiser(kind):
    rng = np.random.default_rng(11)
    dense = rng.integers(-2, 3, (80, 12)).astype(float)
    b = rng.standard_normal(80)
    A = dense.astype(np.int64) if kind == "int" else MATRICES[kind](dense)
    expected = hasd.minimize(objectives.LogSumExp(dense, b, ridge=0.1), np.zeros(12), method="hasd-qn", tol=1e-10)
    tol = 1e-5 if kind == "float32" else 1e-10
    res = hasd.minimize(objectives.LogSumExp(A, b, ridge=0.1), np.zeros(12), method="hasd-newton", tol=tol)
    np.testing.assert_allclose(res.x, expected.x, rtol=0, atol=1e-3 if kind == "float32" else 1e-8)


def test_dependent_columns_lead_to_a_minimiser():
    """H is singular: the step stays where the data say something."""
    rng = np.random.default_rng(5)
    B, b = rng.standard_normal((60, 4)), rng.standard_normal(60)
    A = np.hstack((B, B[:, :2], np.zeros((60, 1))))
    res = hasd.minimize(objectives.SymmetricSoftmax(A, b, alpha=0.1), np.zeros(7), method="hasd-newton", tol=1e-8)
    best = hasd.minimize(objectives.SymmetricSoftmax(B, b, alpha=0.1), np.zeros(4), method="hasd-qn", tol=1e-9)
    assert res.success and res.fun == pytest.approx(best.fun, abs=1e-10)
    assert np.abs(res.x).max() < 1e3


def test_more_columns_than_rows_lead_to_the_minimiser():
    rng = np.random.default_rng(6)
    f = objectives.Logistic(rng.standard_normal((20, 50)), np.sign(rng.standard_normal(20)), ridge=1e-3)
    res = hasd.minimize(f, np.zeros(50), method="hasd-newton", tol=1e-9)
    assert res.success and res.nit <= 20 and res.gap < 1e-9


def test_a_matrix_that_is_not_written_out_is_refused_by_name():
    A = np.eye(3)
    operator = LinearOperator(A.shape, matvec=A.dot, rmatvec=A.T.dot, dtype=np.float64)
    for f in (objectives.LogSumExp(operator), objectives.SymmetricSoftmax(b=np.ones(3))):
        with pytest.raises(TypeError, match=r"'hasd-newton' needs the matrix of the objective as an array or a sparse"):
            hasd.minimize(f, np.zeros(3), method="hasd-newton")
    with pytest.raises(TypeError, match=r"needs an objective f\(x\) = phi\(Ax - b\)"):
        hasd.minimize(lambda x: x @ x, np.ones(3), method="hasd-newton")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_memory_beyond_A_is_a_few_matrices_of_the_size_of_the_hessian(sparse):
    n, d = 30_000, 200
    rng = np.random.default_rng(14)
    A = (
        scipy.sparse.random_array((n, d), density=0.05, random_state=rng, format="csr")
        if sparse
        else rng.random((n, d))
    )
    f = objectives.Logistic(A, np.sign(rng.standard_normal(n)), ridge=1e-3)
    tracemalloc.start()
    hasd.minimize(f, np.zeros(d), method="hasd-newton", maxiter=4, tol=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    blocks = 3 * 8 * _images.BLOCK * d
    assert peak <= 8 * (4 * d * d + 16 * (n + d)) + blocks + (3 * A.data.nbytes if sparse else 0)


@pytest.mark.parametrize("ratio", [1e6, 1e8])
def test_a_column_in_another_unit_changes_little(ratio):
    """Mutation: judge rounding by the largest curvature alone; small columns then count for nothing."""
    rng = np.random.default_rng(21)
    A = rng.standard_normal((400, 8))
    b = A @ rng.standard_normal(8) + rng.standard_normal(400)
    least = 0.5 * np.linalg.norm(A @ np.linalg.lstsq(A, b, rcond=None)[0] - b) ** 2
    A[:, 0] *= ratio
    res = hasd.minimize(objectives.LeastSquares(A, b), np.zeros(8), method="hasd-newton", tol=1e-12)
    assert res.fun <= least * (1.0 + 1e-9) and res.nit <= 10


def test_a_model_at_its_minimum_is_sharpened_and_a_gradient_of_zero_ends_the_run():
    """x_0 = 0 is the minimiser of every softened loss; the loss itself has a slope of rounding size there."""
    A = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    f = objectives.SymmetricSoftmax(A, np.array([1.0, -1.0, 1.0, -1.0]), alpha=1e-6)
    res = hasd.minimize(f, np.array([1e-3]), method="hasd-newton", tol=1e-9)
    assert res.success and abs(res.x[0]) < 1e-6


def test_products_of_a_subclass_are_not_written_out_as_those_of_its_base():
    class Doubled(objectives.Logistic):
        def forward(self, x):
            self.nprod += 1
            return self.A @ (2.0 * x)

        def adjoint(self, u):
            self.nprod += 1
            return 2.0 * (self.A.T @ u)

    A, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    assert objectives.Logistic(A, y).has_hessian and objectives.Multinomial(A, [0, 1, 2]).has_hessian
    assert not Doubled(A, y).has_hessian
    assert hasd.minimize(Doubled(A, y, ridge=0.1), np.zeros(3)).method != "hasd-newton"


@pytest.mark.parametrize("size", [1e155, 1e200, 1e300])
def test_a_hessian_that_overflows_ends_neither_in_an_error_nor_above_the_start(size):
    """Mutation: the step from the same point is tried again for ever."""
    f = objectives.LogSumExp(size * np.random.default_rng(0).standard_normal((20, 3)), ridge=1.0)
    res = hasd.minimize(f, np.zeros(3))
    assert res.method == "hasd-newton" and res.fun <= f(np.zeros(3))
