"""lp_fit: the value, the certificate and what is charged to it, rank, counts, trace.

Optima are planted (A is made orthogonal to phi'(z*), so that z* is the best residual whatever solver is used) or come
from CVXPY with Clarabel.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import hasd
from hasd.problems import _lp_fit as lp
from hasd.problems import _lp_spaces as lp_spaces
from hasd.problems._lp_fit import lp_fit
from planted import POWERS, every_power, planted, value

KINDS = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "operator": aslinearoperator,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@every_power
def test_a_planted_optimum_is_found_and_certified(q, kind, route):
    """Mutations: H^-1 for the metric; the bound's u not divided by its q*-norm; s = 1 (q = 100 underflows)."""
    A, b, x, best = planted(120, 6, q)
    fit = lp_fit(KINDS[kind](A), b, q)
    assert fit.success and fit.status == hasd.Status.GAP.code and fit.power == q
    assert fit.lower <= best * (1 + 1e-14) and best <= fit.fun * (1 + 1e-14)
    assert 0.0 <= fit.gap == fit.fun - fit.lower <= 1e-8 * fit.fun
    assert fit.fun == pytest.approx(value(A @ fit.x - b, q), rel=1e-14)
    np.testing.assert_allclose(fit.x, x, atol=1e-3 * np.linalg.norm(x))
    np.testing.assert_allclose(fit.residual, A @ fit.x - b, atol=1e-13)


@every_power
def test_a_tight_tolerance_is_reached(q, route):
    """Mutation: gtol not lowered where the certificate falls short."""
    A, b, x, best = planted(120, 6, q, seed=1)
    fit = lp_fit(A, b, q, gap_rtol=1e-12 if route == "factored" else 1e-10)  # sigma_min is known, or not
    assert fit.success, fit.message
    assert fit.fun == pytest.approx(best, rel=1e-10)
    np.testing.assert_allclose(fit.x, x, atol=1e-5 * np.linalg.norm(x))


@pytest.mark.parametrize("q", [2.0, 3.0, 4.0, 10.0], ids="q={:g}".format)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("n", "d"), [(30, 1), (60, 4), (150, 12)], ids=["30x1", "60x4", "150x12"])
def test_lp_fit_agrees_with_clarabel(n, d, q, sparse):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(n)
    A, b = rng.standard_normal((n, d)), rng.standard_t(3, n)
    A = np.where(rng.random(A.shape) < 0.5, A, 0.0) if sparse else A
    x = cvxpy.Variable(d)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(A @ x - b, q)))
    problem.solve(solver=cvxpy.CLARABEL)
    fit = lp_fit(sp.csr_array(A) if sparse else A, b, q)
    assert fit.success
    assert fit.fun == pytest.approx(problem.value, rel=1e-6)
    assert fit.fun <= value(A @ x.value - b, q) * (1 + 1e-8)
    assert fit.lower <= value(A @ x.value - b, q)


