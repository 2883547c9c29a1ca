"""Losses of z = Ax - b in exact arithmetic: the value as a formula, slope and curvature as functions.

The formula is text so that a reproducer can contain it.  Its names are those of the problem's data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Numbers = Any
"""An array of Decimal."""
Data = dict[str, Any]
"""The numbers of a problem by name."""


class Bend(NamedTuple):
    """phi'(z), and phi''(z) = Diag(diagonal) - scale rank_one rank_one^T."""

    slope: Numbers
    diagonal: Numbers
    rank_one: Numbers | None = None
    scale: Any = 1


@dataclass(frozen=True)
class Loss:
    """One loss."""

    formula: str  # phi(Ax - b)
    bend: Callable[[Numbers, Data], Bend]


def _weighted_squares(z: Numbers, data: Data) -> Bend:
    return Bend(data["w"] * z, data["w"])


def _squares(z: Numbers, data: Data) -> Bend:
    return Bend(z, 0 * z + 1)


def _log_sum_exp(z: Numbers, data: Data) -> Bend:
    weights = np.exp((z - max(z)) / data["alpha"])
    weights = weights / weights.sum()
    return Bend(weights, weights / data["alpha"], weights, 1 / data["alpha"])


def _symmetric_softmax(z: Numbers, data: Data) -> Bend:
    top = max(abs(z))
    up, down = np.exp((z - top) / data["alpha"]), np.exp((-z - top) / data["alpha"])
    total = (up + down).sum()
    slope = (up - down) / total
    return Bend(slope, (up + down) / (total * data["alpha"]), slope, 1 / data["alpha"])


def _logistic(z: Numbers, data: Data) -> Bend:
    y, n = data["y"], len(z)
    miss = 1 / (1 + np.exp(y * z))
    return Bend(-y * miss / n, miss * (1 - miss) / n)


def _fourth_powers(z: Numbers, data: Data) -> Bend:
    return Bend(z**3, 3 * z**2)


def _roots(z: Numbers, data: Data) -> Bend:
    root = np.sqrt(1 + z**2)
    return Bend(data["s"] * z / root, data["s"] / root**3)


WEIGHTED_SQUARES = Loss("(w * (A @ x - b)**2).sum() / 2", _weighted_squares)
SQUARES = Loss("((A @ x - b)**2).sum() / 2", _squares)
LOG_SUM_EXP = Loss("alpha * np.exp((A @ x - b) / alpha).sum().ln()", _log_sum_exp)
SYMMETRIC_SOFTMAX = Loss(
    "alpha * (np.exp((A @ x - b) / alpha).sum() + np.exp((b - A @ x) / alpha).sum()).ln()", _symmetric_softmax
)
LOGISTIC = Loss("sum((1 + e).ln() for e in np.exp(-y * (A @ x))) / len(y)", _logistic)
FOURTH_POWERS = Loss("((A @ x - b)**4).sum() / 4", _fourth_powers)
ROOTS = Loss("s * np.sqrt(1 + (A @ x - b)**2).sum()", _roots)
