"""The polar factor U V^T of a matrix G = U S V^T, which is the steepest direction in the spectral norm.

Newton-Schulz, as in Muon (Jordan et al. 2024): X_0 = G/||G||_F, and X <- (a I + b X X^T + c (X X^T)^2) X, which leaves
U and V as they are and maps each singular value by s -> a s + b s^3 + c s^5.  The coefficients raise small singular
values as fast as five steps can, and do not converge to 1: a singular value of at least `RAISED` times ||G||_F ends
within `SPREAD`; below that it ends between 0 and the larger of these.  There is no eigenvalue problem to solve, only
products of matrices.  `STEPS`, `RAISED` and `SPREAD` belong together, and a test asserts them.
"""

from __future__ import annotations

import math

import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
RAISED = 2e-3
"""From this share of the Frobenius norm on, a singular value is mapped into `SPREAD`."""
SPREAD = (0.68, 1.21)
"""Where these singular values end."""


def polar_factor(matrix: torch.Tensor) -> torch.Tensor:
    """U V^T, with singular values within `SPREAD` in place of 1; zero for a zero matrix.

    >>> G = torch.diag(torch.tensor([4.0, 0.5, 0.03], dtype=torch.float64))
    >>> values = torch.linalg.svdvals(polar_factor(G))
    >>> bool((SPREAD[0] <= values).all() and (values <= SPREAD[1]).all())
    True
    """
    a, b, c = COEFFICIENTS
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT  # the smaller of the two Gram matrices
    tiny = torch.finfo(matrix.dtype).tiny
    X = wide / torch.linalg.vector_norm(wide).clamp(min=tiny)
    for _ in range(STEPS):
        gram = X @ X.mT
        X = a * X + (b * gram + c * (gram @ gram)) @ X
    return X if wide is matrix else X.mT


def shape_factor(rows: int, columns: int) -> float:
    """sqrt(max(1, rows/columns)), Muon's: the step of a matrix with more rows than columns is longer.

    >>> shape_factor(4, 1), shape_factor(1, 4)
    (2.0, 1.0)
    """
    return math.sqrt(max(1.0, rows / columns))


def as_matrix(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of two or more axes as a matrix: the first axis is kept, the others are joined."""
    return tensor.reshape(tensor.shape[0], -1)


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
        """The steepest directions, in the norm 1 up to `SPREAD`."""
        return [self._direction(g) for g in gradients]

    def _direction(self, g: torch.Tensor) -> torch.Tensor:
        matrix = as_matrix(g)
        return (shape_factor(*matrix.shape) * polar_factor(matrix)).reshape(g.shape)