@every_power
def test_the_certificate_is_true_and_tight_away_from_the_optimum(q, route):
    """Never above the minimum, and the gap to second order; mutations: u = phi'(z) unprojected; projected without the
    weights (loose by orders at q = 100)."""
    A, b, x, best = planted(200, 5, q, seed=2)
    data, size = lp._scale_data(A, b)
    for step in (1e-1, 1e-3, 1e-5):
        fit = lp.Fit(data, lp_spaces.space_of(data), q, 1e-12, None)
        c = (x + step / q * np.random.default_rng(3).standard_normal(x.size)) * data.D / size
        z = data.image(c)
        seen = lp.LpPoint(c, z, lp.Lp(q).norm(z))
        fit.best = seen
        gap, true = fit.certify(seen), 1.0 - best / (seen.fun * size)
        assert fit.lower * size <= best * (1 + 1e-13)
        assert gap <= 3.0 * true + 1e-11


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12, 1e17], ids="{:.0e}".format)
@every_power
def test_lower_is_never_above_the_optimum_however_ill_conditioned(q, condition):
    """Mutations: nothing charged for A^T u; sigma of the scaled R replaced by 1."""
    A, b, _, best = planted(150, 8, q, seed=4, condition=condition)
    fit = lp_fit(A, b, q)
    assert fit.lower <= best * (1 + 1e-14)
    assert fit.fun == pytest.approx(best, rel=1e-6)
    assert fit.success == (fit.gap <= 1e-8 * fit.fun)
    assert condition > 1e4 or fit.success


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e5], ids="{:.0e}".format)
@pytest.mark.parametrize("q", [2.0, 4.0, 100.0], ids="q={:g}".format)
def test_the_distance_charged_reaches_the_minimiser(q, condition, route):
    """From any point, as far as the text says; mutations: no charge; sigma of A, not of its scaled columns."""
    A, b, x, _ = planted(60, 5, q, seed=22, condition=condition)
    data, size = lp._scale_data(A, b)
    fit = lp.Fit(data, lp_spaces.space_of(data), q, 1e-12, None)
    best = x * data.D / size
    for away in np.random.default_rng(23).standard_normal((20, 5)) * np.geomspace(1e-6, 10.0, 20)[:, None]:
        z = data.image(best + away)
        seen, u = lp.LpPoint(best + away, z, lp.Lp(q).norm(z)), np.ones(60)
        charged = fit._charges(seen, u, 1.0) - fit._charges(seen, u, 0.0)
        assert charged >= np.linalg.norm(away)


def test_lp_fit_ends_where_the_charges_are_all_that_is_left():
    """Mutation: go on lowering the gradient (thousands of iterations at the same gap)."""
    t = np.linspace(-1, 1, 200)
    for q in POWERS:
        fit = lp_fit(np.vander(t, 20), np.exp(t) * np.abs(t), q)
        assert not fit.success and fit.status == 2 and fit.gap < 1e-6 * fit.fun
        assert fit.nprod < 70


@pytest.mark.parametrize("q", [4.0, 100.0], ids="q={:g}".format)
@pytest.mark.parametrize("factor", [1e3, 1e5], ids="{:g}".format)
def test_residuals_small_beside_b_are_fitted_in_few_iterations(factor, q, route):
    """Mutations: stages not scaled by their own residuals, (1e-5)^64 underflows; a gradient asked for that is below
    rounding, 10000 iterations."""
    A, b, x, best = planted(80, 4, q, seed=24)
    fit = lp_fit(A, b + factor * (A @ x), q, gap_rtol=1e-6)
    assert fit.success and fit.fun == pytest.approx(best, rel=1e-6)
    assert fit.nit < 150


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250], ids="{:g}".format)
@pytest.mark.parametrize("q", [2.0, 4.0], ids="q={:g}".format)
def test_an_exact_fit_that_takes_iterations_is_found_at_any_scale(q, scale, route):
    """Mutations: least squares left at 1e-5; b not divided by its size."""
    A, _, x, _ = planted(200, 60, q, seed=25, condition=30.0)
    fit = lp_fit(A, A @ x * scale, q)
    assert fit.success and "exact" in fit.message
    np.testing.assert_allclose(fit.x / scale, x, rtol=1e-8, atol=1e-8)


def test_a_dual_point_that_misses_the_constraint_gives_no_bound(monkeypatch):
    """Mutation: accept any A^T u."""
    monkeypatch.setattr(lp_spaces.Factored, "leftover", lambda self, root, t, tol: t)
    A, b, *_ = planted(60, 4, 4.0)
    fit = lp_fit(A, b, 4, maxiter=0)
    assert not fit.success and fit.lower == 0.0 and fit.gap == fit.fun


@every_power
def test_dual_is_checkable(q, route):
    """The bound follows from u, A and b alone; mutation: u of another point than the bound's."""
    A, b, *_ = planted(80, 5, q, seed=5)
    fit = lp_fit(A, b, q)
    assert value(fit.dual, q / (q - 1)) == pytest.approx(1.0, rel=1e-12)
    assert np.linalg.norm(A.T @ fit.dual) < 1e-12
    assert -(b @ fit.dual) == pytest.approx(fit.lower, rel=1e-9) and -(b @ fit.dual) >= fit.lower


