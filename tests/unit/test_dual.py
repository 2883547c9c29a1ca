"""The duality gap: never below f(x) - f*, close to it near the minimiser, counted, honest where there is no bound.

The optimum comes from SciPy's trust-exact on formulas written out here, not from the package.
"""

import math
from functools import cache

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.special import expit, logsumexp, softmax

from hasd import objectives
from hasd.objectives import _dual as dual
from hasd.objectives.losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss

n, d = 60, 6
_rng = np.random.default_rng(20)
A = _rng.standard_normal((n, d)) * np.geomspace(2.0, 0.2, d)
b = _rng.standard_normal(n)
y = np.where(A @ np.ones(d) + 2.0 * _rng.standard_normal(n) > 0, 1.0, -1.0)

MAKERS = {
    "log-sum-exp": lambda A, ridge: objectives.LogSumExp(A, b, alpha=0.5, ridge=ridge),
    "symmetric softmax": lambda A, ridge: objectives.SymmetricSoftmax(A, b, alpha=0.2, ridge=ridge),
    "least squares": lambda A, ridge: objectives.LeastSquares(A, b, ridge=ridge),
    "logistic": lambda A, ridge: objectives.Logistic(A, y, ridge=ridge),
    "power": lambda A, ridge: objectives.Power(A, b, 4, ridge=ridge),
}
KINDS = {"dense": np.asarray, "csr": sp.csr_array, "operator": aslinearoperator}
RIDGES = (0.0, 1e-3, 0.1)
every_loss = pytest.mark.parametrize("name", MAKERS)
every_ridge = pytest.mark.parametrize("ridge", RIDGES)
every_kind = pytest.mark.parametrize("kind", KINDS)


def written_out(name):
    """phi, phi' and phi'' in NumPy."""
    if name == "least squares":
        return lambda z: (z @ z / 2, z, np.eye(n))
    if name == "power":
        return lambda z: (np.sum(z**4) / 4, z**3, np.diag(3 * z**2))
    if name == "logistic":
        return lambda z: (
            np.mean(np.logaddexp(0.0, -y * z)),
            -y * expit(-y * z) / n,
            np.diag(expit(z) * expit(-z)) / n,
        )
    alpha, E = (0.5, np.eye(n)) if name == "log-sum-exp" else (0.2, np.vstack((np.eye(n), -np.eye(n))))

    def exponential(z):
        w = softmax(E @ z / alpha)
        return alpha * logsumexp(E @ z / alpha), E.T @ w, E.T @ (np.diag(w) - np.outer(w, w)) @ E / alpha

    return exponential


@cache
def solved(name, ridge):
    """x* and f* by SciPy."""
    phi, shift = written_out(name), np.zeros(n) if name == "logistic" else b

    def value(x):
        return phi(A @ x - shift)[0] + ridge / 2 * (x @ x)

    def gradient(x):
        return A.T @ phi(A @ x - shift)[1] + ridge * x

    def hessian(x):
        return A.T @ phi(A @ x - shift)[2] @ A + ridge * np.eye(d)

    x = scipy.optimize.minimize(
        value, np.zeros(d), jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-7}
    ).x
    for _ in range(3):
        x = x - np.linalg.solve(hessian(x), gradient(x))
    assert np.linalg.norm(gradient(x)) < 1e-11
    return x, value(x)


def ray(name, ridge, scales):
    """Points x* + scale direction, in two directions."""
    x_star, _ = solved(name, ridge)
    for direction in np.random.default_rng(5).standard_normal((2, d)):
        for scale in scales:
            yield x_star + scale * direction


def rounding(*values):
    return 4e-15 * (1.0 + max(map(abs, values)))


