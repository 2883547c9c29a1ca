"""Objectives that come with value, gradient, a declared smoothness constant L_p and counted products.

f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 for five losses phi (``Affine`` takes any other), a quadratic, and
the dual of entropic transport.
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
from hasd.objectives.transport import EntropicTransport

__all__ = [
    "Affine",
    "EntropicTransport",
    "LeastSquares",
    "LogSumExp",
    "Logistic",
    "Objective",
    "Power",
    "Quadratic",
    "Smoothness",
    "SymmetricSoftmax",
]
