"""What was reported of rounding: certificates too small or withdrawn, convex functions accused, searches without end.

`test_rounding.py` looks for more of the kind at random.
"""

import math
import re
from fractions import Fraction
from operator import mul

import numpy as np
import pytest

import hasd
from hasd import Status
from hasd.objectives import EntropicTransport, LeastSquares, LogSumExp, Quadratic, SymmetricSoftmax


def with_intercept(X):
    """Centred columns and a column of ones: the minimiser lies far along the last one."""
    return np.column_stack([X - X.mean(axis=0), np.ones(len(X))])


def certifies_a_small_gap(A, ridge):
    res = hasd.minimize(LogSumExp(A, ridge=ridge), np.zeros(A.shape[1]))
    assert res.success and "certified" not in res.message and 0.0 <= res.gap <= 1e-6


# A minimiser where the value is -494, and the ridge and the intercept cancel.


@pytest.mark.parametrize("seed", range(40))
def test_a_ridge_problem_with_an_intercept_keeps_its_certificate(seed):
    rng = np.random.default_rng(seed)
    certifies_a_small_gap(with_intercept(rng.standard_normal((300, 10))), 1e-3)


@pytest.mark.parametrize("ridge", [1e-3, 1e-2])
@pytest.mark.parametrize("name", ["load_breast_cancer", "load_diabetes"])
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "as it is"])
def test_a_data_set_with_an_intercept_keeps_its_certificate(name, scaled, ridge):
    from sklearn import datasets

    X, _ = getattr(datasets, name)(return_X_y=True)
    certifies_a_small_gap(with_intercept(X / X.std(axis=0) if scaled else X), ridge)


# Callables whose terms cancel are convex all the same.


def quadratic(H, c):
    """A callable."""
    return lambda x: (0.5 * x @ H @ x - c @ x, H @ x - c)


def is_not_accused(res):
    return res.status not in (Status.NONCONVEX.code, Status.UNBOUNDED.code) and "convex" not in res.message


@pytest.mark.parametrize("n", [4, 5, 6])
def test_hilbert_matrices_are_convex(n):
    i = np.arange(n)
    H, c = 1.0 / (i[:, None] + i + 1.0), (-1.0) ** i
    assert is_not_accused(hasd.minimize(quadratic(H, c), np.zeros(n), jac=True, tol=1e-10))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("condition", [1e4, 1e8])
def test_ill_conditioned_quadratics_are_convex(condition, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(4, 11))
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    H = (Q * np.geomspace(1.0, 1.0 / condition, d)) @ Q.T
    f = quadratic(0.5 * (H + H.T), rng.standard_normal(d))
    assert is_not_accused(hasd.minimize(f, np.zeros(d), jac=True, tol=1e-10, maxiter=2000))


# Points so far from the origin that differences of x are of its last digits.


def bowl_at(t):
    """1/2 ||x - t||^2; what is subtracted and squared is exact, near t, but for the last digit of the sum."""
    return lambda x: (0.5 * float((x - t) @ (x - t)), x - t)


def claims_the_truth(res, t):
    """Gap and success, against 1/2 ||x - t||^2 in float64 with its own rounding added."""
    away = res.x.astype(float) - t.astype(float)
    true = 0.5 * float(away @ away)
    assert res.gap >= true * (1.0 - 1e-14)
    return true


def test_a_gap_far_from_the_origin_is_not_below_the_true_one():
    t = np.full(3, 1e8)
    x0 = t + np.array([-0.00040786, 0.00051752, 0.00039959])
    radius = float(np.linalg.norm(x0 - t)) * (1.0 + 1e-15)
    settings = {"method": "agd", "mu": 1.0, "tol": 0.0, "gap_tol": 2.97e-13, "radius": radius, "maxiter": 1000}
    res = hasd.minimize(bowl_at(t), x0, jac=True, **settings)
    assert claims_the_truth(res, t) <= 2.97e-13 or not res.success


