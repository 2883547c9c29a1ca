"""What a worker does: the rows of one block, and the plan of one round carried out on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._math.arrays import largest_size
from ..objectives._images import Basis, LocalImages, Point, Small
from ..objectives._loss import Loss
from ..objectives._operators import Vector, apply_to_columns, is_sparse, precision, quiet
from ..objectives._sizes import DataSizes
from ..objectives.affine import Affine
from ..objectives.losses import LogisticLoss, LogSumExpLoss, SymmetricSoftmaxLoss


@dataclass(frozen=True, slots=True)
class Act:
    """One operation of a round."""

    name: str  # of an entry of OPERATIONS, or of a method of `LocalImages`
    on: tuple[tuple[int, int], ...]  # its operands: which bundle (-1: the new one), which place in it
    arguments: tuple[Any, ...]  # what the client sends with it


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """One round: what is done on every block, given bundles of earlier rounds."""

    make: tuple[Act, ...]  # new values, a bundle of them
    reads: int  # how many bundles, from the first on, they are made from (again after a loss)
    tell: tuple[Act, ...]  # what goes back to the client, from all bundles and the new one
    keep: bool  # whether the new bundle stays


@dataclass(frozen=True)
class Facts:
    """What the client knows of a block."""

    rows: int
    columns: int
    entries: float  # that a product handles
    precision: float  # of products
    note: str
    data: DataSizes | None  # by which rounding is judged


class Block(Affine):
    """Some rows of A with their loss; Dask asks how large it is before it moves it."""

    def __sizeof__(self) -> int:
        """Bytes of A and b."""
        return nbytes(self.A) + nbytes(self.b)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a round made on one block; Dask asks how large it is, too."""

    values: tuple[Any, ...]

    def __sizeof__(self) -> int:
        """Bytes of the images in it."""
        return sum(map(nbytes, self.values))


def nbytes(value: Any) -> int:
    """Bytes behind a matrix, an image, a point or a basis."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, Basis):
        return int(value.store.array.nbytes)
    if isinstance(value, Point):
        return 4 * nbytes(value.z)
    if is_sparse(value):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    return 8 * math.prod(value.shape) if isinstance(value, LinearOperator) else 64


def call_maker(make: Callable[[], Any], number: int) -> Any:
    """What a user's function makes; where it fails, the error says for which block."""
    try:
        return make()
    except Exception as error:
        error.add_note(f"hasd.dask: this was the function that makes block {number}")
        raise


def block(loss: Loss | type, made: Any, b: Vector | None, number: int) -> Block:
    """The rows, or the pair of rows and right-hand side, that a user's function made; checked."""
    A, own = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if own is not None and b is not None:
        raise ValueError(f"block {number} brings a right-hand side of its own: b must not be given too")
    b = own if b is None else b
    try:
        if loss is LogisticLoss and b is None:
            raise ValueError("the class LogisticLoss needs labels: give blocks that are pairs (A, y), or give b")
        return Block(loss, A, b)
    except (TypeError, ValueError) as error:
        raise type(error)(f"block {number}: {error}") from None


def length(made: Any) -> int:
    """How many rows a user's function made."""
    A = made[0] if isinstance(made, tuple) and len(made) == 2 else made
    shape = np.shape(A) if not hasattr(A, "shape") else A.shape
    return int(shape[0]) if len(shape) else 0


def facts(rows: Block) -> Facts:
    """What the client has to know."""
    assert rows.A is not None
    n, d = rows.A.shape
    return Facts(n, d, n * rows.row_cost, rows.precision, rows.note, rows.sizes())


@quiet
def make(rows: Block, *bundles: Bundle, acts: tuple[Act, ...]) -> Bundle:
    """New values on one block."""
    images = LocalImages(rows.with_own_counter())
    values: list[Any] = []
    known = [*(bundle.values for bundle in bundles), values]
    for act in acts:
        values.append(_perform(images, act, known))
    return Bundle(tuple(values))


