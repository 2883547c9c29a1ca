"""Certificates where they were false or lost in a review: each case as it was found, the cause in its first line."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import hasd
from hasd._math.evaluation import Bend, Evaluation
from hasd._run.certificate import cut_at
from hasd._run.oracle import Oracle
from hasd._run.sources import ObjectiveSource
from hasd.objectives import LeastSquares, Power, Quadratic

mpmath.mp.dps = 60


def steep(seed):
    """A quadratic with curvature 1 and about 1e5, started at its minimiser as NumPy computes it."""
    rng = np.random.default_rng(seed)
    rng.standard_normal((3, 3))
    a = rng.standard_normal(3) * 300.0
    H = np.eye(3) + np.outer(a, a)
    c = -H @ (rng.standard_normal(3) * 50.0)
    return (lambda x: (float(0.5 * x @ (H @ x) + c @ x), H @ x + c)), np.linalg.solve(H, -c), H, c


@pytest.mark.parametrize("radius", [None, 100.0])
def test_curvature_is_seen_at_every_evaluation_not_only_at_iterates(radius):
    """A run that ends at its first state has evaluated many points: no negative gap, no accusation, and an end."""
    for seed in (*range(30, 40), 1005):
        f, x0, H, c = steep(seed)
        res = hasd.minimize(f, x0, jac=True, method="hasd", mu=0.999, radius=radius)
        assert "convex" not in res.message and res.gap >= 0.0 and res.certificate.gap(1.0) >= 0.0
        best = mpmath.lu_solve(mpmath.matrix(H.tolist()), -mpmath.matrix(c.tolist()))
        least = (mpmath.matrix(c.tolist()).T * best)[0] / 2
        x = mpmath.matrix(res.x.tolist())
        value = (x.T * mpmath.matrix(H.tolist()) * x)[0] / 2 + (mpmath.matrix(c.tolist()).T * x)[0]
        assert mpmath.mpf(res.gap) >= value - least


def test_one_evaluation_is_charged_for_the_curvature_that_the_user_vouches_for():
    H, c = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([-1e6 / 3, -7e5])
    res = hasd.minimize(
        lambda x: (float(0.5 * x @ (H @ x) + c @ x), H @ x + c), np.linalg.solve(H, -c), jac=True, mu=1.38
    )
    assert res.certificate.charge() > 4.5e-22 and res.gap > 4.5e-22


def test_differences_are_as_noisy_as_their_shortest_step_makes_them():
    """Entries of x of very different sizes, and a large constant in f."""
    target = np.array([1e6, 100.0])
    res = hasd.minimize(lambda x: 1e12 + 0.5 * float((x - target) @ (x - target)), np.array([1e6, 0.0]))
    assert (
        res.certificate.gap(150.0) >= 0.5 * float((res.x - target) @ (res.x - target))
        and res.certificate.lower(150.0) <= 1e12
    )


@pytest.mark.parametrize("method", ["hasd", "hasd-qn", "hasd-subspace", "hasd-newton"])
def test_a_mu_above_the_ridge_needs_the_gradient_at_x_itself(method):
    """Nearly dependent rows, whose image rounding moves by more than the data's least singular value."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((2, 2)) * 1e5
        A[1] = A[0] + rng.standard_normal(2)
        x0 = np.linalg.svd(A)[2][-1] * 300.0
        M, start = mpmath.matrix(A.tolist()), mpmath.matrix(x0.tolist())
        b = np.array([float(part) for part in M * start])
        square = M.T * M
        mu = float((mpmath.eigsy(square, eigvals_only=True)[0] + 0.5) * (1 - mpmath.mpf(10) ** -12))
        right = mpmath.matrix(b.tolist())
        best = mpmath.lu_solve(square + mpmath.eye(2) / 2, M.T * right)

        def value(x, M=M, right=right):
            z = M * x - right
            return (z.T * z)[0] / 2 + (x.T * x)[0] / 4

        res = hasd.minimize(LeastSquares(A, b, ridge=0.5), x0, mu=mu, method=method, maxiter=50)
        assert res.gap >= 0.0 and mpmath.mpf(res.certificate.lower()) <= value(best)
        assert mpmath.mpf(res.gap) >= value(mpmath.matrix(res.x.tolist())) - value(best)


