"""What the JAX methods know between two evaluations, and the arithmetic they share (`hasd._math.estimate`, traced)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from .._run.status import Status
from ..methods.hasd import AIM
from .trees import Scalar, Tree, dot, dual, largest_size, mix, norm, own_copy, resolution, scalar_dtype, select

RUNNING = -1
CONVERGED, PRECISION, NONFINITE = Status.CONVERGED.code, Status.PRECISION.code, Status.NONFINITE.code
NONFINITE_START, UNBOUNDED = Status.NONFINITE_START.code, Status.UNBOUNDED.code


class Setting(NamedTuple):
    """What a run does not change."""

    p: float  # a Python number: the exponent is compiled in
    mu: Scalar | float  # strong convexity w.r.t. l_2
    raise_L: bool  # whether gradients may disprove a declared L
    restart: bool  # whether a backtracked run begins anew where f rises


class EvaluationTree(NamedTuple):
    """The function at one point."""

    x: Tree
    f: Scalar
    g: Tree
    norm2: Scalar  # ||g||_2
    dual_norm: Scalar  # ||g||_{p*}

    @property
    def gain(self) -> Scalar:
        """r(g) = ||g||_{p*}/||g||_2; 1 at g = 0."""
        return jnp.where(self.norm2 > 0.0, self.dual_norm / self.norm2, 1.0)

    @property
    def eps(self) -> float:
        """The resolution of the numbers that x and g are made of."""
        return resolution(self.x)


class EstimateTree(NamedTuple):
    """psi_t, without its constants."""

    v: Tree  # argmin psi_t
    weight: Scalar  # A_t
    psi: Scalar  # min psi_t


class SearchTree(NamedTuple):
    """Where the search for rho stands (`hasd.search`)."""

    low: Scalar
    high: Scalar  # once lowered, a trial whose residual was above the window
    guided: Scalar  # proposals made
    nonfinite: Scalar  # trials in a row that were not finite
    forced: Scalar  # the residual jumps over the window: this trial, above it, is accepted


class Mend(NamedTuple):
    """What is kept for the case that gradients disprove the declared L (`hasd.methods.hasd`)."""

    wanted: Scalar  # L was raised: f is wanted at x_t, to scale the cuts by
    center: Tree  # x_0 of the epoch
    best: Tree  # of the points whose gradient was taken, the one with the least f
    best_f: Scalar


class LineTree(NamedTuple):
    """Where the backtracking of L stands (`hasd.methods.base.descend`)."""

    at_x: Scalar  # whether f is wanted at the end of a step rather than at y
    L: Scalar  # the constant being tried; NaN: anywhere
    L_start: Scalar  # what the descent began with
    first: Scalar  # whether a longer step may still be tried
    best_L: Scalar  # an accepted first step, while a longer one is tried; NaN: none
    best_f: Scalar
    best_local: Scalar
    spoilt: Scalar  # the factor by which non-finite trials raised L
    nonfinite: Scalar  # non-finite trials in a row
    trials: Scalar  # stepsizes tried from this y
    couplings: Scalar  # y's tried in this iteration


class HASDState(NamedTuple):
    """Iterate t, and the next point to evaluate.

    >>> import jax.numpy as jnp
    >>> from hasd.jax import hasd
    >>> state = hasd(L=2.0).init(jnp.ones(3))
    >>> int(state.iteration), float(state.L), state.y.tolist()
    (0, 2.0, [1.0, 1.0, 1.0])
    """

    iteration: Scalar  # t
    evaluations: Scalar  # evaluations used so far
    status: Scalar  # RUNNING, or the code of a `hasd.Status`
    x: Tree  # x_t
    fun: Scalar  # f(x_t); NaN where L is declared
    y: Tree  # where f and its gradient are wanted next
    at: EvaluationTree  # the last evaluation at a coupling point
    grad_norm: Scalar  # its dual norm, once the step was taken
    grad_norm0: Scalar  # the same at x_0
    L: Scalar  # declared, or accepted last
    rho: Scalar  # the trial that led to y
    estimate: EstimateTree
    search: SearchTree | None  # of a declared L
    mend: Mend | None  # of a declared L that may be raised
    line: LineTree | None  # of a backtracked one


def make_evaluation(setting: Setting, y: Tree, f: Scalar | None, g: Tree, dtype: Any) -> tuple[EvaluationTree, Scalar]:
    """The evaluation with its norms, and whether it is finite; f = None where the value is not needed."""
    value = jnp.full((), jnp.nan, dtype) if f is None else jnp.asarray(f, dtype)
    g = mix(lambda like, leaf: leaf.astype(like.dtype), y, g)
    norm2 = norm(g, 2.0)
    dual_norm = norm2 if setting.p == 2.0 else norm(g, dual(setting.p))
    finite = (True if f is None else jnp.isfinite(value)) & jnp.isfinite(largest_size(g))
    return EvaluationTree(y, value, g, norm2, dual_norm), finite


def settle(state: HASDState, after: HASDState, f: Scalar) -> HASDState:
    """`after`, unless the run has ended (then the state stays) or f is -inf (then the run ends)."""
    bottomless = end_run(state._replace(evaluations=after.evaluations), UNBOUNDED)
    after = select(f == -jnp.inf, bottomless, after)
    return select(state.status == RUNNING, after, state)


def end_run(state: HASDState, code: int) -> HASDState:
    """The state with the run ended by that status."""
    return state._replace(status=jnp.full_like(state.status, code))


def initial_state(x0: Tree, L: Scalar | float | None, raise_L: bool) -> HASDState:
    """The state before the first evaluation, which asks for x_0."""
    x = own_copy(x0)
    dtype = scalar_dtype(x)

    def number(value: float | Scalar) -> Scalar:
        return jnp.array(value, dtype)

    def count(value: int = 0) -> Scalar:
        return jnp.array(value, jnp.int32)

    nan = float("nan")
    if L is not None:  # a traced L may be NaN, which the first step finds
        L = jnp.where((number(L) > 0.0) & jnp.isfinite(number(L)), number(L), nan)
    search = new_search(dtype) if L is not None else None
    mend = Mend(jnp.array(False), own_copy(x), own_copy(x), number(jnp.inf)) if L is not None and raise_L else None
    line = None
    if L is None:
        line = LineTree(
            at_x=jnp.array(False),
            L=number(nan),
            L_start=number(nan),
            first=jnp.array(False),
            best_L=number(nan),
            best_f=number(nan),
            best_local=number(nan),
            spoilt=number(1.0),
            nonfinite=count(),
            trials=count(),
            couplings=count(),
        )
    return HASDState(
        iteration=count(),
        evaluations=count(),
        status=count(RUNNING),
        x=x,
        fun=number(nan),
        y=own_copy(x),
        at=EvaluationTree(own_copy(x), number(nan), mix(jnp.zeros_like, x), number(0.0), number(0.0)),
        grad_norm=number(jnp.inf),
        grad_norm0=number(jnp.inf),
        L=number(nan if L is None else L),
        rho=number(1.0),
        estimate=EstimateTree(own_copy(x), number(0.0), number(0.0)),
        search=search,
        mend=mend,
        line=line,
    )


def new_search(dtype: Any) -> SearchTree:
    """A new search, in the range of `hasd.search`, or the narrower one of coarser numbers."""
    reach = 2.0 ** (jnp.finfo(dtype).maxexp - 24)
    low, high = jnp.array(1.0 / reach, dtype), jnp.array(reach, dtype)
    return SearchTree(low, high, jnp.array(0, jnp.int32), jnp.array(0, jnp.int32), jnp.array(False))


def first_rho(gain: Scalar) -> Scalar:
    """The rho a search starts from."""
    return AIM / gain**2


def increment(A: Scalar, c: Scalar, mu: Scalar | float) -> Scalar:
    """The a > 0 with c a^2 = (A + a)(1 + mu (A + a))."""
    c = jnp.maximum(c, (1.0 + 2.0**-10) * mu)
    b = 1.0 + 2.0 * mu * A
    return (b + jnp.sqrt(b * b + 4.0 * (c - mu) * A * (1.0 + mu * A))) / (2.0 * (c - mu))


def couple(x: Tree, estimate: EstimateTree, a: Scalar, mu: Scalar | float) -> Tree:
    """The coupling point y."""
    A, kappa = estimate.weight, 1.0 + mu * estimate.weight
    share = a * kappa / (A * (kappa + mu * a) + a * kappa)
    return mix(lambda x, v: jnp.where(A == 0.0, v, x + share * (v - x)), x, estimate.v)


def slope(estimate: EstimateTree, e: EvaluationTree, mu: Scalar | float) -> Scalar:
    """<g, v - y> + (mu/2) ||v - y||^2."""
    away = mix(lambda v, y: v - y, estimate.v, e.x)
    return dot(e.g, away) + 0.5 * mu * dot(away, away)


def cut(estimate: EstimateTree, a: Scalar, e: EvaluationTree, mu: Scalar | float) -> EstimateTree:
    """psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2], exactly."""
    kappa = 1.0 + mu * estimate.weight
    kappa_next = kappa + mu * a
    kept, moved = kappa / kappa_next, a / kappa_next
    v = mix(lambda v, y, g: kept * v + (moved * mu) * y - moved * g, estimate.v, e.x, e.g)
    length = a * e.norm2
    gained = a * (e.f + kept * slope(estimate, e, mu))
    return EstimateTree(v, estimate.weight + a, estimate.psi + gained - length * length / (2.0 * kappa_next))


def is_exhausted(setting: Setting, e: EvaluationTree, L: Scalar) -> Scalar:
    """Whether a step of size 1/L moves neither the point nor the value by more than their last digits."""
    small = 2.0 * e.eps * norm(e.x, setting.p) >= e.dual_norm / L
    return small & (e.eps * jnp.abs(e.f) >= 0.5 * e.dual_norm * (e.dual_norm / L)) & (e.dual_norm > 0.0)
