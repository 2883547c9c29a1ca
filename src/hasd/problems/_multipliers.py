"""The lower bound of a minimax fit: what multipliers on a few rows prove about max|Ax - b|, all rounding charged.

For weights with A_B^T weights = 0 and ||weights||_1 = 1 every x has max|Ax - b| >= <weights, A_B x - b_B>, which is the
same for every x: -<weights, b_B>.  Weights that miss the equation by g prove |<weights, b_B>| - <|g|, |x|>, and an x
that is as good as 0 is no farther from it than `reach` says.  Both are computed so that rounding only weakens it.

Where the rows have weights (here: row weights), every x has max_i w_i |<a_i, x> - b_i| >= |<multipliers, Ax - b>| as
long as sum_i |multiplier_i|/w_i = 1: only this sum knows of them, and no product of a weight with an entry is rounded.

Columns that the coordinates left out, and those of a sparse A that depend on others on all rows, are ignored as long as
the multipliers of a proof are orthogonal to them up to rounding of their entries: for this proof they are combinations
of the others.  A column for which this fails counts from then on like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from ..objectives._operators import Vector
from ._coordinates import Coordinates
from ._matrices import as_dense, pivoted_qr

REFINED, SMALL = 4, 2.0**-95
"""At most REFINED corrections take the rest of A^T w off w; a correction below SMALL times w is not needed."""
UP = 1.0 + 2.0**-50
"""A factor that covers seven roundings; where it is used there are at most six, and that of 1/|b_i| as a weight."""
SAME = 2.0**-45
"""Numbers that agree to this part are the same to rounding: a hundred roundings, as sums and means make."""
UNIT = 2.0**-50
"""A weight below this part of the largest is rounding, for rows of size 1."""
NEIGHBOURS = 1
"""Rows beside the active ones, in multiples of the rank, that bound how far from 0 a best point can be."""
PROVED = 1.0 - 2.0**-40
"""A bound that keeps less than this part of what its multipliers promise is tried again with more rows."""
TOLD = 10
"""Rounds of the search for rows on which all columns are independent."""
TINIEST = 2.0**-1070
"""More than a product's operations lose to underflow."""


@dataclass(frozen=True)
class MultiplierProblem:
    """What weights w on rows of A say of every x: max|Ax - b| >= |<w, Ax - b>| / ||w||.

    ||w|| is the sum of the sizes of w, each over its row weight.
    """

    weights: Vector  # w / ||w||, rounded
    value: float  # not above |<w, b>| / ||w||
    left: Vector  # not below |A^T w| / ||w||
    balanced: Vector  # which columns w is orthogonal to once their entries, and w, are changed by rounding

    def lower(self, reach: Vector) -> float:
        """A bound on max|Ax - b| over all x with |x_j| <= reach_j."""
        some = self.left > 0.0  # where nothing is left, x_j does not matter
        charge = math.fsum(self.left[some] * reach[some])
        return max(math.nextafter(self.value - UP * charge, 0.0), 0.0) if math.isfinite(charge) else 0.0


