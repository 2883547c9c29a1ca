"""Cholesky factors of symmetric matrices, and linear equations with them, by one pool of BLAS threads.

NumPy and SciPy bring a BLAS library each, and each keeps threads of its own, which wait for more work by keeping a core
busy.  Where a threaded call of one library follows a threaded call of the other, there are more busy threads than
cores, and both calls take many times as long (`python -m benchmarks.pools --threads 2` measures it).  So what is large
enough for threads is done by NumPy, which makes the products with A as well.  SciPy's triangular solves use one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv

Matrix = np.ndarray[Any, Any]


def cholesky(H: Matrix) -> Matrix:
    """The upper triangular U with U^T U = H, in the order of memory that BLAS takes; LinAlgError if there is none.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 1.],
           [0., 1.]])
    """
    return np.linalg.cholesky(H).T


def solve(U: Matrix, b: Matrix) -> Matrix:
    """The x with U^T U x = b.

    >>> solve(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0]))
    array([0., 1.])
    """
    return dtrsv(U, dtrsv(U, b, trans=1), overwrite_x=True)
