"""The two sets of coordinates in which an l_q fit is computed: those of a factored A, and those of A's own columns.

Both take the columns of A divided by D, powers of two near their norms, which rounds nothing.  They offer the same:
``objective`` for a loss, the ``method`` that minimises it, a ``start``, the ``point`` c = D x of their coordinates,
and ``leftover``, which projects in the dual.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, lsmr

from .._math.evaluation import Evaluation
from .._math.geometry import norm2
from .._run.problem import Problem
from .._run.record import State
from ..methods._span import Span
from ..methods.hasd_subspace import HASDSubspace
from ..objectives._images import Basis, ColumnStore
from ..objectives._loss import Loss
from ..objectives._operators import Matrix, Vector, apply, is_single, is_sparse
from ..objectives.affine import Affine
from ..objectives.losses import SquareLoss

WHOLE, ENTRIES = 512, 20_000_000
"""Columns, and entries, up to which A is factored: a Newton step in all its coordinates then costs n d^2."""
WIDEST, NEARLY = 1024, 1e-8
"""Up to WIDEST columns, A is also factored where they nearly depend on each other (a squared singular value below
NEARLY, for columns of norm 1): there iterations would take thousands of steps."""
REFINEMENTS = 12
"""Passes of least squares, at most; they go on while each gains a digit or more."""
PROJECTION = 2000
"""Iterations of LSMR, at most."""
FAR = 2.0**900
"""Columns of sizes between this and its inverse can be computed with without overflow or underflow."""
BLOCK = 4096
"""Rows taken at a time where a temporary of the size of A would be made."""

Descend = Callable[[Affine, Vector, float, float], Vector]
"""Minimise an objective from a point until the gradient has fallen to a part, or to a number: the point reached."""


class ScaledFit(Affine):
    """phi(A D^-1 c - b): the columns of A divided by D, by products with A itself."""

    A: Matrix
    b: Vector

    def __init__(self, A: Matrix, b: Vector) -> None:
        """Keep the data; the loss is least squares until another one is posed.

        An operator that will be factored is written out, because its columns may differ in size.  Columns so small or
        so large that c/D may leave the range of numbers are lifted by powers of two, in a copy.
        """
        self.given, products = A, 0
        if isinstance(A, LinearOperator):
            products = A.shape[1] if _can_factor(A) else 1
            A = apply(A, np.eye(A.shape[1])) if _can_factor(A) else A
        D = np.minimum(column_sizes(A), 2.0**1023)
        self.lift = np.clip(D, 1.0 / FAR, FAR) / D
        if isinstance(A, LinearOperator):
            self.lift = np.ones_like(D)
        elif np.any(self.lift != 1.0):
            A = A @ scipy.sparse.diags_array(self.lift) if is_sparse(A) else A * self.lift
        super().__init__(SquareLoss(), A, b)
        self.D, self.nprod = D * self.lift, products

    @property
    def precision(self) -> float:
        """The precision of products with the A given: writing out a float32 operator does not improve it."""
        return 2.0**-23 if is_single(self.given) else 2.0**-52

    def forward(self, x: Vector) -> Vector:
        """A D^-1 c; one product."""
        self.nprod += 1
        return apply(self.A, x / self.D)

    def adjoint(self, u: Vector) -> Vector:
        """D^-1 A^T u; one product."""
        self.nprod += 1
        return apply(self._AT, u) / self.D


@dataclass(frozen=True)
class LpColumns:
    """The coordinates c themselves: for an A too large to factor, which is seen through products only."""

    data: ScaledFit
    sigma: float = 0.0  # a lower bound on the singular values that are not 0: not known here
    loose: float = 1e-4  # a relative gap above which a second projection in the dual is worth its products

    def objective(self, loss: Loss, size: float) -> Affine:
        """phi((A D^-1 c - b)/size) as a function of c/size."""
        twin = copy.copy(self.data)
        twin.loss, twin.b, twin.nprod = loss, self.data.b / size, 0
        return twin

    def method(self) -> Any:
        """The method that "auto" chooses."""
        return "auto"

    def point(self, y: Vector) -> Vector:
        """c."""
        return y

    def shortest_solution(self, x: Vector, D: Vector) -> Vector:
        """x itself: the row space, which has the shortest solution, is not known."""
        return x

    def start(self, descend: Descend) -> Vector:
        """Rough least squares, refined on the residual while that shrinks: only this can find an exact fit."""
        y, z, before = np.zeros(self.data.D.size), -self.data.b, math.inf
        for _ in range(REFINEMENTS):
            size = norm2(z)
            if not 0.0 < size <= 0.1 * before:
                break
            f = self.objective(SquareLoss(), 1.0)
            f.b = -z / size
            rounding = self.data.precision * norm2(self.data.b) / size
            y = y + size * descend(f, np.zeros_like(y), 1e-5, rounding)
            z, before = self.data.image(y), size
        return y

    def leftover(self, root: Vector | None, t: Vector, tol: float) -> Vector:
        """t minus its projection onto the range of root A D^-1: LSMR lowers what it leaves of A^T at every step."""
        data, scale = self.data, 1.0 if root is None else root
        operator = LinearOperator(
            (t.size, data.D.size),
            matvec=lambda w: scale * data.forward(w),
            rmatvec=lambda s: data.adjoint(scale * s),
            dtype=np.float64,
        )
        return t - operator @ lsmr(operator, t, atol=tol, btol=0.0, conlim=0.0, maxiter=PROJECTION)[0]


@dataclass(frozen=True)
class Factored:
    """A D^-1 = Q T, T = R on independent columns; y = T c.  Q is orthonormal, whatever the condition of A."""

    Q: Vector
    T: Vector
    kept: Vector  # the independent columns
    b: Vector
    sigma: float  # the least singular value of R
    loose: float = 0.0  # a second projection costs nothing beside the first

    @property
    def R(self) -> Vector:
        """Upper triangular."""
        return self.T[:, self.kept]

    @classmethod
    def of(cls, data: ScaledFit) -> Factored:
        """QR without pivoting, which is fast; then with pivoting on the small factor, which tells the rank."""
        Q, T = np.linalg.qr((data.A.toarray() if is_sparse(data.A) else data.A) / data.D)
        P, S, order = scipy.linalg.qr(T, mode="economic", pivoting=True)
        diagonal = np.abs(S.diagonal())
        rank = int(np.count_nonzero(diagonal > max(data.A.shape) * data.precision * diagonal[0]))
        kept = np.arange(T.shape[1])
        if rank < T.shape[1]:
            Q, kept = Q @ P[:, :rank], order[:rank]
            T = S[:rank, np.argsort(order)]
        sigma = float(np.linalg.svd(T[:, kept], compute_uv=False).min(initial=math.inf))
        return cls(np.asfortranarray(Q), T, kept, data.b, sigma)

    def objective(self, loss: Loss, size: float) -> Affine:
        """phi((Qy - b)/size) as a function of y/size."""
        return Affine(loss, self.Q, self.b / size)

    def method(self) -> Any:
        """Newton's method in all coordinates."""
        return LpNewton(self.Q)

    def point(self, y: Vector) -> Vector:
        """c = R^-1 y on the columns kept, 0 on the others."""
        c = np.zeros(self.T.shape[1])
        c[self.kept] = scipy.linalg.solve_triangular(self.R, y)
        return c

    def shortest_solution(self, x: Vector, D: Vector) -> Vector:
        """The part of x in the row space of A: the shortest vector with the same image."""
        if self.kept.size == x.size:
            return x
        V, _ = np.linalg.qr((self.T * (D / D.max())).T)
        return V @ (V.T @ x)

    def start(self, descend: Descend) -> Vector:
        """Least squares; a second pass corrects the rounding of the first."""
        y = self.Q.T @ self.b
        return y + self.Q.T @ (self.b - self.Q @ y)

    def leftover(self, root: Vector | None, t: Vector, tol: float) -> Vector:
        """t minus its projection onto the range of root Q."""
        if root is None:
            return t - self.Q @ (self.Q.T @ t)
        W = root[:, None] * self.Q
        return t - W @ scipy.linalg.lstsq(W, t, lapack_driver="gelsy")[0]


