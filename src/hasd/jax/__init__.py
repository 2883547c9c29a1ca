"""HASD for JAX: an optimistix minimiser, whose whole run is compiled, and optax transformations.

Problem.    min f(x) over a pytree x, f convex and L-smooth w.r.t. the l_p norm of all its entries, 2 <= p <= inf;
            mu-strongly convex w.r.t. l_2 where mu > 0.
Algorithm.  That of `hasd.methods.hasd`, but the caller evaluates f.  The state names the one point where it needs f
            and its gradient; what it learns there either confirms the iterate that led there, or gives another trial.
            So a step is one evaluation, an iteration is mostly one step, and a run is one `lax.while_loop` without a
            callback; under `vmap` no lane waits for another's trials.  L declared or found (``L=None``): it is the same
            program.
Guarantee.  At every iterate that of `hasd.methods.hasd`, up to rounding: A U <= min psi, hence U - f* <= R^2/(2 A),
            where A is ``weight`` in the state, R is the l_2 distance to a minimiser from the start (of the epoch, if L
            is found), and f(x) <= U where a declared L is true.
Reference.  Bai & Bullins, Faster Acceleration for Steepest Descent (COLT 2025); the optimistix and optax interfaces.
Needs JAX:  ``pip install "hasd[jax]"``.  Only `HASD` needs optimistix, only the transformations need optax.

Solutions can be differentiated with respect to ``args`` (implicitly, by optimistix):

>>> import jax, jax.numpy as jnp, optimistix as optx
>>> from hasd.jax import HASD, eval_params, hasd
>>> def f(x, b):
...     return 0.5 * jnp.sum((x - b) ** 2)
>>> def solution(b):
...     return optx.minimise(f, HASD(L=1.0, p=2, rtol=1e-5), jnp.zeros(3), b).value
>>> b = jnp.array([1.0, 2.0, 3.0])
>>> bool(jnp.allclose(jax.jit(jax.jacobian(solution))(b), jnp.eye(3)))
True

The same as an optax transformation: ``params`` is where gradients are taken, ``eval_params(state)`` is the answer.

>>> params, optimiser = jnp.zeros(3), hasd(L=3.0, p=float("inf"))
>>> state = optimiser.init(params)
>>> @jax.jit
... def step(params, state):
...     value, grad = jax.value_and_grad(f)(params, b)
...     updates, state = optimiser.update(grad, state, params, value=value)
...     return params + updates, state
>>> for _ in range(100):
...     params, state = step(params, state)
>>> bool(jnp.abs(eval_params(state) - b).max() < 1e-2)
True

For training there are `stochastic_hasd` and `stacey`, optax transformations for gradients of mini-batches; what is
proved of them, and what is not, is in docs/training.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError('hasd.jax needs JAX: pip install "hasd[jax]"') from error

from .answers import eval_params
from .stacey_transform import StaceyState, stacey
from .state import HASDState
from .stochastic_transform import StochasticHASDState, stochastic_hasd
from .transform import hasd

if TYPE_CHECKING:
    from .minimiser import HASD

__all__ = [
    "HASD",
    "HASDState",
    "StaceyState",
    "StochasticHASDState",
    "eval_params",
    "hasd",
    "stacey",
    "stochastic_hasd",
]

if not TYPE_CHECKING:  # a type checker would take every name for known

    def __getattr__(name: str) -> Any:
        """`HASD` is loaded on first use: it is a class of optimistix, which the rest does without."""
        if name != "HASD":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from .minimiser import HASD

        return HASD
