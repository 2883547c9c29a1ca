"""The inverse Hessian of limited memory, made of the last pairs of steps and changes of the gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv

from .._math.arrays import Array, convert_like, namespace, to_numpy
from ..objectives._images import ColumnStore, Small

ROOM = 20
"""Pairs that a store has room for at first; with a larger memory it grows as it fills."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Steps s = x_{t+1} - x_t with the changes y = g_{t+1} - g_t of the gradient, and the H_t they make.

    H = c I + (S, c Y) M (S, c Y)^T, where M is made of triu(S^T Y) and Y^T Y, and c = <s, y>/<y, y> is the newest
    pair's: what the two loops compute, in three products (Byrd, Nocedal & Schnabel 1994, Theorem 2.2).
    A pair is stored divided by ||y||, which leaves H as it is and keeps the squares in Y^T Y safe at any scale of f.
    Gradients are divided by `unit`, a power of two that grows with f's scale, so that no bit of H g depends on it.
    """

    rows: Array  # s_0, y_0, s_1, y_1, ..., oldest first
    inner: Small  # <s_i, y_j> where i <= j, else 0; and <y_i, y_j>
    unit: float = 1.0  # of gradients: the power of two at or below the first ||y||
    store: ColumnStore | None = None  # what the rows are a view of, in NumPy: its columns, in float64
    end: int = 0  # how many columns of the store there were when our last was added

    def to_parts(self) -> dict[str, Any]:
        """Its fields without the buffer that it shares with later versions."""
        return {"rows": self.rows, "inner": self.inner, "unit": self.unit}

    def __len__(self) -> int:
        """How many there are."""
        return self.inner.shape[1]

    def append(self, s: Array, y: Array, size: float, memory: int) -> Pairs:
        """The newest pairs up to that memory, one with ||y|| = size among them."""
        k = min(len(self), memory - 1)
        unit = self.unit if len(self) else math.ldexp(0.5, math.frexp(size)[1])
        store, end = self.store, self.end
        if type(s) is not np.ndarray:
            xp = namespace(s)
            new = xp.stack((s / (size / unit), y / size))
            rows = xp.concat((self.rows[-2 * k :, :], new)) if k else new
        else:
            if store is None or store.used != end or end + 2 > store.room:  # full, or appended to by another version
                store, end = ColumnStore(3 * min(memory, max(2 * k, ROOM)) + 2, len(s)), 2 * k
                store.array.T[:end] = self.rows[-end:] if k else 0.0
            new = store.array.T[end : end + 2]
            new[0], new[1] = s, y
            new /= np.array([[size / unit], [size]])
            end = store.used = end + 2
            rows = store.array.T[end - 2 * k - 2 : end]
        products = to_numpy(rows @ rows[-1, :]).reshape(k + 1, 2).T
        inner = np.zeros((2, k + 1, k + 1))
        inner[:, :k, :k] = self.inner[:, len(self) - k :, len(self) - k :]
        inner[:, :, k] = products
        inner[1, k] = products[1]
        return Pairs(rows, inner, unit, store, end)

    @property
    def steepest(self) -> float:
        """The largest curvature <y, y>/<s, y> among the pairs; 0 without pairs."""
        return self.unit * float((self.inner[1].diagonal() / self.inner[0].diagonal()).max(initial=0.0))

    def times(self, g: Array) -> Array:
        """H g; g itself without pairs."""
        if self.rows is None:
            return g
        SY, YY = self.inner[0], self.inner[1]
        g = g / self.unit
        along = to_numpy(self.rows @ g).reshape(-1, 2)
        c = float(SY[-1, -1] / YY[-1, -1])
        shares = np.empty(along.shape)
        alpha = dtrsv(SY, along[:, 0])  # the alpha of the first loop
        shares[:, 1] = -c * alpha
        # c (g - Y alpha) is the vector between the two loops; its products with the y_i enter here.
        shares[:, 0] = dtrsv(SY, SY.diagonal() * alpha - c * along[:, 1] - YY @ shares[:, 1], trans=1)
        return convert_like(convert_like(shares.ravel(), self.rows) @ self.rows, g) + c * g


NO_PAIRS = Pairs(None, np.zeros((2, 0, 0)))
