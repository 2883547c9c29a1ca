"""The lower bound of a minimax fit: which rows prove it, which columns it is for, how far from 0 a best point can be.

Columns that the coordinates left out, and those of a sparse A that no row tells apart from others, are ignored as long
as the multipliers of a proof are orthogonal to them once their entries are changed by rounding: then they are
combinations of the others as far as this proof can tell.  One that is not counts from then on like any other.
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
"""Times the rank: rows beside the active ones that say how far from 0 a best point can be."""
PROVED = 1.0 - 2.0**-40
"""The part of what multipliers promise that a bound is to keep, or more rows are asked."""


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
        """A lower bound from weights on those rows, kept where it is better; other rows say how far x can be."""
        near = np.concatenate((which, others))
        if self._proves(which, weights, near[: which.size + NEIGHBOURS * self.coordinates.rank]):
            return
        # what balances a row that is short beside others is below the linear program's tolerance: it is found here
        counted = -1
        while counted < self.columns_counted.size:  # the more columns count, the more rows it takes to balance them
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
        """The nearest weights that are orthogonal to the columns counted, and to rounding to the others, or None.

        Where a column that was ignored has to be counted, what was proved without it is void.
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
        """How far from 0 a best point can be, by those rows."""
        far = proof.reach(self._columns(near), self.b[near], float(np.abs(self.b).max()))
        self.reach[self.columns_counted] = np.minimum(self.reach[self.columns_counted], far)

    def _measure_far(self, near: Vector) -> None:
        """The same where those rows do not tell the columns apart: by others that do.

        Columns that depend on others to rounding on all rows are ignored: no x needs them.  Once, as which of them
        depend is a choice.
        """
        if np.isfinite(self.reach).all():
            return
        near, dependent = rows.spanning_rows(self.coordinates, near, self.image)
        before, self.ignored = self.ignored, np.union1d(self.ignored, dependent)
        far = proof.reach(self._columns(near), self.b[near], float(np.abs(self.b).max()))
        if np.isfinite(far).all():
            self.reach[self.columns_counted], self.reach[self.ignored] = (
                np.minimum(self.reach[self.columns_counted], far),
                0.0,
            )
        else:
            self.ignored = before
