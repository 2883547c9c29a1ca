"""The lower bound of a minimax fit: which rows prove it, which columns it is for, how far from 0 a best point can be.

Columns that the coordinates left out, and those of a sparse A that depend on others on all rows, are ignored as long as
the multipliers of a proof are orthogonal to them up to rounding of their entries: for this proof they are combinations
of the others.  A column for which this fails counts from then on like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..objectives._operators import Vector
from . import _active_rows as rows
from . import _multipliers as proof
from ._coordinates import Coordinates

NEIGHBOURS = 1
"""Rows beside the active ones, in multiples of the rank, that bound how far from 0 a best point can be."""
PROVED = 1.0 - 2.0**-40
"""A bound that keeps less than this part of what its multipliers promise is tried again with more rows."""


@dataclass
class MinimaxBound:
    """The best lower bound so far; columns are numbered as `coordinates.columns` has them."""

    coordinates: Coordinates
    b: Vector
    image: Callable[[Vector], Vector]  # Qy over all rows
    lower: float = 0.0
    active: Vector = field(default_factory=lambda: np.zeros(0, dtype=int))  # the rows that prove it
    weights: Vector = field(default_factory=lambda: np.zeros(0))
    reach: Vector = field(init=False)  # no |x_j| of a best point is larger
    ignored: Vector = field(init=False)  # columns that depend on the others to rounding

    def __post_init__(self) -> None:
        rank, others = self.coordinates.rank, self.coordinates.others.size
        self.reach, self.ignored = np.repeat((math.inf, 0.0), (rank, others)), np.arange(rank, rank + others)

    @property
    def columns_counted(self) -> Vector:
        """The columns that the bound is for."""
        return np.delete(np.arange(self.reach.size), self.ignored)

    def bound(self, which: Vector, weights: Vector, others: Vector) -> None:
        """Keep the lower bound from weights on those rows where it is better; other rows bound how far x can be."""
        near = np.concatenate((which, others))
        if self._proves(which, weights, near[: which.size + NEIGHBOURS * self.coordinates.rank]):
            return
        # Weights that balance a very short row are below the linear program's tolerance: they are found here.
        counted = -1
        while counted < self.columns_counted.size:  # more columns need more rows to balance them
            counted = self.columns_counted.size
            added = np.setdiff1d(near[rows.pivots(self._columns(near))], which)
            self._proves(np.concatenate((which, added)), np.concatenate((weights, np.zeros(added.size))), near)

    def _columns(self, which: Vector) -> Vector:
        """Those rows of A, the columns counted."""
        return self.coordinates.columns(which)[:, self.columns_counted]

    def _proves(self, which: Vector, weights: Vector, near: Vector) -> bool:
        """Whether weights on those rows prove what they promise; the bound is kept where it is better."""
        dual = self._dual(which, weights)
        if dual is None or not dual.value > self.lower:
            return dual is not None
        low = dual.lower(self.reach)
        for measure in (self._measure, self._measure_far):
            if not low > PROVED * dual.value:
                measure(near)
                low = dual.lower(self.reach)
        if low > self.lower:
            some = dual.weights != 0.0
            self.lower, self.active, self.weights = low, which[some], dual.weights[some]
        return low > PROVED * dual.value

    def _dual(self, which: Vector, weights: Vector) -> proof.MultiplierProblem | None:
        """The nearest weights that are orthogonal to the columns counted, and up to rounding to the others, or None.

        Where a column that was ignored has to be counted, earlier bounds are dropped: they were proved without it.
        """
        columns = self.coordinates.columns(which)
        while True:
            dual = proof.dual(columns, weights, self.b[which], self.ignored)
            if dual is None or dual.balanced[self.ignored].all():
                return dual
            self.ignored = self.ignored[dual.balanced[self.ignored]]
            self.reach[self.columns_counted] = math.inf
            self.lower, self.active, self.weights = 0.0, self.active[:0], self.weights[:0]

    def _measure(self, near: Vector) -> None:
        """Bound how far from 0 a best point can be, by those rows."""
        far = proof.reach(self._columns(near), self.b[near], float(np.abs(self.b).max()))
        self.reach[self.columns_counted] = np.minimum(self.reach[self.columns_counted], far)

    def _measure_far(self, near: Vector) -> None:
        """The same by other rows, where the columns are dependent on those rows.

        Columns that depend on others to rounding on all rows are ignored: no x needs them.  This is done only once:
        which columns of a dependent set are ignored is a choice, and must not change.
        """
        if np.isfinite(self.reach).all():
            return
        near, dependent = rows.spanning_rows(self.coordinates, near, self.image)
        before, self.ignored = self.ignored, np.union1d(self.ignored, dependent)
        far = proof.reach(self._columns(near), self.b[near], float(np.abs(self.b).max()))
        if np.isfinite(far).all():
            self.reach[self.columns_counted] = np.minimum(self.reach[self.columns_counted], far)
            self.reach[self.ignored] = 0.0
        else:
            self.ignored = before
