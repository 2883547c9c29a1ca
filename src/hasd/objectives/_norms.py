"""Sizes of a matrix from which smoothness constants are made.  Rows are a_i; q = p* is the dual exponent.

These run once a problem, not once an iteration: a float32 matrix is copied to float64 here, and the temporaries
of dense matrices are made in blocks of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.spatial.distance import cdist

from .._math.arrays import to_host
from ._operators import Matrix, Vector, apply, apply_to_columns, is_sparse, row_blocks

MATERIALISE = 1e7  # entries up to which an operator is written out
PAIRS = 2e9  # additions we are ready to spend on the distances of all pairs of rows
POWER_COST = 10  # a power costs about that many additions
GRAM = 2000  # side up to which a Gram matrix is formed and all its eigenvalues are computed
BLOCK = 2**20  # entries of a dense block of rows


def entries(A: Matrix) -> Matrix | None:
    """A in float64 as an ndarray or a canonical csr_array; None for an operator too large to write out."""
    if isinstance(A, LinearOperator):
        return _materialise(A) if math.prod(A.shape) <= MATERIALISE else None
    if not is_sparse(A):
        return to_host(A).astype(np.float64, copy=False)
    M = scipy.sparse.csr_array(A, dtype=np.float64)
    if not M.has_canonical_format:
        M = M.copy()  # sum_duplicates works in place, and the arrays may be the caller's
        M.sum_duplicates()
    return M


def _materialise(A: LinearOperator) -> Vector:
    """The entries of an operator by products with unit vectors, on the side that needs fewer of them."""
    n, d = A.shape
    if d > n:
        return _materialise(A.T).T
    return apply_to_columns(A, np.eye(d))


def _blocks(M: Matrix) -> Iterator[Vector]:
    """The rows of M, dense, a bounded number of entries (at least a row) at a time."""
    for part in row_blocks(M.shape, min(BLOCK, 1024 * M.shape[1])):
        yield M[part].toarray() if is_sparse(M) else M[part]


def row_norms(M: Matrix, q: float, c: Vector | None = None) -> Vector:
    """||a_i - c||_q for every row; for sparse rows in O(nnz + d), for any c.

    >>> row_norms(np.array([[3.0, -4.0], [1.0, 0.0]]), 2.0)
    array([5., 1.])
    """
    n, d = M.shape
    centre = np.zeros(d) if c is None else c
    if not is_sparse(M):
        return np.concatenate([np.linalg.norm(rows - centre, q, axis=1) for rows in _blocks(M)])
    # Entries that are not stored contribute |c_k|^q: count all entries so, then correct the stored ones.
    empty = np.abs(centre) ** q
    correction = np.abs(M.data - centre[M.indices]) ** q - empty[M.indices]
    owner = np.repeat(np.arange(n), np.diff(M.indptr))
    total = empty.sum() + np.bincount(owner, weights=correction, minlength=n)
    return np.maximum(total, 0.0) ** (1.0 / q)


def can_afford_pairs(M: Matrix, q: float) -> bool:
    """Whether the distances of all pairs of rows are worth their time."""
    n, d = M.shape
    return n * n * d * (1 if q in (1.0, 2.0) else POWER_COST) <= PAIRS


def diameter(M: Matrix, q: float) -> float:
    """max_{i,j} ||a_i - a_j||_q, by differences (no Gram matrix, no cancellation), block against block.

    >>> diameter(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]), 1.0)
    7.0
    """
    best = 0.0
    for i, left in enumerate(_blocks(M)):
        for j, right in enumerate(_blocks(M)):
            if j >= i:
                best = max(best, float(cdist(left, right, "minkowski", p=q).max()))
    return best


def radius(M: Matrix, q: float) -> float:
    """max_i ||a_i - c||_q for the best of three centres c: the mean row, the coordinate-wise midrange, and 0.

    >>> radius(np.array([[0.0], [2.0], [2.0]]), 1.0)
    1.0
    """
    top, bottom = M.max(axis=0), M.min(axis=0)
    if is_sparse(M):
        top, bottom = top.toarray().ravel(), bottom.toarray().ravel()
    centres = [np.asarray(M.mean(axis=0)).ravel(), (top + bottom) / 2.0, None]
    return min(float(row_norms(M, q, c).max()) for c in centres)


def gram(M: Matrix) -> Vector:
    """M^T M as a dense array."""
    G = M.T @ M
    return G.toarray() if is_sparse(G) else G


def spectral_norm(H: Matrix) -> float:
    """max |lambda| of a symmetric H: all eigenvalues of a small one, Lanczos at machine precision for others.

    >>> spectral_norm(np.diag([1.0, -3.0]))
    3.0
    """
    if H.shape[0] > GRAM or isinstance(H, LinearOperator):
        return _lanczos(lambda v: apply(H, v), H)
    dense = H.toarray() if is_sparse(H) else H
    if not np.isfinite(dense).all():  # a Gram matrix that overflowed
        return math.inf
    return float(np.abs(eigvalsh(dense)).max())


def squared_spectral_norm(A: Matrix) -> float:
    """lambda_max(A^T A), from whichever of A^T A and A A^T is smaller.

    >>> squared_spectral_norm(np.array([[3.0, 4.0]]))
    25.0
    """
    n, d = A.shape
    B = A if d <= n else A.T
    if isinstance(A, LinearOperator) or min(n, d) > GRAM:
        BT = B.T
        return _lanczos(lambda v: apply(BT, apply(B, v)), B)
    return spectral_norm(gram(B))


def _lanczos(product: Callable[[Vector], Vector], B: Matrix) -> float:
    """The largest |lambda| of v -> product(v); inf (an upper bound still) where Lanczos does not converge."""
    d = B.shape[1]
    if d == 1:  # ARPACK needs fewer eigenvalues than dimensions
        return abs(float(product(np.ones(1))[0]))
    start = np.random.default_rng(0).standard_normal(d)  # fixed, so that every call gives the same answer
    tolerance = float(np.finfo(np.float32).eps) if B.dtype == np.float32 else 0.0
    operator = LinearOperator((d, d), matvec=product, dtype=np.float64)
    try:
        return abs(float(eigsh(operator, k=1, v0=start, tol=tolerance, return_eigenvectors=False)[0]))
    except ArpackNoConvergence:
        return math.inf
