"""How hasd-subspace ends: with the gradient of its last point, without false alarms."""

import numpy as np
import pytest

import hasd
from hasd.objectives import LeastSquares, LogSumExp, Quadratic


@pytest.mark.parametrize("ridge", [1e-9, 1e-10, 1e-12])
def test_a_ridge_bounds_f_however_small(ridge):
    f = LogSumExp([[1.0], [2.0]], ridge=ridge)
    assert hasd.minimize(f, [0.0], method="hasd-subspace").status != 13


def test_singular_quadratics_that_are_bounded_end_in_success():
    """The last gradient is within the tolerance though no step is left: that is what the status says."""
    H = np.array([[6.0, -4, 3, -6], [-4, 4, -2, 2], [3, -2, 6, -3], [-6, 2, -3, 9]])
    assert hasd.minimize(Quadratic(H, [33.0, -26, 30, -27]), [-2.0, -2, 1, -1], method="hasd-subspace").success
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((10, 1)) @ rng.standard_normal((1, 4))
        f = LeastSquares(A, rng.standard_normal(10))
        assert hasd.minimize(f, rng.standard_normal(4), method="hasd-subspace", tol=1e-6).success