@every_kind
@every_ridge
@every_loss
def test_the_duality_gap_is_never_below_the_true_gap(name, ridge, kind):
    """Mutations: no phi* in F; no box for the logistic loss; nothing charged for v; v' recurred, not recomputed."""
    f = MAKERS[name](KINDS[kind](A), ridge)
    x_star, f_star = solved(name, ridge)
    for x in ray(name, ridge, (10.0, 1.0, 0.3, 0.1, 0.01, 1e-4, 1e-8, 0.0)):
        for radius in (None, np.linalg.norm(x_star), 3.0 * np.linalg.norm(x_star)):
            for iterations in (0, 2, 100):
                gap = f.duality_gap(x, radius, iterations)
                assert gap >= f(x) - f_star - rounding(f(x)), (radius, iterations)
                assert gap >= 0.0


@every_kind
@every_ridge
@every_loss
def test_the_duality_gap_is_close_to_the_true_gap_near_the_minimiser(name, ridge, kind):
    """Mutation: project in the Euclidean metric (H = I): no bound for log-sum-exp, a loose one for the others."""
    f = MAKERS[name](KINDS[kind](A), ridge)
    f_star = solved(name, ridge)[1]
    for x in ray(name, ridge, (1e-2, 1e-4, 0.0)):
        assert f.duality_gap(x) <= 1.15 * (f(x) - f_star) + 1e-12 * (1.0 + abs(f_star))


def test_least_squares_are_projected_exactly():
    """D is maximal at the projection of any residual: the gap is exact however far x is, with ridge 0."""
    f, f_star = MAKERS["least squares"](A, 0.0), solved("least squares", 0.0)[1]
    for x in ray("least squares", 0.0, (100.0, 1.0)):
        assert f.duality_gap(x) == pytest.approx(f(x) - f_star, rel=1e-9)


@pytest.mark.parametrize("ridge", RIDGES[1:])
@every_loss
def test_the_duality_gap_is_no_worse_than_strong_convexity_gives(name, ridge):
    """phi'(z) gives ||g||^2/(2 ridge), two derivations of one number; mutation: leave it out of the bounds."""
    f = MAKERS[name](A, ridge)
    for x in ray(name, ridge, (10.0, 1.0, 1e-2)):
        g = f.value_and_grad(x)[1]
        point = dual.DualPoint(f, x, None)
        assert point.gap(point.dual) == pytest.approx(g @ g / (2.0 * ridge), rel=1e-9)
        for iterations in (0, 1, 3, 100):
            assert f.duality_gap(x, iterations=iterations) <= (1.0 + 1e-9) * (g @ g) / (2.0 * ridge)


@pytest.mark.parametrize("ridge", RIDGES[1:])
def test_the_duality_gap_at_the_start_is_far_below_strong_convexitys(ridge):
    """At the start, where ||g||^2/(2 ridge) is hundreds of times the gap; mutation: return the first bound."""
    for name in ("least squares", "power"):
        f, f_star = MAKERS[name](A, ridge), solved(name, ridge)[1]
        start = np.zeros(d)
        assert f.duality_gap(start, iterations=0) > 2.0 * (f(start) - f_star)
        assert f.duality_gap(start) < 1.5 * (f(start) - f_star)


@every_ridge
@pytest.mark.parametrize("shift", [-20.0, 20.0])
def test_a_constant_shift_of_log_sum_exp_keeps_its_duality_gap(shift, ridge):
    """f - shift has the same gap, of whatever sign f is; mutation: take u = 0 for a point of the simplex."""
    f, moved = MAKERS["log-sum-exp"](A, ridge), objectives.LogSumExp(A, b + shift, alpha=0.5, ridge=ridge)
    for x in ray("log-sum-exp", ridge, (0.3, 0.01)):
        assert moved.duality_gap(x) == pytest.approx(f.duality_gap(x), rel=1e-6, abs=1e-9)


def test_segments_lower_the_gap_where_the_newton_point_leaves_the_domain():
    """At the start, where 0, phi'(z) and the Newton point are all poor; mutation: do not try the segments."""
    start = np.zeros(d)
    for name, ridge in (("log-sum-exp", 1e-3), ("symmetric softmax", 0.1), ("logistic", 0.1)):
        f = MAKERS[name](A, ridge)
        point = dual.DualPoint(f, start, None)
        newton = dual._newton(point, 100)
        assert point.gap(newton) == math.inf
        zero = dual.Dual(0.0 * newton.u, 0.0 * newton.pulled)
        assert f.duality_gap(start) < 0.6 * min(point.gap(point.dual), point.gap(zero))


