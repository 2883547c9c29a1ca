"""Losses of one's own in every method: with the least that a loss must have, and with all of it."""

import math

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize as by_scipy
from scipy.sparse.linalg import aslinearoperator

import hasd
from hasd._math.doubt import EPS, Sizes
from hasd.objectives import Affine, Expansion, Loss, check_loss
from hasd.objectives._loss import has_curvature

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((40, 4)), RNG.standard_normal(40)
COUNTS = RNG.poisson(2.0, 40).astype(float)
RIDGE = 0.1


class HuberSlope(Loss):
    """The least: value and slope."""

    def value_and_slope(self, z):
        inside = np.clip(z, -1.0, 1.0)
        return float(inside @ (z - 0.5 * inside)), inside


class Huber(Loss):
    """All but its rounding errors."""

    def expand(self, z):
        inside = np.clip(z, -1.0, 1.0)
        return Expansion(float(inside @ (z - 0.5 * inside)), inside, (np.abs(z) <= 1.0).astype(float))

    def conjugate(self, u):
        return 0.5 * float(u @ u) if np.abs(u).max() <= 1.0 else math.inf


class Poisson(Loss):
    """Counts y: its value may be below 0, and its curvature grows without bound."""

    bounded_below = True

    def expand(self, z):
        rate = np.exp(z)
        return Expansion(float(np.sum(rate - COUNTS * z)), rate - COUNTS, rate)


LOSSES = {"Huber": (Huber(), B), "Huber slope": (HuberSlope(), B), "Poisson": (Poisson(), None)}
FOR_QUADRATICS, ON_IMAGES = {"hasd-cg"}, {"hasd-newton", "hasd-subspace", "hasd-cg"}


def least(loss, b):
    """The minimum by SciPy's BFGS, from another start."""

    def f(x):
        value, slope = loss.value_and_slope(A @ x if b is None else A @ x - b)
        return value + 0.5 * RIDGE * x @ x, A.T @ slope + RIDGE * x

    return by_scipy(f, np.full(4, 0.1), jac=True, method="BFGS", options={"gtol": 1e-10}).fun


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("method", [*sorted(set(hasd.method_names()) - FOR_QUADRATICS), "auto"])
def test_every_method_minimises_a_loss_of_ones_own_or_says_what_is_missing(method, name):
    loss, b = LOSSES[name]
    f = Affine(loss, A, b, ridge=RIDGE)
    if method in ON_IMAGES and not has_curvature(loss):
        said = f"method {method!r} needs the second derivative of the loss, and HuberSlope has no expand"
        with pytest.raises(TypeError, match=said):
            hasd.minimize(f, np.zeros(4), method=method)
        return
    res = hasd.minimize(f, np.zeros(4), method=method, tol=1e-6, maxiter=20_000)
    reference = least(loss, b)
    assert res.success, res.message
    assert res.fun == pytest.approx(reference, rel=1e-7, abs=1e-7)
    assert res.fun - reference <= res.gap + 1e-9
    assert res.lower <= reference + 1e-9


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, aslinearoperator])
def test_a_loss_of_ones_own_takes_sparse_matrices_and_operators(kind):
    for loss, b in LOSSES.values():
        res = hasd.minimize(Affine(loss, kind(A), b, ridge=RIDGE), np.zeros(4))
        assert res.success and res.fun == pytest.approx(least(loss, b), rel=1e-6)


def test_auto_takes_quasi_newton_steps_where_there_is_no_second_derivative():
    res = hasd.minimize(Affine(HuberSlope(), A, B, ridge=RIDGE), np.zeros(4))
    assert res.method == "hasd-qn" and "no second derivative" in res.reason
    assert hasd.minimize(Affine(Huber(), A, B, ridge=RIDGE), np.zeros(4)).method == "hasd-newton"


def test_a_conjugate_gives_a_duality_gap_with_or_without_a_second_derivative():
    class HuberSlopeAndConjugate(HuberSlope):
        conjugate = Huber.conjugate

    x = hasd.minimize(Affine(Huber(), A, B, ridge=RIDGE), np.zeros(4), tol=1e-4).x + 1e-4
    value = Affine(Huber(), A, B, ridge=RIDGE)(x)
    true = value - least(Huber(), B)
    with_newton = Affine(Huber(), A, B, ridge=RIDGE).duality_gap(x)
    without = Affine(HuberSlopeAndConjugate(), A, B, ridge=RIDGE).duality_gap(x)
    assert true <= with_newton <= without < math.inf
    assert math.isnan(Affine(HuberSlope(), A, B, ridge=RIDGE).duality_gap(x))


def test_values_below_zero_of_a_loss_that_is_bounded_below_are_in_doubt_too():
    """Mutation: the doubt of such a loss taken at max(value, 0)."""

    class Doubtful(Poisson):
        def doubt(self, value, rows, dz):
            return 8.0 * EPS * value, 0.0, 0.0

    f = Affine(Doubtful(), A, ridge=RIDGE)
    doubts = [f.doubt(Sizes(f=value, g=1.0, x=1.0, top=1.0, d=4, eps=EPS)).value for value in (1000.05, -999.95)]
    assert doubts[1] == pytest.approx(doubts[0], rel=1e-3)


class Neither(Loss):
    """Says nothing at all."""


class NotALoss:
    def value_and_slope(self, z):
        return 0.0, z


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (Neither(), r"loss must define expand\(z\), or value_and_slope\(z\) at least; Neither has neither"),
        (NotALoss(), "or have its methods; NotALoss has no value, smoothness"),
        (Huber, r"loss must be an object, got the class Huber: write Huber\(...\)"),
        ("huber", "loss must be a hasd.objectives.Loss"),
        (None, "NoneType has no value, value_and_slope, smoothness"),
    ],
)
def test_what_is_no_loss_is_refused_with_what_it_lacks(loss, said):
    with pytest.raises(TypeError, match=said):
        Affine(loss, A, B)


def test_a_method_that_a_loss_does_not_have_says_so():
    with pytest.raises(NotImplementedError, match=r"HuberSlope has no expand\(z\)"):
        HuberSlope().curvature(np.zeros(3))
    assert HuberSlope().value(np.array([2.0])) == 1.5 and HuberSlope().smoothness(A, 2.0) == math.inf


def test_the_losses_of_this_page_keep_their_promises():
    for loss, _ in LOSSES.values():
        check_loss(loss, rows=40)
