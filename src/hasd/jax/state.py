"""What the JAX method knows between two evaluations, and the estimate function of `hasd._math.estimate`, traced.

Of the estimate function only what the method needs is kept: its minimum enters through `Iterate.slack` alone.

A field may be given as a Python number: it becomes an array of its type where `select` joins it with another state.
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._math.geometry import Lp
from .._math.pair import UNCLEAR, UNPLANNED, Difference, WeightPlan
from .._run.status import Status
from .trees import Scalar, Tree, as_leaves, dot, mix, norm, scalar_dtype, select

RUNNING = -1


class Setting(NamedTuple):
    """What a run does not change."""

    lp: Lp  # the norm, which is compiled in
    mu: Scalar  # strong convexity w.r.t. l_2
    declared: bool  # whether L is declared, not found
    raise_L: bool  # whether gradients may disprove a declared L
    restart: bool  # whether a run whose L is found begins anew where f no longer falls


class EvaluationTree(NamedTuple):
    """The function at one point."""

    x: Tree
    f: Scalar  # NaN where the caller gives none
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

    def fall(self, L: Scalar) -> Scalar:
        """||g||_{p*}^2/(2L), by which f falls in a steepest step."""
        return 0.5 * self.dual_norm * (self.dual_norm / L)

    def rounding(self, one: Scalar, other: Scalar) -> Scalar:
        """How large a difference of two numbers must be to be acted on: `hasd._math.estimate.rounding`."""
        return 8.0 * self.eps * jnp.maximum(jnp.abs(one), jnp.abs(other))

    def is_exhausted(self, p: float, L: Scalar) -> Scalar:
        """Whether a step of size 1/L moves neither the point nor the value by more than their last digits."""
        small = 2.0 * self.eps * norm(self.x, p) >= self.dual_norm / L
        return small & (self.eps * jnp.abs(self.f) >= self.fall(L))


def compare(e: EvaluationTree, other: EvaluationTree) -> Difference:
    """f at e against f at the other, as `hasd._math.pair.compare`; NaN without values."""
    apart = mix(lambda y, z: y - z, e.x, other.x)
    slope, steeper = dot(other.g, apart), dot(e.g, apart)
    noise, finer = e.rounding(e.f, other.f), e.rounding(slope, steeper)
    by_values = ~(jnp.abs(steeper - slope) <= UNCLEAR * noise)
    fall = jnp.where(by_values, e.f - other.f, 0.5 * (slope + steeper))
    return Difference(1.0, fall, slope, jnp.where(by_values, noise, finer), by_values)


class EstimateTree(NamedTuple):
    """psi_t as `hasd._math.estimate.Estimate` holds it, without its minimum."""

    center: Tree  # x_0 of this epoch
    away: Tree  # argmin psi_t - center
    weight: Scalar = 0.0  # A_t

    @classmethod
    def around(cls, x: Tree) -> EstimateTree:
        """psi_0 = 1/2 ||. - x||^2."""
        return cls(x, mix(jnp.zeros_like, x))

    def kappa(self, mu: Scalar) -> Scalar:
        """The curvature of psi_t."""
        return 1.0 + mu * self.weight

    def to_minimiser(self, x: Tree) -> Tree:
        """argmin psi_t - x, with the digits that the two share left out."""
        return mix(lambda away, x, center: away - (x - center), self.away, x, self.center)

    def couple(self, x: Tree, a: Scalar, mu: Scalar) -> Tree:
        """The coupling point y, where there are cuts."""
        kappa = self.kappa(mu)
        share = a * kappa / (self.weight * (kappa + mu * a) + a * kappa)
        return mix(lambda x, to_v: x + share * to_v, x, self.to_minimiser(x))

    def slope(self, e: EvaluationTree, mu: Scalar) -> Scalar:
        """<g, v - y> + (mu/2) ||v - y||^2, v = argmin psi_t."""
        to_v = self.to_minimiser(e.x)
        return dot(e.g, to_v) + 0.5 * mu * dot(to_v, to_v)

    def cut(self, a: Scalar, e: EvaluationTree, mu: Scalar) -> EstimateTree:
        """psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2]."""
        weight = self.weight + a
        a = weight - self.weight
        kappa = 1.0 + mu * weight
        kept, moved = self.kappa(mu) / kappa, a / kappa
        apart = mix(lambda y, center: y - center, e.x, self.center)
        away = mix(lambda away, apart, g: kept * away + (moved * mu) * apart - moved * g, self.away, apart, e.g)
        return EstimateTree(self.center, away, weight)

    def rescale(self, slack: Scalar, mu: Scalar) -> EstimateTree:
        """The cuts scaled by the largest c <= 1 with c A U <= min psi, as `Estimate.rescale`; none where c = 0."""
        A, kappa = self.weight, self.kappa(mu)
        s = jnp.sqrt(dot(self.away, self.away)) * kappa
        spare = slack + 0.5 * s * (s / kappa)
        c = jnp.minimum(1.0, 2.0 * spare / (s * s - 2.0 * mu * A * spare))
        away = mix(lambda away: (c * kappa / (1.0 + c * mu * A)) * away, self.away)
        scaled = select(spare > 0.0, EstimateTree(self.center, away, c * A), EstimateTree.around(self.center))
        return select(slack >= 0.0, self, scaled)


class Iterate(NamedTuple):
    """x_t with what the method made along with it."""

    x: Tree  # x_t
    excess: Scalar  # A_t (U_t - f(y)), y the newest evaluation; x_t and U_t have property P (`hasd._math.pair`)
    slack: Scalar  # min psi_t - A_t U_t >= 0
    estimate: EstimateTree  # psi_t
    plan: WeightPlan  # what the next point y_t is coupled with

    def seen_from(self, difference: Difference) -> Iterate:
        """The same, after an evaluation at another y: `difference` compares the last with it."""
        return self._replace(excess=self.excess + self.estimate.weight * difference.fall)


class HASDState(NamedTuple):
    """Iterate t, and the next point to evaluate.

    >>> import jax.numpy as jnp
    >>> from hasd.jax import hasd
    >>> state = hasd(L=2.0).init(jnp.ones(3))
    >>> int(state.iteration), float(state.L), state.y.tolist()
    (0, 2.0, [1.0, 1.0, 1.0])
    """

    y: Tree  # where f and its gradient are wanted next
    at: EvaluationTree  # the evaluation at y_t, whose cut is not yet part of psi_t
    best: EvaluationTree  # the lowest one so far; without values the newest
    start: EvaluationTree  # where the epoch began
    made: Iterate  # iterate t
    trial: Iterate  # iterate t + 1, unless the evaluation at y disagrees
    iteration: Scalar = 0  # t
    evaluations: Scalar = 0  # evaluations used so far
    status: Scalar = RUNNING  # or the code of a `hasd.Status`
    grad_norm0: Scalar = nan  # the dual norm of the gradient at x_0
    L: Scalar = nan  # declared, or that of the last step
    L_next: Scalar = nan  # where this iteration began, or will; NaN: anywhere
    has_risen: Scalar = False  # whether L has been raised in this run
    idle: Scalar = 0  # iterations since there was a lower point
    began: Scalar = 0  # the iteration at which the epoch began
    fell: Scalar = inf  # by how much f fell in the epoch before
    least: Scalar = 0.0  # the weight that the epoch must reach before it may end
    L_tried: Scalar = nan  # the constant of the trial
    trials: Scalar = 1  # constants tried in this iteration
    nonfinite: Scalar = 0  # points of this iteration that were not finite
    anew: Scalar = False  # whether the trial is the first step of a new epoch, which begins at `best`

    @property
    def x(self) -> Tree:
        """x_t, the point to use; where the gradient is 0, the point where it is."""
        return select(self.status == Status.CONVERGED.code, self.at.x, self.made.x)

    @property
    def U(self) -> Scalar:
        """U_t, which with x_t has property P."""
        return self.at.f + self.made.excess / self.estimate.weight

    @property
    def estimate(self) -> EstimateTree:
        """psi_t."""
        return self.made.estimate

    @property
    def grad_norm(self) -> Scalar:
        """The dual norm of the newest gradient that an iteration uses."""
        return self.at.dual_norm

    def end(self, status: Status) -> HASDState:
        """The state with the run ended by that status."""
        return self._replace(status=status.code)

    @property
    def base(self) -> EvaluationTree:
        """What the trial is made of: the newest evaluation, or where a new epoch begins."""
        return select(self.anew, self.best, self.at)

    def new_epoch(self) -> HASDState:
        """The state with what is noted when an epoch begins, as in `hasd.methods.hasd`."""
        fell = compare(self.start, self.best).fall
        least = jnp.where(fell * (jnp.e**2 - 1.0) > self.fell, 2.0 * self.estimate.weight, self.least)
        return self._replace(idle=0, began=self.iteration, start=self.best, fell=fell, least=least)


def initial_state(x0: Tree, L: Scalar | None) -> HASDState:
    """The state before the first evaluation, which asks for x_0; its arrays share no memory."""
    x = as_leaves(x0)
    dtype = scalar_dtype(x)
    nowhere = EvaluationTree(x, nan, mix(jnp.zeros_like, x), nan, nan)
    made = Iterate(x, 0.0, 0.0, EstimateTree.around(x), UNPLANNED)
    state = HASDState(x, nowhere, nowhere, nowhere, made, made)
    if L is not None:
        L = jnp.asarray(L, dtype)
        status = jnp.where((L > 0.0) & jnp.isfinite(L), RUNNING, Status.NONFINITE.code)  # a traced L may be anything
        state = state._replace(L=L, L_next=L, L_tried=L, status=status.astype(jnp.int32))
    types = {bool: bool, int: jnp.int32, float: dtype}
    return jax.tree.map(lambda leaf: jnp.array(leaf, types.get(type(leaf))), state)
