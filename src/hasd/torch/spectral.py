"""The spectral norm for PyTorch's tensors: steepest directions are the polar factors of `hasd._math.polar`."""

from __future__ import annotations

import math

import torch

from .._math.polar import raise_singular_values, shape_factor


def polar_factor(matrix: torch.Tensor) -> torch.Tensor:
    """U V^T, as accurate as `hasd._math.polar` says; zero for a zero matrix.

    >>> polar_factor(torch.zeros(2, 3)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    largest = matrix.abs().amax()
    matrix = matrix / torch.where(largest > 0.0, largest, 1.0)  # no square of an entry is too large or too small
    return raise_singular_values(matrix / torch.linalg.vector_norm(matrix).clamp(min=1.0))


def as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of two or more axes as a matrix: the first axis is kept, the others are joined."""
    return tensor.flatten(1)


class Spectral:
    """The largest singular value, divided by `shape_factor`, as the norm of each matrix.

    Its dual is the sum of singular values, multiplied by that factor.  Singular values play the part of coordinates,
    and the largest of them that of p = inf.
    """

    p, is_costly = math.inf, True

    def count(self, tensor: torch.Tensor) -> int:
        """How many singular values there are."""
        return min(as_matrix(tensor).shape)

    def directions(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """The steepest directions, in the norm 1 up to `hasd._math.polar.SPREAD`."""
        return [self._direction(g) for g in gradients]

    def _direction(self, g: torch.Tensor) -> torch.Tensor:
        if g.numel() == 0:
            return g
        matrix = as_matrix(g)
        return (shape_factor(*matrix.shape) * polar_factor(matrix)).reshape(g.shape)
