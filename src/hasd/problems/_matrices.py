"""What the problems do with a matrix: blocks of rows, columns scaled by powers of two, rank, rounding in Ax - b."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from .._math.arrays import to_host
from ..objectives._operators import Matrix, Vector, as_matrix, is_sparse

BLOCK = 4096
"""Rows taken at a time where a temporary of the size of A would be made."""


def as_entries(A: Matrix, name: str, need: str) -> Matrix:
    """A checked, as a dense array or in CSR format; an operator, which has no entries, is refused."""
    if isinstance(A, LinearOperator):
        raise TypeError(f"{need} of {name}: give an array or a sparse matrix, not a LinearOperator")
    A = as_matrix(to_host(A), name)
    return scipy.sparse.csr_array(A) if is_sparse(A) else A


def blocks(A: Matrix, step: int = BLOCK) -> Iterator[Matrix]:
    """A by blocks of rows; as a whole where it is in CSC format, whose rows cannot be cut out."""
    step = A.shape[0] if is_sparse(A) and A.format == "csc" else step
    return (A[start : start + step] for start in range(0, A.shape[0], step))


def as_dense(A: Matrix) -> Vector:
    """A as a float64 array."""
    return (A.toarray() if is_sparse(A) else A).astype(np.float64, copy=False)


def scale_columns(A: Matrix, by: Vector) -> Matrix:
    """A with every column multiplied by a number."""
    return A @ scipy.sparse.diags_array(by) if is_sparse(A) else A * by


def scale_rows(A: Matrix, by: Vector) -> Matrix:
    """A with every row multiplied by a number."""
    if isinstance(A, LinearOperator):
        return aslinearoperator(scipy.sparse.diags_array(by)) @ A
    return scipy.sparse.csr_array(scipy.sparse.diags_array(by) @ A) if is_sparse(A) else A * by[:, None]


def largest_in_columns(A: Matrix) -> Vector:
    """The sizes of the largest entries of the columns; this takes no copy of A."""
    top, bottom = (as_dense(ends).ravel() for ends in (A.max(axis=0), A.min(axis=0)))
    return np.maximum(top, -bottom)


def power_of_two(sizes: Vector) -> Vector:
    """The powers of two next to positive numbers, 1 for 0: dividing by them rounds nothing; 2^1023 is the largest."""
    return np.where(sizes > 0.0, np.ldexp(1.0, np.minimum(np.frexp(sizes)[1], 1023)), 1.0)


def magnitude(A: Matrix, x: Vector, b: Vector) -> Vector:
    """|A| |x| + |b|, row by row, whose last digits are what rounding takes off Ax - b; one product."""
    return np.concatenate([abs(rows) @ np.abs(x) for rows in blocks(A)]) + np.abs(b)


def pivoted_qr(M: Vector, rounding: float) -> tuple[Vector, Vector, Vector, int]:
    """Q, R and the order of the columns, M[:, order] = Q R, and the rank: what R's diagonal has above rounding."""
    Q, R, order = scipy.linalg.qr(M, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(R.diagonal())
    return Q, R, order, int(np.count_nonzero(diagonal > rounding * diagonal[:1]))
