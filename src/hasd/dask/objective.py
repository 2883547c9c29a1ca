"""f(x) = phi(Ax - b) + ridge/2 ||x||_2^2 with the rows of A in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy.typing as npt

from .._math.doubt import Doubt, Sizes
from ..objectives._images import NUMPY, Images
from ..objectives._loss import Loss
from ..objectives._operators import Vector, as_point, as_scalar, quiet
from ..objectives._sizes import DataSizes
from ..objectives._smoothness import Smoothness, add_ridge
from ..objectives.base import Objective, in_precision_of
from .blocks import BlockPlan, Facts
from .gap import gap
from .images import BlockImages, Remote
from .mixture import Mixture
from .pools import Pool


class BlockAffine(Objective):
    """An affine objective in blocks, made by ``hasd.dask.affine``; to methods the same as ``hasd.objectives.Affine``.

    >>> import numpy as np
    >>> from hasd.dask import affine
    >>> from hasd.objectives.losses import SquareLoss
    >>> f = affine(SquareLoss(), [np.eye(2), 2 * np.eye(2)], b=[1.0, 0.0, 0.0, 2.0])
    >>> f.value_and_grad(np.zeros(2)), f.rounds
    ((2.5, array([-1., -4.])), 1)
    """

    def __init__(
        self, loss: Loss | type, blocks: Sequence[Any], facts: Sequence[Facts], mix: Mixture, pool: Pool, ridge: float
    ):
        """Handles of checked blocks, and what is known of them."""
        self.loss, self.blocks, self.mixture, self.pool, self.ridge = loss, list(blocks), mix, pool, ridge
        self.rows = sum(fact.rows for fact in facts)
        self.dimension = facts[0].columns
        self.row_cost = sum(fact.entries for fact in facts) / self.rows
        """Entries of A that a product handles for each row."""
        self.note = next((fact.note for fact in facts if fact.note), "")
        self._sizes = _join_sizes([fact.data for fact in facts])
        self._precision = 2.0**-23 if any(fact.single for fact in facts) else 2.0**-52
        self.nprod = 0
        self.rounds = 0
        """Times the blocks were asked for something on this instance."""

    @property
    def bounded_below(self) -> bool:
        """A ridge bounds f, and so do most losses."""
        return self.ridge > 0.0 or getattr(self.loss, "bounded_below", False)

    def doubt(self, at: Sizes, image: float | None = None) -> Doubt | None:
        """That of the same rows in one place."""
        if self._sizes is None or not hasattr(self.loss, "doubt"):
            return None
        dz = self._sizes.image_doubt(at, self.precision, image)
        return self._sizes.doubt(at, self.loss, self.rows, self.ridge, self.precision, dz)

    @property
    def precision(self) -> float:
        """Of the coarsest block."""
        return self._precision

    @property
    def model(self) -> Any:
        """x is NumPy's."""
        return NUMPY

    def round(self, bundles: list[list[Any]], plan: BlockPlan) -> tuple[list[Any], list[Any]]:
        """One round: handles of what the blocks keep, and what they told."""
        self.rounds += 1
        return self.pool.round(self.blocks, bundles, plan)

    def images(self) -> Images:
        """The space of images Ax - b, on the blocks."""
        return BlockImages(self)

    @quiet
    def __call__(self, x: npt.ArrayLike) -> float:
        """f(x); one product."""
        point = as_point(x, self.dimension, "x")
        self.nprod += 1
        (values,) = BlockImages(self).ask(("value", Remote("at", point)), keep=False)
        return self.mixture.weigh(values)[0] + self._ridge_value(point)

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and A^T phi'(Ax - b) + ridge x; two products, one round."""
        point = as_point(x, self.dimension, "x")
        value, g = BlockImages(self).value_and_gradient(point)
        if self.ridge > 0.0:
            g = g + self.ridge * point
        return value + self._ridge_value(point), in_precision_of(point, g)

    def smoothness(self, p: float) -> Smoothness:
        """An upper bound: the blocks' own constants added, for softmax losses the largest max ||a_i||_{p*}^2/alpha."""
        return add_ridge(Smoothness(BlockImages(self).smoothness(p), exact=False), self.ridge, p, self.dimension)

    @quiet
    def duality_gap(self, x: npt.ArrayLike, radius: float | None = None) -> float:
        """A number that f(x) - f* is never above, from the dual point u = phi'(Ax - b); two products, one round.

        ||grad f||^2/(2 ridge) with a ridge; with a radius that some minimiser keeps, max of f(x) - [f's linear bound
        at x] over ||y||_2 <= radius; the smaller where both are there, inf where neither is.  Rounding is added.
        ``Affine.duality_gap`` looks for better u, which takes vectors of length n; close to a minimiser this one is
        up to the condition number larger.

        >>> import numpy as np
        >>> from hasd.dask import affine
        >>> from hasd.objectives.losses import SquareLoss
        >>> f = affine(SquareLoss(), [np.eye(2), np.eye(2)], b=[1.0, 0.0, 0.0, 1.0], ridge=1.0)
        >>> round(f(np.zeros(2)) - f(np.ones(2) / 3), 9), round(f.duality_gap(np.zeros(2)), 9)
        (0.333333333, 1.0)
        """
        point = as_point(x, self.dimension, "x").astype(float)
        if radius is not None:
            radius = as_scalar(radius, "radius", ">= 0", lambda value: value >= 0.0)
        self.nprod += 2
        z = Remote("at", point)
        asked = BlockImages(self).ask(("value", z), ("gradient", z), ("dual sizes", z), keep=False)
        return gap(self, point, radius, *asked)

    def counted(self) -> Self:
        """The same blocks, counters at 0."""
        twin = super().counted()
        twin.rounds = 0
        return twin

    def _ridge_value(self, x: Vector) -> float:
        if self.ridge == 0.0:
            return 0.0
        x = x.astype(float, copy=False)
        return 0.5 * self.ridge * float(x @ x)


def _join_sizes(parts: Sequence[DataSizes | None]) -> DataSizes | None:
    """The data sizes of all rows; None where a block is an operator."""
    known = [part for part in parts if part is not None]
    return DataSizes(*map(max, zip(*known, strict=True))) if len(known) == len(parts) else None
