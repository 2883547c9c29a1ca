"""The space of images of an objective in blocks: what a method asks for is put off until a number is wanted.

An image, a point or a basis is a `Remote`: how it is made, until a round has made it on every block.  Questions that
a method is about to ask are asked together with the one that it does ask, where the answer costs a pass over n:

    slopes      with the curvature in the same coordinates (Newton's step wants both)
    reach       with the look at t = 1, where a search begins
    move        with value, slope and curvature along the direction, and the slopes in the basis it came from

Where a loss is possible, the client also knows the vectors of length d that points and bases are images of: so that
not too much has to be remade, they are made anew from those after so many moves or rotations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..objectives._images import Basis, Images, Point, Small
from ..objectives._operators import Vector
from .blocks import Act, BlockPlan

RENEW = 8
"""Rotations of a basis after which its images are computed again from the directions: one product a column."""
LONG = 64
"""Moves of a point after which its image is computed again: one product, together with the next gradient."""


Origin = Callable[[], Vector]
"""Computes the vector that an image belongs to, once and only when it is called: most trial points are dropped.
It must not hold a reference to an image."""


class Remote:
    """A value on every block."""

    def __init__(self, name: str, *operands: Any, origin: Any = None, turns: int = 0):
        """Note how the value is made, from others and from arguments; nothing is computed yet."""
        self.name, self.operands = name, operands
        self.origin = origin  # what it is the image of: an Origin, of a basis a Basis of vectors; None: not known
        self.turns = turns  # rotations of a basis, moves of a point since its image came from products
        self.bundles: list[Any] | None = None  # where it is, once it is made, and at which place there
        self.place = 0
        self.source: Remote | None = operands[0] if name == "expand" else None  # the basis that a direction came from
        self._known: WeakKeyDictionary[Remote, dict[Any, Any]] = WeakKeyDictionary()

    @property
    def on(self) -> tuple[Remote, ...]:
        """The values that it is made from."""
        return _remotes(self.operands)

    def answers_with(self, other: Remote) -> dict[Any, Any]:
        """Known answers about this value and another, which is held by a weak reference."""
        return self._known.setdefault(other, {})

    def mark_made(self, bundles: list[Any], place: int) -> None:
        """Note where the value is, and drop the references to what it was made from."""
        self.bundles, self.place, self.operands = bundles, place, ()


Question = tuple[Any, ...]
"""The name of what to tell, the values it is told of, and arguments of other kinds."""


@dataclass(frozen=True)
class BlockImages(Images):
    """Rows of A in blocks."""

    objective: Any  # a BlockAffine, which knows the blocks and counts rounds and products

    def ask(self, *questions: Question, keep: bool = True) -> list[tuple[Any, ...]]:
        """One round: for every question the blocks' answers, in their order; with `keep`, new values stay there."""
        wanted: dict[Remote, None] = {}
        _add_in_order(wanted, _remotes(r for question in questions for r in question))
        pending = [remote for remote in wanted if remote.bundles is None]
        read = [r for remote in pending for r in remote.on if r.bundles is not None]
        made = [*read, *(r for r in wanted if r.bundles is not None)]
        bundles = {id(r.bundles): r.bundles for r in made}  # those that are read come first
        which = {key: i for i, key in enumerate(bundles)}
        places = {r: (which[id(r.bundles)], r.place) for r in made}
        places |= {remote: (-1, place) for place, remote in enumerate(pending)}
        make = tuple(_act(places, r.name, *r.operands) for r in pending)
        tell = tuple(_act(places, *question) for question in questions)
        plan = BlockPlan(make, len({id(r.bundles) for r in read}), tell, keep and bool(make))
        self.objective.rounds += 1
        kept, told = self.objective.pool.round(self.objective.blocks, list(bundles.values()), plan)
        for place, remote in enumerate(pending if keep else ()):
            remote.mark_made(kept, place)
        return list(zip(*told, strict=True))

    def _sum(self, point: Point, parts: Sequence[Any]) -> Any:
        return self.objective.mixture.total(point.expansion, parts)

    def _origin(self, compute: Origin) -> Origin | None:
        return cache(compute) if self.objective.pool.remakes else None

    def at(self, x: Vector) -> Point:
        """z = Ax - b; no product at x = 0."""
        self.objective.nprod += bool(x.any())
        z = Remote("at", x, origin=self._origin(lambda: x))
        (values,) = self.ask(("value", z))
        return Point(z, *self.objective.mixture.weigh(values))

    def gradient(self, point: Point) -> Vector:
        """A^T phi'(z); where the point has moved often, its image is computed again first."""
        self.objective.nprod += 1
        z = point.z
        if z.origin is not None and z.turns >= LONG:
            self.objective.nprod += 1
            z.name, z.operands, z.bundles, z.turns = "at", (z.origin(),), None, 0
        return self._sum(point, self.ask(("gradient", z))[0])

    def multiply(self, q: Vector) -> Remote:
        """A q."""
        self.objective.nprod += 1
        return Remote("multiply", q, origin=self._origin(lambda: q))

    def basis(self, columns: int) -> Remote:
        """An empty basis."""
        return Remote("basis", columns, origin=super().basis(columns) if self.objective.pool.remakes else None)

    def append(self, basis: Remote, image: Remote) -> Remote:
        """One image more."""
        known = basis.origin is not None and image.origin is not None
        origin = basis.origin.append(image.origin()) if known else None
        return Remote("append", basis, image, origin=origin, turns=basis.turns)

    def rotate(self, basis: Remote, Q: Small) -> Remote:
        """W Q; after `RENEW` rotations computed from the directions themselves, one product each."""
        origin: Basis | None = None if basis.origin is None else basis.origin.rotate(Q)
        if origin is None or basis.turns + 1 < RENEW:
            return Remote("rotate", basis, Q, origin=origin, turns=basis.turns + 1)
        self.objective.nprod += origin.k
        return Remote("renew", np.array(origin.columns), origin=origin)

    def expand(self, basis: Remote, step: Small) -> Remote:
        """W step."""
        S = basis.origin
        return Remote("expand", basis, step, origin=None if S is None else cache(lambda: S.columns @ step))

    def slopes(self, basis: Remote, point: Point) -> Small:
        """W^T phi'(z); the curvature, which is asked for next, is fetched in the same round."""
        known = point.z.answers_with(basis)
        if "slopes" not in known:
            slopes, bends = self.ask(("slopes", basis, point.z), ("bends", basis, point.z))
            known.update(slopes=self._sum(point, slopes), bend=self._bends(point, bends))
        return known["slopes"].copy()

    def bends(self, basis: Remote, point: Point) -> Small:
        """W^T phi''(z) W."""
        return self._curvature(point, basis, ("bends", basis, point.z)).copy()

    def hessian(self, point: Point) -> Small:
        """A^T phi''(z) A, by no products that are counted."""
        return self._bends(point, self.ask(("hessian", point.z))[0])

    def bend(self, point: Point, direction: Remote) -> float:
        """The second derivative along the direction."""
        return float(self._curvature(point, direction, ("bend", point.z, direction)))

    def _curvature(self, point: Point, other: Remote, question: Question) -> Any:
        """phi'' at the point along what the question is about, asked once."""
        known = point.z.answers_with(other)
        if "bend" not in known:
            known["bend"] = self._bends(point, self.ask(question)[0])
        return known["bend"]

    def _bends(self, point: Point, told: Sequence[tuple[Any, Any]]) -> Any:
        """The weighted sum of the blocks' curvatures, less the square of their summed rank-one parts."""
        bends, r = (self._sum(point, parts) for parts in zip(*told, strict=True))
        return bends - np.multiply.outer(r, r)

    def move(self, point: Point, direction: Remote, t: float) -> tuple[Point, float]:
        """z + t direction; the derivative along it."""
        if t not in direction.answers_with(point.z):
            self._look(point, direction, t)
        return direction.answers_with(point.z)[t]

    def _look(self, point: Point, direction: Remote, t: float, *more: Question) -> list[tuple[Any, ...]]:
        """Fetch and keep what is at t; the answers to the further questions are returned."""
        z = point.z
        there = Remote("move", z, direction, t, origin=_moved_origin(z, direction, t), turns=z.turns + 1)
        basis = direction.source
        own: list[Question] = [("value", there), ("along", there, direction), ("bend", there, direction)]
        own += [] if basis is None else [("slopes", basis, there)]
        answers = self.ask(*more, *own)
        values, along, bends, *slopes = answers[len(more) :]
        place = Point(there, *self.objective.mixture.weigh(values))
        there.answers_with(direction)["bend"] = self._bends(place, bends)
        if basis is not None:
            there.answers_with(basis)["slopes"] = self._sum(place, slopes[0])
        direction.answers_with(point.z)[t] = place, float(self._sum(place, along))
        return answers[: len(more)]

    def reach(self, point: Point, direction: Remote) -> float:
        """How far z may go before it has moved by its own size; the look at t = 1 is fetched in the same round."""
        sizes, fars = self._look(point, direction, 1.0, ("size", point.z), ("size", direction))
        far = float(np.max(fars))
        return max(1.0, float(np.max(sizes))) / far if far > 0.0 else math.inf

    def distance(self, one: Remote, other: Remote) -> float:
        """max|one - other| / max(1, max|one|)."""
        apart, sizes = self.ask(("apart", one, other), ("size", one))
        return float(np.max(apart)) / max(1.0, float(np.max(sizes)))


def _moved_origin(z: Remote, direction: Remote, t: float) -> Origin | None:
    """The vector that z + t direction is the image of; None where it is not known."""
    if z.origin is None or direction.origin is None:
        return None
    x, step = z.origin(), direction.origin
    return cache(lambda: x + t * step())


def _remotes(operands: Iterable[Any]) -> tuple[Remote, ...]:
    return tuple(operand for operand in operands if isinstance(operand, Remote))


def _act(places: dict[Remote, tuple[int, int]], name: str, *operands: Any) -> Act:
    arguments = tuple(operand for operand in operands if not isinstance(operand, Remote))
    return Act(name, tuple(places[remote] for remote in _remotes(operands)), arguments)


def _add_in_order(order: dict[Remote, None], remotes: Sequence[Remote]) -> None:
    """Add the values, and those they are made from if not made yet, each after what it is made from."""
    for remote in remotes:
        if remote not in order:
            _add_in_order(order, remote.on)
            order[remote] = None