@dataclass
class MinimaxBound:
    """The best lower bound so far; columns are numbered as `coordinates.columns` has them."""

    coordinates: Coordinates
    b: Vector
    lower: float = 0.0
    active: Vector = field(default_factory=lambda: np.zeros(0, dtype=int))  # the rows that prove it
    weights: Vector = field(default_factory=lambda: np.zeros(0))
    reach: Vector = field(init=False)  # no |x_j| of a best point is larger
    ignored: Vector = field(init=False)  # columns that depend on the others to rounding
    top: float = field(init=False)  # not below the value at x = 0

    def __post_init__(self) -> None:
        self.top = UP * float(np.abs(self.coordinates.weights_of() * self.b).max()) + TINIEST
        rank, others = self.coordinates.rank, self.coordinates.others.size
        self.reach, self.ignored = np.repeat((math.inf, 0.0), (rank, others)), np.arange(rank, rank + others)

    @property
    def columns_counted(self) -> Vector:
        """The columns that the bound is for."""
        return np.delete(np.arange(self.reach.size), self.ignored)

    def bound(self, which: Vector, weights: Vector, others: Vector) -> None:
        """Keep the lower bound from weights on those rows where it is better; other rows bound how far x can be.

        The weights are those of the rows times their row weights.
        """
        weights = weights * self.coordinates.weights_of(which)
        near = np.concatenate((which, others))
        if self._proves(which, weights, near[: which.size + NEIGHBOURS * self.coordinates.rank]):
            return
        # Weights that balance a very short row are below the linear program's tolerance: they are found here.
        counted = -1
        while counted < self.columns_counted.size:  # more columns need more rows to balance them
            counted = self.columns_counted.size
            added = np.setdiff1d(near[pivots(self._columns(near))], which)
            self._proves(np.concatenate((which, added)), np.concatenate((weights, np.zeros(added.size))), near)

    def _columns(self, which: Vector) -> Vector:
        """Those rows of A, the columns counted."""
        return self.coordinates.columns(which)[:, self.columns_counted]

    def _proves(self, which: Vector, weights: Vector, near: Vector) -> bool:
        """Whether weights on those rows prove what they promise; the bound is kept where it is better."""
        found = self._dual(which, weights)
        if found is None or not found.value > self.lower:
            return found is not None
        low = found.lower(self.reach)
        for measure in (self._measure, self._measure_far):
            if not low > PROVED * found.value:
                measure(near)
                low = found.lower(self.reach)
        if low > self.lower:
            some = found.weights != 0.0
            self.lower, self.active, self.weights = low, which[some], found.weights[some]
        return low > PROVED * found.value

    def _dual(self, which: Vector, weights: Vector) -> MultiplierProblem | None:
        """The nearest weights that are orthogonal to the columns counted, and up to rounding to the others, or None.

        Where a column that was ignored has to be counted, earlier bounds are dropped: they were proved without it.
        """
        columns = self.coordinates.columns(which)
        while True:
            found = dual(columns, weights, self.b[which], self.ignored, self.coordinates.weights_of(which))
            if found is None or found.balanced[self.ignored].all():
                return found
            self.ignored = self.ignored[found.balanced[self.ignored]]
            self.reach[self.columns_counted] = math.inf
            self.lower, self.active, self.weights = 0.0, self.active[:0], self.weights[:0]

    def _measure(self, near: Vector) -> None:
        """Bound how far from 0 a best point can be, by those rows."""
        far = self._reach(near)
        self.reach[self.columns_counted] = np.minimum(self.reach[self.columns_counted], far)

    def _reach(self, near: Vector) -> Vector:
        """How far from 0 each coordinate of a point as good as 0 can be, by those rows."""
        return reach(self._columns(near), self.b[near], self.top / self.coordinates.weights_of(near) + TINIEST)

    def _measure_far(self, near: Vector) -> None:
        """The same by other rows, where the columns are dependent on those rows.

        Columns that depend on others to rounding on all rows are ignored: no x needs them.  This is done only once:
        which columns of a dependent set are ignored is a choice, and must not change.
        """
        if np.isfinite(self.reach).all():
            return
        near, dependent = spanning_rows(self.coordinates, near)
        before, self.ignored = self.ignored, np.union1d(self.ignored, dependent)
        far = self._reach(near)
        if np.isfinite(far).all():
            self.reach[self.columns_counted] = np.minimum(self.reach[self.columns_counted], far)
            self.reach[self.ignored] = 0.0
        else:
            self.ignored = before


