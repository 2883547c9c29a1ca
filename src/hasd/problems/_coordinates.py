"""Coordinates in which the columns of A are orthonormal: A = Q R with Q^T Q = n I, Q never formed.

Where rows have weights W, it is W A = Q R.  A itself is kept as it is, because what is proved of it must not depend on
the rounding of products with weights.

R comes from the rows of A, a block at a time and without a copy of A: from their squares where the condition allows
it, otherwise by TSQR, which is backward stable whatever it is.  Columns that depend on others are left out.  Rows of Q
are made for the few rows that are asked for.  The columns of a sparse A are only scaled to one length: it stays sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import lsmr

from ..objectives._operators import Matrix, Vector, is_sparse
from ._matrices import BLOCK, as_dense, blocks, pivoted_qr, scale_columns, scale_rows

WELL = 1e-4
"""Columns of one length are well-conditioned where their least singular value is more than this part of the largest."""
LONG = 1e6
"""Where a row is so many times as long as the median one, its rounding may hide the other rows' entries."""
SORTED = 10**7
"""An A with dependent columns and at most so many entries is copied, to sort its rows by length."""
EVERY = slice(None)
"""All rows."""
AFFORDABLE = 2e11
"""Multiplications that orthonormal columns may cost (n d^2); beyond, they are only scaled to one length."""


@dataclass
class Coordinates:
    """The coordinates y of x: x = R^{-1} y on the columns kept, 0 on the others."""

    A: Matrix  # ndarray or CSR
    kept: Vector  # indices of independent columns
    R: Vector  # upper triangular, or the diagonal where the columns are only scaled
    others: Vector  # indices of columns that are not 0 and depend on them, to rounding of the longest rows
    row_weights: Vector | None = None  # W; None: all are 1
    nprod: int = 0  # products with all of A, for residuals and images

    @classmethod
    def of(cls, A: Matrix, row_weights: Vector | None = None) -> Coordinates:
        """The factor, and the columns it keeps."""
        if row_weights is not None:
            return replace(cls.of(scale_rows(A, row_weights)), A=A, row_weights=row_weights)
        n, d = A.shape
        if is_sparse(A) or n * d * d > AFFORDABLE:
            squares = sum((rows * rows).sum(axis=0, dtype=np.float64) for rows in blocks(A))
            size = np.sqrt(np.ravel(squares) / n)
            kept = np.flatnonzero(size > 0.0)
            return cls(A, kept, size[kept], kept[:0])
        R = _from_squares(A)
        if R is None:
            R = _from_rows(A)
        size = np.sqrt(np.einsum("ij,ij->j", R, R))
        alive = np.flatnonzero(size > 0.0)
        _, S, order, rank = pivoted_qr(R[:, alive] / size[alive], max(n, d) * 2.0**-52)
        if rank < alive.size and n * d <= SORTED:
            longest = np.abs(as_dense(A)).max(axis=1)
            if longest.max() > LONG * np.median(longest):
                size[alive], S, order, rank = _from_sorted_rows(as_dense(A)[:, alive])
        kept = alive[order[:rank]]
        return cls(A, kept, S[:rank, :rank] * (size[kept] / math.sqrt(n)), alive[order[rank:]])

    @property
    def rank(self) -> int:
        """How many columns are kept."""
        return self.kept.size

    @property
    def orthonormal(self) -> bool:
        """Whether the columns of Q are orthonormal, or only of one length."""
        return self.R.ndim == 2

    def weights_of(self, which: Vector | slice = EVERY) -> Vector | float:
        """The weights of those rows; 1 where all are."""
        return 1.0 if self.row_weights is None else self.row_weights[which]

    def x(self, y: Vector) -> Vector:
        """The point of these coordinates; columns left out get 0."""
        x = np.zeros(self.A.shape[1])
        x[self.kept] = scipy.linalg.solve_triangular(self.R, y, check_finite=False) if self.orthonormal else y / self.R
        return x

    def rows(self, which: Vector) -> Matrix:
        """Those rows of Q; sparse where A is and its columns are only scaled."""
        rows = self.A[which][:, self.kept]
        if self.row_weights is not None:
            rows = scale_rows(rows, self.row_weights[which])
        if not self.orthonormal:
            return scale_columns(rows, 1.0 / self.R)
        return scipy.linalg.solve_triangular(self.R, as_dense(rows).T, trans=1).T

    def columns(self, which: Vector) -> Vector:
        """Those rows of A without weights, the columns kept and then the others."""
        return as_dense(self.A[which])[:, np.concatenate((self.kept, self.others))]

    def residual(self, x: Vector, b: Vector) -> Vector:
        """Ax - b without weights in float64, also where A is float32; one product, no copy of A."""
        self.nprod += 1
        if self.A.dtype == np.float64:
            return self.A @ x - b
        return np.concatenate([rows.astype(np.float64) @ x for rows in blocks(self.A)]) - b

    def image(self, y: Vector) -> Vector:
        """Qy, over all rows; one product."""
        return self.weights_of() * self.residual(self.x(y), np.zeros(self.A.shape[0]))

    def least_squares(self, b: Vector) -> Vector:
        """y of least squares; a second pass corrects the rounding of the first."""
        y = self._correction(self.weights_of() * b)
        return y - self._correction(self.weights_of() * self.residual(self.x(y), b))

    def _correction(self, z: Vector) -> Vector:
        """argmin ||Q c - z||: Q^T z/n; by iterations where Q is not orthonormal."""
        if not self.orthonormal:
            return lsmr(self.rows(np.arange(len(z))), z, atol=1e-8, btol=1e-8, maxiter=200)[0]
        pulled = (self.A.T @ (self.weights_of() * z).astype(self.A.dtype, copy=False))[self.kept].astype(np.float64)
        return scipy.linalg.solve_triangular(self.R, pulled, trans=1, check_finite=False) / len(z)


