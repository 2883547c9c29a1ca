"""HASD as an `optax.GradientTransformationExtraArgs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from .._math.geometry import Lp
from . import inputs
from .leaves import load_optax
from .state import HASDState, Setting, initial_state
from .step import advance
from .trees import mix

if TYPE_CHECKING:
    import optax


def hasd(
    L: Any = None, p: float = float("inf"), *, mu: Any = 0.0, raise_L: bool = True, restart: bool = True
) -> optax.GradientTransformationExtraArgs:
    """Hyper-Accelerated Steepest Descent as an optax transformation; the parameters are those of `HASD`.

    ``params`` is the point where the method needs f and its gradient next: the coupling point y.
    ``eval_params(state)`` is the iterate x, the point to use.  An iterate counts once the gradient at the next y agrees
    with it, so x moves for the first time in the second update.  Give ``value=f(params)`` to every ``update``, or with
    a given L to none.  Without values the weights are those of the proof, min(1, r^2/s^2) of what was planned, with
    which the bound holds for a true L; but an L that is too small is not noticed, and larger weights that the values
    would allow are not found.  With ``L=None`` the value is needed.
    Updates are complete steps: use no learning rate, and put nothing after `hasd` in a chain that changes them.  A run
    has ended if ``state.status >= 0``, which is then a code of `hasd.Status`; ``params`` no longer change from then on.

    >>> import jax, jax.numpy as jnp
    >>> from hasd.jax import eval_params
    >>> optimiser, b = hasd(L=1.0, p=2), jnp.array([1.0, 2.0])
    >>> params = jnp.zeros(2)
    >>> state = optimiser.init(params)
    >>> for _ in range(2):
    ...     updates, state = jax.jit(optimiser.update)(params - b, state, params)  # the gradient of ||x - b||^2/2
    ...     params = params + updates
    >>> eval_params(state).tolist()
    [1.0, 2.0]
    """
    transformation = load_optax("hasd").GradientTransformationExtraArgs
    lp = Lp(inputs.exponent(p))
    inputs.check_constants(L, mu)

    def init(params: optax.Params) -> HASDState:
        return initial_state(params, L)

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
        setting = Setting(lp, jnp.asarray(mu, state.L.dtype), L is not None, raise_L, restart)
        y = mix(lambda _, given: given, state.y, params)
        state = advance(setting, state, y, value, updates)
        return mix(lambda to, at: to - at, state.y, y), state

    return transformation(init, update)
