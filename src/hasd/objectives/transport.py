"""The dual of entropic optimal transport and of matrix scaling, in the log domain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from .._checks import number
from .._math.arrays import largest_size, to_host
from .._math.doubt import Doubt, Sizes, roundings, underflow_loss
from .._math.geometry import Lp, largest_gain
from ._operators import Matrix, Vector, as_data, as_matrix, as_point, is_sparse, quiet, row_blocks
from ._smoothness import Smoothness
from .base import Objective, in_precision_of

BLOCK = 1 << 15
"""Entries of C that are worked on at once: 256 kB of exponents, which stay in a core's second cache."""
NEGLIGIBLE = -40.0
"""Exponents so far below the largest of their row are left out: exp(-40) = 4e-18 is below its last digit."""
UNDERFLOW = -700.0
"""Below this exp gives denormal numbers, which take five times as long."""
LEAST = 1e-200
"""Sums of a row below this may have lost something to underflow."""
SPARSE = 0.25
"""A block with at most this share of entries that count is compressed before exp: the break-even, measured."""


def as_costs(C: npt.ArrayLike) -> npt.NDArray[np.floating]:
    """C checked: a dense matrix, in NumPy."""
    if is_sparse(C) or isinstance(C, LinearOperator):
        raise TypeError(f"C must be a dense array of costs, got a {type(C).__name__}")
    return as_matrix(to_host(C), "C")


def _as_shares(given: npt.ArrayLike, length: int, name: str) -> Vector:
    """Masses checked, and divided by their sum."""
    mass = as_data(to_host(given), length, name)
    if mass.min() <= 0.0:
        i = int(mass.argmin())
        raise ValueError(f"{name} must be positive, but {name}[{i}] is {float(mass[i])!r}")
    divided_in_single = "float32" in str(getattr(given, "dtype", ""))
    if abs(mass.sum() - 1.0) > (1e-5 if divided_in_single else 1e-9):
        raise ValueError(f"{name} must sum to 1, got a sum of {float(mass.sum())!r}")
    return mass / mass.sum()


