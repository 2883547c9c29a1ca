"""HASD over a subspace whose images are known: for f(x) = phi(Ax - b) + (ridge/2)||x||^2, with no L and no search.

Problem.    min f(x), f as above, phi convex and smooth.
Algorithm.  g = grad f(x_t);  x_{t+1} = argmin of f over x_t + span{g, s_p(g), v_t - x_t, the last directions} by a few
            damped Newton steps on cached images;  a = the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};
            psi_{t+1} = psi_t + a [f(x_t) + <g, . - x_t> + (mu/2)||. - x_t||^2].
            Two products with A an iteration at p = 2 (A^T phi' and the image of the new direction), three otherwise.
Why y = x.  v_{t+1} lies in the affine subspace over which x_{t+1} minimises f (g and v_t - x_t are in its span), so
            x_{t+1} is also the minimiser on the segment to v_{t+1}: the segment search's coupling point is x_{t+1}.
Guarantee.  A_t f(x_t) <= min psi_t for all t, hence f(x_T) - f* <= R^2/(2 A_T), read off at run time; f(x_t) never
            increases.  Minimised exactly, and with v_t - x_t in the span, 2 L_p R^2/(G_p^2 T^2) would follow for every
            p whose s_p is in it; here the minimisation is inexact and a v_t - x_t that is nearly in the span is left
            out (its image would be a small difference), so that rate is observed, not claimed.
Numerics.   The image of each direction comes from a product of its own, so that no error is amplified; images are
            refreshed on a schedule, when S^T g and W^T phi' disagree, and when no step decreases f.
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
from dataclasses import dataclass, replace

import numpy as np

from ..estimate import Estimate
from ..geometry import dot, norm2
from ..objectives.images import Image, Images, Point, Small
from ..oracle import Evaluation
from ..result import Status, Stop
from .base import Problem, State, first_state, gain_at, whole
from .span import Span
from .subspace import Place, Ridge, minimise

WHOLE, LEAST, MOST = 128, 16, 64
"""Directions kept: all of a space of that dimension, and between these in a larger one."""
DISAGREE = 1e-8
"""S^T g against W^T phi', relative to ||g||: beyond this the images are made anew."""
REFRESH = (50, 400)
"""Iterations between refreshes of the images, at first and at most."""
DRIFT = 1e-11
"""Where a refresh finds more drift than this, the next one comes sooner; otherwise later."""


@dataclass(frozen=True)
class SubspaceState(State):
    """A state with the images that belong to it."""

    point: Point = None  # type: ignore[assignment]  # phi expanded at A x_t - b
    v_image: Image = None  # A v_t - b
    span: Span = None  # type: ignore[assignment]  # the directions kept
    damping: float = 0.0  # of the inner Newton method
    age: int = 0  # iterations since the images were refreshed
    due: int = REFRESH[0]  # the age at which they will be
    drift: float = 0.0  # what the last refresh found: max|z - (Ax - b)|, relative


