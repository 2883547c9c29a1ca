"""The point to use, from the state of an optax transformation: params are where gradients are taken."""

from __future__ import annotations

from typing import Any

import jax

from .state import HASDState
from .stochastic_transform import StochasticHASDState
from .trees import Tree


def eval_params(state: Any, params: Tree | None = None) -> Tree:
    """The iterate x, the parameters to use, from the state of `hasd` or of `stochastic_hasd`.

    Parameters
    ----------
    state : pytree
        The state, or that of a chain or another transformation that contains it.
    params : pytree, optional
        The parameters that belong to it.  With them the result has their types, and is what they are wherever no state
        holds an x: where a transformation is masked, or has no coupling.  Without them the state must contain one x.

    Returns
    -------
    pytree
        The parameters to validate, to save and to report.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from hasd.jax import eval_params, hasd, stochastic_hasd
    >>> eval_params(hasd(L=2.0).init(jnp.ones(3))).tolist()
    [1.0, 1.0, 1.0]
    >>> params = {"w": jnp.ones(2, "bfloat16")}
    >>> eval_params(stochastic_hasd(0.1).init(params), params)["w"].dtype.name
    'bfloat16'
    """
    found = [node for node in jax.tree.leaves(state, is_leaf=_is_ours) if _is_ours(node)]
    points = [one.x for one in found if one.x is not None]
    if params is None:
        if len(points) != 1:
            raise ValueError(f"expected one x of hasd.jax in the state, found {len(points)}: give params, too")
        return points[0]
    if not found:
        raise ValueError("expected a state of hasd.jax in the state, found 0")
    for x in points:
        params = jax.tree.map(_replace, x, params, is_leaf=_is_empty)
    return params


def _is_ours(node: Any) -> bool:
    return isinstance(node, HASDState | StochasticHASDState)


def _is_empty(node: Any) -> bool:
    """Whether there is nothing in it: so it is where optax masks parameters."""
    return not jax.tree.leaves(node)


def _replace(x: Any, params: Tree) -> Tree:
    """x in the type of params; params where there is no x."""
    return params if _is_empty(x) else x.astype(jax.numpy.asarray(params).dtype)
