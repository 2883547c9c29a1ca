"""HASD over a subspace whose images are known: for f(x) = phi(Ax - b) + (ridge/2)||x||^2, with no L and no search.

Problem.    min f(x), f as above, phi convex and smooth.
Algorithm.  g = grad f(x_t);  x_{t+1} = argmin of f over x_t + span{g, s_p(g), v_t - x_t, the last directions} by a few
            damped Newton steps on cached images;  a = the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};
            psi_{t+1} = psi_t + a [f(x_t) + <g, . - x_t> + (mu/2)||. - x_t||^2].
            Two products with A an iteration at p = 2 (A^T phi' and the image of the new direction), three otherwise.
Why y = x.  v_{t+1} lies in the affine subspace over which x_{t+1} minimises f (g and v_t - x_t are in its span), so
            x_{t+1} is also the minimiser on the segment to v_{t+1}: the segment search's coupling point is x_{t+1}.
Guarantee.  A_t f(x_t) <= min psi_t for all t, hence f(x_T) - f* <= R^2/(2 A_T), known after the run; f(x_t) never
            increases.  Minimised exactly, 2 L_p R^2/(G_p^2 T^2) follows for every p whose s_p is in the span; here the
            inner method ends when the gradient in the span has fallen enough, so that rate is observed, not claimed.
Numerics.   v_t - x_t costs nothing: it starts as 0 and moves by vectors of the span, in whose coordinates it is
            tracked, and it is kept where the span is cut down.  The image of each direction comes from a product of its
            own, so that no error is amplified; images are refreshed on a schedule, when S^T g and W^T phi' disagree,
            and when no step decreases f.
Reference.  SESOP (Narkiss & Zibulevsky 2005) for the subspace with cached images; AGMsDR (Nesterov, Gasnikov, Guminov,
            Dvurechensky 2020) for the segment search and the largest root.

>>> import numpy as np, hasd
>>> A = np.random.default_rng(0).standard_normal((60, 8))
>>> f = hasd.objectives.LogSumExp(A, ridge=0.1)
>>> res = hasd.minimize(f, np.ones(8), method="hasd-subspace", tol=1e-9)
>>> res.success, res.p
(True, 2.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from .._checks import check_whole
from .._math.estimate import Estimate
from .._math.geometry import dot, norm2
from ..objectives._images import Images, Small
from ._costs import Costs
from ._line_search import evaluate_image
from ._span import Span
from ._span_newton import Effort, Place, Ridge, minimise
from .base import Evaluation, ImageMethod, ImageState, Problem, State, Status, Stop, add_cut, advance, first_state

WHOLE, LEAST, MOST = 128, 16, 64
"""Directions kept: all of them up to dimension WHOLE, between LEAST and MOST in larger spaces."""
DISAGREE = 1e-8
"""Where S^T g and W^T phi' differ by more than this, relative to ||g||, the images are computed again."""
REFRESH = (50, 400)
"""Iterations between refreshes of the images, at first and at most."""
DRIFT = 1e-11
"""Where a refresh finds more drift than this, the next one comes sooner; otherwise later."""


@dataclass(frozen=True, repr=False)
class SubspaceState(ImageState):
    """A state with the images that belong to it."""

    span: Span = None  # type: ignore[assignment]  # the directions kept
    apart: Small = field(default_factory=partial(np.zeros, 0))  # v_t - x_t in the coordinates of the span
    damping: float = 0.0  # of the inner Newton method
    due: int = REFRESH[0]  # the age at which the images will be refreshed
    drift: float = 0.0  # what the last refresh found: max|z - (Ax - b)|, relative


