"""Labels that a direction separates: then a logistic loss without a ridge has no minimiser, and here is the proof.

Problem.    f(x) = mean_i log(1 + exp(-y_i <a_i, x>)).  Along a direction w with y_i <a_i, w> >= 0 for every row and > 0
            for some, f falls for ever; where there is none, f has a minimiser (Albert & Anderson, 1984).
Algorithm.  The iterates of the run itself at every power of two, as they tend to such a direction where all rows can be
            above 0; after some hundred steps, and where rows hardly count any more at the end, two linear programs:
            whether there is a direction at all (Konis, 2007), and one with as many rows above 0 as there can be.
Guarantee.  A direction is proved before it is named: the rows above 0 are so by more than their rounding error, and in
            the others the product is 0 in rational arithmetic.

>>> A, y = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 1.0], [0.0, 1.0]]), np.array([1.0, -1.0, 1.0, -1.0])
>>> separator(A, y)  # the first column separates the first two rows
array([1., 0.])
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

PATIENCE = 256
"""Steps after which linear programs are asked: the run alone would have found a direction that is easy to find."""
LARGEST = 10**6
"""Entries of a matrix that linear programs are solved with in seconds."""
SMALLEST = 2.0**-1000
"""An entry below this, once columns are of size 1, may have lost digits to underflow."""
FEASIBLE = 1e-9
"""The tolerance of the linear programs; an optimum, or a coordinate, below it is taken for 0."""
DENSEST = 32
"""Coordinates of a direction that is computed in rational arithmetic."""
as_fractions = np.frompyfunc(Fraction, 1, 1)


def all_above(margins: np.ndarray, A: Any, x: np.ndarray) -> bool:
    """Whether all of these, computed as products with Ax, are above 0 by more than rounding, that of x included.

    2 gamma_{d+2} |A||x| is more than twice what a product may be off by, its terms that underflow apart.
    """
    if not margins.min() > 0.0:
        return False
    return bool(np.all(margins > (A.shape[1] + 2) * (2.0**-52 * (abs(A) @ np.abs(x)) + 2.0**-1073)))


def separator(A: Any, y: np.ndarray, seconds: float = math.inf) -> np.ndarray | None:
    """A direction that proves that there is no minimiser, its largest entry 1; None where none was found."""
    M = csr_array(A, dtype=np.float64, copy=True)
    M.eliminate_zeros()
    M.data *= np.repeat(y, np.diff(M.indptr))
    n, d = M.shape
    if M.nnz > LARGEST:
        return None
    M.data *= np.repeat(_units(abs(M).max(axis=1)), np.diff(M.indptr))  # rows first, so that no long row decides
    units = _units(abs(M).max(axis=0))
    M.data *= units[M.indices]
    if M.nnz == 0 or np.abs(M.data).min() < SMALLEST:
        return None
    M.data *= np.repeat(_units(abs(M).max(axis=1)), np.diff(M.indptr))
    deadline = time.perf_counter() + seconds
    some = _best_direction(np.asarray(M.sum(axis=0)).ravel(), M, [(-1.0, 1.0)] * d, seconds)
    if some is None or not float((M @ some).sum()) > FEASIBLE:
        return None
    sums, bounds = np.concatenate((np.zeros(d), np.ones(n))), [(None, None)] * d + [(0.0, 1.0)] * n
    most = _best_direction(sums, hstack((M, -eye_array(n)), format="csr"), bounds, deadline - time.perf_counter())
    if most is None:
        return None
    above = most[d:] > 0.5
    w = _exact_direction(M[~above], most[:d] / max(float(np.abs(most[:d]).max()), 1e-300))
    if w is None or not above.any() or not all_above(M[above] @ w, M[above], w):
        return None
    direction = units * w
    return np.asarray(direction / np.abs(direction).max())


def _units(largest: Any) -> np.ndarray:
    """The powers of two, which round nothing, that bring these numbers between 1/2 and 1."""
    sizes = largest.toarray().ravel()
    return np.where(sizes > 0.0, 2.0 ** -np.clip(np.frexp(sizes)[1], -1000.0, 1000.0), 1.0)


def _best_direction(aim: np.ndarray, rows: Any, bounds: list[Any], seconds: float) -> np.ndarray | None:
    """The v within bounds with rows v >= 0 and the largest <aim, v>; None where it was not found."""
    options = {"time_limit": max(seconds, 0.0), "primal_feasibility_tolerance": FEASIBLE}
    found = linprog(-aim, -rows, np.zeros(rows.shape[0]), bounds=bounds, method="highs", options=options)
    return found.x if found.success else None


def _exact_direction(M: csr_array, w: np.ndarray) -> np.ndarray | None:
    """A rational direction near w with Mw = 0, rounded; None where none has w's zeros, or it takes too long."""
    if M.shape[0] == 0:
        return w
    w = np.where(np.abs(w) > FEASIBLE, w, 0.0)
    used = np.flatnonzero(w)
    rows = np.unique(M[:, used].toarray(), axis=0)
    if not rows.any():
        return w
    if used.size > DENSEST:
        return None
    R, order = qr(rows.T, mode="r", pivoting=True)
    size = np.abs(np.diag(R))
    independent = order[: size.size][size > FEASIBLE * size.max()]
    v = _null_vector(as_fractions(rows[independent]), as_fractions(w[used]))
    if any(as_fractions(row) @ v for row in rows):
        return None
    w[used] = v.astype(np.float64)
    return w


def _null_vector(rows: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The vector with <row, v> = 0 for these rows that agrees with v in as many coordinates as it can.

    Gauss and Jordan, in fractions.
    """
    leading: dict[int, int] = {}  # by the column of a pivot its row
    for i, row in enumerate(rows):
        k = int(np.argmax(np.abs(row)))
        if row[k]:
            leading[k] = i
            rows[i] = row / row[k]
            others = np.arange(len(rows)) != i
            rows[others] -= np.outer(rows[others, k], rows[i])
    v[list(leading)] = 0
    v[list(leading)] = -(rows[list(leading.values())] @ v)
    return v


@dataclass
class SeparationWatch:
    """A callback that looks for a separating direction while a run goes on, and ends it where there is one."""

    A: Any
    y: np.ndarray
    deadline: float  # of the whole run, by time.perf_counter
    direction: np.ndarray | None = None
    nprod: int = 0  # products that the looks took
    _steps: int = 0

    def __call__(self, x: np.ndarray) -> None:
        """One more step of the run, which is now at x."""
        self._steps += 1
        if self._steps & (self._steps - 1) == 0:
            self.look(x)
        if self._steps == PATIENCE:
            self.search()
        if self.direction is not None:
            raise StopIteration

    def look(self, x: np.ndarray) -> np.ndarray:
        """The margins y_i <a_i, x>; where all are above 0, x is a direction that separates the labels."""
        margins = self.y * (self.A @ x)
        self.nprod += 1
        if all_above(margins, self.A, x):
            self.direction = x
        return margins

    def search(self) -> None:
        """Ask linear programs where nothing was found yet."""
        if self.direction is None:
            self.direction = separator(self.A, self.y, self.deadline - time.perf_counter())

    def finish(self, x: np.ndarray, tol: float) -> None:
        """The end of the run, which brought its gradient down to the share tol.

        Where a direction exists, the weights 1/(1 + exp(y_i <a_i, x>)) of the rows above 0 vanish with the gradient.
        """
        far = -0.5 * math.log(max(tol, 2.0**-52))
        if self.direction is None and self.look(x).max() > far and self._steps < PATIENCE:
            self.search()
