"""How the losses of the blocks combine to the loss of all rows; slopes combine with the weights that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..objectives._loss import Loss
from ..objectives._operators import Vector
from ..objectives.losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss


@dataclass(frozen=True)
class Mixture:
    """phi = sum_j shares_j phi_j, or alpha log sum_j exp(phi_j/alpha)."""

    shares: Vector
    alpha: float | None = None

    def weigh(self, values: Sequence[float]) -> tuple[float, Vector]:
        """phi, and d phi/d phi_j.

        >>> Mixture(np.ones(2), alpha=1.0).weigh([0.0, 0.0])
        (0.6931471805599453, array([0.5, 0.5]))
        """
        if self.alpha is None:
            return float(self.total(self.shares, values)), self.shares
        with np.errstate(all="ignore"):
            top = float(np.max(values))
            weights = np.exp((np.asarray(values) - top) / self.alpha)
            total = float(self.total(np.ones(len(weights)), weights))
            return top + self.alpha * math.log(total) if math.isfinite(top) else top, weights / total

    @staticmethod
    def total(weights: Vector, parts: Sequence[Any] | Vector) -> Any:
        """The weighted sum of what the blocks told, in the order of the blocks."""
        with np.errstate(all="ignore"):
            total = weights[0] * parts[0]
            for weight, part in zip(weights[1:], parts[1:], strict=True):
                total = total + weight * part
        return total

    def bound(self, parts: Sequence[float]) -> float:
        """An upper bound on L_p of phi, from those of the blocks."""
        return float(self.total(self.shares, parts)) if self.alpha is None else max(parts)


def mixture(loss: Loss | type, rows: Sequence[int]) -> Mixture:
    """The mixture for a loss on blocks with so many rows."""
    if loss is LogisticLoss or isinstance(loss, LogisticLoss):
        return Mixture(np.array(rows) / sum(rows))
    if isinstance(loss, LogSumExpLoss | SymmetricSoftmaxLoss):
        return Mixture(np.ones(len(rows)), loss.alpha)
    return Mixture(np.ones(len(rows)))


def mixes(loss: Any) -> bool:
    """Whether blocks of this loss are known to mix; a loss of your own says so by ``separable = True``."""
    known = (LogisticLoss, LogSumExpLoss, SymmetricSoftmaxLoss, SquareLoss, PowerLoss)
    own = hasattr(loss, "expand") and getattr(loss, "separable", False) is True
    return loss is LogisticLoss or isinstance(loss, known) or own