@every_ridge
@every_loss
def test_the_gap_with_a_radius_holds_against_every_point_of_the_ball(name, ridge):
    """The bound holds against every y of the ball, x inside or not; mutation: R ||v|| taken as ||x|| ||v||."""
    f = MAKERS[name](A, ridge)
    rng = np.random.default_rng(6)
    for x in ray(name, ridge, (1.0, 0.1)):
        for radius in (0.0, 0.05, 0.5, 2.0):
            inside = rng.standard_normal((20, d))
            inside *= radius / np.linalg.norm(inside, axis=1, keepdims=True)
            g = f.value_and_grad(x)[1]
            down = -radius * g / np.linalg.norm(g)
            least = min(f(other) for other in (*inside, down, np.zeros(d)))
            assert f.duality_gap(x, radius) >= f(x) - least - rounding(f(x))


def test_a_radius_makes_up_for_a_projection_cut_short():
    """Two iterations leave a residual: no bound but that of u = 0 without a radius, a better one with it."""
    f, (x_star, f_star) = MAKERS["least squares"](A, 0.0), solved("least squares", 0.0)
    x = x_star + 0.1
    g = f.value_and_grad(x)[1]
    radius = 1.5 * np.linalg.norm(x_star)
    assert f.duality_gap(x, iterations=2) == pytest.approx(f(x))
    short, crude = f.duality_gap(x, radius, 2), g @ x + radius * np.linalg.norm(g)
    assert f(x) - f_star <= short < 0.5 * min(crude, f(x))


@every_ridge
@every_loss
def test_products_are_counted_and_bounded(name, ridge):
    """Mutation: multiply by A past forward and adjoint."""
    calls = []
    operator = LinearOperator(
        A.shape,
        matvec=lambda v: calls.append(1) or A @ v,
        rmatvec=lambda v: calls.append(1) or A.T @ v,
        dtype=float,
    )
    f = MAKERS[name](operator, ridge)
    for x in ray(name, ridge, (1.0, 1e-2)):
        for iterations in (0, 1, 2, 7, 100):
            calls.clear()
            before = f.nprod
            f.duality_gap(x, iterations=iterations)
            assert f.nprod - before == len(calls) <= 2 + 3 * iterations
            assert iterations > 0 or len(calls) == 2
            assert iterations != 1 or len(calls) in (2, 5)


def test_the_duality_gap_is_inf_or_nan_where_there_is_no_bound():
    """inf for a log-sum-exp without a minimiser; NaN without a conjugate, or at NaN; inf where f is."""
    assert objectives.LogSumExp(np.abs(A), b).duality_gap(np.zeros(d)) == math.inf
    assert MAKERS["log-sum-exp"](A, 0.0).duality_gap(np.full(d, 30.0)) == math.inf

    class Bare(objectives.Loss):
        def expand(self, z):
            return SquareLoss().expand(z)

    assert math.isnan(objectives.Affine(Bare(), A, b).duality_gap(np.zeros(d)))
    for name, make in MAKERS.items():
        for ridge in RIDGES:
            assert math.isnan(make(A, ridge).duality_gap(np.full(d, math.nan)))
            huge = make(A, ridge).duality_gap(np.full(d, 1e200))
            assert huge == math.inf or (name not in ("least squares", "power") and huge > 1e190)
    for radius in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="radius must be"):
            MAKERS["logistic"](A, 0.0).duality_gap(np.zeros(d), radius)


def test_losses_bounded_below_always_have_a_bound():
    """Separable labels: f* = 0 is not attained, u = 0 proves it."""
    f = objectives.Logistic(A, np.sign(A[:, 0]))
    for x in (np.zeros(d), np.eye(d)[0], 40.0 * np.eye(d)[0]):
        assert f(x) <= f.duality_gap(x) <= f(x) + 1e-13


