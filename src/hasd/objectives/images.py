"""What a method may do with vectors of length n, without ever seeing one.

The images z = Ax - b of an affine objective are opaque to a method: it asks for the operations below, and only
scalars, vectors of length d and k x k matrices come back.  Here the rows of A are in this process; an objective whose
rows live elsewhere brings another class with the same operations.  They are called inside the loop, which lets
overflow give inf without a warning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hasd.objectives.losses import Expansion, Loss, SquareLoss
from hasd.objectives.operators import Vector

BLOCK = 1024
"""Rows of a basis that are weighted at a time: a temporary of so many rows stays in cache."""

Image = Any
"""A vector of length n, wherever its parts are."""
Small = np.ndarray[Any, Any]
"""A vector of length k, a k x k matrix, or a vector of length d."""


@dataclass(frozen=True)
class Point:
    """An image z = Ax - b with phi expanded there."""

    z: Image
    value: float  # phi(z)
    expansion: Any  # slope and curvature, opaque


class Images(Protocol):
    """The operations of a space of images."""

    @property
    def constant(self) -> bool:
        """Whether phi'' is the same everywhere: f is quadratic."""
        ...

    def at(self, x: Vector) -> Point:
        """z = Ax - b, expanded; one product."""
        ...

    def gradient(self, point: Point) -> Vector:
        """A^T phi'(z); one product."""
        ...

    def multiply(self, q: Vector) -> Image:
        """A q; one product."""
        ...

    def combine(self, *terms: tuple[float, Image]) -> Image:
        """The linear combination of images."""
        ...

    def basis(self, columns: int) -> Any:
        """An empty basis with room for so many images."""
        ...

    def append(self, basis: Any, image: Image) -> Any:
        """The basis with one image more."""
        ...

    def rotate(self, basis: Any, Q: Small) -> Any:
        """The basis W Q."""
        ...

    def expand(self, basis: Any, step: Small) -> Image:
        """W step."""
        ...

    def slopes(self, basis: Any, point: Point) -> Small:
        """W^T phi'(z)."""
        ...

    def bends(self, basis: Any, point: Point) -> Small:
        """W^T phi''(z) W."""
        ...

    def move(self, point: Point, direction: Image, t: float) -> tuple[Point, float]:
        """The point z + t direction, and the derivative of phi along the direction there."""
        ...

    def bend(self, point: Point, direction: Image) -> float:
        """The second derivative of phi along the direction."""
        ...

    def reach(self, point: Point, direction: Image) -> float:
        """max(1, max|z|) / max|direction|."""
        ...

    def distance(self, one: Image, other: Image) -> float:
        """The largest difference of two images, relative to the size of the first."""
        ...


class Store:
    """Columns of a basis: an append-only buffer that several versions of it share."""

    def __init__(self, room: int, rows: int = 0):
        """Room for so many columns, none in use; made when the first one says how long they are."""
        self.room = room
        self.array = np.empty((rows, room), order="F")
        self.used = 0


@dataclass(frozen=True)
class Basis:
    """The first k columns of a store.  Appending to an old version copies: versions never change."""

    store: Store
    k: int

    @property
    def columns(self) -> np.ndarray:
        """The columns, n x k, not copied."""
        return self.store.array[:, : self.k]

    def append(self, column: Vector) -> Basis:
        """One column more."""
        store = self.store
        if store.used != self.k or self.k == store.room or len(store.array) != len(column):
            store = Store(max(store.room, self.k + 1), len(column))
            store.array[:, : self.k] = self.columns if self.k else 0.0
        store.array[:, self.k] = column
        store.used = self.k + 1
        return Basis(store, store.used)

    def rotate(self, Q: Small) -> Basis:
        """Other columns of the same span or less."""
        store = Store(self.store.room, len(self.store.array))
        store.used = Q.shape[1]
        np.matmul(self.columns, Q, out=store.array[:, : store.used])
        return Basis(store, store.used)