def _from_squares(A: Matrix) -> Vector | None:
    """R by Cholesky from A^T A, which is several times faster; None where the condition is not good enough for it."""
    n, d = A.shape
    squares = np.zeros((d, d))
    for rows in map(as_dense, blocks(A)):
        squares += rows.T @ rows
    size = np.sqrt(squares.diagonal())
    if not (n >= d and np.isfinite(size).all() and size.all() and size.min() > 1e-150):
        return None
    values, vectors = np.linalg.eigh(squares / size / size[:, None])
    if not values[0] > WELL**2 * values[-1]:
        return None
    return scipy.linalg.qr((vectors * np.sqrt(values)).T * size, mode="r")[0]


def _from_rows(A: Matrix) -> Vector:
    """R by orthogonal transformations of ever more rows: backward stable whatever the condition."""
    d = A.shape[1]
    R: Vector = np.zeros((0, d))
    for rows in blocks(A, max(BLOCK, 2 * d)):
        R = scipy.linalg.qr(np.vstack((R, as_dense(rows))), mode="r", overwrite_a=True, check_finite=False)[0][:d]
    return R


def _from_sorted_rows(A: Vector) -> tuple[Vector, Vector, Vector, int]:
    """Lengths to divide the columns by, then R, the order of its columns and the rank.

    The lengths are those where every row is brought to size 1, so that no long row decides them alone.  R comes by
    reflections of the rows from the longest to the shortest: the error of every row is then small beside that row, and
    not only beside the longest (Cox & Higham 1998), and columns that differ in short rows alone are told apart.  A
    column is new where it is longer than the rounding of the rows that are not used up by the columns before it.
    """
    top = np.abs(A).max(axis=1, keepdims=True)
    short = A / np.where(top > 0.0, top, 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->j", short, short))
    A = A / lengths
    size = np.sqrt(np.einsum("ij,ij->i", A, A))
    longest = np.argsort(-size, kind="stable")
    R, order = scipy.linalg.qr(A[longest], mode="r", pivoting=True)
    diagonal = np.abs(R.diagonal())
    new = diagonal > max(A.shape) * 2.0**-52 * size[longest[: diagonal.size]]
    return lengths, R, order, int(np.argmin(new)) if not new.all() else diagonal.size
