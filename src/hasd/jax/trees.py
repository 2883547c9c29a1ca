"""`hasd._math.geometry` for pytrees of JAX arrays: a tree stands for the vector of all its entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Tree = Any
"""A pytree of floating-point arrays."""
Scalar = Any
"""An array of shape (), or a number that stands for one."""


def as_leaves(tree: Tree) -> Tree:
    """The tree with arrays of fixed dtypes; anything but real floating-point numbers is refused."""

    def leaf(x: Any) -> jax.Array:
        array = jnp.asarray(x)
        if not jnp.issubdtype(array.dtype, jnp.floating):
            raise TypeError(f"hasd.jax needs real floating-point leaves, got dtype {array.dtype}")
        return jnp.array(array, array.dtype)

    return jax.tree.map(leaf, tree)


def scalar_dtype(tree: Tree) -> Any:
    """The dtype of scalars: the widest of the leaves, and at least float32.

    It is found without JAX's promotion, which refuses different dtypes where it is set to be strict.
    """
    dtypes = [jnp.dtype(jnp.float32), *(leaf.dtype for leaf in jax.tree.leaves(tree))]
    return max(dtypes, key=lambda dtype: jnp.finfo(dtype).bits)


def mix(function: Callable[..., jax.Array], *trees: Tree) -> Tree:
    """The function leaf by leaf, computed in the dtype of scalars and rounded to the dtypes of the first tree."""
    dtype = scalar_dtype(trees[0])
    return jax.tree.map(lambda *xs: function(*(jnp.asarray(x, dtype) for x in xs)).astype(xs[0].dtype), *trees)


def select(condition: Scalar, one: Tree, other: Tree) -> Tree:
    """One tree or the other; leaves that both share are left alone."""
    return jax.tree.map(lambda a, b: a if a is b else jnp.where(condition, a, b), one, other)


def total(function: Callable[..., jax.Array], *trees: Tree) -> Scalar:
    """The sum of the function over all entries."""
    dtype = scalar_dtype(trees[0])
    parts = jax.tree.map(lambda *leaves: jnp.sum(function(*(x.astype(dtype) for x in leaves))), *trees)
    return sum(jax.tree.leaves(parts), start=jnp.zeros((), dtype))


def dot(x: Tree, y: Tree) -> Scalar:
    """<x, y>."""
    return total(lambda a, b: a * b, x, y)


def largest_size(x: Tree) -> Scalar:
    """max|x|; NaN where an entry is NaN."""
    dtype = scalar_dtype(x)
    sizes = jax.tree.map(lambda leaf: jnp.max(jnp.abs(leaf), initial=0.0).astype(dtype), x)
    return jax.tree.reduce(jnp.maximum, sizes, jnp.zeros((), dtype))


def norm(x: Tree, q: float) -> Scalar:
    """||x||_q, scaled by max|x|: free of overflow and underflow."""
    top = largest_size(x)
    if q == math.inf:
        return top
    proper = jnp.isfinite(top) & (top > 0.0)
    scale = jnp.where(proper, top, 1.0)

    def power(x: jax.Array) -> jax.Array:
        u = jnp.abs(x) / scale
        return u if q == 1.0 else u * u if q == 2.0 else u**q

    sum_ = total(power, x)
    root = sum_ if q == 1.0 else jnp.sqrt(sum_) if q == 2.0 else sum_ ** (1.0 / q)
    return jnp.where(proper, top * root, top)


def steepest(g: Tree, p: float, dual_norm: Scalar) -> Tree:
    """s_p(g), as `hasd._math.geometry.Lp.steepest`."""
    if p == 2.0:
        return g
    if p == math.inf:
        return mix(lambda x: dual_norm * jnp.sign(x), g)
    top = largest_size(g)
    q, scale = 1.0 / (p - 1.0), jnp.where(top > 0.0, top, 1.0)
    length = scale * (dual_norm / scale) ** (1.0 - q)

    def leaf(x: jax.Array) -> jax.Array:
        u = jnp.abs(x) / scale
        faint = u < 1024.0 * float(jnp.finfo(u.dtype).smallest_normal)
        whole = jnp.abs(x) ** q * dual_norm ** (1.0 - q)
        return jnp.sign(x) * jnp.where(faint, whole, length * u**q)

    return mix(leaf, g)
