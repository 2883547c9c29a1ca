"""Lemma lp_hessian of the paper: the Hessian of ||z||_p^2, its minorant, its norm; each with a mutation."""

import numpy as np
import pytest

from hasd.theory import (
    lp_hessian_norm_bound,
    lp_hessian_norm_bound_as_printed,
    lp_hessian_smoothness_range,
    lp_squared_hessian,
    lp_squared_hessian_minorant,
)

EXPONENTS = [2, 2.5, 3, 4, 10]
ABOVE_TWO = EXPONENTS[1:]
DIMENSIONS = [1, 2, 5, 30]


def points(d):
    """Vectors of several shapes, no entry so small that a difference quotient at h = 1e-4 is blind."""
    rng = np.random.default_rng(d)
    spread = rng.uniform(0.3, 2.0, d) * rng.choice([-1.0, 1.0], d)
    return [np.ones(d), spread, np.linspace(0.5, 3.0, d)]


def squared_norm(z, p):
    """||z||_p^2."""
    return np.sum(np.abs(z) ** p) ** (2 / p)


def difference_hessian(z, p, h=1e-4):
    """Central second differences of ||z||_p^2."""
    d = len(z)
    H = np.empty((d, d))
    e = h * np.eye(d)
    for i in range(d):
        for j in range(d):
            H[i, j] = (
                squared_norm(z + e[i] + e[j], p)
                - squared_norm(z + e[i] - e[j], p)
                - squared_norm(z - e[i] + e[j], p)
                + squared_norm(z - e[i] - e[j], p)
            ) / (4 * h * h)
    return H


def without_p_minus_one(z, p):
    """Mutation: (1) with the factor (p - 1) dropped."""
    n = squared_norm(z, p) ** 0.5
    s = np.abs(z) ** (p - 2) * z
    return 2 * n ** (2 - p) * np.diag(np.abs(z) ** (p - 2)) + 2 * (2 - p) * n ** (2 * (1 - p)) * np.outer(s, s)


def induced(H, v, p, q):
    """||H v||_q / ||v||_p, a lower bound on the norm p -> q."""
    return np.linalg.norm(H @ v, q) / np.linalg.norm(v, p)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_1_the_hessian_formula_agrees_with_differences(d, p):
    """(1): the closed form is the second derivative, symmetric, and unmoved by scaling z."""
    for z in points(d):
        H = lp_squared_hessian(z, p)
        np.testing.assert_allclose(H, difference_hessian(z, p), atol=1e-5 * p**2)
        np.testing.assert_array_equal(H, H.T)
        np.testing.assert_allclose(lp_squared_hessian(1e200 * z, p), H, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(H @ z @ z, 2 * squared_norm(z, p))


@pytest.mark.parametrize("p", ABOVE_TWO)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_1_the_hessian_formula_breaks_without_p_minus_one(d, p):
    """The comparison sees the mutation at every point."""
    for z in points(d):
        assert np.max(np.abs(without_p_minus_one(z, p) - difference_hessian(z, p))) > 10 * 1e-5 * p**2


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_2_the_minorant_lies_below_the_hessian(d, p):
    """(2): the difference is positive semidefinite, also where entries of z vanish, and singular along z."""
    for z in [*points(d), np.eye(d)[0]]:
        gap = lp_squared_hessian(z, p) - lp_squared_hessian_minorant(z, p)
        assert np.linalg.eigvalsh(gap)[0] >= -1e-12 * p
        np.testing.assert_allclose(gap @ z, 0.0, atol=1e-11 * p)


@pytest.mark.parametrize("p", ABOVE_TWO)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_2_the_minorant_is_not_below_the_hessian_without_p_minus_one(d, p):
    """The mutated matrix is not above the minorant; nor is the true one above the minorant enlarged by 1%."""
    for z in points(d):
        minorant = lp_squared_hessian_minorant(z, p)
        assert np.linalg.eigvalsh(without_p_minus_one(z, p) - minorant)[0] < -1e-3 * np.max(minorant)
        assert z @ (lp_squared_hessian(z, p) - 1.01 * minorant) @ z < 0


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_3_the_hessians_norm_is_above_the_corrected_and_printed_bounds(d, p):
    """(3): an eigenvector shows the p -> p norm >= 2/d^{(p-2)/p}, which is >= the printed 2/d^{(p-2)/2}."""
    for z in [*points(d), np.eye(d)[0]]:
        H = lp_squared_hessian(z, p)
        top = np.linalg.eigh(H)[1][:, -1]
        assert induced(H, top, p, p) >= lp_hessian_norm_bound(d, p) * (1 - 1e-12)
    assert lp_hessian_norm_bound(d, p) >= lp_hessian_norm_bound_as_printed(d, p) * (1 - 1e-12)


@pytest.mark.parametrize("p", ABOVE_TWO)
def test_3_the_norms_bound_is_false_without_the_dimension(p):
    """2, with no d, is false: at z = 1 the largest row sum, above every p -> p norm, falls below it."""
    d = 400
    rows = np.abs(lp_squared_hessian(np.ones(d), p)).sum(axis=1).max()
    assert lp_hessian_norm_bound(d, p) <= rows < 2
    # and so is any power of d below (p-2)/p: the minorant's own eigenvalue at z = 1 is the bound exactly
    minorant = np.linalg.norm(lp_squared_hessian_minorant(np.ones(8), p), 2)
    assert minorant == pytest.approx(lp_hessian_norm_bound(8, p))
    assert minorant < 2 / 8 ** (0.9 * (p - 2) / p)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("d", DIMENSIONS)
def test_smoothness_norm_is_p_to_dual(d, p):
    """p -> p*: between 2 (attained by v = z) and 2(p-1), whatever d; both ends are attained."""
    low, high = lp_hessian_smoothness_range(p)
    rng = np.random.default_rng(7)
    for z in points(d):
        H = lp_squared_hessian(z, p)
        assert induced(H, z, p, p / (p - 1)) == pytest.approx(low)
        for v in [*rng.normal(size=(50, d)), *np.eye(d)]:
            assert v @ H @ v <= high * np.linalg.norm(v, p) ** 2 * (1 + 1e-12)
    if d > 1 and p > 2:
        near = np.array([1.0, 1.0, *np.zeros(d - 2)])
        away = np.array([1.0, -1.0, *np.zeros(d - 2)])
        H = lp_squared_hessian(near, p)
        assert away @ H @ away == pytest.approx(high * np.linalg.norm(away, p) ** 2)
