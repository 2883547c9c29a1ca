"""What the transformations for training share: leaves with a gradient, learning rates, averages, and updates."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._checks import number
from .inputs import known_number
from .trees import Scalar, Tree, as_leaves, scalar_dtype

Leaves = list[jax.Array]


def load_optax(function: str) -> Any:
    """The library, or an error that names the extra to install."""
    try:
        return importlib.import_module("optax")
    except ImportError as error:
        raise ImportError(f'hasd.jax.{function} needs optax: pip install "hasd[jax]"') from error


class Work(NamedTuple):
    """The leaves of params that have a gradient, as arrays of float32 or of a wider type."""

    structure: Any  # the tree of params
    places: list[int]  # which of its leaves they are
    points: Leaves  # their values
    gradients: Leaves
    dtype: Any  # that of numbers that concern all leaves

    def gather(self, tree: Tree) -> Leaves:
        """These leaves of a tree like params."""
        leaves = self.structure.flatten_up_to(tree)
        return [leaves[i] for i in self.places]

    def scatter(self, tree: Tree, new: Sequence[Any]) -> Tree:
        """The tree with new values of these leaves."""
        leaves = self.structure.flatten_up_to(tree)
        for i, value in zip(self.places, new, strict=True):
            leaves[i] = value
        return self.structure.unflatten(leaves)

    def updates_to(self, points: Leaves, params: Tree, updates: Tree) -> Tree:
        """What is added to params to make them the points, in their types; None where there is no gradient."""
        old = [jnp.asarray(leaf) for leaf in self.gather(params)]
        # rounded before the difference is taken: that is mostly exact then, and so is the sum with params
        return self.scatter(updates, [new.astype(p.dtype) - p for new, p in zip(points, old, strict=True)])


def begin_work(updates: Tree, params: Tree | None) -> Work:
    """The leaves to work on; a gradient of None is one that is missing."""
    if params is None:
        raise ValueError("update needs params: the point at which the gradient was taken")
    structure: Any  # its methods are not declared
    leaves, structure = jax.tree.flatten(as_leaves(params))
    gradients = structure.flatten_up_to(updates)
    places = [i for i, g in enumerate(gradients) if g is not None]
    kinds = [scalar_dtype(leaf) for leaf in leaves]
    points, slopes = ([jnp.asarray(given[i], kinds[i]) for i in places] for given in (leaves, gradients))
    return Work(structure, places, points, slopes, scalar_dtype(leaves))


def in_working_type(tree: Tree) -> Tree:
    """Copies of the leaves, in float32 where they are coarser."""
    return jax.tree.map(lambda leaf: jnp.array(leaf, scalar_dtype(leaf)), as_leaves(tree))


def check_rate(learning_rate: Any, weight_decay: Any) -> None:
    """Refuse known numbers that mean nothing; what is traced, or a schedule, is not known yet."""
    decay = number("weight_decay", known_number("weight_decay", weight_decay, traced=0.0), least=0.0)
    if not callable(learning_rate):
        rate = number("learning_rate", known_number("learning_rate", learning_rate, traced=0.0), least=0.0)
        if rate * decay > 1.0:
            raise ValueError(f"learning_rate * weight_decay must not exceed 1, got {rate!r} * {decay!r}")


def rate_at(learning_rate: Any, count: Scalar, dtype: Any) -> Scalar:
    """The learning rate of this step, which a schedule is asked for."""
    return jnp.asarray(learning_rate(count) if callable(learning_rate) else learning_rate, dtype)


def average(m: Leaves, gradients: Leaves, betas: tuple[float, float]) -> tuple[Leaves, Leaves]:
    """The gradient to step with, b1 m + (1 - b1) g, and the next average, b2 m + (1 - b2) g."""
    both = list(zip(m, gradients, strict=True))
    first, second = ([b * old + (1.0 - b) * g for old, g in both] for b in betas)
    return first, second


def increment(count: Scalar) -> Scalar:
    """One more, up to the largest number there is."""
    return jnp.where(count < jnp.iinfo(count.dtype).max, count + 1, count)
