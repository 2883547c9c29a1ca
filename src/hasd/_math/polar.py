"""The polar factor U V^T of a matrix G = U S V^T, which is the steepest direction in the spectral norm.

Newton-Schulz, as in Muon (Jordan et al. 2024): X_0 = G/||G||_F, and X <- (a I + b X X^T + c (X X^T)^2) X, which leaves
U and V as they are and maps each singular value by s -> a s + b s^3 + c s^5.  The coefficients raise small singular
values as fast as five steps can, and do not converge to 1: a singular value of at least `RAISED` times ||G||_F ends
within `SPREAD`; below that it ends between 0 and the larger of these.  There is no eigenvalue problem to solve, only
products of matrices.  `STEPS`, `RAISED` and `SPREAD` belong together, and a test asserts them.
"""

from __future__ import annotations

import math
from typing import Any

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
RAISED = 2e-3
"""From this share of the Frobenius norm on, a singular value is mapped into `SPREAD`."""
SPREAD = (0.68, 1.21)
"""Where these singular values end."""


def raise_singular_values(matrix: Any) -> Any:
    """The polar factor of a matrix of Frobenius norm 1, with singular values within `SPREAD` in place of 1.

    >>> import numpy as np
    >>> G = np.diag([4.0, 0.5, 0.03])
    >>> values = np.diag(raise_singular_values(G / np.linalg.norm(G)))
    >>> bool((SPREAD[0] <= values).all() and (values <= SPREAD[1]).all())
    True
    """
    a, b, c = COEFFICIENTS
    turned = matrix.shape[0] > matrix.shape[1]  # the smaller of the two Gram matrices
    X = matrix.T if turned else matrix
    for _ in range(STEPS):
        gram = X @ X.T
        X = a * X + (b * gram + c * (gram @ gram)) @ X
    return X.T if turned else X


def shape_factor(rows: int, columns: int) -> float:
    """sqrt(max(1, rows/columns)), Muon's: the step of a matrix with more rows than columns is longer.

    >>> shape_factor(4, 1), shape_factor(1, 4)
    (2.0, 1.0)
    """
    return math.sqrt(max(1.0, rows / columns))
