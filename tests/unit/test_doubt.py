"""What objectives say of their own rounding, held against rational arithmetic; and the model for a user's function."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import aslinearoperator

import hasd
from hasd._math.doubt import EPS, Doubt, Sizes, doubt_of_differences, doubt_of_function, roundings
from hasd._run.oracle import Oracle
from hasd._run.sources import BlackBox, ObjectiveSource
from hasd.objectives import EntropicTransport, LeastSquares, Logistic, LogSumExp, Power, Quadratic, SymmetricSoftmax
from hasd.objectives._sizes import MatrixSizes

mpmath.mp.dps = 60


def matrix(data):
    return mpmath.matrix(np.asarray(data, dtype=float).tolist())


def softmax(z, alpha):
    top = max(z)
    return top + alpha * mpmath.log(sum(mpmath.exp((part - top) / alpha) for part in z))


EXACT = {
    "log-sum-exp": lambda f, z: softmax(list(z), mpmath.mpf(f.loss.alpha)),
    "softmax": lambda f, z: softmax([*z, *(-part for part in z)], mpmath.mpf(f.loss.alpha)),
    "squares": lambda f, z: sum(part * part for part in z) / 2,
    "power": lambda f, z: sum(abs(part) ** 4 for part in z) / 4,
    "logistic": lambda f, z: (
        sum(mpmath.log1p(mpmath.exp(-y * part)) for y, part in zip(f.loss.y.tolist(), z, strict=True)) / len(z)
    ),
}


def objective(name, A, b, ridge):
    if name == "logistic":
        return Logistic(A, np.sign(b + 0.1), ridge=ridge)
    kinds = {"log-sum-exp": LogSumExp, "softmax": SymmetricSoftmax, "squares": LeastSquares}
    return Power(A, b, q=4, ridge=ridge) if name == "power" else kinds[name](A, b, ridge=ridge)


def exact_value(name, f, x):
    x = [part if isinstance(part, mpmath.mpf) else mpmath.mpf(float(part)) for part in x]
    z = matrix(f.A) * mpmath.matrix(x)
    if f.b is not None:
        z -= matrix(f.b)
    return EXACT[name](f, z) + mpmath.mpf(f.ridge) / 2 * sum(part**2 for part in x)


def evaluate(f, x):
    return Oracle(ObjectiveSource(f)).evaluate(np.asarray(x, dtype=float))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("far", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_value_and_cut_of_an_affine_objective_are_off_by_no_more_than_its_doubt(name, far, single):
    """Values, and cuts against values elsewhere.  Mutation: leave out the error of the image."""
    rng = np.random.default_rng(7)
    worst = 0.0
    for _ in range(10):
        A = rng.standard_normal((7, 4)) * 10.0 ** rng.uniform(-2, 2, 4)
        x = far * rng.standard_normal(4) + rng.standard_normal(4)
        b = A @ x + rng.standard_normal(7)  # far away, Ax and b cancel
        if name == "logistic" and far > 0.0:
            A[:, 1:] *= 1e-8
        f = objective(name, A.astype(np.float32) if single else A, b, ridge=float(rng.choice([0.0, 1e-3])))
        e = evaluate(f, x)
        worst = max(worst, float(abs(exact_value(name, f, x) - e.f)) / e.df())
        for _ in range(3):
            u = x + rng.standard_normal(4) * 10.0 ** rng.uniform(-3, 3)
            apart = [mpmath.mpf(float(s)) - mpmath.mpf(float(t)) for s, t in zip(u, x, strict=True)]
            cut = mpmath.mpf(e.f) + sum(mpmath.mpf(float(g)) * part for g, part in zip(e.g, apart, strict=True))
            allowed = e.df() + e.dg() * float(mpmath.norm(mpmath.matrix(apart)))
            assert float(cut - exact_value(name, f, u)) <= allowed
    assert worst <= 1.0


def test_doubt_covers_the_error_of_a_quadratic_whose_terms_cancel():
    rng = np.random.default_rng(3)
    for _ in range(30):
        Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
        H = Q @ np.diag(np.geomspace(1e-6, 1.0, 4)) @ Q.T
        H = 0.5 * (H + H.T)
        x = rng.standard_normal(4) * 10.0 ** rng.uniform(0, 8)
        f = Quadratic(H, -H @ x)
        e = evaluate(f, x)
        X = [Fraction(part) for part in x.tolist()]
        Hx = [sum(Fraction(h) * part for h, part in zip(row, X, strict=True)) for row in H.tolist()]
        value = sum((h / 2 + Fraction(c)) * part for h, c, part in zip(Hx, f.c.tolist(), X, strict=True))
        assert abs(float(value - Fraction(e.f))) <= e.df()
        slope = [float(h + Fraction(c) - Fraction(g)) for h, c, g in zip(Hx, f.c.tolist(), e.g.tolist(), strict=True)]
        assert math.hypot(*slope) <= e.dg() == e.doubt.true


@pytest.mark.parametrize("name", ["log-sum-exp", "softmax", "squares", "power", "logistic"])
def test_the_true_gradient_is_within_its_doubt(name):
    rng = np.random.default_rng(11)
    for _ in range(5):
        A, x = rng.standard_normal((6, 3)), rng.standard_normal(3) * 10.0 ** rng.uniform(0, 6)
        f = objective(name, A * (1e-6 if name == "logistic" else 1.0), A @ x + rng.standard_normal(6), 1e-3)
        e = evaluate(f, x)
        for i in range(3):
            slope = mpmath.diff(
                lambda t, i=i, f=f, x=x: exact_value(name, f, [*x[:i], t, *x[i + 1 :]]), mpmath.mpf(x[i])
            )
            assert abs(float(slope - mpmath.mpf(e.g[i]))) <= e.doubt.true


def test_doubt_is_small_where_nothing_cancels():
    """A few roundings of the value, not thousands."""
    A = np.random.default_rng(0).standard_normal((50, 10))
    for f in (LogSumExp(A), LeastSquares(A, np.ones(50)), Logistic(A, np.ones(50))):
        e = evaluate(f, np.full(10, 0.1))
        assert EPS * abs(e.f) <= e.df() <= 100.0 * EPS * abs(e.f)


def test_a_moved_image_is_doubted_more():
    f = LeastSquares(np.eye(3), np.ones(3))
    at = Sizes(f=1.0, g=1.0, x=2.0, top=2.0, d=3, eps=EPS)
    fresh, moved = f.doubt(at), f.doubt(at, image=1e-9)
    assert moved.image > 1e-9 > fresh.image and moved.value > fresh.value


def test_operators_and_losses_that_do_not_tell_are_judged_as_any_function():
    class Own(hasd.objectives.Loss):
        bounded_below = True

        def value_and_slope(self, z):
            return float(z @ z), 2.0 * z

    A = np.eye(2)
    assert LeastSquares(aslinearoperator(A), np.ones(2)).doubt(Sizes(1.0, 1.0, 1.0, 1.0, 2, EPS)) is None
    assert hasd.objectives.Affine(Own(), A).doubt(Sizes(1.0, 1.0, 1.0, 1.0, 2, EPS)) is None
    e = Oracle(ObjectiveSource(LeastSquares(aslinearoperator(A), np.ones(2)))).evaluate(np.ones(2))
    assert e.doubt.value_bend > 0.0


def test_transport_says_its_doubt():
    f = EntropicTransport(np.array([[0.0, 1.0], [1.0, 0.0]]), [0.5, 0.5], [0.5, 0.5], 0.1)
    doubt = f.doubt(Sizes(1.0, 0.5, 1e6, 1e6, 4, EPS))
    assert 1e6 * EPS < doubt.value < 100e6 * EPS and doubt.true > doubt.slope > 0.0


def test_doubt_of_a_users_function_is_a_few_roundings_of_its_sizes():
    at = Sizes(f=-3.0, g=2.0, x=5.0, top=3.0, d=16, eps=EPS)
    assert doubt_of_function(at.f, at.g, at.x, at.d, at.eps) == Doubt(
        16 * EPS * 13.0, 16 * EPS * 2.0, 16 * EPS * 2.0, 16 * EPS * 25.0, 16 * EPS * 5.0, 16 * EPS * 6.0**0.5
    )
    differences = doubt_of_differences(at, 1e-8, 1e-6)
    assert differences.slope > 4.0 * 2.0 / 1e-8 * 16 * EPS and differences.slope_bend > 0.5 * 4.0 * 1e-6
    assert (differences.value, differences.value_bend) == (16 * EPS * 13.0, 16 * EPS * 25.0)


def test_a_gradient_in_float32_tells_that_the_function_is():
    f = BlackBox(lambda x: (1.0, x.astype(np.float32)), True)
    assert Oracle(f).evaluate(np.ones(4)).doubt.slope > 2.0**-23 and f.precision == 2.0**-23
    assert Oracle(BlackBox(lambda x: (1.0, x), True)).evaluate(np.ones(4)).doubt.slope < 1e-14


@pytest.mark.parametrize("kind", [np.asarray, csr_array, csc_array])
def test_sizes_of_a_matrix_are_its_largest_norms_at_any_scale(kind):
    A = np.array([[3.0, 4.0, 0.0], [0.0, 1.0, 0.0]])
    for scale in (1.0, 2.0**600, 2.0**-600):
        sizes = MatrixSizes(kind(scale * A), np.array([-2.0, 1.0]))
        assert sizes.norms == (5.0 * scale, 7.0 * scale, pytest.approx(math.sqrt(26.0) * scale))
        assert sizes.affine.largest == 2.0
        assert sizes.terms == (3 if kind is np.asarray else 2)
    assert MatrixSizes(kind(np.zeros((2, 3))), None).affine.row == 0.0 and MatrixSizes(None, None).affine.row == 1.0


def test_roundings_grow_like_a_random_walk():
    assert [roundings(n) for n in (0, 4, 100)] == [2.0, 3.0, 7.0]
