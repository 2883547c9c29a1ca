"""The inverse Hessian of limited memory, made of the last pairs of steps and changes of the gradient.

Where an older Hessian B^{-1} is known by its Cholesky factor, the pairs correct B, not a multiple of the identity.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv

from .._math.arrays import Array, convert_like, largest_entry, multiply, namespace, to_numpy
from .._math.cholesky import cholesky, solve
from ..objectives._images import ColumnStore, Small

ROOM = 20
"""Pairs that a store has room for at first; with a larger memory it grows as it fills."""
FLOOR = 1e-12
"""Curvature below this part of a variable's own, or of the largest, is rounding."""
FAINTEST = 1e-30
"""A variable whose curvature is this part of the largest, or less, does not count."""


def factorise(H: Small, damping: float) -> Small | None:
    """The Cholesky factor of H + damping I, curvature at rounding level taken for 0; None where there is none.

    The diagonal of H is written to, which saves a matrix of its size.

    What rounding may hide is judged for each variable by itself, as their units may differ by many orders.  Where that
    is not enough, as variables depend on each other, it is judged by the largest curvature of all.
    """
    own = H.diagonal().copy()
    top = float(own.max(initial=0.0))
    if not (top > 0.0 and math.isfinite(top)):
        return None
    for floor in (FLOOR * np.maximum(own, FAINTEST * top), FLOOR * top):
        H.flat[:: len(H) + 1] = own + (damping + floor)
        with suppress(np.linalg.LinAlgError):
            return cholesky(H)
    return None


@dataclass(frozen=True, eq=False)
class Pairs:
    """Steps s = x_{t+1} - x_t with the changes y = g_{t+1} - g_t of the gradient, and the H_t they make.

    H = B + (S, B Y) M (S, B Y)^T, where M is made of triu(S^T Y) and Y^T B Y: what the two loops compute, in three
    products (Byrd, Nocedal & Schnabel 1994, Theorem 2.2).  B is the inverse of the factorised matrix, or where there is
    none c I with c = <s, y>/<y, y> of the newest pair.
    A pair is stored divided by ||y||, which leaves H as it is and keeps the squares in Y^T Y safe at any scale of f.
    Gradients are divided by `unit`, a power of two that grows with f's scale, so that no bit of H g depends on it.
    """

    rows: Array  # s_0, y_0, s_1, y_1, ..., oldest first; with a factor B y_i in place of y_i
    inner: Small  # <s_i, y_j> where i <= j, else 0; and <y_i, y_j>, or <y_i, B y_j>
    unit: float = 1.0  # of gradients: the power of two at or below the first ||y||
    store: ColumnStore | None = None  # what the rows are a view of, in NumPy: its columns, in float64
    end: int = 0  # how many columns of the store there were when our last was added
    factor: Small | None = None  # the Cholesky factor of B^{-1}

    @classmethod
    def on(cls, factor: Small | None) -> Pairs:
        """No pairs yet, and B by its factor."""
        return cls(None, np.zeros((2, 0, 0)), factor=factor)

    def to_parts(self) -> dict[str, Any]:
        """Its fields without the buffer that it shares with later versions."""
        return {"rows": self.rows, "inner": self.inner, "unit": self.unit, "factor": self.factor}

    def _divide(self, vector: Array) -> Array:
        """B times a vector; there must be a factor."""
        assert self.factor is not None
        return convert_like(solve(self.factor, to_numpy(vector)), vector)

    def __len__(self) -> int:
        """How many there are."""
        return self.inner.shape[1]

    def append(self, s: Array, y: Array, size: float, memory: int) -> Pairs:
        """The newest pairs up to that memory, one with ||y|| = size among them."""
        k = min(len(self), memory - 1)
        unit = self.unit if len(self) else math.ldexp(0.5, math.frexp(size)[1])
        store, end = self.store, self.end
        other, scale = (y, size) if self.factor is None else (self._divide(y), size / unit)
        if type(s) is not np.ndarray:
            xp = namespace(s)
            new = xp.stack((s / (size / unit), other / scale))
            rows = xp.concat((self.rows[-2 * k :, :], new)) if k else new
        else:
            if store is None or store.used != end or end + 2 > store.room:  # full, or appended to by another version
                store, end = ColumnStore(3 * min(memory, max(2 * k, ROOM)) + 2, len(s)), 2 * k
                store.array.T[:end] = self.rows[-end:] if k else 0.0
            rows = store.array.T
            np.divide(s, size / unit, out=rows[end], dtype=np.float64)
            np.divide(other, scale, out=rows[end + 1], dtype=np.float64)
            end = store.used = end + 2
            rows = rows[end - 2 * k - 2 : end]
        newest = rows[-1, :] if self.factor is None else convert_like(y / size, rows)
        products = to_numpy(multiply(rows, newest)).reshape(k + 1, 2).T
        inner = np.zeros((2, k + 1, k + 1))
        inner[:, :k, :k] = self.inner[:, len(self) - k :, len(self) - k :]
        inner[:, :, k] = products
        inner[1, k] = products[1]
        return Pairs(rows, inner, unit, store, end, self.factor)

    @property
    def steepest(self) -> float:
        """The largest curvature <y, y>/<s, y> among the pairs; 0 without pairs."""
        bends = self.inner[1].diagonal() / self.inner[0].diagonal()
        return self.unit * max(largest_entry(bends), 0.0) if bends.size else 0.0

    def times(self, g: Array) -> Array:
        """H g; g itself, or B g, without pairs."""
        if self.rows is None:
            return g if self.factor is None else self._divide(g)
        SY, YY = self.inner[0], self.inner[1]
        g = g / self.unit
        along = to_numpy(multiply(self.rows, g)).reshape(-1, 2)
        c = float(SY[-1, -1] / YY[-1, -1]) if self.factor is None else 1.0
        shares = np.empty(along.shape)
        alpha = dtrsv(SY, along[:, 0])  # the alpha of the first loop
        shares[:, 1] = -c * alpha
        # c (g - Y alpha) is the vector between the two loops; its products with the y_i enter here.
        shares[:, 0] = dtrsv(SY, SY.diagonal() * alpha - c * along[:, 1] - YY.dot(shares[:, 1]), trans=1)
        corrected = convert_like(multiply(convert_like(shares.ravel(), self.rows), self.rows), g)
        return corrected + (c * g if self.factor is None else self.unit * self._divide(g))


NO_PAIRS = Pairs(None, np.zeros((2, 0, 0)))
