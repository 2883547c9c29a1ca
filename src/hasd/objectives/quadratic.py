"""f(x) = 1/2 <x, Hx> + <c, x>."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from .._math.arrays import copy_of, is_foreign, largest_size, namespace, to_float64, to_numpy, vanishes, zeros
from .._math.doubt import EPS, Doubt, Sizes, roundings, smallest_number, underflow_loss
from .._math.geometry import dot, norm2
from . import _smoothness as smoothness
from ._images import NUMPY, Basis, Images, Point, Small
from ._operators import Matrix, Vector, apply, as_data, as_point, is_single, is_sparse, quiet, row_blocks
from ._sizes import MatrixSizes
from ._smoothness import Smoothness
from .base import Objective, in_precision_of


class Quadratic(Objective):
    """f(x) = 1/2 <x, Hx> + <c, x> with a symmetric H.  f is convex if H is positive semidefinite, which is not checked.

    H is a dense array of any library, a SciPy sparse matrix or a LinearOperator, whose symmetry is not checked.
    L_p <= min(max|lambda| d^{1-2/p}, ||H||_{p*} entrywise), exact at p = 2, and at p = inf if every entry of H is
    non-negative.

    >>> f = Quadratic([[2.0, 0.0], [0.0, 1.0]], c=[-2.0, 0.0])
    >>> f.value_and_grad([1.0, 1.0])
    (-0.5, array([0., 1.]))
    >>> f.nprod, f.smoothness(float("inf"))
    (1, Smoothness(3.0, exact=True))
    """

    def __init__(self, H: Matrix, c: npt.ArrayLike | None = None) -> None:
        """Check and keep the data."""
        self.H = self._check_matrix(H, "H")
        n, d = self.H.shape
        if n != d:
            raise ValueError(f"H must be square, got shape {self.H.shape}")
        _check_symmetric(self.H)
        self.dimension: int = d
        self.c = zeros(d, self.H if is_foreign(self.H) else NUMPY) if c is None else as_data(c, d, "c", self.H, "H")
        self._data, self._c_size = MatrixSizes(self.H, self.c), norm2(self.c)

    def forward(self, x: Vector) -> Vector:
        """H x in float64; one product."""
        self.nprod += 1
        return apply(self.H, x)

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and Hx + c; one product."""
        point = as_point(x, self.dimension, "x", self.H)
        Hx = self.forward(point)
        return dot(0.5 * Hx + self.c, to_float64(point)), in_precision_of(point, Hx + self.c)

    @quiet
    def doubt(self, at: Sizes, image: float | None = None) -> Doubt | None:
        """Hx is off by some roundings of ||H||_F ||x||, <Hx + 2c, x>/2 by ||x|| times that and its own sum."""
        if isinstance(self.H, LinearOperator):
            return None
        c, sums = self._c_size, roundings(self.dimension)
        eps, terms, frobenius = max(at.eps, self.precision), self._data.terms, self._data.norms[2]
        product = eps * roundings(terms) * frobenius * at.x
        product += smallest_number(eps) * math.sqrt(at.d) * (frobenius + terms)  # what is too small, of x and products
        moved = product if image is None else math.hypot(image, 2.0 * product)
        value = 0.5 * at.x * moved + EPS * (sums * at.x * (0.5 * at.g + 1.5 * c) + abs(at.f)) + underflow_loss(at)
        slope = moved + EPS * (c + at.g) + at.eps * sums * at.g
        return Doubt(value, slope, slope, image=moved)

    def images(self) -> Images:
        """Pairs (x, Hx + c), for methods that keep them."""
        return QuadraticImages(self)

    def smoothness(self, p: float) -> Smoothness:
        """min(max|lambda| d^{1-2/p}, ||H||_{p*} entrywise)."""
        return smoothness.quadratic(self.H, p)


@dataclass(frozen=True)
class QuadraticImages(Images):
    """The image of x is the pair (x, Hx + c): value, slope and curvature along any direction need no further product.

    So a step costs one product, with its new direction.  The gradient is kept, not Hx: moves add to it what is of its
    own size, so that it keeps its digits as it goes to 0.
    """

    objective: Quadratic
    constant: ClassVar[bool] = True

    def _halves(self, z: Vector) -> tuple[Vector, Vector]:
        d = self.objective.dimension
        return z[:d], z[d:]

    def _point(self, z: Vector) -> Point:
        x, g = self._halves(z)
        return Point(z, 0.5 * dot(g + self.objective.c, x), None)

    def at(self, x: Vector) -> Point:
        """(x, Hx + c); one product, none at x = 0."""
        Hx = 0.0 if vanishes(x) else self.objective.forward(x)
        return self._point(namespace(x).concat((x, Hx + self.objective.c)))

    def multiply(self, q: Vector) -> Vector:
        """(q, Hq); one product."""
        return namespace(q).concat((q, self.objective.forward(q)))

    def gradient(self, point: Point) -> Vector:
        """Hx + c; no product."""
        return copy_of(self._halves(point.z)[1])

    def slopes(self, basis: Basis, point: Point) -> Small:
        """The gradient in the coordinates of the basis."""
        x_part = basis.columns[: self.objective.dimension, :]
        return to_numpy(x_part.T @ self._halves(point.z)[1]) if basis.k else np.zeros(0)

    def bends(self, basis: Basis, point: Point) -> Small:
        """The Hessian in the coordinates of the basis."""
        d, W = self.objective.dimension, basis.columns
        H = to_numpy(W[:d, :].T @ W[d:, :])
        return 0.5 * (H + H.T)

    def hessian(self, point: Point) -> Small:
        """H."""
        H = self.objective.H
        return np.array(H.toarray() if is_sparse(H) else to_numpy(H), dtype=np.float64)

    def move(self, point: Point, direction: Vector, t: float) -> tuple[Point, float]:
        """The pair at x + t q; the derivative along q."""
        there = self._point(point.z + t * direction)
        return there, dot(self._halves(there.z)[1], self._halves(direction)[0])

    def bend(self, point: Point, direction: Vector) -> float:
        """<q, Hq>."""
        q, Hq = self._halves(direction)
        return dot(q, Hq)

    def reach(self, point: Point, direction: Vector) -> float:
        """inf: the quadratic model is exact at any distance."""
        return math.inf


@quiet
def _check_symmetric(H: Matrix) -> None:
    """Refuse an H whose gradient would not be Hx + c; rounding as in a computed A^T A passes."""
    if isinstance(H, LinearOperator):
        return
    if is_sparse(H):
        size, asymmetry = abs(H).max(), abs(H - H.T).max()
    else:
        size, blocks = largest_size(H), row_blocks(H.shape, 2**20)  # no temporary of the size of H
        asymmetry = max(largest_size(H[part, :] - H[:, part].T) for part in blocks)
    if asymmetry > (2.0**-23 if is_single(H) else 2.0**-52) ** 0.75 * size:
        raise ValueError(f"H must be symmetric, got max|H - H^T| = {asymmetry:.3g}; pass (H + H.T)/2 if meant")