def dual(
    columns: Vector, weights: Vector, b: Vector, ignored: Vector = (), row_weights: Vector | float = 1.0
) -> MultiplierProblem | None:
    """The nearest weights with columns^T weights = 0, the ignored columns aside, and what they prove; None if none.

    `columns` are rows of A.  The weights are sums high + low of two float64, and what they leave of columns^T weights
    is summed in as many digits and taken off again: float64 weights would leave the condition of A times 2^-53.
    """
    block = _equilibrate(columns)
    if block is None:
        return None
    scaled, up, across = block
    b_block = np.ldexp(b, up)
    if not (np.ldexp(b_block, -up) == b).all():
        return None
    free = np.delete(np.arange(columns.shape[1]), ignored)
    basis, R, order, rank = pivoted_qr(scaled[:, free], max(len(scaled), free.size) * 2.0**-52)
    basis, R, spanning = basis[:, :rank], R[:rank, :rank], free[order[:rank]]
    high = np.ldexp(weights, -up)
    for _ in range(2):
        high = high - basis @ (basis.T @ high)
    total = float(np.abs(np.ldexp(high, up) / row_weights).sum())
    if not total > 1e-6:
        return None
    high, low = high / total, np.zeros_like(high)
    left, error = image(scaled, high, low)
    for _ in range(REFINED):
        if not np.abs(left[free]).max(initial=0.0) > SMALL * np.abs(high).max():
            break
        more = -basis @ scipy.linalg.solve_triangular(R, left[spanning], trans=1)
        high, taken = _sum(high, more)
        high, low = _sum(high, low + taken)
        left, error = image(scaled, high, low)
    value, off = (float(part[0]) for part in image(b_block[:, None], high, low))
    left = np.abs(left) + error
    weight = np.abs(high)
    balanced = left <= np.maximum(SAME * (np.abs(scaled).T @ weight), UNIT * weight.max())
    left = np.where(left > 0.0, np.nextafter(np.ldexp(left, -across), math.inf), 0.0)
    value = abs(value) - off
    if not (math.isfinite(value) and np.isfinite(left).all()):
        return None
    # The proof is scaled to ||w|| = 1, each number rounded to the safe side.
    parts = np.ldexp((high, low), up)
    total = math.fsum(np.abs(parts / row_weights).ravel().tolist())
    most = UP * (total + parts.size * (1.0 + 1.0 / np.min(row_weights)) * TINIEST)
    return MultiplierProblem(parts[0] / total, max(value / most, 0.0), UP * left / total, balanced)


def reach(columns: Vector, b: Vector, top: Vector | float) -> Vector:
    """How far from 0 each coordinate of an x with |Ax - b| <= top can be; infinite where these rows do not say.

    `columns` are rows of A.  From as many of them as there are columns, S: |Sx| <= |b| + top.  For any C,
    x = C(Sx) + (I - CS)x, so that with alpha = ||I - CS||_inf < 1, rounding charged, and t = |C|(|b| + top):
    |x| <= t + max(t) alpha/(1 - alpha).
    """
    far = np.full(columns.shape[1], math.inf)
    seen, which = np.flatnonzero(columns.any(axis=0)), pivots(columns)
    d = seen.size
    block = _equilibrate(columns[np.ix_(which, seen)]) if 0 < d <= which.size else None
    if block is None:
        return far
    S, up, across = block
    try:
        C = np.linalg.inv(S)
    except np.linalg.LinAlgError:
        return far
    rounding = (d + 4) * 2.0**-53  # of a sum of d products (Higham 2002, section 3.1) and the few operations after it
    size = np.abs(C)
    off = np.abs(C @ S - np.eye(d)).sum(axis=1) + rounding * (size @ np.abs(S).sum(axis=1))
    alpha = (1.0 + 4.0 * rounding) * float(off.max())
    if not alpha < 0.9:
        return far
    t = size @ np.ldexp((np.abs(b) + top)[which], up) + d * TINIEST
    far[seen] = np.ldexp((1.0 + 4.0 * rounding) * (t + t.max() * alpha / (1.0 - alpha)), across)
    return far


def _equilibrate(M: Vector) -> tuple[Vector, Vector, Vector] | None:
    """M with rows, then columns, scaled to size about 1, and the exponents; None where a digit would be lost."""
    up = -np.frexp(np.abs(M).max(axis=1, initial=0.0))[1]
    scaled = M * np.ldexp(1.0, up)[:, None]
    across = -np.frexp(np.abs(scaled).max(axis=0, initial=0.0))[1]
    scaled = scaled * np.ldexp(1.0, across)
    exact = np.isfinite(scaled).all() and (scaled * np.ldexp(1.0, -across) * np.ldexp(1.0, -up)[:, None] == M).all()
    return (scaled, up, across) if exact else None