def test_a_radius_contradicted_at_the_returned_point_is_withdrawn_not_raised():
    def f(x):
        return 0.5 * float((x - 1) @ (x - 1)) + 2 * (x[0] - 1) ** 2, (x - 1) + np.array([4 * (x[0] - 1), 0.0])

    res = hasd.minimize(f, np.zeros(2), jac=True, method="heavy-ball", maxiter=4, radius=0.5 * 2**0.5)
    assert res.status == 1 and res.gap == math.inf and "is too small" in res.message
    assert "inf" in repr(res.gap)


def test_a_loss_small_beside_the_ridge_is_not_taken_for_zero():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.standard_normal((5, 3)).astype(np.float32)
        x = rng.standard_normal(3).astype(np.float32)
        b = (A @ x + 1e-3 * rng.standard_normal(5)).astype(np.float32)
        f = Power(A, b, q=4, ridge=1.0)
        e = Oracle(ObjectiveSource(f)).evaluate(x)
        z = mpmath.matrix(A.astype(float).tolist()) * mpmath.matrix(x.astype(float).tolist()) - mpmath.matrix(
            f.b.tolist()
        )
        exact = sum(part**4 for part in z) / 4 + sum(mpmath.mpf(float(part)) ** 2 for part in x) / 2
        assert abs(float(exact - mpmath.mpf(e.f))) <= e.df()


# Numbers so small that their products underflow: what is lost there proves nothing.


def test_curvature_that_underflows_is_not_taken_for_a_function_without_a_minimum():
    """With the minimiser at 0 and no tolerance the gradient falls until its square underflows."""
    f = Quadratic(np.diag([1.0, 1e3, 1e6]), np.zeros(3))
    for seed in range(20):
        x0 = np.random.default_rng(seed).standard_normal(3)
        res = hasd.minimize(f, x0, method="hasd-cg", tol=0.0, maxiter=2000)
        assert res.status != hasd.Status.UNBOUNDED.code, res.message


def test_a_direction_whose_product_underflows_in_float32_does_not_make_a_quadratic_unbounded():
    for scale in (1.8161407e-04, 1.0, 3e-7):
        for start in (19.283035278320312, 1.0, 3e-9):
            f = Quadratic(np.array([[scale]], np.float32), np.zeros(1, np.float32))
            res = hasd.minimize(f, np.array([start], np.float32), method="hasd-cg", tol=0.0, maxiter=300)
            assert res.status != hasd.Status.UNBOUNDED.code, res.message


def test_a_cut_counts_the_underflow_of_its_inner_product_in_float32():
    rng = np.random.default_rng(0)
    for _ in range(100):
        x, g = ((rng.standard_normal(3) * 10.0 ** rng.uniform(-24, -20)).astype(np.float32) for _ in range(2))
        cut = cut_at(Evaluation(x, 0.0, g), np.zeros(3, np.float32))
        tilt = -sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(g, x, strict=True))
        assert abs(float(tilt - Fraction(cut.tilt))) <= cut.lost + cut.unit * cut.slope * cut.away


def test_a_sharpened_gap_with_a_mu_above_the_ridge_needs_the_gradient_at_x_itself():
    """Found by the soak: the image in long double is as uncertain as the residual is small."""
    A, b = np.array([[2.0123137990439313e-11]]), np.array([23722.79461157208])
    mu, x0 = 4.045357418996797e-22, np.array([1178677988943731.0])
    res = hasd.minimize(LeastSquares(A, b), x0, mu=mu, gap_tol=9.584030405442385e-06, tol=1e-4, maxiter=300)
    z = mpmath.mpf(A[0, 0]) * mpmath.mpf(res.x[0]) - mpmath.mpf(b[0])
    assert mpmath.mpf(res.gap) >= z**2 / 2


def test_products_in_float32_that_underflow_do_not_make_a_quadratic_unbounded():
    """Found by the soak: the method works in float64, on points below the smallest number of H's float32."""
    H = np.array([[0.0625, 0.03125, 0.0], [0.03125, 0.125, 0.015625], [0.0, 0.015625, 0.25]], dtype=np.float32)
    f = Quadratic(H, np.zeros(3, np.float32))
    for size in (1e-36, 1e-42, 1e-44, 3e-45, 1e-46):
        for seed in range(20):
            x = np.random.default_rng(seed).standard_normal(3) * size
            e = Oracle(ObjectiveSource(f)).evaluate(x)
            off = [float(mpmath.fdot(row, x) - mpmath.mpf(part)) for row, part in zip(H.tolist(), e.g, strict=True)]
            assert math.hypot(*off) <= e.dg()