class EntropicTransport(Objective):
    """f(u, v) = reg log sum_ij exp((u_i + v_j - C_ij)/reg) - <a, u> - <b, v>, where x = (u, v) is one vector.

    This is the dual of entropic transport.  Its minimisers are the optimal potentials of min <C, P> + reg sum P log P
    over plans P with marginals a and b; the gradient is the error of the marginals of P_ij ~ exp((u_i + v_j -
    C_ij)/reg).  a and b must be positive and sum to 1 (within 1e-9, in float32 1e-5; they are divided by their sums,
    because f has no minimum where these differ from 1).  f is a LogSumExp of an operator that has two ones in each
    row, so L_inf = 4/reg and L_2 = 1/reg, and a large p has a large gain.  `nprod` counts passes over C.

    >>> f = EntropicTransport([[0.0, 1.0], [1.0, 0.0]], a=[0.5, 0.5], b=[0.5, 0.5], reg=0.1)
    >>> f.value_and_grad(np.zeros(4))[1]
    array([0., 0., 0., 0.])
    >>> f.smoothness(float("inf"))
    Smoothness(40.0, exact=True)
    """

    convex: ClassVar[bool] = True
    bounded_below: ClassVar[bool] = True

    def __init__(self, C: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, reg: float) -> None:
        """Check and keep the data."""
        self.C = as_costs(C)
        n, m = self.C.shape
        self.a, self.b = _as_shares(a, n, "a"), _as_shares(b, m, "b")
        self.reg = number("reg", reg, least=0.0, strict=True)
        self.dimension = n + m
        self._largest = largest_size(self.C)

    @quiet
    def _evaluate(self, x: npt.ArrayLike) -> tuple[Vector, float, npt.NDArray[np.floating], float]:
        """x, f(x), the entries of the plan relative to its largest, and their sum: one pass over C."""
        self.nprod += 1
        point = as_point(x, self.dimension, "x")
        u, v = point[: len(self.a)], point[len(self.a) :]
        E = v - self.C
        E += u[:, None]
        top = float(E.max())
        E -= top
        E /= self.reg
        np.exp(E, out=E)
        total = float(E.sum())
        smooth = top + self.reg * math.log(total) if math.isfinite(top) else top
        return point, smooth - float(self.a @ u) - float(self.b @ v), E, total

    def __call__(self, x: npt.ArrayLike) -> float:
        """f(x); one pass over C."""
        return self._evaluate(x)[1]

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and the errors of the marginals; one pass over C."""
        point, value, E, total = self._evaluate(x)
        g = np.concatenate((E.sum(axis=1) / total - self.a, E.sum(axis=0) / total - self.b))
        return value, in_precision_of(point, g)

    @quiet
    def settle(self, x: npt.ArrayLike) -> tuple[Vector, float, Vector]:
        """The point with x's u and the v that is best for it, f and the gradient there; one pass over C.

        This is half an iteration of Sinkhorn's: v makes the column sums of the plan equal to b.  Where no such v is
        a number of x's precision, the point is x.
        """
        self.nprod += 1
        point = as_point(x, self.dimension, "x")
        u, mass = point[: len(self.a)], float(self.b.sum())  # mass is 1 up to rounding
        E = u[:, None] - self.C
        top = E.max(axis=0)
        E -= top
        E /= self.reg
        np.exp(E, out=E)
        total = E.sum(axis=0)
        v = self.reg * np.log(self.b / total) - top
        settled = in_precision_of(point, np.concatenate((u, v)))
        if not np.isfinite(settled).all():  # v overflowed, or a mass divided by a sum underflowed
            return (point, *self.value_and_grad(x))
        value = self.reg * math.log(mass) - float(self.a @ u) - float(self.b @ v)
        g = np.concatenate((E @ (self.b / total) / mass - self.a, self.b / mass - self.b))
        return settled, value, in_precision_of(point, g)

    @quiet
    def doubt(self, at: Sizes, image: float | None = None) -> Doubt:
        """f is off by what u_i + v_j - C_ij is, and by its sums; the marginals by theirs."""
        n, m = self.C.shape
        sums = roundings(at.d) * at.x + self.reg * (roundings(n * m) + math.log(n * m)) + abs(at.f)
        own = max(at.eps, self.precision)
        dz = own * (2.0 * at.x + self._largest)
        slope = own * (4.0 * roundings(n * m) + roundings(at.d) * at.g)
        return Doubt(dz + own * (sums + 2.0 * at.x) + underflow_loss(at), slope, slope + 2.0 * dz / self.reg)

    def plan(self, x: npt.ArrayLike) -> npt.NDArray[np.floating]:
        """P_ij = exp((u_i + v_j - C_ij)/reg), of total mass 1."""
        _, _, E, total = self._evaluate(x)
        return E / total

    def smoothness(self, p: float) -> Smoothness:
        """max over pairs of rows of ||difference||_{p*}^2/(4 reg): four ones where both indices differ."""
        n, m = self.C.shape
        entries = 2 * (n > 1) + 2 * (m > 1)
        gain = largest_gain(Lp(p).p, entries)  # ||1||_{p*} = sqrt(entries) gain
        return Smoothness(entries * gain * gain / (4.0 * self.reg), exact=True)


@dataclass(frozen=True)
class Pass:
    """What one pass over C finds, the rows of P_ij = exp((u_i + v_j - C_ij)/reg) summing to a."""

    top: Vector  # max_j (v_j - C_ij - base_i)/reg
    total: Vector  # sum_j exp((v_j - C_ij - base_i)/reg - top_i)
    column: Vector  # the column sums of P
    plan: csr_array | None  # P without negligible entries; None where these are not most of P
    kept: bool = False  # whether it was made from the kernel, whose rows share one top

    @property
    def level(self) -> Vector:
        """log sum_j exp((v_j - C_ij - base_i)/reg)."""
        return self.top + np.log(self.total)


class SemiDual(Objective):
    """f(x) = sum_i a_i log sum_j exp((v_j - C_ij)/reg) - <b, v>/reg, v = origin + reg x/sqrt(b), up to a constant.

    The dual of entropic transport, in units of reg, with u eliminated: u_i = reg log a_i - reg log sum_j exp((v_j -
    C_ij)/reg) makes the row sums of P_ij = exp((u_i + v_j - C_ij)/reg) equal to a, and the gradient is the error of
    its column sums over sqrt(b).  In these variables the Hessian at the minimiser is I - B^T B with
    B = a^{-1/2} P b^{-1/2}, whose eigenvalues lie in [0, 1].  One pass over C gives value and gradient; where P is
    dense the exponentials at the origin are kept, and two products with them do, as in an iteration of Sinkhorn's.
    `nprod` counts passes and products.  a and b are positive and sum to 1; an entry of C may be inf where P must be 0,
    and a sparse C (CSR, no empty row) stands for inf where it stores nothing.

    Exponents are taken relative to those of the origin, (origin_j - C_ij - base_i)/reg with base_i their maximum over
    j: the rounding of C/reg, huge for a small reg, is then the same at every x, that of a C off in its last digit.

    >>> f = SemiDual([[0.0, 1.0], [1.0, 0.0]], a=[0.5, 0.5], b=[0.5, 0.5], reg=0.1)
    >>> f.value_and_grad(np.zeros(2))[1]
    array([0., 0.])
    >>> g = SemiDual(csr_array([[0.5, 1.0], [1.0, 0.5]]), [0.5, 0.5], [0.5, 0.5], 0.1).value_and_grad(np.zeros(2))[1]
    >>> bool(np.abs(g).max() < 1e-15)
    True
    """

    precision: float = 2.0**-50  # that of a few operations in float64, whatever C's type

    def __init__(
        self, C: Matrix, a: npt.ArrayLike, b: npt.ArrayLike, reg: float, origin: npt.ArrayLike | None = None
    ) -> None:
        """Keep the data.  C, a and b are taken to be checked."""
        self.C: Matrix = C if is_sparse(C) else np.asarray(C)
        self.a, self.b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        self.root = np.sqrt(self.b)
        self.dimension = len(self.b)
        # f is shifted so that f <= -1 at every point of a descent: eps |f| then covers its rounding error.
        self.above = 1.0 + math.log(self.dimension)
        self.size: int = C.nnz if is_sparse(C) else self.C.size
        self.reg = number("reg", reg, least=0.0, strict=True)
        self.origin = np.zeros(self.dimension) if origin is None else np.asarray(origin, dtype=float)
        self.products = 0.0  # with P, in passes over C: the share of the entries each of them touched
        self._kernel: npt.NDArray[np.floating] | None = None  # exp((origin_j - C_ij - base_i)/reg), where P is dense
        self._last: tuple[Vector, Pass] | None = None

    def at(self, reg: float, origin: Vector) -> Self:
        """The same data with another reg and origin."""
        return type(self)(self.C, self.a, self.b, reg, origin)

    @cached_property
    def base(self) -> Vector:
        """max_j origin_j - C_ij; before the first pass this reads C once more, uncounted."""
        if is_sparse(self.C):
            return np.maximum.reduceat(self.origin[self.C.indices] - self.C.data, self.C.indptr[:-1])
        return np.concatenate([(self.origin - self.C[here]).max(axis=1) for here in blocks(*self.C.shape)])

    @property
    def passes(self) -> float:
        """The work done so far, in passes over C."""
        return self.nprod + self.products

    def potentials(self, x: Vector, found: Pass) -> tuple[Vector, Vector]:
        """u and v; `found` is the pass at x."""
        return self.reg * (np.log(self.a) - found.level) - self.base, self.origin + self.reg * (x / self.root)

    @quiet
    def pass_at(self, x: Vector) -> Pass:
        """The pass at x: the last one where it was made there (a copy of x is kept), else a new one."""
        if self._last is None or not np.array_equal(self._last[0], x):
            shift = x / self.root
            found = _kernel_pass(self, shift)
            if found is None:
                self.nprod += 1
                found = _sparse_pass(self, shift) if is_sparse(self.C) else _dense_pass(self, shift)
            self._last = (x.copy(), found)
        return self._last[1]

    @quiet
    def times(self, x: Vector, found: Pass, d: Vector) -> Vector:
        """P d, uncounted; it takes a pass over C only where no part of P was kept."""
        if found.plan is not None:
            return found.plan @ d
        scale, shift = self.a / found.total, x / self.root
        if self._kernel is not None and found.kept:
            return scale * (self._kernel @ (np.exp(np.maximum(shift - found.top[0], UNDERFLOW)) * d))
        out, room = np.empty_like(self.a), buffer(*self.C.shape)
        for here in blocks(*self.C.shape):
            E = self.rows(shift, room, here)
            E -= found.top[here, None]
            np.exp(np.maximum(E, UNDERFLOW, out=E), out=E)
            out[here] = E @ d
        return scale * out

    def curvature(self, x: Vector, most: float = math.inf) -> PlanCurvature | None:
        """The Hessian at x; None where a product with it costs more than `most` passes, and where P is dense."""
        found = self.pass_at(x)
        if found.plan is None or 2.0 * found.plan.nnz > most * self.size:
            return None
        return PlanCurvature(self, found.plan, found.column / self.b)

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and its gradient; one pass."""
        point = as_point(x, self.dimension, "x")
        found = self.pass_at(point)
        value = float(self.a @ found.level) - float(self.root @ point)
        return value - self.above, in_precision_of(point, (found.column - self.b) / self.root)

    def smoothness(self, p: float) -> Smoothness:
        """||difference of two coordinates||_{p*}^2/4 for the two lightest columns: every row's is a covariance."""
        if self.dimension == 1:
            return Smoothness(0.0, exact=True)
        ends = 1.0 / np.sort(self.root)[:2]
        return Smoothness(float(np.linalg.norm(ends, Lp(p).dual)) ** 2 / 4.0, exact=False)

    @quiet
    def rows(self, shift: Vector, buffer: npt.NDArray[np.floating], here: slice) -> npt.NDArray[np.floating]:
        """(v_j - C_ij - base_i)/reg for some rows of a dense C, v = origin + reg shift."""
        E = np.subtract(self.origin, self.C[here], out=buffer[: here.stop - here.start])
        E -= self.base[here, None]
        E /= self.reg
        E += shift
        return E


