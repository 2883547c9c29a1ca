"""Cholesky factors and equations with them, on either side of the size from which NumPy makes them."""

import numpy as np
import pytest

from hasd._math.cholesky import SMALL, cholesky, solve

sizes = pytest.mark.parametrize("d", [1, 2, SMALL, SMALL + 1, 200])


def positive_definite(d):
    A = np.random.default_rng(d).standard_normal((2 * d, d))
    return A.T @ A + np.eye(d)


@sizes
def test_the_factor_is_upper_triangular_and_its_square_is_the_matrix(d):
    H = positive_definite(d)
    before = H.copy()
    U = cholesky(H)
    np.testing.assert_array_equal(H, before)
    np.testing.assert_array_equal(U, np.triu(U))
    np.testing.assert_allclose(U.T @ U, H, rtol=1e-12, atol=1e-12 * d)


@sizes
def test_equations_are_solved_and_the_right_side_is_left_as_it_was(d):
    H, b = positive_definite(d), np.arange(1.0, d + 1.0)
    np.testing.assert_allclose(H @ solve(cholesky(H), b), b, rtol=1e-10)
    np.testing.assert_array_equal(b, np.arange(1.0, d + 1.0))


@sizes
def test_a_matrix_that_is_not_positive_definite_is_refused(d):
    H = positive_definite(d)
    H[-1, -1] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(H)
