"""HASD as an `optax.GradientTransformationExtraArgs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from . import inputs
from .state import HASDState, Setting, initial_state
from .step import advance
from .trees import Tree, mix

if TYPE_CHECKING:
    import optax


def hasd(
    L: Any = None, p: float = float("inf"), *, mu: Any = 0.0, raise_L: bool = True, restart: bool = True
) -> optax.GradientTransformationExtraArgs:
    """Hyper-Accelerated Steepest Descent as an optax transformation; the parameters are those of `HASD`.

    ``params`` is the point where the method needs f and its gradient next: the coupling point y.
    ``eval_params(state)`` is the iterate x, the point to use.  Give ``value=f(params)`` to ``update`` if you have it:
    the method then knows the minimum of its estimate function, and notices if L is too small (``params`` is then x
    once).  With ``L=None`` the value is needed, and ``params`` alternates between y and the end of a trial step.
    Updates are complete steps: use no learning rate, and put nothing after `hasd` in a chain that changes them.  A run
    has ended if ``state.status >= 0``, which is then a code of `hasd.Status`; ``params`` no longer change from then on.

    >>> import jax, jax.numpy as jnp
    >>> optimiser = hasd(L=1.0, p=2)
    >>> state = optimiser.init(jnp.zeros(2))
    >>> updates, state = jax.jit(optimiser.update)(jnp.array([-1.0, -2.0]), state, jnp.zeros(2))
    >>> eval_params(state).tolist()
    [1.0, 2.0]
    """
    try:
        from optax import GradientTransformationExtraArgs
    except ImportError as error:
        raise ImportError('hasd.jax.hasd needs optax: pip install "hasd[jax]"') from error
    p = inputs.exponent(p)
    inputs.check_constants(L, mu)

    def init(params: optax.Params) -> HASDState:
        return initial_state(params, L, raise_L)

    def update(
        updates: optax.Updates, state: optax.OptState, params: optax.Params | None = None, **extra: Any
    ) -> tuple[optax.Updates, HASDState]:
        if params is None:
            raise ValueError("update needs params: the point at which the gradient was taken")
        if not isinstance(state, HASDState):
            raise TypeError(f"state must be a HASDState, got {type(state).__name__}")
        value = extra.get("value")
        if value is not None and jnp.shape(value) != ():
            raise ValueError(f"value must be one number, got shape {jnp.shape(value)}")
        if L is None and value is None:
            raise ValueError("with L=None update needs value=f(params)")
        setting = Setting(p, jnp.asarray(mu, state.rho.dtype), raise_L, restart)
        y = mix(lambda kept, given: jnp.asarray(given).astype(kept.dtype), state.y, params)
        state = advance(setting, state, y, value, updates)
        return mix(lambda to, at: to - at, state.y, y), state

    return GradientTransformationExtraArgs(init, update)


def eval_params(state: Any) -> Tree:
    """The iterate x_t, the parameters to use, from the state of `hasd` or of a chain that contains it.

    >>> import jax.numpy as jnp
    >>> eval_params(hasd(L=2.0).init(jnp.ones(3))).tolist()
    [1.0, 1.0, 1.0]
    """
    found = [s for s in jax.tree.leaves(state, is_leaf=_is_ours) if _is_ours(s)]
    if len(found) != 1:
        raise ValueError(f"expected one HASDState in the state, found {len(found)}")
    return found[0].x


def _is_ours(node: Any) -> bool:
    return isinstance(node, HASDState)