@pytest.mark.parametrize("seed", range(20))
def test_a_gap_far_from_the_origin_in_float32_is_not_below_the_true_one(seed):
    t = np.full(3, 1000.0, dtype=np.float32)
    x0 = (t + 1e-2 * np.random.default_rng(seed).standard_normal(3)).astype(np.float32)
    radius = float(np.linalg.norm(x0.astype(float) - t)) * (1.0 + 1e-15)
    settings = {"mu": 1.0, "tol": 0.0, "gap_tol": 2.2e-6, "radius": radius, "maxiter": 300}
    res = hasd.minimize(bowl_at(t), x0, jac=True, method="estimate-sequence", **settings)
    assert claims_the_truth(res, t) <= 2.2e-6 or not res.success


# Gaps are never negative.


def values_and_minimiser(H, c):
    """A quadratic of two variables and its minimiser in fractions; the floats are exact."""
    (a, b), (_, d) = (tuple(map(Fraction, row)) for row in H)
    u, v = map(Fraction, c)
    det = a * d - b * b
    minimiser = ((v * b - u * d) / det, (u * b - v * a) / det)

    def value(x):
        y, z = map(Fraction, x)
        return (a * y * y + 2 * b * y * z + d * z * z) / 2 + u * y + v * z

    return value, minimiser


@pytest.mark.parametrize(
    ("method", "H", "c", "x0"),
    [
        (
            "hasd",
            [[0.9355180506542963, 0.24558584803323374], [0.24558584803323374, 0.06466213620725048]],
            [-4482713.967037798, -1202279.7168450735],
            [-29974565.46971082, 132436213.55171601],
        ),
        (
            "linear-coupling",
            [[0.7054754182702433, -0.45582811379417143], [-0.45582811379417143, 0.29452656173941544]],
            [-7547565.4088599, 4876502.792838976],
            [56272151.41889084, 70533284.56622683],
        ),
        (
            "gradient-descent",
            [[0.8850783172389719, 0.31892397142424767], [0.31892397142424767, 0.11494073959464435]],
            [-7263218.522294801, -2617223.37874913],
            [7579157.057996174, 1740449.1204462782],
        ),
    ],
    ids=["hasd", "linear-coupling", "gradient-descent"],
)
def test_a_quadratic_whose_terms_cancel_has_a_gap_that_covers_the_true_one(method, H, c, x0):
    value, minimiser = values_and_minimiser(H, c)
    away = math.hypot(*(float(Fraction(one) - other) for one, other in zip(x0, minimiser, strict=True)))
    res = hasd.minimize(Quadratic(H, c), x0, method=method, p=2, maxiter=50)
    assert res.certificate.gap(away * (1.0 + 1e-15)) >= value(res.x) - value(minimiser)


@pytest.mark.parametrize("method", ["hasd", "agd", "hasd-qn", "hasd-cg", "hasd-subspace", "hasd-newton"])
def test_a_radius_that_the_run_contradicts_is_refused_with_the_smallest_one_it_allows(method):
    f = Quadratic(np.diag([1.0, 4.0]), [-5.0, 0.0])  # its minimiser is at distance 5
    res = hasd.minimize(f, np.zeros(2), method=method)
    for ask in (res.certificate.gap, res.certificate.lower):
        with pytest.raises(ValueError, match="radius") as refused:
            ask(1.0)
    smallest = float(re.findall(r"\d+\.?\d*(?:e[-+]\d+)?", str(refused.value))[-1])
    assert 1.0 < smallest <= 5.0 and 0.0 <= res.certificate.gap(5.0) < math.inf


# Other ends of a run.


def test_a_parabola_is_minimised_from_far_away():
    f = Quadratic([[1.8626560723765948]], [-47351.85961807349])
    res = hasd.minimize(f, [3608139.689538752], p=2)
    assert res.x[0] == pytest.approx(47351.85961807349 / 1.8626560723765948, rel=1e-6)