def test_curvature_is_seen_between_the_last_evaluation_and_the_returned_point():
    """Found by 20,000 random runs: one iteration with a declared L evaluates its second point for the record only."""
    H, c = np.array([[2524.37255859375]], np.float32), np.array([222224.671875], np.float32)
    f, x0 = Quadratic(H, c), np.array([-88.0306625366211], np.float32)
    res = hasd.minimize(f.value_and_grad, x0, jac=True, method="hasd", p=2.5, L=2526.8969, tol=0.0, maxiter=1)
    best = -mpmath.mpf(float(c[0])) / mpmath.mpf(float(H[0, 0]))
    away = mpmath.mpf(float(res.x[0])) - best
    radius = float(abs(mpmath.mpf(float(x0[0])) - best)) * (1 + 1e-9)
    assert mpmath.mpf(res.certificate.gap(radius)) >= mpmath.mpf(float(H[0, 0])) * away**2 / 2


def test_evaluations_at_one_point_show_no_curvature():
    x, g = np.array([1e3, 2e3]), np.array([1.0, 1.0])
    seen = Bend().with_evaluation(Evaluation(x, 0.0, g)).with_evaluation(Evaluation(x.copy(), 0.0, g.copy()))
    assert seen.pairs == 0 and seen.largest == 0.0
    assert seen.with_evaluation(Evaluation(x + 1.0, 0.0, 2 * g)).pairs == 1


def test_a_run_that_stood_still_looks_at_a_second_point_before_it_certifies():
    """Found by 20,000 random runs: 292 steps too short for float32, and rounding judged by no curvature at all."""
    A = np.array(
        [
            [-1.142972707748413, 0.6596729755401611, 0.48136866092681885, -1.142972707748413],
            [-0.7642270922660828, 1.4603843688964844, 0.19248400628566742, -0.7642270922660828],
            [0.3591751754283905, 0.45821210741996765, -0.3903001844882965, 0.3591751754283905],
            [-0.5076943635940552, -0.44320550560951233, -0.6616553068161011, -0.5076943635940552],
        ],
        np.float32,
    )
    b, x0 = (
        np.array(v, np.float32)
        for v in (
            [2498.6474609375, 2895.61865234375, 445.9772644042969, 2929.4228515625],
            [-456.7346496582031, 847.492431640625, -2791.060302734375, -2415.69482421875],
        )
    )
    settings = {"method": "gradient-descent", "p": 10.0, "L": 17.22088490661668, "tol": 0.0, "maxiter": 292}
    res = hasd.minimize(LeastSquares(A, b).value_and_grad, x0, jac=True, radius=1.15e-4, **settings)
    z = mpmath.matrix(A.tolist()) * mpmath.matrix(res.x.tolist()) - mpmath.matrix(b.tolist())
    assert res.certificate.bend > 0.1 and mpmath.mpf(res.gap) >= (z.T * z)[0] / 2


def test_a_function_convex_by_construction_is_not_called_anything_else():
    A = np.random.default_rng(0).standard_normal((40, 4))
    res = hasd.minimize(hasd.objectives.LogSumExp(A), np.full(4, 3.0), radius=0.1, tol=0)
    assert res.status == 2 and "not convex" not in res.message and "radius = 0.1 is too small" in res.message


def test_the_objectives_own_ridge_is_not_blamed():
    A = np.random.default_rng(0).standard_normal((40, 4))
    f, settings = hasd.objectives.LogSumExp(A, ridge=1.0), {"method": "agd", "radius": 0.1, "maxiter": 4}
    assert "mu =" not in hasd.minimize(f, np.full(4, 5.0), **settings).message
    assert "mu = 9 is too large" in hasd.minimize(f, np.full(4, 5.0), mu=9.0, **settings).message


@pytest.mark.parametrize("method", ["hasd-qn", "hasd-subspace", "hasd-cg"])
def test_what_has_no_minimum_has_no_gap(method):
    """A radius is the distance of a minimiser, and an indefinite quadratic has none."""
    saddle = hasd.objectives.Quadratic(np.diag([1.0, -1e-3, 2.0]), [1.0, 1.0, 1.0])
    res = hasd.minimize(saddle, np.ones(3), method=method, radius=10.0)
    assert res.status == hasd.Status.UNBOUNDED.code and np.isinf(res.gap) and "nothing is certified" in res.message
