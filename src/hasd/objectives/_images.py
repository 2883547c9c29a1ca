"""What a method may do with vectors of length n, without ever seeing one.

The images z = Ax - b of an affine objective are opaque to a method: it asks for the operations below, and only
scalars, vectors of length d and k x k matrices come back.  Here the rows of A are in this process; an objective whose
rows live elsewhere brings another class with the same operations.  They are called inside the loop, which lets
overflow give inf without a warning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from array_api_compat import device

from .._math.arrays import (
    Array,
    convert_like,
    is_foreign,
    largest_size,
    namespace,
    to_numpy,
    vanishes,
    write_into,
    zeros,
)
from .._math.geometry import dot
from ._loss import AnyExpansion, Expansion
from ._operators import Vector, apply, is_sparse, row_blocks
from .losses import SquareLoss

BLOCK = 1024
"""Rows of a matrix that are weighted at a time: a temporary of so many rows stays in cache."""
WIDE = 2**16
"""The same for other libraries, where a call to a device is expensive."""
SPARSE_PRICE = 64.0
"""What a multiplication costs in a product of sparse matrices, in those of a product of dense ones (measured)."""

Image = Any
"""A vector of length n, wherever its parts are."""
Small = np.ndarray[Any, Any]
"""A vector of length k or a k x k matrix: NumPy's, whatever library the images are of."""


@dataclass(frozen=True)
class Point:
    """An image z = Ax - b with phi expanded there."""

    z: Image
    value: float  # phi(z)
    expansion: AnyExpansion | Any  # slope and curvature, or whatever another space of images keeps


NUMPY = np.zeros(0)
"""A model for arrays of NumPy."""


class ColumnStore:
    """Columns of a basis: an append-only buffer that several versions of it share."""

    def __init__(self, room: int, rows: int = 0, model: Array = NUMPY):
        """Room for so many columns; the array is made with the first one, which sets its length and library."""
        self.room, self.used = room, 0
        if type(model) is np.ndarray:
            array = np.empty((room, rows))
        else:
            xp = namespace(model)
            array = xp.empty((room, rows), dtype=xp.float64, device=device(model))
        self.array = array.T  # .T: columns are contiguous

    def fill(self, start: int, columns: Array) -> Basis:
        """Write the columns from `start` on; the basis that ends with them."""
        self.used = start + columns.shape[1]
        if self.used > start:
            self.array = write_into(self.array, (slice(None), slice(start, self.used)), columns)
        return Basis(self, self.used)


@dataclass(frozen=True)
class Basis:
    """The first k columns of a store.  Appending to an old version copies: versions never change."""

    store: ColumnStore
    k: int

    def to_parts(self) -> dict[str, Any]:
        """Its columns and its room, without the buffer that it shares with later versions."""
        return {"columns": self.columns, "room": self.store.room}

    @classmethod
    def from_parts(cls, columns: Array, room: int) -> Basis:
        """These columns, with room for so many."""
        return ColumnStore(room, columns.shape[0], columns).fill(0, columns)

    @property
    def columns(self) -> Array:
        """The columns, n x k, not copied."""
        return self.store.array[:, : self.k]

    def append(self, column: Vector) -> Basis:
        """One column more."""
        store = self.store
        n = column.shape[0]
        if store.used != self.k or self.k == store.room or store.array.shape[0] != n:
            store = ColumnStore(max(store.room, self.k + 1), n, column)
            store.fill(0, self.columns)
        return store.fill(self.k, column[:, None])

    def rotate(self, Q: Small) -> Basis:
        """The columns times Q: another basis of the same span, or of a part of it."""
        W, k = self.columns, Q.shape[1]
        store = ColumnStore(self.store.room, W.shape[0], W)
        if type(W) is not np.ndarray:
            return store.fill(0, W @ convert_like(Q, W))
        np.matmul(W, Q, out=store.array[:, :k])
        store.used = k
        return Basis(store, k)

    def expand(self, step: Small) -> Array:
        """The combination of the columns with these coordinates."""
        W = self.columns
        return W @ convert_like(step, W)

    def inner_products(self, vector: Array) -> Small:
        """The inner products of the columns with a vector."""
        return to_numpy(self.columns.T @ vector) if self.k else np.zeros(0)