@pytest.mark.parametrize("condition", [1e6, 1e7, 1e8, 1e9])
@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_least_squares_are_never_called_unbounded(d, condition):
    for seed in range(8):
        rng = np.random.default_rng([seed, d])
        U, _ = np.linalg.qr(rng.standard_normal((2 * d, d)))
        V, _ = np.linalg.qr(rng.standard_normal((d, d)))
        f = LeastSquares((U * np.geomspace(1.0, 1.0 / condition, d)) @ V.T, rng.standard_normal(2 * d))
        assert is_not_accused(hasd.minimize(f, np.zeros(d), method="hasd-cg", tol=1e-10, maxiter=2000))


def falling_sideways(bend, fall):
    """Curved in all variables but the last, along which it falls."""
    bend, slope = np.array([*bend, 0.0]), np.array([0.0] * len(bend) + [fall])
    return lambda x: (float(0.5 * x @ (bend * x) + slope @ x), bend * x + slope)


def ends_early(bend, fall, x0):
    f = falling_sideways(bend, fall)
    res = hasd.minimize(f, x0, jac=True, method="hasd-qn", tol=1e-9, maxfun=3000)
    return res.status in (Status.CONVERGED.code, Status.PRECISION.code, Status.UNBOUNDED.code)


@pytest.mark.parametrize(
    ("bend", "fall", "x0"),
    [
        ((0.005759889440007955, 9452.289501673371), 0.0575, (-0.8701998630804897, 0.685656464689484, -0.5434)),
        ((0.001158827730856074, 1.5516755616745732), 0.00897, (0.7083325959537246, 0.3291594344932971, -0.3111)),
    ],
    ids=["steep", "flat"],
)
def test_a_function_that_falls_slowly_sideways_does_not_take_sixty_thousand_evaluations(bend, fall, x0):
    assert ends_early(bend, fall, x0)


def test_no_function_that_falls_slowly_sideways_takes_thousands_of_evaluations():
    slow = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        curved, size = (2, 4.0) if seed % 2 else (6, 1.0)
        bend, fall = 10.0 ** rng.uniform(-size, size, curved), 10.0 ** rng.uniform(-8.0, -1.0)
        if not ends_early(bend, fall, rng.standard_normal(curved + 1)):
            slow.append(seed)
    assert not slow


def test_gradients_of_parts_that_cancel_are_charged():
    """Two rows whose float32 gradients cancel to 0 beside the minimiser; the run saw nothing but g = 0 there."""
    A = np.array([[-0.002626934088766575], [-0.002387995831668377]], dtype=np.float32)
    b = np.array([-1.1690539203357275e-08, 1.284519601796319e-08], dtype=np.float32)
    f, x0 = LeastSquares(A, b).value_and_grad, np.array([-38.34696960449219], dtype=np.float32)
    res = hasd.minimize(f, x0, jac=True, mu=1.2590703491990628e-05, method="gradient-descent", tol=0.0, maxiter=300)
    exact_A, exact_b = ([Fraction(float(one)) for one in column] for column in (A[:, 0], b))
    best = sum(map(mul, exact_A, exact_b)) / sum(map(mul, exact_A, exact_A))
    gap = sum(a * a for a in exact_A) * (Fraction(float(res.x[0])) - best) ** 2 / 2
    assert res.gap >= gap


def test_one_evaluation_of_a_callable_certifies_nothing_in_the_trace():
    """What its value is made of is unknown until a second point shows curvature: terms of 1e6 may have cancelled.

    Mutation: bounds that do not wait for the second point.
    """
    t = 1e8

    def bowl(x):  # 1/2 (x - t)^2 with its square multiplied out, rounded to multiples of 2 or so
        return float(0.5 * x[0] * x[0] - t * x[0] + 0.5 * t * t), x - t

    x0 = np.array([t - 3e-8])
    res = hasd.minimize(bowl, x0, jac=True, method="hasd-qn", radius=1e-7, tol=0.0, maxiter=5)
    assert res.trace["lower"][0] == -math.inf
    assert np.all(res.trace["lower"] <= 0.0)


