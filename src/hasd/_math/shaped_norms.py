"""Norms of matrices and of lists of arrays: Schatten norms, and the largest of several norms.

The methods see vectors: x holds the rows of a matrix one after the other, or the arrays of a list.

Schatten-p of X = U diag(z) V^T is ||z||_p, the l_p norm of the singular values.  Its dual norm is ||z||_{p*}, and its
steepest-descent map U diag(s_p(z)) V^T (von Neumann's trace inequality).  Half the squared dual norm is
(p* - 1)-strongly convex in the dual norm (Ball, Carlen & Lieb 1994).

The largest of norms ||x_k||_k of parts x_k has the dual norm N = sum N_k, N_k the dual norm of part k, and the
steepest-descent map with parts (N/N_k) s_k(g_k): <g, s> = sum (N/N_k) N_k^2 = N^2, and each part of s has norm N.  Like
l_inf it has sigma = 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from .._checks import check_shape, is_number, show_value
from .arrays import Array, largest_size, namespace, resolution
from .geometry import POWER, POWER_SINGLE, Geometry, Lp, as_vector, label_of, least_gain, norm2, power_norm, unit


@dataclass(frozen=True)
class Schatten:
    """The Schatten-p norm of matrices: the l_p norm of the singular values, 2 <= p <= inf.

    p = inf is the spectral norm, and p = 2 the Frobenius norm.  Each dual norm and each steepest step costs a singular
    value decomposition.  The gain ||G||_*/||G||_2 lies between 1 and min(shape)^{1/2 - 1/p}, which it reaches if all
    singular values are equal.

    Parameters
    ----------
    p : float
        The exponent, 2 <= p <= inf.
    shape : tuple of int
        Rows and columns.  x0 may be a matrix of this shape, or a vector with its rows one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> norm, G = Schatten(float("inf"), (2, 3)), np.array([[3.0, 0.0, 0.0], [0.0, -4.0, 0.0]])
    >>> norm.norm(G), norm.dual_norm(G)
    (4.0, 7.0)
    >>> bool(np.allclose(norm.steepest(G), [[7.0, 0.0, 0.0], [0.0, -7.0, 0.0]]))
    True
    """

    p: float
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        """Refuse what is no exponent, and what is not the shape of a matrix."""
        shape = check_shape("shape", self.shape)
        if len(shape) != 2:
            raise ValueError(f"shape must have two dimensions, rows and columns, got {shape}")
        object.__setattr__(self, "p", Lp(self.p).p)
        object.__setattr__(self, "shape", shape)

    @property
    def label(self) -> str:
        """Its name in results."""
        return f"Schatten-{self.p:g}"

    @property
    def is_euclidean(self) -> bool:
        """Whether it is the Frobenius norm, which is l_2 of the entries."""
        return self.p == 2.0

    @property
    def dual_convexity(self) -> float:
        """sigma = p* - 1, as in l_p (Ball, Carlen & Lieb 1994)."""
        return Lp(self.p).dual_convexity

    @property
    def least_gain(self) -> float:
        """1, the gain of a matrix of rank one."""
        return 1.0

    def norm(self, x: Array) -> float:
        """The l_p norm of the singular values."""
        return self._norm_of_values(x, self.p)

    def dual_norm(self, g: Array) -> float:
        """The l_{p*} norm of the singular values."""
        return self._norm_of_values(g, Lp(self.p).dual)

    def steepest(self, g: Array) -> Array:
        """U diag(s_p(z)) V^T for g = U diag(z) V^T.  Singular values that are only rounding are taken for 0."""
        top = largest_size(g)
        if self.is_euclidean or top == 0.0 or not math.isfinite(top):
            return g
        xp, scale = namespace(g), _scale(g, top)
        U, z, Vh = xp.linalg.svd(xp.reshape(g, self.shape) * scale, full_matrices=False)
        visible = z > max(self.shape) * resolution(g) * float(z[0])
        s = Lp(self.p).steepest(xp.where(visible, z, xp.zeros_like(z)))
        return xp.reshape((U * s) @ Vh, g.shape) / scale

    def _norm_of_values(self, x: Array, q: float) -> float:
        """The l_q norm of the singular values; 1 <= q <= inf."""
        x = as_vector(x, self.shape)
        if q == 2.0:
            return norm2(x)
        top = largest_size(x)
        if top == 0.0 or not math.isfinite(top):
            return top
        xp, scale = namespace(x), _scale(x, top)
        return power_norm(xp.linalg.svdvals(xp.reshape(x, self.shape) * scale), q) / scale


def _scale(x: Array, top: float) -> float:
    """The power of two that brings the largest entry of x close to 1, and exactly back."""
    return unit(top, POWER if resolution(x) <= 2.0**-52 else POWER_SINGLE)


@dataclass(frozen=True)
class Blocks:
    """The largest of the norms of several arrays: ||x|| = max_k ||x_k||_k, for a list x of arrays x_k.

    Its dual norm is the sum of the dual norms of the parts.  A steepest step moves every part equally far in its own
    norm, also those with a small gradient.

    Parameters
    ----------
    parts : list of geometries
        The norm of each array.  Each must know its shape: `Schatten`, or `Lp` with ``shape=`` or ``weights=``.

    Examples
    --------
    >>> import numpy as np
    >>> norm = Blocks([Schatten(float("inf"), (2, 2)), Lp(2, shape=(3,))])  # a matrix, and a vector of three
    >>> x = [np.diag([3.0, 1.0]), np.array([0.0, 3.0, 4.0])]
    >>> norm.norm(x), norm.dual_norm(x)
    (5.0, 9.0)
    """

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Refuse parts that are no geometries or have no shape."""
        if not isinstance(self.parts, Iterable):
            raise TypeError(f"parts must be a list of geometries, got {show_value(self.parts)}")
        parts = tuple(self.parts)
        if not parts:
            raise ValueError("parts must not be empty")
        for k, part in enumerate(parts):
            if not isinstance(part, Geometry):
                raise TypeError(f"parts must be geometries such as Schatten or Lp, got {show_value(part)}")
            if isinstance(part, Blocks):
                raise TypeError(f"parts[{k}] must not be Blocks itself: give its parts, the largest norm is the same")
            shape = getattr(part, "shape", None)
            if shape is None:
                raise ValueError(f"parts[{k}] must know its shape: give Lp(p, shape=...) or Lp(p, weights=...)")
            check_shape(f"the shape of parts[{k}]", shape)
        object.__setattr__(self, "parts", parts)

    @property
    def p(self) -> float:
        """inf, the exponent with which the parts are joined."""
        return math.inf

    @property
    def label(self) -> str:
        """Its name in results."""
        names = map(label_of, self.parts)
        return f"largest of {', '.join(f'l_{name:g}' if is_number(name) else str(name) for name in names)}"

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """The shapes of the arrays."""
        return [tuple(part.shape) for part in self.parts]

    @property
    def dual_convexity(self) -> float:
        """sigma = 0: along the sum of the parts' dual norms, half the square is not strongly convex."""
        return 0.0

    @property
    def least_gain(self) -> float | None:
        """The least of the parts' least gains; None where one is not known."""
        known = [least_gain(part) for part in self.parts]
        return None if None in known else min(gain for gain in known if gain is not None)

    def norm(self, x: Array | list[Array]) -> float:
        """The largest of the norms; NaN where one is NaN."""
        norms = [part.norm(piece) for part, piece in zip(self.parts, self._pieces(x), strict=True)]
        return math.nan if any(map(math.isnan, norms)) else max(norms)

    def dual_norm(self, g: Array | list[Array]) -> float:
        """The sum of the dual norms."""
        return sum(part.dual_norm(piece) for part, piece in zip(self.parts, self._pieces(g), strict=True))

    def steepest(self, g: Array | list[Array]) -> Array | list[Array]:
        """The parts' own maps, brought to one length; a part whose gradient is 0 stays 0."""
        pieces = self._pieces(g)
        sizes = [part.dual_norm(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        total = sum(sizes)
        if not math.isfinite(total):
            return g
        each = zip(self.parts, pieces, sizes, strict=True)
        steps = [_step_of_length(part, piece, size, total) for part, piece, size in each]
        return steps if isinstance(g, list | tuple) else namespace(g).concat(steps)

    def _pieces(self, x: Array | list[Array]) -> list[Array]:
        """The parts of x, which is a list of arrays or the vector of all their entries."""
        if isinstance(x, list | tuple):
            return list(x)
        ends = accumulate((math.prod(shape) for shape in self.shape), initial=0)
        return [x[start:end] for start, end in pairwise(ends)]


def _step_of_length(part: Geometry, g: Array, size: float, length: float) -> Array:
    """length s(g)/||g||_*, for a part with the dual norm `size`; s(2^k g) = 2^k s(g), so that no quotient overflows."""
    if size == 0.0:
        return g
    scale = unit(size, POWER if resolution(g) <= 2.0**-52 else POWER_SINGLE)
    return part.steepest(g * scale) / (size * scale) * length
