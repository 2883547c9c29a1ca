"""The multinomial objective and the intercept without a penalty: derivatives, images, bounds, certificates."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize
from scipy.sparse.linalg import aslinearoperator
from scipy.special import log_softmax

import hasd
from hasd._run.oracle import Oracle
from hasd._run.sources import ObjectiveSource
from hasd.objectives import Logistic, Multinomial
from hasd.objectives import multinomial as module
from hasd.objectives._intercept import InterceptLoss
from hasd.objectives.losses import LogisticLoss
from hasd.objectives.multinomial import MultinomialLoss

n, d, K = 40, 3, 4
rng = np.random.default_rng(0)
A = rng.standard_normal((n, d)) + np.array([0.0, 1.0, 0.0])
LABELS = np.concatenate((np.arange(K), rng.integers(0, K, n - K)))
SIGNS = np.where(LABELS < 2, -1.0, 1.0)
WEIGHTS = rng.uniform(0.2, 3.0, n)
OBJECTIVES = {
    "multinomial": Multinomial(A, LABELS, ridge=0.1),
    "multinomial weights": Multinomial(A, LABELS, ridge=0.1, weights=WEIGHTS),
    "multinomial intercept": Multinomial(A, LABELS, ridge=0.1, weights=WEIGHTS, intercept=True),
    "logistic weights": Logistic(A, SIGNS, ridge=0.1, weights=WEIGHTS),
    "logistic intercept": Logistic(A, SIGNS, ridge=0.1, intercept=True),
    "logistic both": Logistic(A, SIGNS, ridge=0.1, weights=WEIGHTS, intercept=True),
}
EVEN = [OBJECTIVES["multinomial"], OBJECTIVES["logistic intercept"]]
every_objective = pytest.mark.parametrize("f", OBJECTIVES.values(), ids=OBJECTIVES)
METHODS = ["auto", "hasd", "hasd-newton", "hasd-qn", "hasd-subspace"]


def literal(f, x, c=0.0):
    """The formula of the docstring with intercepts c, word for word."""
    shares = np.full(n, 1.0 / n) if f in EVEN else WEIGHTS / WEIGHTS.sum()
    if isinstance(f, Logistic):
        losses = np.logaddexp(0.0, -SIGNS * (A @ x + c))
    else:
        losses = -log_softmax(A @ x.reshape(d, -1) + c, axis=1)[np.arange(n), LABELS]
    return shares @ losses + 0.5 * f.ridge * x @ x


def least_over_intercepts(f, x):
    """The minimum over c of the formula, by SciPy."""
    start = np.zeros(1 if isinstance(f, Logistic) else K)
    return scipy_minimize(lambda c: literal(f, x, c if c.size > 1 else c[0]), start, tol=1e-12).fun


def points(f):
    for scale in (0.0, 0.3, 3.0):
        yield scale * rng.standard_normal(f.dimension)


def basis_of(images, columns):
    basis = images.basis(columns.shape[1])
    for q in columns.T:
        basis = images.append(basis, images.multiply(q))
    return basis


@every_objective
def test_the_value_is_that_of_the_formula(f):
    for x in points(f):
        intercept = isinstance(f.loss, InterceptLoss) or getattr(f.loss, "intercept", False)
        wanted = least_over_intercepts(f, x) if intercept else literal(f, x)
        assert f(x) == pytest.approx(wanted, rel=1e-8 if intercept else 1e-13)
        assert literal(f, x, f.best_intercept(x)) == pytest.approx(f(x), rel=1e-13)


@every_objective
def test_the_gradient_is_that_of_the_value(f):
    for x in points(f):
        g, h = f.value_and_grad(x)[1], 1e-5
        differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(f.dimension)]
        np.testing.assert_allclose(g, differences, atol=1e-8)


@every_objective
def test_the_hessian_is_that_of_the_gradient(f):
    """Mutations: a sign in the blocks; no correction for the intercepts; the diagonal blocks left out."""
    images, h = f.images(), 1e-5
    for x in points(f):
        H = images.hessian(images.at(x)) + f.ridge * np.eye(f.dimension)
        gradients = [
            (f.value_and_grad(x + h * e)[1] - f.value_and_grad(x - h * e)[1]) / (2 * h) for e in np.eye(f.dimension)
        ]
        np.testing.assert_allclose(H, gradients, atol=1e-8)
        u = rng.standard_normal(f.dimension)
        z = f.image(x)
        np.testing.assert_allclose(
            f.adjoint(f.loss.curvature(z).times(f.forward(u))), (H - f.ridge * np.eye(f.dimension)) @ u, atol=1e-13
        )


def moved_to(images, point, direction, t):
    """Where a search ends that has found t along the direction."""
    return images.settle(images.move(point, images.along(point, direction), t)[0])


@every_objective
def test_a_search_sees_a_convex_function_that_is_f_at_the_start_and_nowhere_below_f(f):
    """While it searches, intercepts move along their derivative; the best ones are found at its end."""
    images = f.images()
    for x in points(f):
        d = rng.standard_normal(f.dimension)
        start, image = images.at(x), images.multiply(d)
        looks = [images.move(start, images.along(start, image), t) for t in (0.0, 0.1, 0.5, 0.5 + 1e-6, 2.0)]
        values, slopes = [point.value for point, _ in looks], [slope for _, slope in looks]
        assert values[0] == pytest.approx(start.value, rel=1e-14)
        assert slopes[0] == pytest.approx(images.gradient(start) @ d, abs=1e-13)
        assert slopes == sorted(slopes)
        assert (values[3] - values[2]) / 1e-6 == pytest.approx(slopes[2], abs=1e-5 * (1.0 + abs(slopes[4])))
        assert all(images.settle(point).value <= point.value for point, _ in looks)


@every_objective
def test_images_agree_with_values_gradients_and_hessian(f):
    """Along a direction, and in a basis; from a point that was itself reached by a move."""
    images = f.images()
    for x in points(f):
        Q = np.linalg.qr(rng.standard_normal((f.dimension, 3)))[0]
        point = moved_to(images, images.at(x), images.multiply(Q[:, 0]), 0.7)
        there = x + 0.7 * Q[:, 0]
        value, g = f.value_and_grad(there)
        bowl = 0.5 * f.ridge * there @ there
        assert point.value + bowl == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(images.gradient(point), g - f.ridge * there, atol=1e-13)
        H, basis = images.hessian(point), basis_of(images, Q)
        np.testing.assert_allclose(images.bends(basis, point), Q.T @ H @ Q, atol=1e-13)
        np.testing.assert_allclose(images.slopes(basis, point), Q.T @ (g - f.ridge * there), atol=1e-13)
        assert images.bend(point, images.multiply(Q[:, 1])) == pytest.approx(Q[:, 1] @ H @ Q[:, 1], abs=1e-13)


@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize(
    "kind", [sp.csr_array, sp.csc_matrix, aslinearoperator, np.asfortranarray, lambda M: M.astype(np.float32)]
)
def test_every_kind_of_matrix_gives_the_same_function(kind, intercept):
    dense, other = (Multinomial(M, LABELS, 0.1, WEIGHTS, intercept) for M in (A, kind(A)))
    x, close = rng.standard_normal(d * K), 1e-6 if other.precision > 1e-10 else 1e-13
    for one, two in zip(dense.value_and_grad(x), other.value_and_grad(x), strict=True):
        np.testing.assert_allclose(one, two, rtol=close, atol=close)
    if other.has_hessian:
        H, same = (f.images().hessian(f.images().at(x)) for f in (dense, other))
        np.testing.assert_allclose(H, same, atol=close)


def test_all_columns_together_are_one_product():
    f = Multinomial(A, LABELS)
    f.value_and_grad(np.zeros(d * K))
    assert f.nprod == 2
    assert f(np.zeros(d * K)) == pytest.approx(math.log(K)) and f.nprod == 3
    assert f.images().at(np.zeros(d * K)).value == pytest.approx(math.log(K)) and f.nprod == 3


@every_objective
@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
def test_no_curvature_exceeds_the_declared_smoothness(f, p):
    """Mutation: a quarter in place of a half in the bound of the softmax, at two classes of even odds."""
    L = f.smoothness(p)
    for x in points(f):
        H = f.images().hessian(f.images().at(x)) + f.ridge * np.eye(f.dimension)
        for v in (*rng.standard_normal((5, f.dimension)), np.linalg.eigh(H)[1][:, -1], np.ones(f.dimension)):
            assert v @ H @ v <= L * np.linalg.norm(v, p) ** 2 * (1 + 1e-12)


def test_the_smoothness_of_two_classes_is_reached():
    f = Multinomial(np.ones((6, 1)), [0, 1, 0, 1, 1, 1])
    H = f.images().hessian(f.images().at(np.zeros(2)))
    assert np.linalg.eigvalsh(H).max() == pytest.approx(f.smoothness(2)) and not f.smoothness(2).exact


@every_objective
@pytest.mark.parametrize("method", METHODS)
def test_certificates_hold_against_an_optimum_of_scipys(f, method):
    """The least value over W and c together, by BFGS; mutation: a slope whose sums over the rows are not 0."""
    size = f.dimension
    intercepts = 1 if isinstance(f, Logistic) else K
    free = isinstance(f.loss, InterceptLoss) or getattr(f.loss, "intercept", False)

    def whole(v):
        return literal(f, v[:size], (v[size:] if intercepts > 1 else v[size]) if free else 0.0)

    best = scipy_minimize(whole, np.zeros(size + intercepts), method="BFGS", options={"gtol": 1e-9}).fun
    for gap_tol in (1e-1, 1e-3, 1e-9):
        res = hasd.minimize(f, np.zeros(size), method=method, gap_tol=gap_tol)
        assert res.success and res.gap <= gap_tol
        assert res.lower <= best and res.fun - best <= res.gap + 1e-15
        gap = f.duality_gap(res.x)
        assert res.fun - best <= gap + 1e-15 and gap <= 2.0 * res.gap + 1e-13


def test_two_classes_are_the_logistic_objective_with_half_the_ridge():
    """W = (-w/2, w/2) is the best W with that difference, and has half of its squares."""
    two = Multinomial(A, (SIGNS > 0).astype(int), ridge=0.2, weights=WEIGHTS, intercept=True)
    one = Logistic(A, SIGNS, ridge=0.1, weights=WEIGHTS, intercept=True)
    for w in (np.zeros(d), rng.standard_normal(d), 10.0 * rng.standard_normal(d)):
        x = np.outer(w, [-0.5, 0.5]).ravel()
        assert two(x) == pytest.approx(one(w), rel=1e-13)
        np.testing.assert_allclose(two.value_and_grad(x)[1][1::2], one.value_and_grad(w)[1], atol=1e-13)
        assert np.diff(two.best_intercept(x))[0] == pytest.approx(one.best_intercept(w), abs=1e-7)


def exact_value(f, x):
    """f(x) in fifty digits; intercepts by Newton's method from those that f finds."""
    mpmath.mp.dps = 50
    shares = [mpmath.mpf(s) for s in getattr(f.loss, "weights", None)]
    W = mpmath.matrix(x.reshape(d, -1).tolist())
    Z = mpmath.matrix(np.asarray(f.A, dtype=float).tolist()) * W

    def value(c):
        rows = [[Z[i, k] + c[k] for k in range(K)] for i in range(len(shares))]
        terms = [
            s * (mpmath.log(sum(mpmath.exp(t - row[y]) for t in row)))
            for s, row, y in zip(shares, rows, f.loss.y.tolist(), strict=True)
        ]
        gradient = [mpmath.mpf(0)] * K
        hessian = mpmath.ones(K, K)  # ones: intercepts that sum to 0
        for s, row, y in zip(shares, rows, f.loss.y.tolist(), strict=True):
            sizes = [mpmath.exp(t - row[y]) for t in row]
            P = [size / sum(sizes) for size in sizes]
            for k in range(K):
                gradient[k] += s * (P[k] - (k == y))
                for j in range(K):
                    hessian[k, j] += s * P[k] * ((k == j) - P[j])
        return sum(terms), mpmath.matrix(gradient), hessian

    c = mpmath.matrix([float(part) for part in f.best_intercept(x)])
    for _ in range(6 if f.loss.intercept else 0):
        _, g, H = value(c)
        c -= mpmath.lu_solve(H, g)
    return value(c)[0] + mpmath.mpf(f.ridge) / 2 * sum(mpmath.mpf(float(part)) ** 2 for part in x)