class Images(Protocol):
    """The operations of a space of images; those on bases are for images that this process holds as arrays."""

    objective: Any  # makes and counts the products

    @property
    def settles(self) -> bool:
        """Whether phi is itself a minimum, over intercepts, which `settle` finds."""
        return False

    @property
    def constant(self) -> bool:
        """Whether phi'' is the same everywhere: f is quadratic."""
        return type(self.objective.loss) is SquareLoss  # a subclass may be another function

    @property
    def width(self) -> float:
        """How far entries of z may move before the curvature is another one; inf where the loss does not say."""
        return math.inf

    def soften(self, factor: float) -> Self:
        """The same images with a loss that is so many times as wide; asked for only where the width is finite."""
        return self

    def expand_again(self, point: Point) -> Point:
        """A point whose loss was softer, or less soft, expanded by the loss of these images."""
        return point

    def at(self, x: Vector) -> Point:
        """z = Ax - b, expanded; one product."""

    def gradient(self, point: Point) -> Vector:
        """A^T phi'(z); one product."""

    def multiply(self, q: Vector) -> Image:
        """A q; one product."""
        return self.objective.forward(q)

    def basis(self, columns: int) -> Any:
        """An empty basis with room for so many images."""
        return Basis(ColumnStore(columns), 0)

    def append(self, basis: Any, image: Image) -> Any:
        """The basis with one image more."""
        return basis.append(image)

    def rotate(self, basis: Any, Q: Small) -> Any:
        """The basis W Q."""
        return basis.rotate(Q)

    def expand(self, basis: Any, step: Small) -> Image:
        """W step."""
        return basis.expand(step)

    def slopes(self, basis: Any, point: Point) -> Small:
        """W^T phi'(z)."""

    def bends(self, basis: Any, point: Point) -> Small:
        """W^T phi''(z) W."""

    def hessian(self, point: Point) -> Small:
        """A^T phi''(z) A."""

    def along(self, point: Point, direction: Image) -> Image:
        """What z moves along, to first order, where Ax - b moves along the direction."""
        return direction

    def move(self, point: Point, direction: Image, t: float) -> tuple[Point, float]:
        """The point z + t direction, and the derivative along the direction there, before it is settled."""

    def settle(self, point: Point) -> Point:
        """The point that a move has led to, with phi itself expanded there; its value is NaN where that fails."""
        return point

    def bend(self, point: Point, direction: Image) -> float:
        """The second derivative of phi along the direction."""

    def reach(self, point: Point, direction: Image) -> float:
        """max(1, max|z|) / max|direction|: how far z may go before it has moved by its own size."""
        far = largest_size(direction)
        return max(1.0, largest_size(point.z)) / far if far > 0.0 else math.inf

    def distance(self, one: Image, other: Image) -> float:
        """max|one - other| / max(1, max|one|)."""
        return largest_size(one - other) / max(1.0, largest_size(one))


