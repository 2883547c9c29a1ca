"""The function as every solver gets it: one of `hasd.objectives`, so that all of them pay the same for a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from hasd.objectives import Affine, LeastSquares, Logistic, LogSumExp, SymmetricSoftmax


def objective(loss: str, A: Any, target: np.ndarray, alpha: float, ridge: float) -> Affine:
    """phi(Ax - target) + ridge/2 ||x||^2, or its logistic counterpart, with a counter of its own.

    >>> objective("least-squares", np.eye(2), np.ones(2), 1.0, 0.0)(np.zeros(2))
    1.0
    """
    if loss == "log-sum-exp":
        return LogSumExp(A, target, alpha=alpha, ridge=ridge)
    if loss == "minimax":
        return SymmetricSoftmax(A, target, alpha=alpha, ridge=ridge)
    if loss == "logistic":
        return Logistic(A, target, ridge=ridge)
    return LeastSquares(A, target, ridge=ridge)


class HessianProducts:
    """A^T phi''(Ax - b) A p + ridge p; the curvature at x is kept for the products that follow at the same x.

    >>> product = HessianProducts(objective("least-squares", np.eye(2), np.ones(2), 1.0, 0.5))
    >>> product(np.zeros(2), np.array([1.0, 0.0]))
    array([1.5, 0. ])
    """

    def __init__(self, f: Affine) -> None:
        """Nothing is computed yet."""
        self.f = f
        self.x: np.ndarray | None = None
        self.curvature: Any = None

    def __call__(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Two products with A, and a third where x is new."""
        f = self.f
        if self.x is None or not np.array_equal(x, self.x):
            self.x, self.curvature = x.copy(), f.loss.curvature(f.image(x))
        return f.adjoint(self.curvature.times(f.forward(p))) + f.ridge * p
