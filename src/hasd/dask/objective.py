"""f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 with the rows of A in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy.typing as npt

from .._checks import number
from .._math.geometry import norm2
from ..objectives._dual import SAFE, penalty, ratio
from ..objectives._images import NUMPY, Images
from ..objectives._loss import Loss
from ..objectives._operators import Vector, quiet
from ..objectives._sizes import DataSizes
from ..objectives._smoothness import Smoothness, add_ridge
from ..objectives.affine import AffineObjective
from .blocks import Facts
from .images import BlockImages, Remote
from .mixture import mixture
from .pools import Pool


class BlockAffine(AffineObjective):
    """An affine objective in blocks, made by ``hasd.dask.affine``; to methods the same as ``hasd.objectives.Affine``.

    >>> import numpy as np
    >>> from hasd.dask import affine
    >>> from hasd.objectives.losses import SquareLoss
    >>> f = affine(SquareLoss(), [np.eye(2), 2 * np.eye(2)], b=[1.0, 0.0, 0.0, 2.0])
    >>> f.value_and_grad(np.zeros(2)), f.rounds
    ((2.5, array([-1., -4.])), 1)
    """

    model = NUMPY  # x is an array of NumPy
    precision: float = 2.0**-52  # of the coarsest block
    row_cost: float = 1.0
    rounds: int = 0
    """Times the blocks were asked for something on this instance."""

    def __init__(self, loss: Loss | type, blocks: Sequence[Any], facts: Sequence[Facts], pool: Pool, ridge: float):
        """Handles of checked blocks, and what is known of them."""
        self.loss, self.blocks, self.pool, self.ridge = loss, list(blocks), pool, ridge
        self.mixture = mixture(loss, [fact.rows for fact in facts])
        self.rows = sum(fact.rows for fact in facts)
        self.dimension = facts[0].columns
        self.row_cost = sum(fact.entries for fact in facts) / self.rows
        self.note = next((fact.note for fact in facts if fact.note), "")
        self._sizes = _join_sizes([fact.data for fact in facts])
        self.precision = max(fact.precision for fact in facts)

    def sizes(self) -> DataSizes | None:
        """Those of all rows; None where a block is an operator."""
        return self._sizes

    @property
    def has_hessian(self) -> bool:
        """Whether every block has the entries of its rows at hand."""
        return self._sizes is not None

    def images(self) -> Images:
        """The space of images Ax - b, on the blocks."""
        return BlockImages(self)

    def loss_at(self, x: Vector) -> float:
        """phi(Ax - b); one round."""
        self.nprod += 1
        (values,) = BlockImages(self).ask(("value", Remote("at", x)), keep=False)
        return self.mixture.weigh(values)[0]

    def loss_and_gradient_at(self, x: Vector) -> tuple[float, Vector]:
        """phi(Ax - b) and A^T phi'(Ax - b); one round."""
        self.nprod += 2
        z = Remote("at", x)
        values, gradients = BlockImages(self).ask(("value", z), ("gradient", z), keep=False)
        value, weights = self.mixture.weigh(values)
        return value, self.mixture.total(weights, gradients)

    def smoothness(self, p: float) -> Smoothness:
        """An upper bound: the blocks' own constants added, for softmax losses the largest max ||a_i||_{p*}^2/alpha."""
        bound = self.mixture.bound(BlockImages(self).ask(("smoothness", p))[0])
        return add_ridge(Smoothness(bound, exact=False), self.ridge, p, self.dimension)

    @quiet
    def duality_gap(self, x: npt.ArrayLike, radius: float | None = None) -> float:
        """A number that f(x) - f* is never above, from the dual point u = phi'(Ax - b); two products, one round.

        With a ridge it is ||grad f||^2/(2 ridge).  If a minimiser has norm at most radius, it is the largest f(x) -
        [f's linear lower bound at x] over that ball.  Of both the smaller is taken; without either it is inf.  Rounding
        is added.
        ``Affine.duality_gap`` looks for better u, which takes vectors of length n; close to a minimiser this one is
        up to the condition number larger.

        >>> import numpy as np
        >>> from hasd.dask import affine
        >>> from hasd.objectives.losses import SquareLoss
        >>> f = affine(SquareLoss(), [np.eye(2), np.eye(2)], b=[1.0, 0.0, 0.0, 1.0], ridge=1.0)
        >>> round(f(np.zeros(2)) - f(np.ones(2) / 3), 9), round(f.duality_gap(np.zeros(2)), 9)
        (0.333333333, 1.0)
        """
        point = self._point(x).astype(float)
        if radius is not None:
            radius = number("radius", radius, least=0.0)
        self.nprod += 2
        z, total = Remote("at", point), self.mixture.total
        values, gradients, sizes = BlockImages(self).ask(("value", z), ("gradient", z), ("dual sizes", z), keep=False)
        value, weights = self.mixture.weigh(values)
        if not math.isfinite(value):
            return math.inf if value > 0.0 else math.nan
        squares, images, inners = zip(*sizes, strict=True)
        v, size, u_size = total(weights, gradients), norm2(point), math.sqrt(total(weights**2, squares))
        A_size = max(ratio(norm2(v), u_size), ratio(math.sqrt(sum(images)), size))  # ||A||_2, from below
        terms = 2.0 * (abs(value) + float(total(weights, inners))) + self.ridge * size * size
        charge = SAFE * self.precision  # at u = phi'(z) Fenchel-Young holds with equality: only rounding is left
        return charge * terms + penalty(v, point, self.ridge, radius, charge * A_size * u_size)

    def with_own_counter(self) -> Self:
        """The same blocks, counters at 0."""
        twin = super().with_own_counter()
        twin.rounds = 0
        return twin


def _join_sizes(parts: Sequence[DataSizes | None]) -> DataSizes | None:
    """The data sizes of all rows; None where a block is an operator."""
    known = [part for part in parts if part is not None]
    return DataSizes(*map(max, zip(*known, strict=True))) if len(known) == len(parts) else None
