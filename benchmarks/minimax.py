"""Minimax fits against the whole linear program: ``python -m benchmarks.minimax [--quick] [--cap SECONDS]``.

Both in one process, in turn, BLAS threads fixed.  The whole program is given to HiGHS as people do (both signs of every
row); its value is compared with ours, and with the certified lower bound, on well-conditioned columns.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

import hasd


@dataclass(frozen=True)
class Case:
    """A problem, and whether the whole program is worth waiting for."""

    name: str
    make: Callable[[np.random.Generator], tuple[Any, np.ndarray]]
    whole: bool = True
    quick: bool = False


def gaussian(n: int, d: int) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    """Normal rows and right-hand side."""
    return lambda rng: (rng.standard_normal((n, d)), rng.standard_normal(n))


def polynomial(n: int, d: int) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    """|t| with a little noise in a Chebyshev basis."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        t = np.linspace(-1.0, 1.0, n)
        return np.polynomial.chebyshev.chebvander(t, d - 1), np.abs(t) + 1e-3 * rng.standard_normal(n)

    return make


def sparse(n: int, d: int, each: int) -> Callable[[np.random.Generator], tuple[Any, np.ndarray]]:
    """`each` normal entries at random places in every row: an empty row would decide the fit by itself."""

    def make(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        rows, columns = np.repeat(np.arange(n), each), rng.integers(0, d, n * each)
        A = scipy.sparse.coo_array((rng.standard_normal(n * each), (rows, columns)), shape=(n, d))
        return A.tocsr(), rng.standard_normal(n)

    return make


CASES = (
    Case("gaussian 2000 x 50", gaussian(2000, 50), quick=True),
    Case("gaussian 5000 x 100", gaussian(5000, 100)),
    Case("gaussian 5000 x 200", gaussian(5000, 200)),
    Case("gaussian 20000 x 100", gaussian(20_000, 100)),
    Case("gaussian 20000 x 200", gaussian(20_000, 200)),
    Case("chebyshev basis 5000 x 40", polynomial(5000, 40), quick=True),
    Case("sparse 20000 x 200, 5 a row", sparse(20_000, 200, 5)),
    Case("gaussian 20000 x 400", gaussian(20_000, 400), whole=False),
    Case("gaussian 1000000 x 50", gaussian(1_000_000, 50), whole=False),
)


def whole_program(A: Any, b: np.ndarray, cap: float, method: str = "highs") -> tuple[np.ndarray | None, float]:
    """The x that HiGHS finds, or None where it does not end by itself, and its seconds."""
    n, d = A.shape
    ones = np.ones((n, 1))
    stack: Any = scipy.sparse.block_array if scipy.sparse.issparse(A) else np.block
    rows = stack([[A, -ones], [-A, -ones]])
    cost, bounds = np.append(np.zeros(d), 1.0), [(None, None)] * d + [(0.0, None)]
    options = {"time_limit": cap}
    began = time.perf_counter()
    res = linprog(cost, A_ub=rows, b_ub=np.concatenate((b, -b)), bounds=bounds, method=method, options=options)
    return res.x[:d] if res.status == 0 else None, time.perf_counter() - began


def run(case: Case, cap: float, repeats: int) -> str:
    """A line of the table: ours is the median of a few runs."""
    A, b = case.make(np.random.default_rng(0))
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        res = hasd.chebyshev(A, b)
        seconds.append(time.perf_counter() - began)
    ours = float(np.median(seconds))
    size = A.nbytes if isinstance(A, np.ndarray) else A.data.nbytes
    more = memory(A, b) / size
    line = f"{case.name:28} {ours:9.3f} s {res.nlp:3d} LPs  gap {res.gap / res.fun:8.1e}  memory A + {more:4.2f} A"
    if not case.whole:
        return line
    x, other = whole_program(A, b, cap)
    if x is None:
        return f"{line}   whole LP >={other:8.2f} s  >={other / ours:7.1f} times"
    value = float(np.abs(A @ x - b).max())
    return f"{line}   whole LP {other:8.2f} s  {other / ours:7.1f} times  value {value / res.fun - 1.0:+.1e}"


def memory(A: Any, b: np.ndarray) -> float:
    """The most bytes of arrays beside A, in a run of its own; what HiGHS takes inside is not seen."""
    tracemalloc.start()
    hasd.chebyshev(A, b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.minimax", description=__doc__)
    options.add_argument("--quick", action="store_true", help="the small ones")
    options.add_argument("--cap", type=float, default=300.0, help="seconds the whole program may take")
    options.add_argument("--repeats", type=int, default=3, help="runs of ours, of which the median counts")
    chosen = options.parse_args(argv)
    hasd.chebyshev(np.ones((3, 1)), [0.0, 1.0, 2.0])  # warm up
    for case in CASES:
        if case.quick or not chosen.quick:
            print(run(case, chosen.cap, chosen.repeats), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
