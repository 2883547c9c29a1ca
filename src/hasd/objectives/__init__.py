"""Objectives that come with value, gradient, a declared smoothness constant L_p and counted products.

f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 for six losses phi (``Affine`` takes any other: a subclass of ``Loss``, which
``check_loss`` checks), a quadratic, and the dual of entropic transport.
"""

from . import losses
from ._check_loss import LossReport, check_loss
from ._loss import Curvature, Expansion, Loss
from ._smoothness import Smoothness
from .affine import Affine, LeastSquares, Logistic, LogSumExp, Power, SymmetricSoftmax
from .base import Objective
from .multinomial import Multinomial
from .quadratic import Quadratic
from .transport import EntropicTransport

__all__ = [
    "Affine",
    "Curvature",
    "EntropicTransport",
    "Expansion",
    "LeastSquares",
    "LogSumExp",
    "Logistic",
    "Loss",
    "LossReport",
    "Multinomial",
    "Objective",
    "Power",
    "Quadratic",
    "Smoothness",
    "SymmetricSoftmax",
    "check_loss",
    "losses",
]
