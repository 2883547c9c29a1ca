"""What the parts of an iteration cost, counted and not timed, so that runs are the same on every machine.

The unit is one entry of a dense matrix in a product with a vector.  The prices are rounded from measurements on x86-64
(`python -m benchmarks.prices` prints them anew); nothing but speed depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._run.problem import Problem
from ..objectives._operators import is_sparse

GRAM = 0.2
"""A multiplication in A^T D A or in a Cholesky factorisation: such loops use a processor better than a product does."""
SPARSE = 3.0
"""An entry of a sparse matrix in a product."""
SPARSE_GRAM = 13.0
"""A multiplication in the product of two sparse matrices."""
PASS = 25.0
"""An entry of an image in an evaluation of phi, which takes an exponential or a power."""
PAIR = 5e4
"""What Python needs for the part of a Hessian that belongs to two classes, however small it is."""
OVERHEAD = 2e5
"""What Python needs for an iteration, whatever its size."""


@dataclass(frozen=True)
class Costs:
    """The sizes of an objective phi(Ax - b), and what follows from them."""

    rows: int
    columns: int
    entries: float  # of A
    sparse: bool = False
    squares: float = 0.0  # the sum over the rows of the square of their entries; of a sparse A only
    pairs: float = 1.0  # of classes

    @classmethod
    def of(cls, objective: Any) -> Costs:
        """Those of an objective with images."""
        matrix, d = objective.matrix, int(objective.dimension)
        classes = int(getattr(objective, "classes", 1))  # A has a product for each, and a Hessian for every two
        pairs = 0.5 * classes * (classes + 1)
        rows = int(getattr(objective, "rows", None) or d)
        if matrix is not None and is_sparse(matrix):
            counts = np.diff(matrix.indptr).astype(float)
            if matrix.format == "csc":
                counts = np.bincount(matrix.indices, minlength=rows).astype(float)
            return cls(rows, d, classes * float(matrix.nnz), True, pairs * float(counts @ counts), pairs)
        return cls(rows, d, rows * float(objective.row_cost), pairs=pairs)

    @classmethod
    def in_run(cls, problem: Problem) -> Costs:
        """Those of the objective of a run, counted once."""
        known: Costs | None = problem.__dict__.get("costs")
        if known is None:
            known = problem.__dict__["costs"] = cls.of(problem.objective)
        return known

    @property
    def product(self) -> float:
        """One product with A."""
        return (SPARSE if self.sparse else 1.0) * self.entries

    def step(self, directions: int) -> float:
        """A step along one direction, made of so many vectors: two products, a look, and what Python needs."""
        return 2.0 * self.product + PASS * self.rows + 2.0 * directions * self.columns + OVERHEAD

    def span_step(self, directions: int, looks: int) -> float:
        """A Newton step in the coordinates of so many directions, whose images are known."""
        n, k = self.rows, directions
        return n * (GRAM * 0.5 * k * k + 2.0 * k + PASS * looks) + 0.25 * OVERHEAD

    def hessian(self, rows: int | None = None) -> float:
        """A^T D A with so many rows (None: all) that count, and its factor."""
        n, d = self.rows if rows is None else rows, float(self.columns)
        gram = GRAM * 0.5 * n * d * d
        if self.sparse:
            gram = min(gram + n * d, SPARSE_GRAM * self.squares * (n / self.rows))
        return gram + GRAM * d**3 / 6.0 + PAIR * self.pairs
