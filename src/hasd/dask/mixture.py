"""How the losses of the blocks combine to the loss of all rows; slopes combine with the weights that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..objectives._loss import Loss
from ..objectives._operators import Vector, quiet
from ..objectives.losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss


@dataclass(frozen=True)
class Mixture:
    """phi = sum_j shares_j phi_j, or a log-sum-exp of the phi_j."""

    shares: Vector
    outer: LogSumExpLoss | None = None

    def weigh(self, values: Sequence[float]) -> tuple[float, Vector]:
        """phi, and d phi/d phi_j.

        >>> Mixture(np.ones(2), LogSumExpLoss(1.0)).weigh([0.0, 0.0])
        (0.6931471805599453, array([0.5, 0.5]))
        """
        if self.outer is None:
            return float(self.total(self.shares, values)), self.shares
        return self.outer.value_and_slope(np.array(values))

    @staticmethod
    @quiet
    def total(weights: Vector, parts: Sequence[Any]) -> Any:
        """The weighted sum of what the blocks told, in the order of the blocks."""
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))

    def bound(self, parts: Sequence[float]) -> float:
        """An upper bound on L_p of phi, from those of the blocks."""
        return float(self.total(self.shares, parts)) if self.outer is None else max(parts)


def mixture(loss: Loss | type, rows: Sequence[int]) -> Mixture:
    """The mixture for a loss on blocks with so many rows."""
    if loss is LogisticLoss or isinstance(loss, LogisticLoss):
        return Mixture(np.array(rows) / sum(rows))
    outer = LogSumExpLoss(loss.alpha) if isinstance(loss, LogSumExpLoss | SymmetricSoftmaxLoss) else None
    return Mixture(np.ones(len(rows)), outer)


def mixes(loss: Any) -> bool:
    """Whether blocks of this loss are known to mix; a loss of your own says so by ``separable = True``."""
    known = (LogisticLoss, LogSumExpLoss, SymmetricSoftmaxLoss, SquareLoss, PowerLoss)
    own = hasattr(loss, "expand") and getattr(loss, "separable", False) is True
    return loss is LogisticLoss or isinstance(loss, known) or own
