"""STACEY (Luo, Bai, et al., ICML 2025) as an optax transformation: the formulas of `hasd.torch.stacey`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from .._checks import STACEY_EPS, check_stacey
from . import inputs
from .leaves import average, begin_work, check_rate, in_working_type, increment, load_optax, rate_at
from .trees import Scalar, Tree

if TYPE_CHECKING:
    import optax


class StaceyState(NamedTuple):
    """What `stacey` keeps between two updates."""

    count: Scalar  # the updates so far, by which a schedule is asked for the learning rate
    z: Tree  # the second sequence, in float32 or a wider type
    m: Tree  # the average of gradients, alike


def stacey(
    learning_rate: Any = 1e-3,
    *,
    p: float = 3.0,
    second: str = "2",
    betas: tuple[float, float] = (0.9, 0.999),
    alpha: Any = 1e-3,
    tau: Any = 1e-3,
    eps: Any = None,
    weight_decay: Any = 5e-4,
) -> optax.GradientTransformationExtraArgs:
    """STACEY(p,p) and STACEY(p,2), stochastic steepest descent with a second sequence z, as published.

    The steps are those of `hasd.torch.Stacey`, to rounding.  Updates are complete steps, learning rate included: in a
    chain put nothing after this that changes them.

    Parameters
    ----------
    learning_rate : float, array or callable
        The step from the parameters to y, or a schedule: a function of the number of updates so far.
    p : float
        The exponent, 2 <= p <= inf, compiled in: with ``optax.inject_hyperparams`` say ``static_args="p"``.  p = inf
        with ``second="2"`` only.
    second : {"2", "p"}
        The geometry in which z moves: STACEY(p,2) or STACEY(p,p).
    betas : (float, float)
        The share of the old average in the step, and in the next average.
    alpha : float or array
        The step of z.  Schedules leave it as it is.
    tau : float or array
        The share of z in the new parameters, between 0 and 1.
    eps : float or array, optional
        Keeps the step of small gradients finite; None takes the published 1e-4 for (p,2), 1e-8 for (p,p).
    weight_decay : float or array
        Decoupled.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        Its state is a `StaceyState`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from hasd.jax import stacey
    >>> optimiser, params = stacey(0.02, tau=0.0, weight_decay=0.0), jnp.zeros(5)
    >>> state = optimiser.init(params)
    >>> for _ in range(100):
    ...     updates, state = optimiser.update(2.0 * (params - 1.0), state, params)
    ...     params = params + updates
    >>> bool(abs(params - 1.0).max() < 0.2)
    True
    """
    transformation = load_optax("stacey").GradientTransformationExtraArgs
    p = inputs.exponent(p)
    given = {"alpha": alpha, "tau": tau} | ({} if eps is None else {"eps": eps})
    known = {name: inputs.known_number(name, value, traced=0.5) for name, value in given.items()}
    check_stacey(p, second, betas, **known)
    check_rate(learning_rate, weight_decay)
    eps = STACEY_EPS[second] if eps is None else eps

    def init(params: optax.Params) -> StaceyState:
        start = in_working_type(params)
        return StaceyState(jnp.zeros((), jnp.int32), start, jax.tree.map(jnp.zeros_like, start))

    def update(
        updates: optax.Updates, state: optax.OptState, params: optax.Params | None = None, **extra: Any
    ) -> tuple[optax.Updates, StaceyState]:
        if not isinstance(state, StaceyState):
            raise TypeError(f"state must be a StaceyState, got {type(state).__name__}")
        work = begin_work(updates, params)
        averages, m = average(work.gather(state.m), work.gradients, betas)
        z = [
            _move_second(old, c, jnp.asarray(alpha, c.dtype), p, second)
            for old, c in zip(work.gather(state.z), averages, strict=True)
        ]
        points = []
        for w, c, end in zip(work.points, averages, z, strict=True):
            rate = rate_at(learning_rate, state.count, c.dtype)
            share, decay, least = (jnp.asarray(each, c.dtype) for each in (tau, weight_decay, eps))
            y = (1.0 - share - rate * decay) * w - rate * (1.0 - share) * _direction(c, p, least)
            points.append(y + share * end)
        kept = StaceyState(increment(state.count), work.scatter(state.z, z), work.scatter(state.m, m))
        return work.updates_to(points, params, updates), kept

    return transformation(init, update)


def _direction(c: jax.Array, p: float, eps: Scalar) -> jax.Array:
    """c/(|c|^{(p-2)/(p-1)} + eps)."""
    return c / (jnp.abs(c) ** (1.0 if p == math.inf else (p - 2.0) / (p - 1.0)) + eps)


def _move_second(z: jax.Array, c: jax.Array, alpha: Scalar, p: float, second: str) -> jax.Array:
    """The next z."""
    if second == "2":
        return z - alpha * c
    u = jnp.sign(z) * jnp.abs(z) ** (p - 1.0) - alpha * c
    return jnp.sign(u) * jnp.abs(u) ** (1.0 / (p - 1.0))