@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("far", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_value_and_cut_are_off_by_no_more_than_their_doubt(single, far, intercept):
    """Against fifty digits.  Mutation: leave out the error of the image."""
    local = np.random.default_rng(3)
    for _ in range(4):
        rows = (local.standard_normal((7, d)) + 3.0).astype(np.float32 if single else np.float64)
        f = Multinomial(rows, [0, 1, 2, 3, 3, 2, 1], 1e-3, local.uniform(0.1, 1.0, 7), intercept)
        x = local.standard_normal(d * K) * far / 10.0
        e = Oracle(ObjectiveSource(f)).evaluate(x)
        if not math.isfinite(e.f):
            continue
        assert abs(exact_value(f, x) - mpmath.mpf(e.f)) <= e.df()
        for _ in range(2):
            u = x + local.standard_normal(d * K) * 10.0 ** local.uniform(-3, 1)
            apart = [mpmath.mpf(float(s)) - mpmath.mpf(float(t)) for s, t in zip(u, x, strict=True)]
            cut = mpmath.mpf(e.f) + sum(mpmath.mpf(float(g)) * part for g, part in zip(e.g, apart, strict=True))
            allowed = e.df() + e.dg() * float(mpmath.norm(mpmath.matrix(apart)))
            assert float(cut - exact_value(f, u)) <= allowed


def test_losses_that_are_nearly_zero_keep_their_digits():
    """Mutation: log(sum) in place of log1p, or p - 1 for the slope."""
    z = np.array([[40.0, -35.0], [0.0, 0.0], [-1.0, 0.0]])
    e = MultinomialLoss(np.array([0, 1]), classes=3).expand(z.ravel())
    first, second = math.exp(-40.0) * (1.0 + math.exp(-1.0)), math.log(2.0) + math.exp(-35.0) / 2.0
    assert e.value == pytest.approx((first + second) / 2.0, rel=1e-15)
    alone = MultinomialLoss(np.array([0]), classes=3).expand(z[:, 0].copy())
    assert alone.value == pytest.approx(first, rel=1e-14) and alone.slope[0] == pytest.approx(-first, rel=1e-14)
    assert MultinomialLoss(np.array([0]), classes=2).value(np.array([-1e300, 1e300])) == 2e300


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_the_best_intercept_is_found_wherever_z_is(scale):
    """Images far apart from each other and from 0, where the curvature nearly vanishes."""
    z = scale * rng.standard_normal(n) + 7.0 * scale
    loss = InterceptLoss(LogisticLoss(SIGNS, WEIGHTS))
    e = loss.expand(z)
    assert math.isfinite(e.value) and abs(e.slope.sum()) <= 1e-15
    Z = scale * rng.standard_normal((K, n)) + 7.0 * scale * np.arange(K)[:, None]
    several = MultinomialLoss(LABELS, weights=WEIGHTS, intercept=True).expand(Z.ravel())
    assert math.isfinite(several.value) and np.abs(several.slope.reshape(K, n).sum(axis=1)).max() <= 1e-15


def test_an_intercept_is_found_where_rounding_of_large_images_hides_the_last_step():
    """Floats near 1e9 are 1e-7 apart, so c cannot be found more precisely.  Mutation: with finest = 0 f is NaN."""
    near = np.linspace(-300.0, 300.0, n)
    loss = InterceptLoss(LogisticLoss(np.where(np.arange(n) < n // 2, -1.0, 1.0)))
    for shift in (2.0**30, -(2.0**33)):
        assert loss.value(near + shift) == pytest.approx(loss.value(near), rel=1e-4)


def test_a_point_whose_intercept_is_not_found_has_no_value():
    """NaN, which every method steps back from; mutation: the value at some intercept, which is not the least."""
    assert math.isnan(InterceptLoss(LogisticLoss(SIGNS, WEIGHTS)).value(1e200 * rng.standard_normal(n)))
    loss = MultinomialLoss(LABELS, weights=WEIGHTS, intercept=True)
    assert math.isnan(loss.value(1e200 * rng.standard_normal(n * K)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Multinomial(A, LABELS[1:]), "y must be 1-D of length 40"),
        (lambda: Multinomial(A, LABELS + 0.5), "y must hold the labels 0, 1, ..."),
        (lambda: Multinomial(A, LABELS - 1), "y must hold the labels 0, 1, ..."),
        (lambda: Multinomial(A, LABELS, classes=3), "y must hold labels below classes = 3, got 3"),
        (lambda: Multinomial(A, LABELS, classes=5, intercept=True), "every label .* no row has 4"),
        (lambda: Multinomial(A, LABELS, weights=WEIGHTS - WEIGHTS.min()), "weights must be positive"),
        (lambda: Multinomial(A, LABELS, weights=WEIGHTS[1:]), "weights must be 1-D of length 40"),
        (lambda: Logistic(A, np.ones(n), intercept=True), "y must hold labels of both kinds"),
        (lambda: Logistic(A, SIGNS, weights=0.0 * WEIGHTS), "weights must be positive"),
    ],
)
def test_data_that_make_no_objective_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_an_intercept_is_asked_for_by_true_or_false():
    for Objective, y in ((Logistic, SIGNS), (Multinomial, LABELS)):
        with pytest.raises(TypeError, match="intercept must be True or False"):
            Objective(A, y, intercept="no")


def test_classes_that_no_row_has_are_columns_all_the_same():
    f = Multinomial(A, LABELS, ridge=0.1, classes=K + 2)
    assert f.dimension == d * (K + 2) and f(np.zeros(f.dimension)) == pytest.approx(math.log(K + 2))
    assert repr(f) == "Multinomial(40 x 3, ridge=0.1)" and module.Multinomial is Multinomial


def test_an_intercept_is_found_where_all_curvature_underflows_or_one_class_is_rare():
    """Both are finite.  Odds of a class with 1e-10 of the weight must not be computed from a difference to 1."""
    value, slope = Logistic([[1.0], [-1.0]], [1, -1], intercept=True).value_and_grad([1000.0])
    assert value == 0.0 and not slope.any()
    rare = Logistic([[1.0], [2.0], [3.0]], [1, -1, -1], 1e-3, [1e-10, 1.0, 1e-7], True)
    share = 1e-10 / (1.0 + 1e-7 + 1e-10)
    assert rare([0.0]) == pytest.approx(-share * np.log(share) - (1 - share) * np.log1p(-share), rel=1e-6)


@every_objective
def test_an_image_made_at_a_point_is_the_one_that_a_move_from_0_leads_to(f: Logistic | Multinomial) -> None:
    """Intercepts included: those of several classes sum to 0 wherever they begin."""
    images, x = f.images(), 0.1 * np.ones(f.dimension)
    moved = moved_to(images, images.at(0.0 * x), images.multiply(x), 1.0)
    assert images.distance(images.at(x).z, moved.z) <= 1e-7


def test_intercepts_are_found_in_the_tail_of_an_exponential():
    """Newton's steps have length 1 there until the slope is rounding.  Mutation: only short steps end the search."""
    X, y = np.array([[1e4], [0.0], [4.0], [6.0]]), [0, 1, 2, 2]
    f = Multinomial(X, y, ridge=0.25, intercept=True)
    value, _ = f.value_and_grad([0.01, -0.01, 0.0])
    shares = np.array([1.0, 2.0]) / 3.0  # class 0 takes its own row alone, the others are hardly told apart
    assert value == pytest.approx(-0.75 * float(shares @ np.log(shares)), rel=0.05)
    slope = f.loss.expand(f.image(np.array([0.01, -0.01, 0.0]))).slope
    assert np.abs(slope.reshape(3, -1).sum(axis=1)).max() <= 1e-14


@pytest.mark.parametrize("seed", range(12))
def test_intercepts_that_are_found_balance_the_slope_at_any_size_of_the_images(seed):
    """Mutation: the sums of the corrected slope are not checked, though the curvature is hardly known."""
    own = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(K), own.integers(0, K, n - K)])
    loss = MultinomialLoss(labels, intercept=True)
    for size in (1.0, 30.0, 1e3, 3e4):
        Z = size * own.standard_normal((K, n)) * 10.0 ** own.uniform(-3, 1, n)
        with np.errstate(all="ignore"):
            e = loss.expand(Z.ravel())
        sums = np.abs(e.slope.reshape(K, n).sum(axis=1)).sum()
        assert sums <= 1e-13 or (size > 100.0 and math.isnan(e.value))


def test_a_point_without_a_value_is_not_followed_by_its_intercept():
    """With entries of 1e18 no intercept is found at a point where a line search begins; that raised a TypeError."""
    A = np.array([[6e17, -1.4e18], [4e17, -8e17], [6e17, 8e17]])
    for method in ("hasd-newton", "hasd-subspace", "hasd-qn"):
        f = Logistic(A, [-1, 1, -1], ridge=0.1, intercept=True)
        res = hasd.minimize(f, np.array([1.1, -0.8]), method=method, maxiter=100)
        assert math.isfinite(res.fun) and res.gap >= res.fun - 0.08


@pytest.mark.parametrize("seed", range(12))
def test_intercepts_are_found_where_a_class_has_hardly_any_curvature(seed):
    """Images in the hundreds that tell nearly all rows apart.  Mutation: the curvature inverted as it is, unscaled."""
    own, classes, rows = np.random.default_rng(seed), 5, 120
    labels = np.concatenate([[4], own.integers(0, 4, rows - 1)])
    Z = 200.0 * own.standard_normal((classes, rows))
    Z[labels, np.arange(rows)] += 500.0
    e = MultinomialLoss(labels, intercept=True).expand(Z.ravel())
    assert math.isfinite(e.value) and np.abs(e.slope.reshape(classes, rows).sum(axis=1)).sum() <= 1e-13
