"""What it costs to use the BLAS threads of NumPy and of SciPy in turns: microseconds of a Hessian and its factor.

``python -m benchmarks.pools --threads 2`` prints, for matrices of some sizes, the mean time of A^T A by NumPy followed
by a Cholesky factorisation by NumPy or by SciPy.  Each library has threads of its own, which wait for more work by
keeping a core busy; ``hasd._math.cholesky`` says what follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.threads import fix_threads

SIZES = ((500, 100), (3000, 150), (2000, 500))
REPEATS = 50


def microseconds(call: Callable[[], Any]) -> float:
    """The mean time of a call, after a rest in which threads fall asleep and a call that wakes them."""
    time.sleep(0.2)
    call()
    began = time.perf_counter()
    for _ in range(REPEATS):
        call()
    return 1e6 * (time.perf_counter() - began) / REPEATS


def main() -> int:
    """Print the table."""
    import numpy as np  # after the number of its threads is fixed
    import scipy.linalg

    rng = np.random.default_rng(0)
    for n, d in SIZES:
        A = rng.standard_normal((n, d))
        one = microseconds(lambda A=A: np.linalg.cholesky(A.T @ A))
        two = microseconds(lambda A=A: scipy.linalg.cholesky(A.T @ A, check_finite=False))
        print(f"{n:5d} x {d:<5d} Cholesky by NumPy {one:8.0f} us   by SciPy {two:8.0f} us   {two / one:5.2f} times")
    return 0


if __name__ == "__main__":
    fix_threads()
    raise SystemExit(main())