@pytest.mark.parametrize(
    ("b", "alpha", "x0"),
    [
        ([-471573.92607047793, 3961548.3663728987, 5222401.645438186], 4.2, [-471574.0355, 3961548.4512, 5222401.8132]),
        ([39.71071945578268, 3.93751304546361], 1.2806080349142034e-05, [39.71071945581287, 3.937513045406324]),
        ([1704.8915711527477, 5004.1862165422335], 0.29792410065345926, [1704.9077816837714, 5004.198081557071]),
    ],
)
def test_a_gradient_that_is_0_once_the_image_is_made_anew_ends_the_run(b, alpha, x0):
    """The run was stuck at b, where images that had been moved showed a slope.  Mutation: the search goes on there."""
    res = hasd.minimize(SymmetricSoftmax(None, b, alpha=alpha), x0, method="hasd-qn", tol=0.0, maxiter=300)
    assert res.status in (Status.CONVERGED.code, Status.PRECISION.code)
    np.testing.assert_allclose(res.x, b, rtol=1e-12)


def test_cuts_are_scaled_where_their_curvature_is_far_above_that_of_the_prox_term():
    """1 + mu A = mu A in floats.  Mutation: the scale as a quotient whose terms cancel to 0."""
    w = np.array([1.0, 0.5822110176086426, 0.3389696776866913, 0.19735188782215118, 0.11490044742822647], np.float32)
    b = np.array([14391.890625, -23166.748046875, 12869.25, 39.45562744140625, -15582.6884765625], dtype=np.float32)
    off = [-1.395e-4, 5.42e-4, -2.555e-4, -1.265e-6, -3.13752535e-4]
    fun = {"fun": lambda x: (float(0.5 * (w @ (x - b) ** 2)), w * (x - b)), "x0": b + np.array(off), "jac": True}
    for maxiter in (50, 97, 150):
        res = hasd.minimize(**fun, mu=0.114, p=2.0, L=1.001, tol=1e-12, maxiter=maxiter)
        assert res.fun <= res.gap < math.inf


def test_no_one_is_accused_of_what_subnormal_numbers_say():
    """f(x) underflows to 0 beside a slope that does not.  Mutation: TINY = 0."""
    A = [
        [-1877.3374458159392, 27.112493331285673, -1877.3374463751577],
        [2282.6369525124073, -15.246467484664862, 2282.6369572588974],
        [663.8763017194349, 5.275390316683949, 663.8763009216664],
        [-2313.3066824734633, -3.7680476710476847, -2313.306684514237],
    ]
    ridge, x0 = 150248.47893909787, [-1.6883544449592e-12, 2.514720220260931e-12, 1.6540614481846186e-12]
    f, radius = LeastSquares(np.array(A), np.zeros(4), ridge=ridge), 3.4511270321988e-12
    res = hasd.minimize(f, x0, method="hasd-subspace", mu=ridge, radius=radius, tol=0.0, maxiter=300)
    assert 0.0 <= res.gap < 1e-30 and "certified" not in res.message


@pytest.mark.parametrize("method", ["auto", "hasd-qn"])
def test_a_transport_dual_is_told_at_the_point_that_is_returned(method):
    """The value of settled potentials is computed by a formula of its own.  Mutation: `finish` for images alone."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 7):
        a, b = (mass / mass.sum() for mass in rng.random((2, n)))
        f = EntropicTransport(rng.random((n, n)), a, b, reg=0.05)
        res = hasd.minimize(f, rng.standard_normal(2 * n), method=method, tol=1e-8, maxiter=300)
        value, g = f.value_and_grad(res.x)
        assert res.success and res.fun == value and np.array_equal(res.jac, g)
