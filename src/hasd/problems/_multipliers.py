"""What multipliers on a few rows prove about max|Ax - b|, all rounding charged.

For weights with A_B^T weights = 0 and ||weights||_1 = 1 every x has max|Ax - b| >= <weights, A_B x - b_B>, which is the
same for every x: -<weights, b_B>.  Weights that miss the equation by g prove |<weights, b_B>| - <|g|, |x|>, and an x
that is as good as 0 is no farther from it than `reach` says.  Both are computed so that rounding only weakens it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..objectives._operators import Vector
from . import _active_rows as rows

REFINED, SMALL = 4, 2.0**-95
"""At most REFINED corrections take the rest of A^T w off w; a correction below SMALL times w is not needed."""
UP = 1.0 + 2.0**-50
"""A factor that covers seven roundings."""
SAME = 2.0**-45
"""Numbers that agree to this part are the same to rounding: a hundred roundings, as sums and means make."""
UNIT = 2.0**-50
"""A weight below this part of the largest is rounding, for rows of size 1."""
NONE = np.zeros(0, dtype=int)
TINIEST = 2.0**-1070
"""More than a product's operations lose to underflow."""


@dataclass(frozen=True)
class MultiplierProblem:
    """What weights w on rows of A say of every x: max|Ax - b| >= |<w, Ax - b>| / ||w||_1."""

    weights: Vector  # w / ||w||_1, rounded
    value: float  # not above |<w, b>| / ||w||_1
    left: Vector  # not below |A^T w| / ||w||_1
    balanced: Vector  # which columns w is orthogonal to once their entries, and w, are changed by rounding

    def lower(self, reach: Vector) -> float:
        """A bound on max|Ax - b| over all x with |x_j| <= reach_j."""
        some = self.left > 0.0  # where nothing is left, x_j does not matter
        charge = math.fsum(self.left[some] * reach[some])
        return max(math.nextafter(self.value - UP * charge, 0.0), 0.0) if math.isfinite(charge) else 0.0


def dual(columns: Vector, weights: Vector, b: Vector, ignored: Vector = NONE) -> MultiplierProblem | None:
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
    basis, R, first = _range(scaled[:, free])
    high = np.ldexp(weights, -up)
    for _ in range(2):
        high = high - basis @ (basis.T @ high)
    total = float(np.abs(np.ldexp(high, up)).sum())
    if not total > 1e-6:
        return None
    high, low = high / total, np.zeros_like(high)
    left, error = image(scaled, high, low)
    for _ in range(REFINED):
        if not np.abs(left[free]).max(initial=0.0) > SMALL * np.abs(high).max():
            break
        more = -basis @ scipy.linalg.solve_triangular(R, left[free[first]], trans=1)
        high, taken = _sum(high, more)
        high, low = _sum(high, low + taken)
        left, error = image(scaled, high, low)
    value, off = (float(part[0]) for part in image(b_block[:, None], high, low))
    left = np.abs(left) + error
    weight = np.abs(high)
    balanced = left <= np.maximum(SAME * (np.abs(scaled).T @ weight), UNIT * weight.max())
    left = np.where(left > 0.0, np.nextafter(np.ldexp(left, -across), math.inf), 0.0)
    return _round_safely(np.ldexp((high, low), up), abs(value) - off, left, balanced)


def _round_safely(weights: Vector, value: float, left: Vector, balanced: Vector) -> MultiplierProblem | None:
    """The proof scaled to ||w||_1 = 1, each number rounded to the safe side; `weights` are high and low."""
    if not (math.isfinite(value) and np.isfinite(left).all()):
        return None
    total = math.fsum(np.abs(weights).ravel().tolist())
    most = UP * (total + weights.size * TINIEST)
    return MultiplierProblem(weights[0] / total, max(value / most, 0.0), UP * left / total, balanced)


def reach(columns: Vector, b: Vector, top: float) -> Vector:
    """How far from 0 each coordinate of an x with max|Ax - b| <= top can be; infinite where these rows do not say.

    `columns` are rows of A.  From as many of them as there are columns, S: |Sx| <= |b| + top.  For any C,
    x = C(Sx) + (I - CS)x, so that with alpha = ||I - CS||_inf < 1, rounding charged, and t = |C|(|b| + top):
    |x| <= t + max(t) alpha/(1 - alpha).
    """
    far = np.full(columns.shape[1], math.inf)
    seen, which = np.flatnonzero(columns.any(axis=0)), rows.pivots(columns)
    d = seen.size
    if which.size < d or d == 0:
        return far
    block = _equilibrate(columns[np.ix_(which, seen)])
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
    t = size @ np.ldexp(np.abs(b[which]) + top, up) + d * TINIEST
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


def _range(columns: Vector) -> tuple[Vector, Vector, Vector]:
    """An orthonormal basis of what the columns span, and the triangular factor of those of them that do."""
    if not columns.any():
        return np.zeros((len(columns), 0)), np.zeros((0, 0)), np.zeros(0, dtype=int)
    basis, R, order = scipy.linalg.qr(columns, mode="economic", pivoting=True)
    diagonal = np.abs(R.diagonal())
    rank = np.count_nonzero(diagonal > max(columns.shape) * 2.0**-52 * diagonal[0])
    return basis[:, :rank], R[:rank, :rank], order[:rank]


def image(columns: Vector, high: Vector, low: Vector) -> tuple[Vector, Vector]:
    """columns^T (high + low), and no less than what rounding takes from it, of the order 2^-105 |columns|^T |high|.

    Products and their sums in pairs, level by level, with what each rounding takes (Ogita, Rump & Oishi 2005, Dot2):
    that is at most levels + 2 times 2^-52 of the sizes, and is itself added plainly, two additions a level.
    """
    s, small = _product(columns, high[:, None])
    small = small + columns * low[:, None]
    levels = 0
    while len(s) > 1:
        if len(s) % 2:
            s, small = (np.vstack((part, np.zeros((1, s.shape[1])))) for part in (s, small))
        s, taken = _sum(s[::2], s[1::2])
        small = small[::2] + small[1::2] + taken
        levels += 1
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