def blocks(n: int, m: int) -> Iterator[slice]:
    """Blocks of rows that fit the cache."""
    return row_blocks((n, m), BLOCK)


def buffer(n: int, m: int) -> npt.NDArray[np.floating]:
    """An array with room for any of the blocks."""
    return np.empty((max(1, min(n, BLOCK // m)), m))


class PlanCurvature:
    """The Hessian of the semi-dual, diag(column/b) - B^T B with B = a^{-1/2} P b^{-1/2}."""

    def __init__(self, dual: SemiDual, plan: csr_array, diagonal: Vector) -> None:
        """Make B from the plan's entries that count."""
        left = np.repeat(1.0 / np.sqrt(dual.a), np.diff(plan.indptr))
        data = plan.data * left / dual.root[plan.indices]
        self.B = csr_array((data, plan.indices, plan.indptr), shape=plan.shape)
        self.BT = self.B.T.tocsr()
        self.diagonal, self.dual = diagonal, dual
        self.price = 2.0 * plan.nnz / dual.size

    def times(self, d: Vector) -> Vector:
        """H d: two products with P."""
        self.dual.products += self.price
        return self.diagonal * d - self.BT @ (self.B @ d)


def _dense_pass(dual: SemiDual, shift: Vector) -> Pass:
    """A pass by blocks of rows that stay in cache; where few entries of a block count, only these go through exp."""
    n, m = dual.C.shape
    tops, totals, column, room = np.empty(n), np.empty(n), np.zeros(m), buffer(n, m)
    at_origin, kernel = not np.any(shift), None
    kept: list[tuple[Vector, Vector, Vector]] | None = []  # values, their columns, how many in each row
    for here in blocks(n, m):
        E, a = dual.rows(shift, room if kernel is None else kernel[here], here), dual.a[here]
        top = tops[here] = E.max(axis=1)
        E -= top[:, None]
        count = E > NEGLIGIBLE
        if kernel is not None or np.count_nonzero(count) > SPARSE * E.size:
            if at_origin and here.start == 0:
                kernel = np.empty((n, m))
                kernel[here] = E
                E = kernel[here]
            kept = None
            np.maximum(E, UNDERFLOW, out=E)
            np.exp(E, out=E)
            total = E.sum(axis=1)
            column += (a / total) @ E
        else:
            near = np.flatnonzero(count)
            row, at = np.divmod(near, m)
            values = np.exp(E.ravel()[near])
            total = np.bincount(row, values, len(E))
            values *= (a / total)[row]
            column += np.bincount(at, values, m)
            if kept is not None:
                kept.append((values, at, np.bincount(row, minlength=len(E))))
        totals[here] = total
    dual._kernel = kernel if at_origin else dual._kernel
    return Pass(tops, totals, column, None if kept is None else _gather_rows(kept, (n, m)))


def _kernel_pass(dual: SemiDual, shift: Vector) -> Pass | None:
    """A pass by two products with the kept exponentials; None without these, or where a row's sum underflows."""
    K, top = dual._kernel, float(np.max(shift))
    if K is None or not math.isfinite(top):
        return None
    dual.nprod += 2
    weight = np.exp(np.maximum(shift - top, UNDERFLOW))
    total = K @ weight
    if not total.min() > LEAST:
        return None
    return Pass(np.full(len(total), top), total, weight * ((dual.a / total) @ K), None, kept=True)


def _gather_rows(kept: list[tuple[Vector, Vector, Vector]], shape: tuple[int, int]) -> csr_array:
    values, columns, counts = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    return csr_array((values, columns, np.concatenate(([0], np.cumsum(counts)))), shape=shape)


def _sparse_pass(dual: SemiDual, shift: Vector) -> Pass:
    """A pass over the stored entries."""
    C = dual.C
    starts, counts = C.indptr[:-1], np.diff(C.indptr)
    E = dual.origin[C.indices] - C.data
    E -= np.repeat(dual.base, counts)
    E /= dual.reg
    E += shift[C.indices]
    top = np.maximum.reduceat(E, starts)
    E -= np.repeat(top, counts)
    np.maximum(E, UNDERFLOW, out=E)
    np.exp(E, out=E)
    total = np.add.reduceat(E, starts)
    E *= np.repeat(dual.a / total, counts)
    column = np.bincount(C.indices, E, C.shape[1])
    return Pass(top, total, column, csr_array((E, C.indices, C.indptr), shape=C.shape))
