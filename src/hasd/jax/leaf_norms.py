"""Norms of lists of leaves, by their steepest directions d(g): the dual norm of g is <g, d(g)>^{1/p*}."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._math.minibatch import dual_exponent
from .._math.polar import raise_singular_values, shape_factor
from .leaves import Leaves
from .trees import Scalar, dot, norm


@dataclass(frozen=True)
class EntryNorm:
    """The l_p norm of the entries: d(g) = sign(g) |g|^{1/(p-1)}.

    >>> EntryNorm(3.0).direction(jnp.array([4.0, -9.0])).tolist()
    [2.0, -3.0]
    """

    p: float

    def count(self, shape: tuple[int, ...]) -> int:
        """All entries."""
        return math.prod(shape)

    def direction(self, g: jax.Array) -> jax.Array:
        """The gradient itself at p = 2, its signs at p = inf."""
        if self.p == 2.0:
            return g
        return jnp.sign(g) if self.p == math.inf else jnp.sign(g) * jnp.abs(g) ** (1.0 / (self.p - 1.0))

    def dual_norm(self, gradients: Leaves, directions: Leaves) -> Scalar:
        """||g||_{p*}, free of overflow and underflow."""
        return norm(gradients, dual_exponent(self.p))


@dataclass(frozen=True)
class MatrixNorm:
    """The largest singular value, divided by `shape_factor`; the dual is the sum of them, multiplied by it.

    Singular values play the part of coordinates, and the largest of them that of p = inf.  One axis of a matrix is that
    of outputs; the others are joined.
    """

    output_axis: str  # "first" or "last"
    p = math.inf

    def count(self, shape: tuple[int, ...]) -> int:
        """How many singular values there are."""
        outputs, inputs = self._size(shape)
        return min(outputs, inputs)

    def direction(self, g: jax.Array) -> jax.Array:
        """The polar factor, as accurate as `hasd._math.polar` says; zero for a zero matrix."""
        outputs, inputs = self._size(g.shape)
        matrix = g.reshape(outputs, inputs) if self.output_axis == "first" else g.reshape(inputs, outputs)
        length = norm(matrix, 2.0)
        factor = raise_singular_values(matrix / jnp.where(length > 0.0, length, 1.0))
        return (shape_factor(outputs, inputs) * factor).reshape(g.shape)

    def dual_norm(self, gradients: Leaves, directions: Leaves) -> Scalar:
        """<g, d(g)>."""
        return dot(gradients, directions)

    def _size(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """How many outputs and inputs there are."""
        outputs = shape[0] if self.output_axis == "first" else shape[-1]
        return outputs, math.prod(shape) // max(1, outputs)


class Measures(NamedTuple):
    """Gradients in their norm: all of them together as numbers, or each by itself as vectors of numbers."""

    dual_norm: Any = 1.0  # a tiny number in place of 0
    gain: Any = 1.0  # dual over Euclidean norm; NaN where the gradient is 0


def measure_leaves(
    rule: EntryNorm | MatrixNorm, gradients: Leaves, directions: Leaves, one_norm: bool, dtype: Any
) -> Measures:
    """The dual norms and the gains, which at p = 2 are 1, as numbers of this type."""
    pairs = [(gradients, directions)] if one_norm else [([g], [d]) for g, d in zip(gradients, directions, strict=True)]
    shape = () if one_norm else (len(pairs),)
    dual = jnp.stack([rule.dual_norm(*pair).astype(dtype) for pair in pairs]).reshape(shape)
    away_from_zero = jnp.maximum(dual, float(jnp.finfo(dtype).tiny) ** 0.8)  # its inverse is far from overflow
    if rule.p == 2.0:
        return Measures(away_from_zero)
    euclidean = jnp.stack([norm(part, 2.0).astype(dtype) for part, _ in pairs]).reshape(shape)
    there = (euclidean > 0.0) & (dual > 0.0)
    return Measures(away_from_zero, jnp.where(there, dual / jnp.where(there, euclidean, 1.0), jnp.nan))
