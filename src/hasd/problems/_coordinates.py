"""Coordinates in which the columns of A are orthonormal: A = Q R with Q^T Q = n I, Q never formed.

R comes from the rows of A, a block at a time and without a copy of A: from their squares where the condition allows
it, otherwise by TSQR, which is backward stable whatever it is.  Columns that depend on others are left out.  Rows of Q
are made for the few rows that are asked for.  The columns of a sparse A are only scaled to one length: it stays sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import lsmr

from ..objectives._operators import Matrix, Vector, is_sparse

BLOCK = 4096
"""Rows taken at a time."""
WELL = 1e-4
"""Columns of one length are well-conditioned where their least singular value is more than this part of the largest."""
LONG = 1e6
"""Where a row is so many times as long as the median one, its rounding may hide the other rows' entries."""
SORTED = 10**7
"""An A with dependent columns and at most so many entries is copied, to sort its rows by length."""
AFFORDABLE = 2e11
"""Multiplications that orthonormal columns may cost (n d^2); beyond, they are only scaled to one length."""


@dataclass(frozen=True)
class Coordinates:
    """The coordinates y of x: x = R^{-1} y on the columns kept, 0 on the others."""

    A: Matrix  # ndarray or CSR
    kept: Vector  # indices of independent columns
    R: Vector  # upper triangular, or the diagonal where the columns are only scaled
    others: Vector  # indices of columns that are not 0 and depend on them, to rounding of the longest rows

    @classmethod
    def of(cls, A: Matrix) -> Coordinates:
        """The factor, and the columns it keeps."""
        n, d = A.shape
        if is_sparse(A) or n * d * d > AFFORDABLE:
            return cls._of_scaled_columns(A)
        R = _from_squares(A)
        if R is None:
            R = _from_rows(A)
        size = np.sqrt(np.einsum("ij,ij->j", R, R))
        alive = np.flatnonzero(size > 0.0)
        if alive.size == 0:
            return cls(A, alive, np.zeros((0, 0)), alive)
        scaled = R[:, alive] / size[alive]
        _, S, order = scipy.linalg.qr(scaled, mode="economic", pivoting=True)
        diagonal = np.abs(S.diagonal())
        rank = int(np.count_nonzero(diagonal > max(n, d) * 2.0**-52 * diagonal[0]))
        if rank < alive.size and n * d <= SORTED and _has_long_rows(A):
            rows = dense_rows(A, slice(None))[:, alive]
            size[alive] = _lengths_in_short_rows(rows)
            S, order, rank = _from_sorted_rows(rows / size[alive])
        kept = alive[order[:rank]]
        return cls(A, kept, S[:rank, :rank] * (size[kept] / math.sqrt(n)), alive[order[rank:]])

    @classmethod
    def _of_scaled_columns(cls, A: Matrix) -> Coordinates:
        n, d = A.shape
        squares = np.zeros(d)
        for start in range(0, n, BLOCK):
            rows = A[start : start + BLOCK]
            squares += np.asarray(rows.multiply(rows).sum(axis=0)).ravel() if is_sparse(A) else (rows**2).sum(axis=0)
        size = np.sqrt(squares / n)
        kept = np.flatnonzero(size > 0.0)
        return cls(A, kept, size[kept], np.zeros(0, dtype=int))

    @property
    def rank(self) -> int:
        """How many columns are kept."""
        return self.kept.size

    @property
    def orthonormal(self) -> bool:
        """Whether the columns of Q are orthonormal, or only of one length."""
        return self.R.ndim == 2

    def x(self, y: Vector) -> Vector:
        """The point of these coordinates; columns left out get 0."""
        x = np.zeros(self.A.shape[1])
        x[self.kept] = scipy.linalg.solve_triangular(self.R, y) if self.orthonormal else y / self.R
        return x

    def rows(self, which: Vector) -> Matrix:
        """Those rows of Q; sparse where A is and its columns are only scaled."""
        if is_sparse(self.A) and not self.orthonormal:
            return self.A[which][:, self.kept] @ scipy.sparse.diags_array(1.0 / self.R)
        rows = dense_rows(self.A, which)[:, self.kept]
        return scipy.linalg.solve_triangular(self.R, rows.T, trans=1).T if self.orthonormal else rows / self.R

    def columns(self, which: Vector) -> Vector:
        """Those rows of A, the columns kept and then the others."""
        return dense_rows(self.A, which)[:, np.concatenate((self.kept, self.others))]

    def residual(self, x: Vector, b: Vector) -> Vector:
        """Ax - b in float64, also where A is float32; one product, no copy of A."""
        if self.A.dtype == np.float64:
            return self.A @ x - b
        z = -b
        for start in range(0, len(b), BLOCK):
            z[start : start + BLOCK] += self.A[start : start + BLOCK].astype(np.float64) @ x
        return z

    def least_squares(self, b: Vector) -> tuple[Vector, Vector]:
        """y of least squares and its residual; a second pass corrects the rounding of the first."""
        y, z = np.zeros(self.rank), -b
        for _ in range(2):
            y = y - self._correction(z)
            z = self.residual(self.x(y), b)
        return y, z

    def _correction(self, z: Vector) -> Vector:
        """argmin ||Q c - z||: Q^T z/n; by iterations where Q is not orthonormal."""
        if not self.orthonormal:
            return lsmr(self.rows(np.arange(len(z))), z, atol=1e-8, btol=1e-8, maxiter=200)[0]
        pulled = (self.A.T @ z.astype(self.A.dtype, copy=False))[self.kept].astype(np.float64)
        return scipy.linalg.solve_triangular(self.R, pulled, trans=1) / len(z)


