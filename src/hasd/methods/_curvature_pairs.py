"""The inverse Hessian of limited memory, made of the last pairs of steps and changes of the gradient.

Where an older Hessian B^{-1} is known by its Cholesky factor, the pairs correct B, not a multiple of the identity.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv

from .._math.arrays import (
    Array,
    convert_like,
    extreme_entries,
    largest_entry,
    multiply,
    namespace,
    resolution,
    to_float64,
    to_numpy,
)
from .._math.cholesky import cholesky, solve
from .._math.doubt import smallest_number
from .._math.geometry import dot
from ..objectives._images import ColumnStore, Small

ROOM = 20
"""Pairs that a store has room for at first; with a larger memory it grows as it fills."""
TRIED = 8
"""Pairs after which another diagonal is tried, and by which it is judged."""
BETTER = 0.8
"""It is taken where it makes the ratios <y, D y>/<s, y> of the newest pairs differ by less than this part of what they
differ by with the present one and with the identity, in logarithms.  Eight ratios may differ less by chance."""
BLOCK = 4096
"""Entries of the pairs that are scaled at a time."""
LEAST = 1e-10
"""How much less than the others a variable, or its gradient, may seem to have moved at most."""
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
    none c D with c = <s, y>/<y, D y> of the newest pair.  D is a diagonal that knows the scales of the variables from
    older pairs (`scales`); at first it is the identity.
    A pair is stored divided by ||y||, which leaves H as it is and keeps the squares in Y^T Y safe at any scale of f.
    Gradients are divided by `unit`, a power of two that grows with f's scale, so that no bit of H g depends on it.
    """

    rows: Array  # s_0, D y_0, s_1, D y_1, ..., oldest first; with a factor B y_i in place of D y_i
    products: Small  # <y_i, s_j> where i >= j, else 0; and <y_i, D y_j>, or <y_i, B y_j>
    unit: float = 1.0  # of gradients: the power of two at or below the first ||y||
    store: ColumnStore | None = None  # what the rows are a view of, in NumPy: its columns, in float64
    end: int = 0  # how many columns of the store there were when our last was added
    factor: Small | None = None  # the Cholesky factor of B^{-1}
    diagonal: Array = None  # D; None: the identity
    since: int = 0  # pairs since another diagonal was tried

    @classmethod
    def on(cls, factor: Small | None) -> Pairs:
        """No pairs yet, and B by its factor."""
        return cls(None, np.zeros((2, 0, 0)), factor=factor)

    def to_parts(self) -> dict[str, Any]:
        """Its fields without the buffer that it shares with later versions."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("store", "end")}

    def _times_B(self, vector: Array) -> Array:
        """B times a vector, but for the factor c."""
        if self.factor is None:
            return vector if self.diagonal is None else self.diagonal * vector
        return convert_like(solve(self.factor, to_numpy(vector)), vector)

    def __len__(self) -> int:
        """How many there are."""
        return self.products.shape[1]

    def append(self, s: Array, y: Array, size: float, memory: int) -> Pairs:
        """The newest pairs up to that memory, one with ||y|| = size among them."""
        count, factor = self.products.shape[1], self.factor
        k = min(count, memory - 1)
        unit = self.unit if count else math.ldexp(0.5, math.frexp(size)[1])
        if type(s) is np.ndarray:
            s, y = to_float64(s), to_float64(y)
        s, y = s / (size / unit), y / size
        other = self._times_B(y) if factor is None else unit * self._times_B(y)
        store, end, rows = self._rows_with(s, other, k, memory)
        newest = to_numpy(multiply(rows, y)).reshape(k + 1, 2).T
        products = np.zeros((2, k + 1, k + 1))
        products[:, :k, :k] = self.products[:, count - k :, count - k :]
        products[:, k] = newest
        products[1, :, k] = newest[1]
        flats, since = (*self.flats[count - k :], newest.item(0, k)), self.since + 1
        pairs = self._copy(rows=rows, products=products, unit=unit, store=store, end=end, since=since, flats=flats)
        # Pairs that span the whole space know its scales without a diagonal.
        is_due = since >= TRIED and min(k, s.shape[0] - 1) >= 2 * TRIED and factor is None
        return pairs._with_better_diagonal(memory, store is not self.store) if is_due else pairs

    def _rows_with(self, s: Array, other: Array, k: int, memory: int) -> tuple[ColumnStore | None, int, Array]:
        """The rows of the newest k pairs and of one more; in NumPy with the store they are in and its end."""
        store, end = self.store, self.end
        if type(s) is not np.ndarray:
            xp = namespace(s)
            new = xp.stack((s, other))
            return None, 0, xp.concat((self.rows[-2 * k :, :], new)) if k else new
        if store is None or store.used != end or end + 2 > store.room:  # full, or appended to by another version
            store, end = _make_store(2 * k, len(s), memory), 2 * k
            store.array.T[:end] = self.rows[-end:] if k else 0.0
        rows = store.array.T
        rows[end], rows[end + 1] = s, other
        end = store.used = end + 2
        return store, end, rows[end - 2 * k - 2 : end]

    def _with_better_diagonal(self, memory: int, is_alone: bool) -> Pairs:
        """The same pairs with another D, if that fits the newest of them better.

        is_alone: whether no other version shares the store, so that it may be written to.

        A perfect c D would have <y, c D y> = <s, y> for every pair.  So D is judged by how much <y, D y>/<s, y> varies
        among the newest pairs, and a new one by what the older pairs alone would have made of it.
        """
        newest = self.flats[-TRIED:]
        weights = convert_like(1.0 / np.asarray(self.flats), self.rows)
        squares = 1.0 if self.diagonal is None else self.diagonal * self.diagonal
        moved, turned = _sum_squares(self.rows[: -2 * TRIED, :], weights[:-TRIED])
        trial = scales(moved, turned / squares) / squares
        turns = self.rows[1 - 2 * TRIED :: 2, :]
        new = _spread(np.array([dot(turns[i, :], turns[i, :] * trial) for i in range(TRIED)]) / newest)
        own = plain = _spread(np.asarray(newest))  # that of the identity, as ||y|| = 1
        if self.diagonal is not None:
            own = _spread(self.products[1].diagonal()[-TRIED:] / newest)
        if new < BETTER * min(own, plain):
            moved_since, turned_since = _sum_squares(self.rows[-2 * TRIED :, :], weights[-TRIED:])
            return self._with_diagonal(scales(moved + moved_since, (turned + turned_since) / squares), memory, is_alone)
        if self.diagonal is not None and not own < BETTER * plain:
            return self._with_diagonal(None, memory, is_alone)
        return self._copy(since=-TRIED)  # as it did not pay, the next trial is later

    def _with_diagonal(self, diagonal: Array, memory: int, is_alone: bool) -> Pairs:
        """The same pairs with this D; None: the identity."""
        old, products, made = self.rows, self.products.copy(), {}
        if self.store is None:
            y, scaled = _rescale(old[1::2, :], self.diagonal, diagonal)
            xp = namespace(old)
            rows = xp.reshape(xp.stack((old[::2, :], scaled), axis=1), old.shape)
            products[1] = to_numpy(multiply(scaled, y.T))
        else:
            end, d = old.shape
            store = self.store if is_alone else _make_store(end, d, memory)
            rows, made = store.array.T[:end], {"store": store, "end": end}
            rows[::2], products[1] = old[::2], 0.0
            for start in range(0, d, BLOCK):  # so that no other copy of the rows is made
                part = slice(start, start + BLOCK)
                factors = (None if D is None else D[part] for D in (self.diagonal, diagonal))
                # y is a copy, as these rows are written to where no other version shares the store
                y, rows[1::2, part] = _rescale(old[1::2, part].copy(), *factors)
                products[1] += multiply(rows[1::2, part], y.T)
        return self._copy(rows=rows, products=products, diagonal=diagonal, since=0, **made)

    def _copy(self, **changes: Any) -> Pairs:
        """A copy with these fields changed; a frozen class is slow to fill by its own means."""
        pairs = object.__new__(Pairs)
        pairs.__dict__.update(self.__dict__, **changes)
        return pairs

    @cached_property
    def flats(self) -> tuple[float, ...]:
        """<s, y>/<y, y> of each pair, times `unit`: the inverse of its curvature."""
        return tuple(self.products[0].diagonal().tolist())

    @property
    def steepest(self) -> float:
        """The largest curvature <y, y>/<s, y> among the pairs; 0 without pairs."""
        least = min(self.flats, default=math.inf)
        return self.unit / least if least > 0.0 else math.inf

    def times(self, g: Array) -> Array:
        """H g; g itself, or B g, without pairs."""
        if self.rows is None:
            return self._times_B(g)
        scaled = g / self.unit
        along = to_numpy(multiply(self.rows, scaled))
        c = self.flats[-1] / self.products.item(1, -1, -1) if self.factor is None else 1.0
        SY, YY = self.products[0].T, self.products[1]  # .T: BLAS's order of memory, so that nothing is copied
        shares = np.empty_like(along)
        alpha = dtrsv(SY, along[::2])  # the alpha of the first loop
        shares[1::2] = -c * alpha
        # c D (g - Y alpha) is the vector between the two loops; its products with the y_i enter here.
        between = SY.diagonal() * alpha - c * along[1::2] - YY.dot(shares[1::2])
        shares[::2] = dtrsv(SY, between, trans=1, overwrite_x=1)
        corrected = multiply(convert_like(shares, self.rows), self.rows)
        plain = (c if self.factor is None else self.unit) * self._times_B(scaled)
        return convert_like(corrected + plain, g)


def scales(moved: Array, turned: Array) -> Array:
    """The diagonal D with D_i^2 = moved_i / turned_i, divided by its largest entry.

    These are the sums of s_i^2/<s, y> and y_i^2/<s, y> over pairs.  On f = 1/2 <x, E x> with a diagonal E, D is a
    multiple of E^{-1}, and if a variable is measured in another unit, its entry follows.  A variable that has not
    moved, and whose gradient has not changed, gets an entry between the others.
    """
    tops, least, xp = (largest_entry(moved), largest_entry(turned)), LEAST * LEAST, namespace(moved)
    if not all(least * top > smallest_number(resolution(moved)) and top < math.inf for top in tops):
        return xp.ones_like(moved)
    entries = xp.sqrt((moved + least * tops[0]) / (turned + least * tops[1]))
    return entries / largest_entry(entries)


def _sum_squares(rows: Array, weights: Array) -> tuple[Array, Array]:
    """The sums of the squares of the first, third, ... rows and of the others; each pair of rows has its weight."""
    if type(rows) is np.ndarray:
        both = rows.reshape(len(weights), 2, -1)
        return tuple(np.einsum("jki,jki,j->ki", both, both, weights))  # this needs no room for the squares
    xp = namespace(rows)
    first, other = (xp.sum(some * some * weights[:, None], axis=0) for some in (rows[::2, :], rows[1::2, :]))
    return first, other


def _rescale(turns: Array, old: Array, new: Array) -> tuple[Array, Array]:
    """The y from the rows D y with the old D, and the rows with the new one; None: the identity."""
    y = turns if old is None else turns / old
    return y, y if new is None else y * new


def _spread(ratios: Small) -> float:
    """How far positive numbers are apart, whatever their unit; NaN or inf where one is not positive."""
    low, high = extreme_entries(ratios)
    return math.log(high / low) if low > 0.0 else math.inf


def _make_store(used: int, d: int, memory: int) -> ColumnStore:
    """A store with so many columns of d entries in use, and with room for more."""
    store = ColumnStore(3 * min(memory, max(used, ROOM)) + 2, d)
    store.used = used
    return store


NO_PAIRS = Pairs(None, np.zeros((2, 0, 0)))
SCALED = replace(NO_PAIRS, since=-(10**9))
"""No pairs, of variables that are scaled already: no diagonal is ever tried."""
