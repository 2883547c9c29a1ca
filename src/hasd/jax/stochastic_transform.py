"""HASD for training as an optax transformation: gradients of mini-batches, momentum by coupling or by averaging."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from .._checks import check_betas, check_stochastic, check_words
from .._math.minibatch import (
    LEAST_RATE,
    Coupling,
    dual_exponent,
    first_or_later_step,
    gradient_factor,
    needs_dual_norm,
    smoothness_for,
    step_factor,
)
from . import inputs
from .leaf_norms import EntryNorm, MatrixNorm, Measures, measure_leaves
from .leaves import Leaves, Work, average, begin_work, check_rate, in_working_type, increment, load_optax, rate_at
from .trees import Scalar, Tree, scalar_dtype

if TYPE_CHECKING:
    import optax


class StochasticHASDState(NamedTuple):
    """What `stochastic_hasd` keeps between two updates."""

    count: Scalar  # the updates so far, by which a schedule is asked for the learning rate
    coupling: Coupling | None  # A and c: a number each, or one for each leaf; None without coupling
    x: Tree  # the iterate, in float32 or a wider type; None without coupling
    v: Tree  # the minimiser of the estimate function, alike
    m: Tree  # the average of gradients, alike; None without betas


class StepRule(NamedTuple):
    """What the user chose, checked."""

    learning_rate: Any  # a number, which may be traced, or a schedule
    norm: EntryNorm | MatrixNorm
    coupling: Any  # a number, which may be traced; None without
    one_norm: bool  # one norm for all leaves, not one for each
    unit: bool  # gradients are divided by their dual norm
    betas: tuple[float, float] | None
    weight_decay: Any  # a number, which may be traced


def stochastic_hasd(
    learning_rate: Any,
    *,
    p: float = math.inf,
    coupling: Any = 0.1,
    norm: str = "all",
    scale: str = "gradient",
    betas: tuple[float, float] | None = None,
    geometry: str = "lp",
    output_axis: str = "last",
    weight_decay: Any = 0.0,
) -> optax.GradientTransformationExtraArgs:
    """Steepest descent on gradients of mini-batches, with coupling or averaged gradients as momentum.

    The steps are those of `hasd.torch.StochasticHASD`, to rounding.  ``params`` are the point y where gradients are
    taken.  Validate, save and report ``eval_params(state, params)``, the iterate x; without coupling it is ``params``.
    Running means of BatchNorm are collected at y: collect them anew at x.

    Updates are complete steps, learning rate included.  In a chain put nothing after this that changes them, and do not
    change ``params`` between two steps.  Transformations of gradients, such as clipping, come before it.

    Parameters
    ----------
    learning_rate : float, array or callable
        The learning rate, or a schedule: a function of the number of updates so far.  Nothing moves where it is 0.
    p : float
        The norm, 2 <= p <= inf, compiled in: with ``optax.inject_hyperparams`` say ``static_args="p"``.  p = 2 is
        gradient descent, p = inf sign descent.
    coupling : float, array or None
        The floor under the share of v in y = (1 - share) x + share v, between 0 and 1; it acts like 1 minus the
        momentum.  0 is no floor: method ``hasd``, for full batches.  None is no coupling, and nothing to remember.
    norm : {"all", "tensor"}
        One norm for all leaves together, measured in means, or one for each.
    scale : {"gradient", "unit"}
        A step of the learning rate times the dual norm of the gradient, or of the learning rate.
    betas : (float, float) or None
        The step is made with b1 m + (1 - b1) g, and m becomes b2 m + (1 - b2) g, as in Lion.  It takes the place of
        the coupling, which must be None.
    geometry : {"lp", "spectral"}
        The norm of the entries, or the largest singular value, for leaves of two or more axes (p = inf).
    output_axis : {"last", "first"}
        Which axis of a matrix is that of its outputs, with spectral steps: "last" in Flax and Haiku, "first" in
        Equinox.  The other axes are joined.
    weight_decay : float or array
        Decoupled: all points are multiplied by 1 - learning_rate * weight_decay at each step.  A product beyond 1 is
        refused where both numbers are known; elsewhere the factor is then 0.

    Returns
    -------
    optax.GradientTransformationExtraArgs
        Its state is a `StochasticHASDState`.  Leaves that are None or masked in ``params`` are left out, and where a
        gradient is None the leaf is left as it is.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from hasd.jax import eval_params, stochastic_hasd
    >>> X = jax.random.normal(jax.random.key(0), (200, 5))
    >>> optimiser, params = stochastic_hasd(0.2, p=2), jnp.zeros(5)
    >>> state = optimiser.init(params)
    >>> @jax.jit
    ... def step(params, state, rows):
    ...     grads = jax.grad(lambda w: jnp.mean((rows @ (w - 1.0)) ** 2))(params)
    ...     updates, state = optimiser.update(grads, state, params)
    ...     return params + updates, state
    >>> for i in range(60):
    ...     params, state = step(params, state, X[i % 4 :: 4])
    >>> bool(abs(eval_params(state, params) - 1.0).max() < 0.01)
    True
    """
    transformation = load_optax("stochastic_hasd").GradientTransformationExtraArgs
    p = inputs.exponent(p)
    floor = coupling if coupling is None else inputs.known_number("coupling", coupling, traced=0.5)
    check_stochastic(p, floor, norm, scale, betas, geometry)
    check_words(output_axis=(output_axis, ("first", "last")))
    if betas is not None:
        check_betas(betas)
    check_rate(learning_rate, weight_decay)
    measured = MatrixNorm(output_axis) if geometry == "spectral" else EntryNorm(p)
    rule = StepRule(learning_rate, measured, coupling, norm == "all", scale == "unit", betas, weight_decay)

    def init(params: optax.Params) -> StochasticHASDState:
        return _initial_state(rule, params)

    def update(
        updates: optax.Updates, state: optax.OptState, params: optax.Params | None = None, **extra: Any
    ) -> tuple[optax.Updates, StochasticHASDState]:
        if not isinstance(state, StochasticHASDState):
            raise TypeError(f"state must be a StochasticHASDState, got {type(state).__name__}")
        work, counted = begin_work(updates, params), state._replace(count=increment(state.count))
        if not work.places:
            return updates, counted
        rate = rate_at(rule.learning_rate, state.count, work.dtype)
        if state.coupling is None:
            points, new = _step_uncoupled(rule, work, rate, counted)
        else:
            points, new = _step_coupled(rule, work, rate, counted, state.coupling)
        return work.updates_to(points, params, updates), new

    return transformation(init, update)


def _initial_state(rule: StepRule, params: Tree) -> StochasticHASDState:
    """Nothing is known yet: A = 0, and c = 0 says that there is no plan."""
    start, count = in_working_type(params), jnp.zeros((), jnp.int32)
    leaves = jax.tree.leaves(start)
    if isinstance(rule.norm, MatrixNorm):
        for shape in (leaf.shape for leaf in leaves if leaf.ndim < 2):
            raise ValueError(f"geometry='spectral' takes leaves of two or more axes, got one of shape {shape}")
    m = None if rule.betas is None else jax.tree.map(jnp.zeros_like, start)
    if rule.coupling is None:
        return StochasticHASDState(count, None, None, None, m)
    shape = () if rule.one_norm else (len(leaves),)
    coupling = Coupling(*(jnp.zeros(shape, scalar_dtype(leaves)) for _ in range(2)))
    return StochasticHASDState(count, coupling, start, in_working_type(params), m)


def _step_uncoupled(
    rule: StepRule, work: Work, rate: Scalar, state: StochasticHASDState
) -> tuple[Leaves, StochasticHASDState]:
    """x <- x - s_p(g)/L, g the gradient or its average."""
    g = work.gradients
    if rule.betas is not None:
        g, m = average(work.gather(state.m), g, rule.betas)
        state = state._replace(m=work.scatter(state.m, m))
    directions, measures = _measure(rule, work, g, needs_dual_norm(rule.norm.p, rule.unit))
    factor = step_factor(rate, rule.norm.p, _count(rule, work), measures.dual_norm, rule.unit)
    shrink = _shrinkage(rule, rate)
    both = enumerate(zip(work.points, directions, strict=True))
    return [_pick(shrink, i, x) * x - _pick(factor, i, x) * d for i, (x, d) in both], state


def _step_coupled(
    rule: StepRule, work: Work, rate: Scalar, state: StochasticHASDState, known: Coupling
) -> tuple[Leaves, StochasticHASDState]:
    """One step of `hasd._math.minibatch`; a learning rate of 0 leaves all as it is."""
    p, n, unit, moves = rule.norm.p, _count(rule, work), rule.unit, rate > 0.0
    directions, measures = _measure(rule, work, work.gradients, p > 2.0 or unit)
    places = ... if rule.one_norm else jnp.asarray(work.places)
    old = Coupling(*(each[places] for each in known))
    least = jnp.maximum(rate, LEAST_RATE)
    L = jnp.zeros_like(old.c) + smoothness_for(least, p, n)
    floor = rule.coupling if isinstance(rule.coupling, float | int) else jnp.asarray(rule.coupling, rate.dtype)
    step = first_or_later_step(old, L, measures.gain, dual_exponent(p) - 1.0, floor, jnp.where, jnp.sqrt, jnp.minimum)
    factor = step_factor(least, p, n, measures.dual_norm, unit)
    pull = step.weight * gradient_factor(p, n, measures.dual_norm, unit)
    shrink = _shrinkage(rule, rate)
    new: tuple[Leaves, Leaves, Leaves] = ([], [], [])
    kept = zip(work.points, work.gather(state.x), work.gather(state.v), strict=True)
    for i, (points, g, d) in enumerate(zip(kept, work.gradients, directions, strict=True)):
        factors = [_pick(each, i, g) for each in (factor, step.mix, pull, step.share, shrink)]
        for leaves, moved, old_one in zip(new, _move(*points, g, d, *factors), points, strict=True):
            leaves.append(jnp.where(moves, moved, old_one))
    y, x, v = new
    numbers = zip(known, step.coupling, strict=True)
    coupling = Coupling(*(jnp.where(moves, was.at[places].set(is_now), was) for was, is_now in numbers))
    return y, state._replace(coupling=coupling, x=work.scatter(state.x, x), v=work.scatter(state.v, v))


def _shrinkage(rule: StepRule, rate: Scalar) -> Scalar:
    """1 - lr * weight_decay, and 0 at least: decay never turns a sign."""
    return jnp.maximum(1.0 - rate * jnp.asarray(rule.weight_decay, rate.dtype), 0.0)


def _move(
    y: Any, x: Any, v: Any, g: Any, d: Any, factor: Any, mix: Any, pull: Any, share: Any, shrink: Any
) -> tuple[Any, Any, Any]:
    """The new y, x and v of a leaf; factors are those of the steepest step, of x, of v, of y and of the decay."""
    y, x, v = shrink * y - factor * d, shrink * x, shrink * v - pull * g
    x = x + mix * (y - x)
    return x + share * (v - x), x, v


def _measure(rule: StepRule, work: Work, gradients: Leaves, needed: bool) -> tuple[Leaves, Measures]:
    """The steepest directions, and where they are needed the norms."""
    directions = [rule.norm.direction(g) for g in gradients]
    if not needed:
        return directions, Measures()
    return directions, measure_leaves(rule.norm, gradients, directions, rule.one_norm, work.dtype)


def _count(rule: StepRule, work: Work) -> int:
    """n, the coordinates over which means are taken; 1 where each leaf has its norm."""
    return max(1, sum(rule.norm.count(leaf.shape) for leaf in work.points)) if rule.one_norm else 1


def _pick(factors: Any, i: int, leaf: jax.Array) -> jax.Array:
    """The factor of a leaf, in its type: the one for all, or its own."""
    factors = jnp.asarray(factors)
    return (factors[i] if factors.ndim else factors).astype(leaf.dtype)
