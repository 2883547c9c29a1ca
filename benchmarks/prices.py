"""What the parts of an iteration cost on this machine, beside the prices that methods count with.

``python -m benchmarks.prices`` measures each part with one thread of BLAS and prints it in the unit of
``hasd.methods._costs``: the time that an entry of a dense matrix takes in a product with a vector.  That time itself is
several times longer for a matrix that does not fit into the caches, so the prices are a compromise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse

import hasd
from hasd.methods import _costs as costs
from hasd.objectives._images import weighted_gram

ROWS, COLUMNS, DENSITY = 10_000, 200, 0.05
REPEATS, STEPS = 30, 8


def seconds(call: Callable[[], Any]) -> float:
    """The least time of a few calls."""
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def measure() -> dict[str, tuple[float, float]]:
    """For every price the seconds of one unit of it, and the price that is counted with."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((ROWS, COLUMNS))
    S = scipy.sparse.random_array((ROWS, COLUMNS), density=DENSITY, random_state=rng, format="csr")
    x, z, weights = rng.standard_normal(COLUMNS), rng.standard_normal(ROWS), rng.random(ROWS)
    loss = hasd.objectives.Logistic(A, np.sign(z)).loss
    small = hasd.objectives.Logistic(A[:50, :5], np.sign(z[:50]))
    counts = np.diff(S.indptr).astype(float)

    def steps() -> None:
        hasd.minimize(small, np.zeros(5), method="hasd-qn", tol=0.0, maxiter=STEPS)

    products = S.multiply(weights[:, None]).tocsr()
    return {
        "an entry of a dense matrix in a product": (seconds(lambda: A @ x) / A.size, 1.0),
        "GRAM": (seconds(lambda: weighted_gram(A, weights)) / (0.5 * ROWS * COLUMNS**2), costs.GRAM),
        "SPARSE": (seconds(lambda: S @ x) / S.nnz, costs.SPARSE),
        "SPARSE_GRAM": (seconds(lambda: S.T @ products) / float(counts @ counts), costs.SPARSE_GRAM),
        "PASS": (seconds(lambda: loss.expand(z)) / ROWS, costs.PASS),
        "OVERHEAD": (seconds(steps) / STEPS, costs.OVERHEAD),
    }


def main() -> int:
    """Print the table."""
    table = measure()
    unit = next(iter(table.values()))[0]
    print(f"one entry of a dense matrix in a product with a vector: {1e9 * unit:.3f} ns")
    for name, (taken, counted) in table.items():
        print(f"{name:40} measured {taken / unit:12.3g}   counted {counted:12.3g}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