@dataclass(frozen=True)
class LpNewton:
    """`hasd-subspace` with the whole space in its span from the start: images are the columns of Q, no product made."""

    Q: Vector = field(repr=False)
    name: str = "hasd-subspace"
    default_p: float = 2.0
    needs_images: bool = True

    @property
    def _method(self) -> HASDSubspace:
        return HASDSubspace(memory=max(4, self.Q.shape[1]))

    def init(self, problem: Problem, start: Evaluation) -> State:
        """The first state, its span full."""
        span = Span(_full_basis(np.eye(start.x.size)), _full_basis(self.Q))
        return replace(self._method.init(problem, start), span=span)

    def step(self, problem: Problem, state: State) -> State:
        """One iteration."""
        return self._method.step(problem, state)


def _full_basis(columns: Vector) -> Basis:
    """These columns as a basis with no room for more."""
    store = ColumnStore(0)
    store.array, store.room, store.used = columns, columns.shape[1], columns.shape[1]
    return Basis(store, store.used)


def _can_factor(A: Matrix) -> bool:
    """Whether A is small enough to be factored."""
    n, d = A.shape
    return d <= WHOLE and n * d <= ENTRIES


def _has_dependent_columns(data: ScaledFit) -> bool:
    """Whether the columns, if few enough to be factored, nearly depend on each other; judged by some rows."""
    A, (n, d) = data.A, data.A.shape
    if isinstance(A, LinearOperator) or d > WIDEST or n * d > ENTRIES:
        return False
    if is_sparse(A):  # a few sparse rows may miss a column; all rows cost little
        part = A @ scipy.sparse.diags_array(1.0 / data.D)
        squares = (part.T @ part).toarray()
    else:
        rows = A[:: max(1, n // (2 * d))] / data.D
        squares = rows.T @ rows
    size = np.sqrt(squares.diagonal())
    if not size.all():
        return True
    try:
        np.linalg.cholesky(squares / size / size[:, None] - NEARLY * np.eye(d))
    except np.linalg.LinAlgError:
        return True
    return False


def space_of(data: ScaledFit) -> LpColumns | Factored:
    """Factored where that is affordable, or there is no other way."""
    return Factored.of(data) if _can_factor(data.A) or _has_dependent_columns(data) else LpColumns(data)


def column_sizes(A: Matrix) -> Vector:
    """Powers of two near the norms of the columns, 1 for a column of zeros; one for all columns of an operator."""
    n, d = A.shape
    if isinstance(A, LinearOperator):
        pulled = apply(A.T, np.random.default_rng(0).standard_normal(n))
        return np.full(d, power_of_two(np.array([np.abs(pulled).max()]))[0])
    if is_sparse(A):
        tops = power_of_two(abs(A).max(axis=0).toarray().ravel())
        part = A @ scipy.sparse.diags_array(1.0 / tops)
        return tops * power_of_two(np.sqrt(np.asarray(part.multiply(part).sum(axis=0)).ravel()))
    tops = power_of_two(np.maximum(A.max(axis=0), -A.min(axis=0)))
    squares = sum(np.sum((A[i : i + BLOCK] / tops) ** 2, axis=0) for i in range(0, n, BLOCK))
    return tops * power_of_two(np.sqrt(squares))


def power_of_two(sizes: Vector) -> Vector:
    """The powers of two next to positive numbers, 1 for 0: dividing by them rounds nothing; 2^1023 is the largest."""
    return np.where(sizes > 0.0, np.ldexp(1.0, np.minimum(np.frexp(sizes)[1], 1023)), 1.0)


def norm(z: Vector, q: float) -> float:
    """||z||_q without over- or underflow."""
    top = float(np.abs(z).max())
    return top * float(np.sum(np.abs(z / top) ** q)) ** (1.0 / q) if 0.0 < top < math.inf else top


def magnitude(data: ScaledFit, c: Vector) -> Vector:
    """|A| |x| + |b|, row by row, whose last digits are what rounding takes off Ax - b; one product.

    The rows of an operator cannot be seen: |Ax| + |b| stands for it.
    """
    A, x, b = data.A, np.abs(c / data.D), np.abs(data.b)
    if isinstance(A, LinearOperator):
        return np.abs(data.forward(c)) + b
    data.nprod += 1
    if is_sparse(A):
        return abs(A) @ x + b
    return np.concatenate([np.abs(A[i : i + BLOCK]) @ x for i in range(0, len(b), BLOCK)]) + b
