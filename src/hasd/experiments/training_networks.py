"""The networks to be trained, from small parts of PyTorch, and first weights that depend on the seed alone."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from .training_data import ALPHABET, SIDE, WINDOW

WIDTH, HEADS, LAYERS = 64, 4, 2


def logistic_regression() -> nn.Module:
    """One linear layer: a convex problem."""
    return nn.Sequential(nn.Linear(SIDE**2, 10))


def perceptron() -> nn.Module:
    """Two hidden layers."""
    hidden = 128
    first, second = nn.Linear(SIDE**2, hidden), nn.Linear(hidden, hidden)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(hidden, 10))


def convolutions() -> nn.Module:
    """Two convolutions, each halved in both directions, and a linear layer."""
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    flat = 32 * (SIDE // 4) ** 2
    return nn.Sequential(nn.Unflatten(1, (1, SIDE, SIDE)), *first, *second, nn.Flatten(), nn.Linear(flat, 10))


class Attention(nn.Module):
    """Every position looks at itself and at those before it."""

    def __init__(self) -> None:
        """Queries, keys and values in one matrix."""
        super().__init__()
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Batch, positions, width, and the same again."""
        parts = self.inputs(x).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts.unbind()
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(-2))


class Transformer(nn.Module):
    """Characters in, scores of the next ones out; norms before attention and before the layers behind it."""

    def __init__(self) -> None:
        """Two layers of width 64."""
        super().__init__()
        self.letters, self.places = nn.Embedding(len(ALPHABET), WIDTH), nn.Embedding(WINDOW, WIDTH)
        blocks = []
        for _ in range(LAYERS):
            wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            blocks += [nn.Sequential(nn.LayerNorm(WIDTH), part) for part in (Attention(), wide)]
        self.blocks, self.norm, self.head = nn.ModuleList(blocks), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(ALPHABET))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Scores by batch, position and letter."""
        x = self.letters(letters) + self.places(torch.arange(letters.shape[1]))
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x))


def output_layer(model: nn.Module) -> str:
    """The name of the last linear layer, which has a row for every class or letter."""
    return [name for name, part in model.named_modules() if isinstance(part, nn.Linear)][-1]


def initialise(model: nn.Module, seed: int) -> None:
    """Draw the weights from a generator of their own: normal, with variance 1/inputs; biases are 0.

    Rows of embeddings have the standard deviation 0.02.
    """
    rng = np.random.default_rng([seed, 2])
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Conv2d | nn.Embedding):
            shape = tuple(part.weight.shape)
            deviation = 0.02 if isinstance(part, nn.Embedding) else 1.0 / math.sqrt(math.prod(shape[1:]))
            with torch.no_grad():
                part.weight.copy_(torch.from_numpy(rng.normal(0.0, deviation, shape)))
        if isinstance(part, nn.Linear | nn.Conv2d) and part.bias is not None:
            nn.init.zeros_(part.bias)
