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
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from scipy.sparse.linalg import LinearOperator, aslinearoperator, lsmr

from .._math.arrays import largest_size
from .._math.doubt import Doubt, Sizes
from .._math.evaluation import Evaluation
from .._math.geometry import norm2
from .._run.problem import Problem
from ..methods._span import Span
from ..methods.hasd_subspace import HASDSubspace, SubspaceState
from ..objectives._images import Basis
from ..objectives._loss import Loss
from ..objectives._operators import Matrix, Vector, apply, apply_to_columns, is_single, is_sparse
from ..objectives._sizes import DataSizes, MatrixSizes
from ..objectives.affine import Affine
from ..objectives.losses import SquareLoss
from ._matrices import (
    as_dense,
    blocks,
    largest_in_columns,
    magnitude,
    pivoted_qr,
    power_of_two,
    scale_columns,
    scale_rows,
)

WHOLE, ENTRIES = 512, 20_000_000
"""Columns, and entries, up to which A is factored: a Newton step in all its coordinates then costs n d^2."""
WIDEST, NEARLY = 1024, 1e-8
"""Up to WIDEST columns, A is also factored where they nearly depend on each other (a squared singular value below
NEARLY, for columns of norm 1): there iterations would take thousands of steps."""
REFINEMENTS = 12
"""Passes of least squares, at most; they go on while each gains a digit or more."""
PROJECTION = 2000
"""Iterations of LSMR, at most."""
ROOTED = 1.5
"""Where rows are multiplied by roots of weights, roundings are charged so many times: a root and an entry times it are
off by two units of the last place at most, and half of the eight that are charged for a sum are four."""
FAR = 2.0**900
"""Columns of sizes between this and its inverse can be computed with without overflow or underflow."""

Descend = Callable[[Affine, Vector, float, float], Vector]
"""Minimise an objective from a point until the gradient has fallen to a part, or to a number: the point reached."""


class ScaledFit(Affine):
    """phi(A D^-1 c - b): the columns of A divided by D, by products with A itself."""

    A: Matrix
    b: Vector

    def __init__(self, A: Matrix, b: Vector, roots: Vector | None = None) -> None:
        """Keep the data, rows of A times the roots; the loss is least squares until another one is posed.

        An operator that will be factored is written out, because its columns may differ in size.  Columns so small or
        so large that c/D may leave the range of numbers are lifted by powers of two, in a copy.
        """
        self.given, self.roots, products = A, roots, 0
        A = A if roots is None else scale_rows(A, roots)
        if isinstance(A, LinearOperator):
            products = A.shape[1] if _can_factor(A) else 1
            A = apply_to_columns(A, np.eye(A.shape[1])) if _can_factor(A) else A
        D = np.minimum(column_sizes(A), 2.0**1023)
        self.lift = np.ones_like(D) if isinstance(A, LinearOperator) else np.clip(D, 1.0 / FAR, FAR) / D
        if np.any(self.lift != 1.0):
            A = scale_columns(A, self.lift)
        super().__init__(SquareLoss(), A, b)
        self.D, self.nprod = D * self.lift, products
        self.row_sizes = cache(partial(row_sizes, A, self.D))  # the objectives of all stages share it

    def weigh(self, z: Vector) -> Vector:
        """A vector of rows times the roots of their weights."""
        return z if self.roots is None else self.roots * z

    @property
    def precision(self) -> float:
        """The precision of products with the A given: writing out a float32 operator does not improve it.

        Where rows are multiplied by roots of weights, what rounds these roots and products is counted too.
        """
        return (1.0 if self.roots is None else ROOTED) * (2.0**-23 if is_single(self.given) else 2.0**-52)

    def forward(self, x: Vector) -> Vector:
        """A D^-1 c; one product."""
        self.nprod += 1
        return apply(self.A, x / self.D)

    def adjoint(self, u: Vector) -> Vector:
        """D^-1 A^T u; one product."""
        self.nprod += 1
        return apply(self._AT, u) / self.D

    def sizes(self) -> DataSizes | None:
        """Those of A D^-1 and b; None for an operator."""
        rows = self.row_sizes()
        return None if rows is None else rows._replace(largest=largest_size(self.b))

    def sharpen(self, x: Vector, at: Sizes) -> tuple[float, Vector, Doubt] | None:
        """With an image computed in longer numbers, which takes A as it is."""
        return super().sharpen(x / self.D, at)

    def magnitude(self, c: Vector) -> Vector:
        """|A| |x| + |b|, row by row; one product.  The rows of an operator cannot be seen: |Ax| + |b| stands for it."""
        if isinstance(self.A, LinearOperator):
            return np.abs(self.forward(c)) + np.abs(self.b)
        self.nprod += 1
        return magnitude(self.A, c / self.D, self.b)