@dataclass(frozen=True)
class HASDSubspace(ImageMethod):
    """The subspace method.  `memory`: directions kept (None: by cost); `inner`: Newton steps in each span, at most."""

    memory: int | None = None
    inner: int = 50
    name: str = "hasd-subspace"
    default_p: float = 2.0
    state_classes: ClassVar[tuple[type, ...]] = (SubspaceState,)
    needs_images: bool = True

    def __post_init__(self) -> None:
        """Refuse sizes too small to hold one iteration's directions."""
        check_whole("inner", self.inner, least=1)
        if self.memory is not None:
            check_whole("memory", self.memory, least=4)

    def capacity(self, d: int) -> int:
        """How many directions to keep: all of a small space, otherwise k with k^2 some times d.

        A Newton step in k coordinates costs n k^2, a product n d.  Once the span is the whole space, only the gradient
        that confirms the minimum needs a product.
        """
        if self.memory is not None:
            return min(self.memory, d)
        return d if d <= WHOLE else max(LEAST, min(MOST, int(2.5 * math.sqrt(d))))

    def init(self, problem: Problem, start: Evaluation) -> SubspaceState:
        """x_0 = v_0 with its image; no directions yet."""
        images: Images = problem.images
        span = Span.empty(images, start.x, self.capacity(start.x.shape[0]))
        return SubspaceState(**first_state(problem, start, problem.mu), point=images.at(start.x), span=span)

    def step(self, problem: Problem, state: State) -> SubspaceState:
        """One iteration."""
        assert isinstance(state, SubspaceState)
        images: Images = problem.images
        e = _evaluate_here(problem, state)
        if e.norm2 == 0.0:
            return _take_gradient(problem, state, e)
        span, h = state.span.with_direction(images, e.g)
        if not problem.is_euclidean:
            span, _ = span.with_direction(images, problem.steepest(e))
        ridge = Ridge.near(problem.objective.ridge, state.x, span.S)
        place = Place(np.zeros(span.k), state.point, state.fun, state.damping)
        slopes = images.slopes(span.W, state.point) + ridge.gradient(place.c)
        if state.age == 0 or norm2(h - slopes[: h.size]) <= DISAGREE * e.norm2:
            faint = math.inf if problem.bounded_below or ridge.mu > 0.0 else e.dg()
            effort = Effort(self.inner, Costs.in_run(problem))
            try:
                place = minimise(images, span, place, ridge, slopes, effort, faint)
                if state.age == 0 and place.point is state.point:
                    raise Stop(Status.PRECISION)
            except Stop:
                if state.at.x is state.x:
                    raise
                return _take_gradient(problem, state, e)
        if place.point is state.point:
            return self.step(problem, refresh_images(problem, state, forget=True))
        x = state.x + span.S.expand(place.c)
        # The ridge's value comes from x: its terms around x_t may cancel.
        fun = place.point.value + 0.5 * problem.objective.ridge * dot(x, x)
        estimate = add_cut(state.estimate, e, fun)
        apart = next_apart(state, estimate, h, span.k) - place.c
        span, apart = span.remember(images, place.c, apart, self.capacity(x.shape[0]))
        kept = {"point": place.point, "span": span, "apart": apart, "damping": place.damping, "age": state.age + 1}
        moved = advance(problem, state, e, estimate, 1, x=x, fun=fun, standing=state.standing.with_iterate(e), **kept)
        return refresh_images(problem, moved) if moved.age >= moved.due else moved


def _evaluate_here(problem: Problem, state: SubspaceState) -> Evaluation:
    """The evaluation at x_t, on its image: one product, none at x_0, where it is known."""
    if state.iteration == 0:
        return state.at
    problem.oracle.charge()
    return evaluate_image(problem, state.x, state.point, None if state.age == 0 else state.at.doubt.image)


def _take_gradient(problem: Problem, state: SubspaceState, e: Evaluation) -> SubspaceState:
    """The same point with its own gradient, before a run ends there: that gradient may meet the tolerance."""
    return replace(state, iteration=state.iteration + 1, at=e, grad_norm=problem.dual_norm(e))


def next_apart(state: SubspaceState, estimate: Estimate, h: Small, k: int) -> Small:
    """v_{t+1} - x_t in the k coordinates of the span, in which g has h: kappa (v_t - x_t) - a g, over kappa'."""
    apart = np.zeros(k)
    apart[: state.apart.size] = state.estimate.kappa * state.apart
    apart[: h.size] -= (estimate.weight - state.weight) * h
    return apart / estimate.kappa


def refresh_images(problem: Problem, state: SubspaceState, forget: bool = False) -> SubspaceState:
    """Compute the image of x from x: one product.  With `forget`, where the directions' images are in doubt, drop all
    directions but v - x, whose image costs one more product.
    """
    images: Images = problem.images
    point = images.at(state.x)
    drift = images.distance(point.z, state.point.z)
    due = max(REFRESH[0], state.due // 2) if drift > DRIFT else min(2 * state.due, REFRESH[1])
    fun = point.value + 0.5 * problem.objective.ridge * dot(state.x, state.x)
    fresh = replace(state, fun=fun, point=point, age=0, due=due, drift=drift)
    if not forget:
        return fresh
    span, apart = Span.empty(images, state.x, state.span.S.store.room), state.estimate.to_minimiser(state.x)
    span, h = span.with_direction(images, apart)
    return replace(fresh, span=span, apart=h, damping=0.0)