@pytest.mark.parametrize("q", [200.0, 1000.0], ids="q={:g}".format)
def test_large_powers_come_near_the_minimax_value(q):
    """Mutation: no stages between 2 and q."""
    rng = np.random.default_rng(8)
    A, b = rng.standard_normal((400, 6)), rng.standard_normal(400)
    fit = lp_fit(A, b, q)
    assert fit.success and fit.nit < 100
    top = np.abs(fit.residual).max()
    assert top <= fit.fun <= top * 400 ** (1 / q)
    # ||z||_inf >= ||z||_q n^(-1/q) for every z: a lower bound on the minimax value that its own solver has to respect
    from scipy.optimize import linprog

    ones = np.ones((400, 1))
    minimax = linprog(
        np.eye(7)[6], np.block([[A, -ones], [-A, -ones]]), np.concatenate((b, -b)), bounds=[(None, None)] * 7
    ).fun
    assert fit.lower * 400 ** (-1 / q) <= minimax <= top


@every_power
def test_rank_and_repetition_do_not_change_the_value(q, route):
    """Dependent columns: the same minimum; each row twice: 2^(1/q) times it."""
    A, b, _, best = planted(60, 4, q, seed=10)
    wide = lp_fit(np.hstack((A, A[:, :2] - A[:, 2:])), b, q)
    twice = lp_fit(np.vstack((A, A)), np.concatenate((b, b)), q)
    assert wide.success and wide.fun == pytest.approx(best, rel=1e-8)
    assert twice.success and twice.fun == pytest.approx(2 ** (1 / q) * best, rel=1e-8)


@every_power
def test_the_shortest_of_many_is_returned(q):
    """Mutation: leave the columns that depend on others at 0."""
    A, b, x, best = planted(60, 4, q, seed=20)
    right, _ = np.linalg.qr(np.random.default_rng(21).standard_normal((7, 4)))
    fit = lp_fit(A @ right.T, b, q, gap_rtol=1e-11)
    assert fit.success and fit.fun == pytest.approx(best, rel=1e-10)
    np.testing.assert_allclose(fit.x, right @ x, atol=1e-4)


@every_power
def test_products_are_counted(q, route):
    """Mutation: leave out those of the certificate, or of the final value."""
    A, b, *_ = planted(90, 5, q, seed=14)
    calls = []

    def counted(matrix):
        return lambda v: (calls.append(1), matrix @ v)[1]

    operator = LinearOperator(A.shape, matvec=counted(A), rmatvec=counted(A.T), dtype=float)
    fit = lp_fit(operator, b, q)
    assert fit.success
    if route == "products":
        assert fit.nprod == len(calls)
    else:  # the factor stands in for A in the stages
        assert len(calls) <= fit.nprod


def test_the_trace_shows_the_powers_and_never_worsens(route):
    A, b, _, best = planted(100, 5, 30.0, seed=15)
    fit = lp_fit(A, b, 30)
    trace = fit.trace
    assert {"seconds", "fun", "lower", "power", "nprod"} == set(trace)
    assert list(trace["power"][:5]) == [2.0, 4.0, 8.0, 16.0, 30.0]
    for name, sign in (("seconds", 1), ("lower", 1), ("nprod", 1), ("fun", -1)):
        assert (sign * np.diff(trace[name]) >= 0).all(), name
    assert trace["fun"][-1] == pytest.approx(best, rel=1e-8) and (trace["lower"] <= best).all()


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_inputs_are_left_alone(kind, route):
    A, b, *_ = planted(50, 4, 4.0)
    A = KINDS[kind](A)
    before, right = A.copy(), b.copy()
    lp_fit(A, b, 4)
    assert abs(A - before).max() == 0.0 and (b == right).all()


def test_many_columns_are_not_written_out():
    """Sparse and large: the route by products, chosen by itself."""
    A = sp.random_array((4000, 600), density=0.01, random_state=np.random.default_rng(16), format="csr")
    b = np.random.default_rng(17).standard_normal(4000)
    fit = lp_fit(A, b, 6)
    assert fit.success and fit.method == "hasd-qn"
