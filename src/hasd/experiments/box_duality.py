"""Both sides of min ||Ax - b||_inf over the box [-1, 1]^d: what a point x and multipliers u prove, rounding counted.

||Ax - b||_inf at any x of the box is not below the minimum.  For any u, every x of the box has
||u||_1 ||Ax - b||_inf >= <u, Ax - b> >= -||A^T u||_1 - <u, b>.  A computed sum of k products is off by no more than
k 2^-53 times the sum of their sizes, to first order and in whatever order it is added (Higham 2002, section 3.1); twice
that, and a few more terms, also covers higher orders and the rounding of the sizes themselves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..problems._matrices import magnitude
from ..problems._multipliers import TINIEST, UP

MORE = 8
"""Roundings beside those of a sum: differences, absolute values, the rounding of the bound itself."""


def upper_value(A: Any, b: np.ndarray, x: np.ndarray) -> float:
    """Not below ||Ax - b||_inf.

    >>> bool(1.0 <= upper_value(np.eye(2), np.array([1.0, 0.5]), np.zeros(2)) <= 1.0 + 1e-14)
    True
    """
    rounding = (A.shape[1] + MORE) * 2.0**-52
    return float((np.abs(A @ x - b) + rounding * magnitude(A, x, b)).max()) + A.shape[1] * TINIEST


def lower_value(A: Any, b: np.ndarray, u: np.ndarray) -> float:
    """Not above the minimum of ||Ax - b||_inf over the box; 0 where u proves nothing.

    >>> A, b = np.array([[1.0], [1.0]]), np.array([0.0, 1.0])
    >>> bool(0.5 - 1e-14 <= lower_value(A, b, np.array([0.5, -0.5])) <= 0.5)
    True
    """
    n, d = A.shape
    sizes = abs(A).T @ np.abs(u)
    charged = np.abs(A.T @ u) + (n + MORE) * 2.0**-52 * sizes
    products = u * b
    charge = UP * math.fsum(charged) + 2.0**-52 * math.fsum(np.abs(products)) + n * (d + 1) * TINIEST
    value, total = -math.fsum(products) - UP * charge, math.fsum(np.abs(u))
    return value / (UP * total) * (1.0 - 2.0**-50) if value > 0.0 else 0.0