@dataclass(frozen=True)
class HASDSubspace:
    """The subspace method.  `memory`: directions kept (None: by cost); `inner`: Newton steps in each span, at most."""

    memory: int | None = None
    inner: int = 50
    name: str = "hasd-subspace"
    default_p: float = 2.0
    needs_images: bool = True

    def __post_init__(self) -> None:
        """Refuse sizes too small to hold one iteration's directions."""
        whole("inner", self.inner, least=1)
        if self.memory is not None:
            whole("memory", self.memory, least=4)

    def capacity(self, d: int, constant: bool) -> int:
        """How many directions to keep: all of a small space, otherwise k with k^2 some times d.

        A Newton step in k coordinates costs n k^2 (n k where the curvature is constant), a product n d; but once the
        span is the whole space no product with A is needed any more, only the gradient that says so.
        """
        if self.memory:
            return self.memory
        return min(d, WHOLE) if constant or d <= WHOLE else max(LEAST, min(MOST, int(2.5 * math.sqrt(d))))

    def init(self, problem: Problem, start: Evaluation) -> SubspaceState:
        """x_0 = v_0 with its image; no directions yet."""
        images: Images = problem.objective.images()
        point = images.at(start.x)
        span = Span.empty(images, start.x.size, self.capacity(start.x.size, images.constant))
        return SubspaceState(**first_state(problem, start, problem.mu), point=point, v_image=point.z, span=span)

    def step(self, problem: Problem, state: State) -> SubspaceState:
        """One iteration."""
        assert isinstance(state, SubspaceState)
        # a resumed state brings directions, not another run's objective with its counts
        state = replace(state, span=replace(state.span, images=problem.objective.images()))
        state, e = self._evaluated(problem, state)
        if e.norm2 == 0.0:
            return replace(state, iteration=state.iteration + 1, at=e, grad_norm=0.0)
        span, h = state.span.with_direction(e.g)
        if problem.geometry.p != 2.0:
            span, _ = span.with_direction(problem.geometry.steepest(e.g))
        images = span.images
        wide = span.with_known(state.estimate.v - state.x, images.combine((1.0, state.v_image), (-1.0, state.point.z)))
        place = self._minimised(problem, state, wide)
        if not place.moved:
            if state.age == 0:
                raise Stop(Status.PRECISION)
            return self.step(problem, refreshed(problem, state, forget=True))
        x = state.x + wide.S.columns @ place.c
        span = wide.without_last() if wide.k > span.k else span
        g_image = images.expand(span.W, np.append(h, np.zeros(span.k - h.size)))
        estimate, v_image = weighed(images, state, e, g_image, place.f)
        moved = replace(
            state,
            iteration=state.iteration + 1,
            x=x,
            fun=place.f,
            at=e,
            grad_norm=problem.geometry.dual_norm(e.g),
            estimate=estimate,
            theta=state.weight / estimate.weight if estimate.weight > 0.0 else math.nan,
            gain=gain_at(problem, e),
            trials=1,
            point=place.point,
            v_image=v_image,
            span=span.remember(place.c[: span.k], self.capacity(x.size, images.constant)),
            damping=place.damping,
            age=state.age + 1,
        )
        return refreshed(problem, moved) if moved.age >= moved.due else moved

    def _evaluated(self, problem: Problem, state: SubspaceState) -> tuple[SubspaceState, Evaluation]:
        """The gradient at x_t; where it disagrees with the images, they are made anew first."""
        if state.iteration == 0:
            return state, state.at
        problem.oracle.charge()
        g = gradient(problem, state)
        S = state.span.S.columns
        told = state.span.images.slopes(state.span.W, state.point) + problem.objective.ridge * (S.T @ state.x)
        if norm2(S.T @ g - told) > DISAGREE * (norm2(g) + norm2(told)) and state.age > 0:
            state = refreshed(problem, state, forget=True)
            g = gradient(problem, state)
        return state, problem.oracle.evaluation(state.x, state.fun, g)

    def _minimised(self, problem: Problem, state: SubspaceState, span: Span) -> Place:
        """f over x + span, by a few Newton steps."""
        ridge = Ridge(problem.objective.ridge, dot(state.x, state.x), span.S.columns.T @ state.x)
        place = Place(np.zeros(span.k), state.point, state.fun, state.damping)
        return minimise(span, place, ridge, self.inner)


def gradient(problem: Problem, state: SubspaceState) -> Small:
    """A^T phi'(z) + ridge x: one product."""
    return state.span.images.gradient(state.point) + problem.objective.ridge * state.x


def weighed(images: Images, state: SubspaceState, e: Evaluation, g_image: Image, f: float) -> tuple[Estimate, Image]:
    """psi_{t+1} with the largest certified weight, and the image of its minimiser; no cut where rounding hides it."""
    estimate = state.estimate
    a = estimate.largest_root(e, f)
    if not a > 0.0:
        return estimate, state.v_image
    now, then = estimate.kappa, estimate.kappa + estimate.mu * a
    terms = [(now / then, state.v_image), (-a / then, g_image)]
    if estimate.mu > 0.0:
        terms.append((a * estimate.mu / then, state.point.z))
    return estimate.cut(a, e), images.combine(*terms)


def refreshed(problem: Problem, state: SubspaceState, forget: bool = False) -> SubspaceState:
    """The image of x from x: one product, and one more for v where drift is found.  Where the images of the directions
    are in doubt, without directions.
    """
    images = state.span.images
    point = images.at(state.x)
    drift = images.distance(point.z, state.point.z)
    v_image = images.at(state.estimate.v).z if forget or drift > DRIFT else state.v_image
    due = max(REFRESH[0], state.due // 2) if drift > DRIFT else min(2 * state.due, REFRESH[1])
    fun = point.value + 0.5 * problem.objective.ridge * dot(state.x, state.x)
    fresh = replace(state, fun=fun, point=point, v_image=v_image, age=0, due=due, drift=drift)
    if not forget:
        return fresh
    return replace(fresh, span=Span.empty(images, state.x.size, state.span.S.store.room), damping=0.0)
