"""Who takes part in the comparison: how each optimizer is made, and the learning rates that it may choose from.

Nothing but the learning rate is tuned, and all grids have the same number of points.  There is no weight decay.
PyTorch is imported when an optimizer is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

OTHERS = 0.15
"""The learning rate of vectors, embeddings and the output layer beside spectral steps, as in docs/training.md."""


@dataclass(frozen=True)
class Contender:
    """An optimizer with its settings."""

    label: str
    make: Callable[[Any, str, float], list[Any]]  # from a model, the name of its output layer and the learning rate
    middle: int  # the number of the learning rate in the middle of the grid
    ours: bool = False
    needs_matrices: bool = False  # says nothing new about a model whose only matrix is the output layer

    def grid(self, points: int) -> tuple[float, ...]:
        """Learning rates around the middle, from the smallest on.

        >>> CONTENDERS["adamw"].grid(3)
        (0.001, 0.003, 0.01)
        """
        first = self.middle - (points - 1) // 2
        return tuple(rate(k) for k in range(first, first + points))


def rate(k: int) -> float:
    """The learning rates 1, 3, 10, 30, ... for k = 0, 1, 2, 3, ..., and 0.3, 0.1, ... below.

    >>> [rate(k) for k in (-2, -1, 0, 1, 2)]
    [0.1, 0.3, 1.0, 3.0, 10.0]
    """
    return float(f"{(1, 3)[k % 2]}e{k // 2}")


def _sgd(model: Any, output: str, lr: float) -> list[Any]:
    from torch.optim import SGD

    return [SGD(model.parameters(), lr, momentum=0.9, nesterov=True)]


def _adamw(model: Any, output: str, lr: float) -> list[Any]:
    from torch.optim import AdamW

    return [AdamW(model.parameters(), lr, weight_decay=0.0)]


def _lion(model: Any, output: str, lr: float, betas: tuple[float, float]) -> list[Any]:
    """Lion, as a setting of `StochasticHASD` that a test compares with the published code bit for bit."""
    from ..torch import StochasticHASD

    return [StochasticHASD(model.parameters(), lr, coupling=None, scale="unit", betas=betas)]


def _muon(model: Any, output: str, lr: float, momentum: float) -> list[Any]:
    """Muon for the hidden matrices, AdamW for the rest."""
    from torch.optim import AdamW

    from ..torch import parameter_groups
    from .training_muon import Muon

    hidden, rest = (group["params"] for group in parameter_groups(model, entrywise=[output]))
    return [Muon(hidden, lr, momentum), AdamW(rest, lr, weight_decay=0.0)]


def _stacey(model: Any, output: str, lr: float) -> list[Any]:
    from ..torch import Stacey

    return [Stacey(model.parameters(), lr, weight_decay=0.0)]


def _make_coupled(model: Any, output: str, lr: float, **settings: Any) -> list[Any]:
    from ..torch import StochasticHASD

    return [StochasticHASD(model.parameters(), lr, **settings)]


def _spectral(model: Any, output: str, lr: float) -> list[Any]:
    from ..torch import StochasticHASD, parameter_groups

    groups = parameter_groups(model, entrywise=[output], others={"lr": OTHERS * lr})
    return [StochasticHASD(groups, lr, scale="unit", coupling=None, betas=(0.81, 0.9))]


CONTENDERS = {
    "sgd": Contender("SGD Nesterov 0.9", _sgd, -2),
    "adamw": Contender("AdamW", _adamw, -5),
    "lion": Contender("Lion (0.9, 0.99)", partial(_lion, betas=(0.9, 0.99)), -6),
    "lion-short": Contender("Lion (0.81, 0.9)", partial(_lion, betas=(0.81, 0.9)), -6),
    "muon": Contender("Muon 0.95 + AdamW", partial(_muon, momentum=0.95), -4, needs_matrices=True),
    "muon-short": Contender("Muon 0.9 + AdamW", partial(_muon, momentum=0.9), -4, needs_matrices=True),
    "stacey": Contender("STACEY(3,2)", _stacey, -2),
    "tensors": Contender("HASD ℓ∞ per tensor", partial(_make_coupled, norm="tensor"), -9, ours=True),
    "one-norm": Contender("HASD ℓ₃ one norm", partial(_make_coupled, p=3.0), -1, ours=True),
    "spectral": Contender("HASD spectral + ℓ∞", _spectral, -4, ours=True, needs_matrices=True),
}
"""By name, ours last."""
