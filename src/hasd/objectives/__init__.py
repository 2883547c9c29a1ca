"""Objectives that come with value, gradient, a declared smoothness constant L_p and counted products.

f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 for five losses phi (``Affine`` takes any other), and a quadratic.
"""

from hasd.objectives.affine import (
    Affine,
    LeastSquares,
    Logistic,
    LogSumExp,
    Power,
    SymmetricSoftmax,
)
from hasd.objectives.base import Objective
from hasd.objectives.quadratic import Quadratic
from hasd.objectives.smoothness import Smoothness

__all__ = [
    "Affine",
    "LeastSquares",
    "LogSumExp",
    "Logistic",
    "Objective",
    "Power",
    "Quadratic",
    "Smoothness",
    "SymmetricSoftmax",
]
