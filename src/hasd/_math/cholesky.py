"""Cholesky factors of symmetric matrices, and linear equations with them, by one pool of BLAS threads.

NumPy and SciPy bring a BLAS library each, and each keeps threads of its own, which wait for more work by keeping a core
busy.  Where a threaded call of one library follows a threaded call of the other, there are more busy threads than
cores, and both calls take many times as long (`python -m benchmarks.pools --threads 2` measures it).  So what is large
enough for threads is done by NumPy, which makes the products with A as well.  SciPy, whose functions begin sooner,
factorises small matrices and solves with a triangular one: for these its BLAS uses one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dpotrf, dpotrs

Matrix = np.ndarray[Any, Any]
SMALL = 127
"""OpenBLAS, which SciPy's wheels come with, factorises matrices of up to so many rows with one thread."""


def cholesky(H: Matrix) -> Matrix:
    """The upper triangular U with U^T U = H, in the order of memory that BLAS takes; LinAlgError if there is none.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 1.],
           [0., 1.]])
    """
    if len(H) > SMALL:
        return np.linalg.cholesky(H).T
    U, failed = dpotrf(H.T)  # .T: LAPACK's order of memory, and H is symmetric
    if failed:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return U


def solve(U: Matrix, b: Matrix) -> Matrix:
    """The x with U^T U x = b.

    >>> solve(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0]))
    array([0., 1.])
    """
    if len(U) > SMALL:
        return dtrsv(U, dtrsv(U, b, trans=1), overwrite_x=True)
    return dpotrs(U, b)[0]  # the same in one call, which takes longer for a large matrix