def test_the_duality_gap_is_tight_with_more_unknowns_than_rows():
    """A^T A is singular and f* = 0."""
    f = objectives.LeastSquares(A.T, b[:d])
    x = np.linalg.lstsq(A.T, b[:d], rcond=None)[0]
    assert f.duality_gap(x + 0.1) == pytest.approx(f(x + 0.1), rel=1e-9)
    assert 0.0 <= f.duality_gap(x) <= 1e-12
    identity = objectives.SymmetricSoftmax(b=b, alpha=0.3)
    least = 0.3 * math.log(2 * n)
    assert identity(b + 1e-3) - least <= identity.duality_gap(b + 1e-3) <= 1.1 * (identity(b + 1e-3) - least) + 1e-12


@pytest.mark.parametrize("smallest", [1e-2, 1e-4, 1e-6])
def test_the_duality_gap_is_tight_for_ill_conditioned_columns(smallest):
    """A restart of the residuals reaches rounding where one run of them does not."""
    rng = np.random.default_rng(8)
    U = np.linalg.qr(rng.standard_normal((80, 12)))[0]
    V = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    M = U * np.geomspace(1.0, smallest, 12) @ V.T
    c = rng.standard_normal(80)
    f = objectives.LeastSquares(M, c)
    f_star = (c @ c - (U.T @ c) @ (U.T @ c)) / 2
    for x in rng.standard_normal((5, 12)):
        gap = f.duality_gap(x, iterations=300)
        assert f(x) - f_star - rounding(f(x)) <= gap <= 1.01 * (f(x) - f_star) + 1e-10


@every_loss
def test_the_duality_gap_of_float32_data_covers_its_rounding(name):
    """The products are off by 1e-7, and the bound knows."""
    single = A.astype(np.float32)
    exact, f = MAKERS[name](single.astype(float), 0.0), MAKERS[name](single, 0.0)
    x_star = solved(name, 0.0)[0]
    for x in ray(name, 0.0, (0.1, 1e-3, 0.0)):
        true = exact(x) - exact(x_star)
        for radius in (None, 5.0):
            assert true <= f.duality_gap(x, radius)
    for x in ray(name, 0.0, (1e-3, 0.0)):
        assert f.duality_gap(x, 5.0) <= 1.5 * (exact(x) - exact(x_star)) + 1e-3 * (1.0 + exact(x))


@pytest.mark.parametrize(
    "loss",
    [LogSumExpLoss(0.3), SymmetricSoftmaxLoss(0.3), SquareLoss(), LogisticLoss(y), PowerLoss(3), PowerLoss(2)],
    ids=repr,
)
def test_conjugates_keep_fenchels_inequality_with_equality_at_the_slope(loss):
    """phi(z) + phi*(u) >= <u, z>, with equality at u = phi'(z); mutation: k = 0 in the symmetric one."""
    rng = np.random.default_rng(9)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        z, other = scale * rng.standard_normal((2, n))
        value, u = loss.value_and_slope(z)
        assert loss.conjugate(u) == pytest.approx(u @ z - value, rel=1e-12, abs=1e-13)
        assert loss.value(other) + loss.conjugate(u) >= u @ other - 1e-13


def test_the_conjugate_of_the_symmetric_softmax_is_right_at_the_edge():
    loss = SymmetricSoftmaxLoss(0.5)
    entropy = 0.25 * math.log(0.25) + 0.75 * math.log(0.75)
    assert loss.conjugate(np.array([0.25, -0.75])) == pytest.approx(0.5 * entropy)
    assert loss.conjugate(np.array([0.0, -1.0])) == 0.0
    assert loss.conjugate(np.zeros(4)) == pytest.approx(-0.5 * math.log(8))
    assert loss.conjugate(np.array([0.5, -0.6])) == math.inf
    assert loss.conjugate(np.array([math.nan])) == math.inf
