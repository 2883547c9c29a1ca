"""Sizes of an objective's data, by which the rounding of its products is judged.  One pass over the data, made once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._math.arrays import Array, largest_entry, largest_size, namespace, total
from .._math.doubt import EPS, Doubt, Sizes, roundings, smallest_number, underflow_loss
from .._math.geometry import SAFE_SINGLE, unit
from ._operators import Matrix, Vector, is_sparse, quiet, row_blocks

BLOCK = 2**16
"""Entries that are read at a time: no temporary of the size of the data."""


class DataSizes(NamedTuple):
    """What an affine objective's rounding depends on: the sizes of A and b in phi(Ax - b)."""

    row: float  # max_i ||a_i||_2
    row1: float  # max_i ||a_i||_1
    terms: int  # the most terms that a product with one row adds up
    largest: float  # max_i |b_i|

    def largest_product(self, at: Sizes) -> float:
        """An upper bound on every entry of |A||x|."""
        return min(self.row * at.x, self.row1 * at.top)

    def image_doubt(self, at: Sizes, precision: float, far: float, image: float | None = None) -> float:
        """What an entry of Ax - b may be off by: made from x, or moved from an image that was off by `image`.

        far: the largest product.
        """
        product = max(at.eps, precision)
        dz = product * roundings(self.terms) * far + 0.5 * EPS * (far + self.largest)
        dz += smallest_number(product) * (self.row1 + self.terms)  # underflow in x's entries and in products
        # A moved image has gone along directions whose images have errors of the same size.
        return dz if image is None else math.hypot(image, 2.0 * dz)

    @quiet
    def doubt(self, at: Sizes, loss: Any, rows: int, ridge: float, precision: float, dz: float) -> Doubt:
        """The doubt of phi(Ax - b) + ridge/2 ||x||^2, where every entry of the image may be off by dz.

        Computed value and slope of phi are those of an image that is off by dz in every entry.  As phi is convex, its
        cut there lies below phi, and at the true image it is off by <|phi'|, dz>: the curvature does not matter.
        """
        product = max(at.eps, precision)
        bowl = 0.5 * ridge * at.x * at.x
        phi = at.f - bowl
        if getattr(loss, "bounded_below", False):  # phi from f loses digits where the ridge is larger
            phi = abs(phi) + 4.0 * at.eps * roundings(at.d) * bowl
        value, pull, turn = loss.doubt(phi, rows, dz)
        shift = value + pull * dz
        value += EPS * (roundings(at.d) * bowl + abs(at.f)) + underflow_loss(at)
        slope = product * (roundings(rows) + 4.0) * pull * self.row + EPS * (ridge * at.x + at.g)
        slope += at.eps * roundings(at.d) * at.g + smallest_number(product) * rows * (self.row + 1.0)
        return Doubt(value, slope, slope + self.row * turn, image=dz, shift=shift)


@dataclass
class MatrixSizes:
    """The sizes of a matrix (None: the identity) and of a vector that goes with it.

    >>> MatrixSizes(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([-2.0, 1.0])).affine.row
    5.0
    """

    matrix: Matrix | None
    vector: Vector | None

    @cached_property
    @quiet
    def norms(self) -> tuple[float, float, float]:
        """The largest l_2 norm of a row, the largest l_1 norm, and the Frobenius norm."""
        A = self.matrix
        if A is None:
            return 1.0, 1.0, math.inf
        scale, (squares, sums) = 1.0, _row_sums(A)
        if not SAFE_SINGLE < largest_entry(squares) < 1.0 / SAFE_SINGLE:
            top = largest_size(A.data if is_sparse(A) else A)
            if top == 0.0:
                return 0.0, 0.0, 0.0
            scale = unit(top)  # a power of two, so that squares neither overflow nor vanish
            squares, sums = _row_sums(A, scale)
        return math.sqrt(largest_entry(squares)) / scale, largest_entry(sums) / scale, math.sqrt(total(squares)) / scale

    @cached_property
    def terms(self) -> int:
        """The most terms that a product with one row adds up."""
        A = self.matrix
        if A is None or not is_sparse(A):
            return 1 if A is None else int(A.shape[1])
        counts = np.diff(A.indptr) if A.format == "csr" else np.bincount(A.indices, minlength=1)
        return int(counts.max())

    @cached_property
    def affine(self) -> DataSizes | None:
        """What an affine objective needs of it; None for an operator, whose entries cannot be looked at."""
        if isinstance(self.matrix, LinearOperator):
            return None
        row, row1, _ = self.norms
        return DataSizes(row, row1, self.terms, 0.0 if self.vector is None else largest_size(self.vector))


def _row_sums(A: Matrix, scale: float = 1.0) -> tuple[Array, Array]:
    """||scale a_i||_2^2 and ||scale a_i||_1 for every row."""
    if is_sparse(A):
        ones, sizes = np.ones(A.shape[1]), abs(A) if scale == 1.0 else scale * abs(A)
        return sizes.power(2) @ ones, sizes @ ones
    xp, squares, sums = namespace(A), [], []
    for part in row_blocks(A.shape, BLOCK):
        sizes = xp.abs(A[part, :])
        sizes = sizes if scale == 1.0 else scale * sizes
        # an accelerator's products may be of a lower precision than its sums
        squares.append(xp.vecdot(sizes, sizes) if type(sizes) is np.ndarray else xp.sum(sizes * sizes, axis=1))
        sums.append(xp.sum(sizes, axis=1))
    return xp.concat(squares), xp.concat(sums)