class Columns:
    """Images held in this process as columns of an array: what all such spaces share."""

    def combine(self, *terms: tuple[float, Image]) -> Image:
        """The sum of c z over the terms."""
        (c, z), *rest = terms
        total = c * z
        for c, z in rest:
            total += c * z
        return total

    def basis(self, columns: int) -> Basis:
        """An empty basis."""
        return Basis(Store(columns), 0)

    def append(self, basis: Basis, image: Image) -> Basis:
        """One image more."""
        return basis.append(image)

    def rotate(self, basis: Basis, Q: Small) -> Basis:
        """W Q."""
        return basis.rotate(Q)

    def expand(self, basis: Basis, step: Small) -> Image:
        """W step."""
        return basis.columns @ step


@dataclass(frozen=True)
class LocalImages(Columns):
    """Rows of A in this process."""

    objective: Any  # an Affine, which makes and counts the products

    @property
    def constant(self) -> bool:
        """Least squares."""
        return isinstance(self._loss, SquareLoss)

    @property
    def _loss(self) -> Loss:
        return self.objective.loss

    def at(self, x: Vector) -> Point:
        """z = Ax - b, expanded; no product at x = 0."""
        if not x.any() and self.objective.A is not None:
            b, n = self.objective.b, self.objective.A.shape[0]
            return self._point(np.zeros(n) if b is None else -b)
        return self._point(self.objective.image(x))

    def _point(self, z: Vector) -> Point:
        expansion: Expansion = self._loss.expand(z)
        return Point(z, expansion.value, expansion)

    def gradient(self, point: Point) -> Vector:
        """A^T phi'(z)."""
        return self.objective.adjoint(point.expansion.slope)

    def multiply(self, q: Vector) -> Vector:
        """A q."""
        return self.objective.forward(q)

    def slopes(self, basis: Basis, point: Point) -> Small:
        """W^T phi'(z)."""
        return basis.columns.T @ point.expansion.slope if basis.k else np.zeros(0)

    def bends(self, basis: Basis, point: Point) -> Small:
        """The Hessian of phi in the coordinates of the basis, block by block."""
        W, expansion = basis.columns, point.expansion
        diagonal, rank_one = expansion.diagonal, expansion.rank_one
        alive = np.flatnonzero(diagonal)
        if 4 * alive.size < diagonal.size:  # softmax with a small alpha: few rows carry all the curvature
            W, diagonal = W[alive], diagonal[alive]
            rank_one = None if rank_one is None else rank_one[alive]
        H = np.zeros((basis.k, basis.k))
        for start in range(0, W.shape[0], BLOCK):
            rows = W[start : start + BLOCK]
            H += rows.T @ (diagonal[start : start + BLOCK, None] * rows)
        if rank_one is not None:
            r = W.T @ rank_one
            H -= np.outer(r, r)
        return expansion.scale * H

    def move(self, point: Point, direction: Image, t: float) -> tuple[Point, float]:
        """z + t direction; the derivative along it."""
        z = direction * t
        z += point.z
        there = self._point(z)
        return there, float(there.expansion.slope @ direction)

    def bend(self, point: Point, direction: Image) -> float:
        """The second derivative along the direction."""
        seen: Expansion = point.expansion
        bend = float(seen.diagonal @ (direction * direction))
        if seen.rank_one is not None:
            along = float(seen.rank_one @ direction)
            bend -= along * along
        return seen.scale * bend

    def reach(self, point: Point, direction: Image) -> float:
        """How far z may go before it has moved by its own size."""
        far = size(direction)
        return max(1.0, size(point.z)) / far if far > 0.0 else math.inf

    def distance(self, one: Image, other: Image) -> float:
        """max|one - other| / max(1, max|one|)."""
        return size(one - other) / max(1.0, size(one))


def size(z: Vector) -> float:
    """max|z|, without a temporary."""
    return max(float(z.max()), -float(z.min()))
