"""What the JAX methods know between two evaluations, and the arithmetic they share (`hasd._math.estimate`, traced).

A field may be given as a Python number: it becomes an array of its type where `select` joins it with another state.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._run.status import Status
from .trees import Scalar, Tree, as_leaves, dot, mix, norm, scalar_dtype, select, steepest

RUNNING = -1


class Setting(NamedTuple):
    """What a run does not change."""

    p: float  # a Python number: the exponent is compiled in
    mu: Scalar  # strong convexity w.r.t. l_2
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
        """The resolution of the numbers that x and g are made of: that of the coarsest leaf."""
        return max((float(jnp.finfo(leaf.dtype).eps) for leaf in jax.tree.leaves(self.x)), default=0.0)

    def descend(self, p: float, L: Scalar) -> Tree:
        """The end x - s_p(g)/L of a steepest step."""
        return mix(lambda x, s: x - s / L, self.x, steepest(self.g, p, self.dual_norm))

    def is_exhausted(self, p: float, L: Scalar) -> Scalar:
        """Whether a step of size 1/L moves neither the point nor the value by more than their last digits."""
        small = 2.0 * self.eps * norm(self.x, p) >= self.dual_norm / L
        flat = self.eps * jnp.abs(self.f) >= 0.5 * self.dual_norm * (self.dual_norm / L)
        return small & flat & (self.dual_norm > 0.0)


class EstimateTree(NamedTuple):
    """psi_t, without its constants; around v, without cuts, where nothing else is given."""

    v: Tree  # argmin psi_t
    weight: Scalar = 0.0  # A_t
    psi: Scalar = 0.0  # min psi_t

    def increment(self, c: Scalar, mu: Scalar) -> Scalar:
        """The a > 0 with c a^2 = (A + a)(1 + mu (A + a))."""
        A, c = self.weight, jnp.maximum(c, (1.0 + 2.0**-10) * mu)
        b = 1.0 + 2.0 * mu * A
        return (b + jnp.sqrt(b * b + 4.0 * (c - mu) * A * (1.0 + mu * A))) / (2.0 * (c - mu))

    def couple(self, x: Tree, a: Scalar, mu: Scalar) -> Tree:
        """The coupling point y."""
        A, kappa = self.weight, 1.0 + mu * self.weight
        share = a * kappa / (A * (kappa + mu * a) + a * kappa)
        return mix(lambda x, v: jnp.where(A == 0.0, v, x + share * (v - x)), x, self.v)

    def slope(self, e: EvaluationTree, mu: Scalar) -> Scalar:
        """<g, v - y> + (mu/2) ||v - y||^2."""
        away = mix(lambda v, y: v - y, self.v, e.x)
        return dot(e.g, away) + 0.5 * mu * dot(away, away)

    def cut(self, a: Scalar, e: EvaluationTree, mu: Scalar) -> EstimateTree:
        """psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2], exactly."""
        kappa = 1.0 + mu * self.weight
        kappa_next = kappa + mu * a
        kept, moved = kappa / kappa_next, a / kappa_next
        v = mix(lambda v, y, g: kept * v + (moved * mu) * y - moved * g, self.v, e.x, e.g)
        length = a * e.norm2
        gained = a * (e.f + kept * self.slope(e, mu))
        return EstimateTree(v, self.weight + a, self.psi + gained - length * length / (2.0 * kappa_next))

    def largest_root(self, e: EvaluationTree, f_next: Scalar, mu: Scalar) -> Scalar:
        """The largest a with (A + a) f_next <= min psi_{t+1}; NaN where there is none (see `hasd._math.estimate`)."""
        n, A, psi, f = e.norm2, self.weight, self.psi, e.f
        kappa = 1.0 + mu * A
        S = psi - A * f_next - 8.0 * e.eps * (jnp.abs(psi) + A * jnp.abs(f_next))
        noise = 8.0 * e.eps * jnp.maximum(jnp.abs(f), jnp.abs(f_next))
        D = mu * S + kappa * (f + self.slope(e, mu) - f_next - noise)
        half = jnp.maximum(0.5 - (mu / n) * ((f - f_next) / n), 1e-12)
        d = D / n
        root = jnp.sqrt(d * d + 4.0 * half * kappa * S)  # NaN where there is no root
        other = jnp.where(S > 0.0, 2.0 * kappa * S / (root - d) / n, nan)
        return jnp.where(d >= 0.0, (d + root) / (2.0 * half) / n, other)

    def rescale(self, center: Tree, f: Scalar, mu: Scalar) -> EstimateTree:
        """The cuts scaled by the largest c <= 1 with c A f <= min psi, as `Estimate.rescale`; 0 where none."""
        A, kappa = self.weight, 1.0 + mu * self.weight
        away = mix(lambda v, x: v - x, self.v, center)
        s = norm(away, 2.0) * kappa
        slack = self.psi + 0.5 * s * (s / kappa) - A * f
        c = jnp.minimum(1.0, 2.0 * slack / (s * s - 2.0 * mu * A * slack))
        kappa_scaled = 1.0 + c * mu * A
        v = mix(lambda x, far: x + (c * kappa / kappa_scaled) * far, center, away)
        psi = c * (slack + A * f) - 0.5 * (c * s) * (c * s / kappa_scaled)
        scaled = select(slack > 0.0, EstimateTree(v, c * A, psi), EstimateTree(center))
        return select(A * f <= self.psi, self, scaled)


class SearchTree(NamedTuple):
    """Where the search for rho stands (`hasd._math.search`)."""

    low: Scalar
    high: Scalar  # once lowered, a trial whose residual was above the window
    guided: Scalar = 0  # proposals made
    nonfinite: Scalar = 0  # trials in a row that were not finite
    forced: Scalar = False  # the residual jumps over the window: this trial, above it, is accepted


class Mend(NamedTuple):
    """What is kept for the case that gradients disprove the declared L (`hasd.methods.hasd`)."""

    center: Tree  # x_0 of the epoch
    best: Tree  # of the points whose gradient was taken, the one with the least f
    best_f: Scalar = inf
    wanted: Scalar = False  # L was raised: f is wanted at x_t, to scale the cuts by


class StepTree(NamedTuple):
    """A step that descends as its L promises; NaN: none."""

    L: Scalar = nan
    f: Scalar = nan
    local: Scalar = nan  # the L that would just have passed


class LineTree(NamedTuple):
    """Where the backtracking of L stands (`hasd.methods.base.descend`)."""

    L_start: Scalar = nan  # what the descent began with; NaN: anywhere
    couplings: Scalar = 0  # y's tried in this iteration
    at_x: Scalar = False  # whether f is wanted at the end of a step rather than at y
    L: Scalar = nan  # the constant being tried
    first: Scalar = False  # whether a longer step may still be tried
    best: StepTree = StepTree()  # an accepted first step, while a longer one is tried
    spoilt: Scalar = 1.0  # the factor by which non-finite trials raised L
    nonfinite: Scalar = 0  # non-finite trials in a row
    trials: Scalar = 1  # stepsizes tried from this y


class HASDState(NamedTuple):
    """Iterate t, and the next point to evaluate.

    >>> import jax.numpy as jnp
    >>> from hasd.jax import hasd
    >>> state = hasd(L=2.0).init(jnp.ones(3))
    >>> int(state.iteration), float(state.L), state.y.tolist()
    (0, 2.0, [1.0, 1.0, 1.0])
    """

    x: Tree  # x_t
    y: Tree  # where f and its gradient are wanted next
    at: EvaluationTree  # the last evaluation at a coupling point
    estimate: EstimateTree
    iteration: Scalar = 0  # t
    evaluations: Scalar = 0  # evaluations used so far
    status: Scalar = RUNNING  # or the code of a `hasd.Status`
    fun: Scalar = nan  # f(x_t); NaN where L is declared
    grad_norm: Scalar = inf  # the dual norm of `at`, once the step was taken
    grad_norm0: Scalar = inf  # the same at x_0
    L: Scalar = nan  # declared, or accepted last
    rho: Scalar = 1.0  # the trial that led to y
    search: Any = None  # the `SearchTree` of a declared L
    mend: Any = None  # the `Mend` of a declared L that may be raised
    line: Any = None  # the `LineTree` of a backtracked L

    def end(self, status: Status) -> HASDState:
        """The state with the run ended by that status."""
        return self._replace(status=status.code)


def initial_state(x0: Tree, L: Scalar | None, raise_L: bool) -> HASDState:
    """The state before the first evaluation, which asks for x_0; its arrays share no memory."""
    x = as_leaves(x0)
    dtype = scalar_dtype(x)
    state = HASDState(x, x, EvaluationTree(x, nan, mix(jnp.zeros_like, x), 0.0, 0.0), EstimateTree(x))
    if L is None:
        state = state._replace(line=LineTree())
    else:
        L = jnp.asarray(L, dtype)  # a traced L may be NaN, which the first step finds
        L = jnp.where((L > 0.0) & jnp.isfinite(L), L, nan)
        state = state._replace(L=L, search=new_search(dtype), mend=Mend(x, x) if raise_L else None)
    types = {bool: bool, int: jnp.int32, float: dtype}
    return jax.tree.map(lambda leaf: jnp.array(leaf, types.get(type(leaf))), state)


def new_search(dtype: Any) -> SearchTree:
    """A new search, in the range of `hasd._math.search`, or the narrower one of coarser numbers."""
    reach = 2.0 ** (jnp.finfo(dtype).maxexp - 24)
    return SearchTree(1.0 / reach, reach)