@quiet
def tell(rows: Block, *bundles: Bundle, acts: tuple[Act, ...]) -> tuple[Any, ...]:
    """The answers for the client; the last bundle is the new one."""
    images, known = LocalImages(rows.with_own_counter()), [bundle.values for bundle in bundles]
    return tuple(_perform(images, act, known) for act in acts)


def make_and_tell(rows: Block, *bundles: Bundle, plan: BlockPlan) -> tuple[Bundle | None, tuple[Any, ...]]:
    """A whole round on one block: new values, which are returned if they stay, and answers to questions about them."""
    new = make(rows, *bundles[: plan.reads], acts=plan.make)
    return new if plan.keep else None, tell(rows, *bundles, new, acts=plan.tell)


def _perform(images: LocalImages, act: Act, known: Sequence[Sequence[Any]]) -> Any:
    operation: Callable[..., Any] = OPERATIONS.get(act.name) or getattr(LocalImages, act.name)
    return operation(images, *[known[which][place] for which, place in act.on], *act.arguments)


def _vector(value: Any) -> Vector:
    """The vector of an image, or of a point with its image."""
    return value.z if isinstance(value, Point) else value


def _renew(images: LocalImages, origins: Small) -> Basis:
    """The images of these directions, from products of their own."""
    A = images.objective.A
    operator = isinstance(A, LinearOperator)
    columns = apply_to_columns(A, origins) if operator else A @ origins.astype(precision(A), copy=False)
    return Basis.from_parts(columns, origins.shape[1] + 2)


def _bends(images: LocalImages, basis: Basis, point: Point) -> tuple[Small, Small]:
    """phi'' in the coordinates of the basis; its rank-one part is separate: blocks are summed before squaring."""
    if basis.k == 0:  # an empty basis does not know the length of an image
        return np.zeros((0, 0)), np.zeros(0)
    return _scale(point, *images.bends_parts(basis, point))


def _scale(point: Point, bends: Any, along: Any) -> tuple[Any, Any]:
    """The two parts of phi'' with the scale multiplied in."""
    return point.expansion.scale * bends, math.sqrt(point.expansion.scale) * along


def _dual_sizes(images: LocalImages, point: Point) -> tuple[float, float, float]:
    """||u||^2, ||Ax||^2 and <|u|, |z| + |b|> at u = phi'(z), from which the rounding in a bound is estimated."""
    u, b = point.expansion.slope, images.objective.b
    image, entries = (point.z, np.abs(point.z)) if b is None else (point.z + b, np.abs(point.z) + np.abs(b))
    return float(u @ u), float(image @ image), float(np.abs(u) @ entries)


def _smoothness(images: LocalImages, p: float) -> float:
    """L_p of the block; for log-sum-exp, whose L_p needs pairs of rows of all blocks, the bound max ||a_i||^2/alpha."""
    loss = images.objective.loss
    loss = SymmetricSoftmaxLoss(loss.alpha) if isinstance(loss, LogSumExpLoss) else loss
    return float(loss.smoothness(images.objective.A, p))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "append": lambda images, basis, image: basis.append(_vector(image)),
    "renew": _renew,
    "move": lambda images, point, direction, t: images.move(point, direction, t)[0],
    "value": lambda images, point: point.value,
    "bends": _bends,
    "hessian": lambda images, point: _scale(point, *images.hessian_parts(point)),
    "bend": lambda images, point, direction: _scale(point, *images.bend_parts(point, direction)),
    "along": lambda images, point, direction: float(point.expansion.slope @ direction),
    "size": lambda images, image: largest_size(_vector(image)),
    "apart": lambda images, one, other: largest_size(_vector(one) - _vector(other)),
    "dual sizes": _dual_sizes,
    "smoothness": _smoothness,
}
"""What a block does that is no method of `LocalImages`, or differs from it where blocks are put together."""