def image(columns: Vector, high: Vector, low: Vector) -> tuple[Vector, Vector]:
    """columns^T (high + low), and no less than what rounding takes from it, of the order 2^-105 |columns|^T |high|.

    Products and their sums in pairs, level by level, with what each rounding takes (Ogita, Rump & Oishi 2005, Dot2):
    that is at most levels + 2 times 2^-52 of the sizes, and is itself added plainly, two additions a level.
    """
    levels = (len(columns) - 1).bit_length()
    s, taken = _product(columns, high[:, None])
    empty = np.zeros((2**levels - len(s), s.shape[1]))  # rows that make the pairs whole
    s, small = np.vstack((s, empty)), np.vstack((taken + columns * low[:, None], empty))
    for _ in range(levels):
        s, taken = _sum(s[::2], s[1::2])
        small = small[::2] + small[1::2] + taken
    error = (levels + 2) ** 2 * 2.0**-103 * (np.abs(columns).T @ np.abs(high))
    return s[0] + small[0], error + np.where(columns.any(axis=0), len(high) * TINIEST, 0.0)


def _product(v: Vector, w: Vector) -> tuple[Vector, Vector]:
    """v w and what rounding took from it (Dekker 1971)."""
    p = v * w
    (v1, v2), (w1, w2) = _halves(v), _halves(w)
    return p, ((v1 * w1 - p) + v1 * w2 + v2 * w1) + v2 * w2


def _halves(v: Vector) -> tuple[Vector, Vector]:
    """v as a sum of two numbers of 26 bits (Veltkamp 1968)."""
    c = (2.0**27 + 1.0) * v
    top = c - (c - v)
    return top, v - top


def _sum(v: Vector, w: Vector) -> tuple[Vector, Vector]:
    """v + w and what rounding took from it (Knuth's two-sum)."""
    s = v + w
    part = s - v
    return s, (v - (s - part)) + (w - part)


def pivots(columns: Vector) -> Vector:
    """As many rows as there are nonzero columns, independent where so many independent rows exist.

    Gaussian elimination picks the same rows whatever triangular factor the columns are multiplied by, so that A's own
    columns can be used, however ill-conditioned.
    """
    seen = columns.any(axis=0)
    return np.argsort(scipy.linalg.lu(columns[:, seen], p_indices=True)[0])[: np.count_nonzero(seen)]


def spanning_rows(coordinates: Coordinates, near: Vector) -> tuple[Vector, Vector]:
    """Rows, first from those near, on which the columns are independent; and columns that depend on others everywhere.

    A combination of columns that is 0 on the chosen rows is computed on all rows: the row where it is largest is added;
    where it is rounding everywhere, the column depends on the others.
    """
    rounding = max(coordinates.A.shape) * 2.0**-52
    dependent: list[int] = []
    for _ in range(TOLD):
        near = near[pivots(coordinates.columns(near))]
        last, combinations = _dependent_columns(as_dense(coordinates.rows(near)), rounding)
        dependent, telling = [], []
        for j, y in zip(last.tolist(), combinations, strict=True):
            left = np.abs(coordinates.image(y))
            if left.max() > rounding * float(np.abs(y).sum()):
                telling.append(int(left.argmax()))
            else:
                dependent.append(j)
        if not telling:
            break
        near = np.union1d(near, telling)
    return near, np.array(dependent, dtype=int)


def _dependent_columns(Q: Vector, rounding: float) -> tuple[Vector, Vector]:
    """Columns that depend on the others of Q to rounding, and for each a combination, with coefficient 1, that is 0."""
    _, R, order, rank = pivoted_qr(Q, rounding)
    y = np.eye(order.size)[order[rank:]]
    y[:, order[:rank]] = -scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:]).T
    return order[rank:], y
