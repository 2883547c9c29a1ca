"""Muon (Jordan et al. 2024), which is in PyTorch only from 2.9 on and takes no convolutions there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from ..torch.spectral import as_matrix, polar_factor


class Muon(torch.optim.Optimizer):
    """Steps of singular values near 1, made from gradients with Nesterov momentum, for the matrices of hidden layers.

    A step is multiplied by 0.2 sqrt(max(rows, columns)), which gives its entries about the size of those of AdamW (Liu
    et al. 2025), so that one learning rate serves both.  The rest of a network is left to AdamW.
    """

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.95) -> None:
        """Tensors of two axes or more."""
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step with the gradients that are there; nobody here has a closure."""
        for group in self.param_groups:
            for weight in group["params"]:
                average = self.state[weight].setdefault("average", torch.zeros_like(weight))
                average.lerp_(weight.grad, 1.0 - group["momentum"])
                matrix = as_matrix(weight.grad.lerp(average, group["momentum"]))
                length = 0.2 * math.sqrt(max(matrix.shape)) * group["lr"]
                weight.add_(polar_factor(matrix).reshape(weight.shape), alpha=-length)