@dataclass(frozen=True)
class LocalImages(Images):
    """Rows of A in this process."""

    objective: Any  # an Affine, which makes and counts the products
    softer: Any = None  # a loss in place of the objective's own

    @property
    def loss(self) -> Any:
        """The loss that is expanded."""
        return self.objective.loss if self.softer is None else self.softer

    @property
    def width(self) -> float:
        """That of the loss."""
        return float(getattr(self.loss, "width", math.inf))

    def soften(self, factor: float) -> LocalImages:
        """The same images with a loss that is so many times as wide."""
        return LocalImages(self.objective, self.loss.soften(factor))

    def expand_again(self, point: Point) -> Point:
        """The same image, with this loss."""
        return self._point(point.z)

    def at(self, x: Vector) -> Point:
        """z = Ax - b, expanded; no product at x = 0."""
        if self.objective.A is not None and vanishes(x):
            b = self.objective.b
            return self._point(zeros(self.objective.rows, x) if b is None else -b)
        return self._point(self.objective.image(x))

    def _point(self, z: Vector) -> Point:
        expansion: Expansion = self.loss.expand(z)
        return Point(z, expansion.value, expansion)

    def gradient(self, point: Point) -> Vector:
        """A^T phi'(z)."""
        return self.objective.adjoint(point.expansion.slope)

    def slopes(self, basis: Basis, point: Point) -> Small:
        """W^T phi'(z)."""
        slope, places = point.expansion.slope, point.expansion.places
        return basis.inner_products(slope) if places is None else basis.columns[places].T @ slope[places]

    def bends(self, basis: Basis, point: Point) -> Small:
        """The Hessian of phi in the coordinates of the basis."""
        return _combine(*self.bends_parts(basis, point), point.expansion.scale)

    def bends_parts(self, basis: Basis, point: Point) -> tuple[Small, Small]:
        """W^T Diag(diagonal) W, and W^T rank_one, 0 where there is none."""
        return _bends_parts(basis.columns, point.expansion)

    def hessian(self, point: Point) -> Small:
        """A^T phi''(z) A, by no products that are counted."""
        return _combine(*self.hessian_parts(point), point.expansion.scale)

    def hessian_parts(self, point: Point) -> tuple[Small, Small]:
        """A^T Diag(diagonal) A and A^T rank_one."""
        return _bends_parts(self.objective.A, point.expansion)

    def move(self, point: Point, direction: Image, t: float) -> tuple[Point, float]:
        """z + t direction; the derivative along it."""
        z = direction * t
        z += point.z
        there = self._point(z)
        return there, dot(there.expansion.slope, direction)

    def bend(self, point: Point, direction: Image) -> float:
        """The second derivative along the direction."""
        bend, along = self.bend_parts(point, direction)
        return point.expansion.scale * (bend - along * along)

    def bend_parts(self, point: Point, direction: Image) -> tuple[float, float]:
        """The same two parts along one direction."""
        diagonal, rank_one = point.expansion.diagonal, point.expansion.rank_one
        return dot(diagonal, direction * direction), 0.0 if rank_one is None else dot(rank_one, direction)


def _bends_parts(W: Any, expansion: Expansion) -> tuple[Small, Small]:
    """W^T Diag(diagonal) W, and W^T rank_one, 0 where there is none."""
    diagonal, rank_one = expansion.diagonal, expansion.rank_one
    if expansion.places is not None:  # softmax with a small alpha: few rows carry all the curvature
        W, diagonal = W[expansion.places], diagonal[expansion.places]
        rank_one = None if rank_one is None else rank_one[expansion.places]
    H = weighted_gram(W, diagonal)
    return H, np.zeros(len(H)) if rank_one is None else to_numpy(apply(W.T, rank_one))


def _combine(H: Small, r: Small, scale: float) -> Small:
    """scale (H - r r^T), written into H."""
    if r.any():
        H -= np.outer(r, r)
    H *= scale
    return H


def weighted_gram(W: Any, weights: Vector) -> Small:
    """W^T Diag(weights) W for weights that are not negative, block by block."""
    n, k = W.shape
    if is_sparse(W):
        counts = np.diff(W.tocsr().indptr).astype(float)
        if SPARSE_PRICE * float(counts @ counts) < 0.5 * n * k * k:
            return np.asarray((W.T @ W.multiply(weights[:, None]).tocsr()).todense(), dtype=np.float64)
    H = np.zeros((k, k))
    for part in row_blocks((n, 1), WIDE if is_foreign(weights) else BLOCK):
        rows = W[part].toarray() if is_sparse(W) else W[part, :]
        rows = rows * namespace(weights).sqrt(weights[part])[:, None]  # in float64, as the weights are
        H += to_numpy(rows.T @ rows)  # NumPy sees the symmetry, and does half of the work
    return H