@dataclass(frozen=True)
class LpColumns:
    """The coordinates c themselves: for an A too large to factor, which is seen through products only."""

    data: ScaledFit
    sigma: float = 0.0  # a lower bound on the singular values that are not 0: not known here
    loose: float = 1e-4  # a relative gap above which a second projection in the dual is worth its products
    method: Any = "auto"

    def objective(self, loss: Loss, size: float) -> Affine:
        """phi((A D^-1 c - b)/size) as a function of c/size."""
        twin = copy.copy(self.data)
        twin.loss, twin.b, twin.nprod = loss, self.data.b / size, 0
        return twin

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
        shape, data = (t.size, self.data.D.size), self.data
        operator = LinearOperator(shape, matvec=data.forward, rmatvec=data.adjoint, dtype=np.float64)
        if root is not None:
            operator = aslinearoperator(scipy.sparse.diags_array(root)) @ operator
        return t - operator @ lsmr(operator, t, atol=tol, btol=0.0, conlim=0.0, maxiter=PROJECTION)[0]


@dataclass(frozen=True)
class Factored:
    """A D^-1 = Q T, T = R on independent columns; y = T c.  Q is orthonormal, whatever the condition of A."""

    Q: Vector
    T: Vector
    kept: Vector  # the independent columns
    b: Vector
    sigma: float  # the least singular value of R
    method: LpNewton
    loose: float = 0.0  # a second projection costs nothing beside the first

    @classmethod
    def of(cls, data: ScaledFit) -> Factored:
        """QR without pivoting, which is fast; then with pivoting on the small factor, which tells the rank."""
        Q, T = np.linalg.qr(as_dense(data.A) / data.D)
        P, S, order, rank = pivoted_qr(T, max(data.A.shape) * data.precision)
        kept = np.arange(T.shape[1])
        if rank < T.shape[1]:
            Q, kept = Q @ P[:, :rank], order[:rank]
            T = S[:rank, np.argsort(order)]
        sigma = float(np.linalg.svd(T[:, kept], compute_uv=False).min(initial=math.inf))
        basis = Basis.from_parts(Q, rank)
        return cls(basis.columns, T, kept, data.b, sigma, LpNewton(basis=basis, memory=max(4, rank)))

    def objective(self, loss: Loss, size: float) -> Affine:
        """phi((Qy - b)/size) as a function of y/size."""
        return Affine(loss, self.Q, self.b / size)

    def point(self, y: Vector) -> Vector:
        """c = R^-1 y on the columns kept, 0 on the others."""
        c = np.zeros(self.T.shape[1])
        c[self.kept] = scipy.linalg.solve_triangular(self.T[:, self.kept], y)
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
class LpNewton(HASDSubspace):
    """`hasd-subspace` with the whole space in its span from the start: images are the columns of Q, no product made."""

    basis: Basis = field(kw_only=True, repr=False)
    keeps_images: ClassVar[bool] = False

    @staticmethod
    def finish(problem: Problem, e: Evaluation) -> Evaluation:
        """Nothing is evaluated anew: `Fit.look` computes the answer from the data."""
        return e

    def init(self, problem: Problem, start: Evaluation) -> SubspaceState:
        """The first state, its span full."""
        unit = Basis.from_parts(np.eye(self.basis.k), self.basis.k)
        return replace(super().init(problem, start), span=Span(unit, self.basis))


def _can_factor(A: Matrix) -> bool:
    """Whether A is small enough to be factored."""
    n, d = A.shape
    return d <= WHOLE and n * d <= ENTRIES


def _has_dependent_columns(data: ScaledFit) -> bool:
    """Whether the columns, if few enough to be factored, nearly depend on each other; judged by some rows."""
    A, (n, d) = data.A, data.A.shape
    if isinstance(A, LinearOperator) or d > WIDEST or n * d > ENTRIES:
        return False
    # A few sparse rows may miss a column; all rows cost little.
    part = scale_columns(A if is_sparse(A) else A[:: max(1, n // (2 * d))], 1.0 / data.D)
    squares = as_dense(part.T @ part)
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


def row_sizes(A: Matrix, D: Vector) -> DataSizes | None:
    """The sizes of the rows of A D^-1, block by block without a copy of A; None for an operator."""
    if isinstance(A, LinearOperator):
        return None
    scaled = (MatrixSizes(scale_columns(rows, 1.0 / D), None).affine for rows in blocks(A))
    return DataSizes(*map(max, zip(*scaled, strict=True)))


def column_sizes(A: Matrix) -> Vector:
    """Powers of two near the norms of the columns, 1 for a column of zeros; one for all columns of an operator."""
    n, d = A.shape
    if isinstance(A, LinearOperator):
        pulled = apply(A.T, np.random.default_rng(0).standard_normal(n))
        return np.full(d, power_of_two(np.array([np.abs(pulled).max()]))[0])
    tops = power_of_two(largest_in_columns(A))
    if is_sparse(A):
        return tops * power_of_two(scipy.sparse.linalg.norm(scale_columns(A, 1.0 / tops), axis=0))
    return tops * power_of_two(np.sqrt(sum(np.sum((rows / tops) ** 2, axis=0) for rows in blocks(A))))
