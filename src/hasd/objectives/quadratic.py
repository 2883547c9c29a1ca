"""f(x) = 1/2 <x, Hx> + <c, x>."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from hasd.objectives import smoothness
from hasd.objectives.base import Objective, in_precision_of
from hasd.objectives.operators import Matrix, Vector, apply, as_data, as_matrix, as_point, is_sparse, quiet
from hasd.objectives.smoothness import Smoothness


class Quadratic(Objective):
    """f(x) = 1/2 <x, Hx> + <c, x>, H symmetric (and positive semidefinite for a convex f: not checked).

    H is an ndarray, a SciPy sparse matrix or a LinearOperator (whose symmetry is taken on trust).
    L_p <= min(max|lambda| d^{1-2/p}, ||H||_{p*} entrywise), exact at p = 2, and at p = inf where every
    entry of H is non-negative.

    >>> f = Quadratic([[2.0, 0.0], [0.0, 1.0]], c=[-2.0, 0.0])
    >>> f.value_and_grad([1.0, 1.0])
    (-0.5, array([0., 1.]))
    >>> f.nprod, f.smoothness(float("inf"))
    (1, Smoothness(3.0, exact=True))
    """

    ridge = 0.0

    def __init__(self, H: Matrix, c: npt.ArrayLike | None = None) -> None:
        """Check and keep the data."""
        self.H = as_matrix(H, "H")
        n, d = self.H.shape
        if n != d:
            raise ValueError(f"H must be square, got shape {self.H.shape}")
        _check_symmetric(self.H)
        self.dimension: int = d
        self.c = np.zeros(d) if c is None else as_data(c, d, "c")
        self.nprod = 0

    def forward(self, x: Vector) -> Vector:
        """H x in float64; one product."""
        self.nprod += 1
        return apply(self.H, x)

    def __call__(self, x: npt.ArrayLike) -> float:
        """f(x); one product."""
        return self.value_and_grad(x)[0]

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and Hx + c; one product."""
        point = as_point(x, self.dimension, "x")
        Hx = self.forward(point)
        return float((0.5 * Hx + self.c) @ point.astype(float, copy=False)), in_precision_of(point, Hx + self.c)

    def smoothness(self, p: float) -> Smoothness:
        """min(max|lambda| d^{1-2/p}, ||H||_{p*} entrywise)."""
        return smoothness.quadratic(self.H, p)


@quiet
def _check_symmetric(H: Matrix) -> None:
    """Refuse an H whose gradient would not be Hx + c; rounding as in a computed A^T A passes."""
    if isinstance(H, LinearOperator):
        return
    if is_sparse(H):
        size, asymmetry = abs(H).max(), abs(H - H.T).max()
    else:
        size = max(float(H.max()), -float(H.min()))
        step = max(2**20 // len(H), 1)  # a block of rows at a time: no temporary of the size of H
        asymmetry = max(np.abs(H[i : i + step] - H[:, i : i + step].T).max() for i in range(0, len(H), step))
    if asymmetry > float(np.finfo(H.dtype).eps) ** 0.75 * size:
        raise ValueError(f"H must be symmetric, got max|H - H^T| = {asymmetry:.3g}; pass (H + H.T)/2 if meant")
