"""What every objective of this package offers: value, gradient, a declared L_p, counted products."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from .._checks import parameters
from .._math.arrays import copy_in_type, namespace
from .._math.doubt import Doubt, Sizes
from ._operators import Matrix, Vector, as_matrix, is_single, is_sparse
from ._smoothness import Smoothness


class Objective(ABC):
    """f: R^d -> R, convex and smooth, that counts its products with the matrix it is made of.

    >>> from hasd.objectives import LeastSquares
    >>> f = LeastSquares([[1.0, 0.0], [0.0, 1.0]], b=[1.0, 0.0])
    >>> f
    LeastSquares(2 x 2)
    >>> f([0.0, 0.0]), f.nprod, f.with_own_counter().nprod
    (0.5, 1, 0)
    """

    ridge: float = 0.0
    """mu of the term mu/2 ||x||_2^2: f is at least mu-strongly convex in l_2."""
    dimension: int | None
    """d; None where any x will do."""
    nprod: int = 0
    """Products with the matrix or its transpose on this instance so far."""
    note: str = ""
    """What the user should be told about the data."""

    def __repr__(self) -> str:
        matrix, loss, settings = self.matrix, getattr(self, "loss", None), parameters(type(self))
        rows, columns = (getattr(self, "rows", None), self.dimension) if matrix is None else matrix.shape
        parts = [type(loss).__name__] if "loss" in settings else []
        parts += [f"{rows} x {columns}"] if rows else []
        for name in ("alpha", "q", "reg", "ridge"):
            value = getattr(self, name, getattr(loss, name, None)) if name in settings else None
            parts += [f"{name}={value:g}"] if value else []
        return f"{type(self).__name__}({', '.join(parts)})"

    def __call__(self, x: npt.ArrayLike) -> float:
        """f(x), at the price of one product."""
        return self.value_and_grad(x)[0]

    @abstractmethod
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and grad f(x), the latter in x's precision."""

    @abstractmethod
    def smoothness(self, p: float) -> Smoothness:
        """The declared L_p, exact or an upper bound; inf where there is none.

        Its products are not counted.  A LinearOperator of up to 1e7 entries is written out, by products with
        unit vectors; of a larger one only lambda_max is found, by Lanczos.
        """

    @property
    def bounded_below(self) -> bool:
        """Whether f is known to have a lower bound: no run reports such an f as unbounded."""
        return self.ridge > 0.0

    def doubt(self, at: Sizes, image: float | None = None) -> Doubt | None:
        """What value and gradient may be off by, from the data; None where they do not tell, as with an operator.

        image: the error of the cached image from which this image was computed; None where it was computed from x.
        """
        return None

    @property
    def matrix(self) -> Matrix | None:
        """What the products are with; None for the identity."""
        return next((m for m in (getattr(self, name, None) for name in ("A", "H", "C")) if m is not None), None)

    @property
    def has_hessian(self) -> bool:
        """Whether the entries of the matrix are at hand, so that the Hessian can be written out."""
        return self.matrix is not None and not isinstance(self.matrix, LinearOperator)

    @property
    def model(self) -> Any:
        """An array whose library and device x must share; None where any will do."""
        return self.matrix

    @property
    def row_cost(self) -> float:
        """Entries of the matrix that a product handles for each row: all of them where it is an operator."""
        matrix = self.matrix
        if matrix is None:
            return 1.0
        return matrix.nnz / matrix.shape[0] if is_sparse(matrix) else float(matrix.shape[1])

    @cached_property
    def precision(self) -> float:
        """The machine epsilon of products with the matrix: 2^-23 where it is float32."""
        matrix = self.matrix
        return 2.0**-23 if matrix is not None and is_single(matrix) else 2.0**-52

    def _check_matrix(self, given: Matrix, name: str) -> Matrix:
        """The user's matrix, checked; where its numbers had to be converted, the note says so."""
        matrix = as_matrix(given, name)
        before = getattr(given, "dtype", matrix.dtype)
        if before != matrix.dtype:
            self.note = f"{name} was converted from {before} to {matrix.dtype}, once."
        return matrix

    def with_own_counter(self) -> Self:
        """The same function on the same data, its own counter at 0: one for each run, one for each thread."""
        twin = copy.copy(self)
        twin.nprod = 0
        return twin


def in_precision_of(x: Vector, g: Vector) -> Vector:
    """g in x's floating-point type; float64 where x is made of integers."""
    xp = namespace(x)
    dtype = x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64
    if type(g) is np.ndarray:
        return g if g.dtype == dtype else copy_in_type(g, np.dtype(dtype))
    return xp.astype(g, dtype, copy=False)