def _from_squares(A: Matrix) -> Vector | None:
    """R by Cholesky from A^T A, which is several times faster; None where the condition is not good enough for it."""
    n, d = A.shape
    squares = np.zeros((d, d))
    for start in range(0, n, BLOCK):
        rows = dense_rows(A, slice(start, start + BLOCK))
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
    n, d = A.shape
    R: Vector = np.zeros((0, d))
    step = max(BLOCK, 2 * d)
    for start in range(0, n, step):
        block = np.vstack((R, dense_rows(A, slice(start, start + step))))
        R = scipy.linalg.qr(block, mode="r", overwrite_a=True, check_finite=False)[0][:d]
    return R


def _has_long_rows(A: Matrix) -> bool:
    """Whether a few rows are far longer than the others."""
    size = np.abs(dense_rows(A, slice(None))).max(axis=1)
    return bool(size.max() > LONG * np.median(size))


def _lengths_in_short_rows(A: Vector) -> Vector:
    """The lengths of the columns where every row is brought to size 1, so that no long row decides them alone."""
    top = np.abs(A).max(axis=1, keepdims=True)
    shortened = A / np.where(top > 0.0, top, 1.0)
    return np.sqrt(np.einsum("ij,ij->j", shortened, shortened))


def _from_sorted_rows(A: Vector) -> tuple[Vector, Vector, int]:
    """R, the order of its columns and the rank, by reflections of the rows from the longest to the shortest.

    The error of every row is then small beside that row, and not only beside the longest (Cox & Higham 1998): columns
    that differ in short rows alone are told apart.  A column is new where it is longer than the rounding of the rows
    that are not used up by the columns before it.
    """
    size = np.sqrt(np.einsum("ij,ij->i", A, A))
    longest = np.argsort(-size, kind="stable")
    R, order = scipy.linalg.qr(A[longest], mode="r", pivoting=True)
    diagonal = np.abs(R.diagonal())
    new = diagonal > max(A.shape) * 2.0**-52 * size[longest[: diagonal.size]]
    return R, order, int(np.argmin(new)) if not new.all() else diagonal.size


def dense_rows(A: Matrix, which: Vector | slice) -> Vector:
    """Those rows of A as a float64 array."""
    rows = A[which]
    return (rows.toarray() if is_sparse(A) else rows).astype(np.float64, copy=False)
