"""Objectives that come with value, gradient, a declared smoothness constant L_p and counted products.

f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 for six losses phi (``Affine`` takes any other), a quadratic, and the dual of
entropic transport.
"""

from ._smoothness import Smoothness
from .affine import Affine, LeastSquares, Logistic, LogSumExp, Power, SymmetricSoftmax
from .base import Objective
from .multinomial import Multinomial
from .quadratic import Quadratic
from .transport import EntropicTransport

__all__ = [
    "Affine",
    "EntropicTransport",
    "LeastSquares",
    "LogSumExp",
    "Logistic",
    "Multinomial",
    "Objective",
    "Power",
    "Quadratic",
    "Smoothness",
    "SymmetricSoftmax",
]
