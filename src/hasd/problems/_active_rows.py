"""Which rows are used: for a linear program, rows with large residuals that differ from each other.

Where rows come from a curve (a polynomial basis, a filter's frequencies) the largest residuals are neighbours in one
peak, and nearly equal.  So candidates are taken in the order of a pivoted QR factorisation of their rows, weighted by
their residuals: each adds most to those before it.  To bound how far a point can be, rows are taken on which the
columns are independent.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from ..objectives._operators import Matrix, Vector, is_sparse
from ._coordinates import Coordinates

CANDIDATES = 3000
"""Rows looked at, at most: the largest, and others at random."""
PIVOTED = 500
"""Columns up to which rows are chosen by QR; with more, those with the largest residuals are taken."""

TOLD = 10
"""Rounds of the search for rows on which all columns are independent."""

Rows = Callable[[Vector], Matrix]


def largest_rows(r: Vector, count: int) -> Vector:
    """The rows with the largest residuals."""
    return np.arange(r.size) if count >= r.size else np.argpartition(np.abs(r), r.size - count)[r.size - count :]


def choose_rows(rows_of: Rows, r: Vector, above: float, rank: int, times: tuple[float, float]) -> Vector:
    """The rows with the largest residuals, and distinct ones with residuals above a value: `times` the rank of each."""
    large, told = (int(part * rank) + 1 for part in times)
    return np.union1d(largest_rows(r, large), telling_rows(rows_of, r, above, told))


def telling_rows(rows_of: Rows, r: Vector, above: float, count: int) -> Vector:
    """So many rows with residuals above a value that differ most from each other; all of them if there are no more.

    `rows_of` gives rows in coordinates with columns of one length.
    """
    size = np.abs(r)
    found = np.flatnonzero(size > above)
    if found.size <= count:
        return found
    order = found[np.argsort(-size[found], kind="stable")]
    if order.size > CANDIDATES:
        others = np.random.default_rng(0).choice(order.size - count, CANDIDATES - count, replace=False)
        order = np.concatenate((order[:count], order[count + np.sort(others)])) if count < CANDIDATES else order[:count]
    Q = rows_of(order)
    if is_sparse(Q) or Q.shape[1] > PIVOTED:
        return order[:count]
    return order[_distinct_rows(Q * (size[order] - above)[:, None], count)]


def _distinct_rows(weighted: Vector, count: int) -> Vector:
    """Positions of so many rows: the pivots of a QR factorisation, then those of the rows left, and so on."""
    left, taken = np.arange(len(weighted)), np.zeros(0, dtype=int)
    while taken.size < count and left.size:
        pivots = scipy.linalg.qr(weighted[left].T, mode="r", pivoting=True, check_finite=False)[1]
        new = left[pivots[: min(weighted.shape[1], count - taken.size)]]
        taken, left = np.concatenate((taken, new)), np.setdiff1d(left, new)
    return taken


def signed_rows(r: Vector, rows: Vector) -> Vector:
    """Rows with the signs of their residuals."""
    return np.column_stack((rows, np.where(r[rows] >= 0.0, 1, -1)))


def new_rows(pairs: Vector, known: Vector) -> Vector:
    """The signed rows that are not among the known ones."""
    seen = set(map(tuple, known.tolist()))
    return np.array([pair for pair in pairs.tolist() if tuple(pair) not in seen], dtype=int).reshape(-1, 2)


def pivots(columns: Vector) -> Vector:
    """As many rows as there are nonzero columns, independent where so many independent rows exist.

    Gaussian elimination picks the same rows whatever triangular factor the columns are multiplied by, so that A's own
    columns can be used, however ill-conditioned.
    """
    seen = columns.any(axis=0)
    if not seen.any():
        return np.zeros(0, dtype=int)
    return np.argsort(scipy.linalg.lu(columns[:, seen], p_indices=True)[0])[: np.count_nonzero(seen)]


def spanning_rows(coordinates: Coordinates, near: Vector, image: Callable[[Vector], Vector]) -> tuple[Vector, Vector]:
    """Rows, first from those near, on which the columns are independent; and columns that depend on others everywhere.

    `image` gives Qy, over all rows.  A combination of columns that is 0 on the chosen rows is computed on all rows: the
    row where it is largest is added; where it is rounding everywhere, the column depends on the others.
    """
    n, d = coordinates.A.shape
    dependent: list[int] = []
    for _ in range(TOLD):
        near = near[pivots(coordinates.columns(near))]
        last, combinations = _dependent_columns(coordinates.rows(near), max(n, d) * 2.0**-52)
        dependent, telling = [], []
        for j, y in zip(last.tolist(), combinations, strict=True):
            left = np.abs(image(y))
            if left.max() > max(n, d) * 2.0**-52 * float(np.abs(y).sum()):
                telling.append(int(left.argmax()))
            else:
                dependent.append(j)
        if not telling:
            break
        near = np.union1d(near, telling)
    return near, np.array(dependent, dtype=int)


def _dependent_columns(Q: Matrix, rounding: float) -> tuple[Vector, Vector]:
    """Columns that depend on the others of Q to rounding, and for each a combination, with coefficient 1, that is 0."""
    count, d = Q.shape
    if count == 0:
        return np.arange(d), np.eye(d)
    R, order = scipy.linalg.qr(Q.toarray() if is_sparse(Q) else Q, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(R.diagonal())
    rank = int(np.count_nonzero(diagonal > rounding * diagonal[0]))
    y = np.zeros((d - rank, d))
    y[:, order[:rank]] = -scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:]).T
    y[np.arange(d - rank), order[rank:]] = 1.0
    return order[rank:], y
