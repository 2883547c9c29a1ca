"""Conjugate gradients inside the certified estimate sequence: for quadratics of many variables.

Problem.    min f(x), f quadratic and convex: a `Quadratic`, or `LeastSquares` with or without a ridge.
Algorithm.  d_t = -g_t + (||g_t||/||g_{t-1}||)^2 d_{t-1};  x_{t+1} = the minimiser of f on x_t + t d_t, in closed form;
            a = the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};  psi_{t+1} = psi_t + a [the cut at x_t].
            One product with H an iteration, two with A.
Guarantee.  x_t minimises f over x_0 + span{g_0, ..., g_{t-1}}, which v_t is in: so <g_t, v_t - x_t> = 0, the segment
            search's coupling point is x_t, and f(x_T) - f* <= 2 L_2 R^2/T^2 beside the linear rate of conjugate
            gradients.  In floating point these orthogonalities fade; A_t f(x_t) <= min psi_t, hence
            f(x_T) - f* <= R^2/(2 A_T), is kept by the choice of a whatever the directions are.
Numerics.   The recursion for the gradient keeps conjugate gradients fast, but in it the gradient falls for ever.  It is
            compared with the gradient computed from x, on a schedule and whenever it has fallen by much, and replaced
            only where they disagree.
Reference.  Hestenes & Stiefel (1952); AGMsDR (Nesterov, Gasnikov, Guminov, Dvurechensky 2020) for the root.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 10.0, 100.0]), c=[1.0, 1.0, 1.0])
>>> res = hasd.minimize(f, np.zeros(3), method="hasd-cg", tol=1e-12)
>>> res.success, res.nit, res.nprod
(True, 3, 5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from .._math.doubt import smallest_number
from .._math.estimate import rounding
from .._math.geometry import Array, dot, norm2, unit
from ..objectives._images import Images
from ._line_search import ImageLine, refresh_image
from .base import Evaluation, ImageMethod, ImageState, Problem, State, Status, Stop, add_cut, advance, first_state

REFRESH, FALLEN = 100, 0.03
"""After so many iterations, or such a fall of ||g||, the gradient is compared with one computed from x."""
DRIFT = 0.1
"""Where they differ by more than this part, the one from x is taken, and the next direction is its negative."""


@dataclass(frozen=True, repr=False)
class CGState(ImageState):
    """A state with its image and the direction that led to it."""

    direction: Array | None = None  # None: the next one is -g; divided by the first gradient's size
    last: float = math.nan  # ||g_{t-1}||, which the direction was made with
    compared: float = math.nan  # ||g|| when it was last compared with x's own
    steepest: float = 0.0  # the largest curvature met along a direction


@dataclass(frozen=True)
class HASDCG(ImageMethod):
    """Conjugate gradients with a certificate."""

    name: str = "hasd-cg"
    default_p: float = 2.0
    state_classes: ClassVar[tuple[type, ...]] = (CGState,)
    needs_images: bool = True

    def init(self, problem: Problem, start: Evaluation) -> CGState:
        """No direction yet."""
        images: Images = problem.images
        if not images.constant:
            raise ValueError("method 'hasd-cg' is for Quadratic and LeastSquares objectives; 'auto' suits the others")
        return CGState(**first_state(problem, start, problem.mu), point=images.at(start.x), compared=start.norm2)

    def step(self, problem: Problem, state: State) -> CGState:
        """One iteration."""
        assert isinstance(state, CGState)
        e = state.at
        d = -unit(state.grad_norm0) * e.g  # scaled by a power of two: its squares neither overflow nor underflow
        if state.direction is not None:
            ratio = e.norm2 / state.last
            d += (ratio * ratio) * state.direction
        slope = dot(e.g, d)
        if not slope < 0.0:
            return self._restart(problem, state)
        line = ImageLine(problem, e, d, state.point)
        bend, size = line.bend(state.point), norm2(d)
        least = e.eps * state.steepest * size * size
        # products that underflow say nothing about the curvature
        lost = 4.0 * e.x.shape[0] * (1.0 + size) * smallest_number(e.eps)
        flat = not bend > least and (state.steepest == 0.0 or least > lost)
        if flat and not problem.bounded_below and -slope / size > e.dg(state.steepest):
            raise Stop(Status.UNBOUNDED)
        look = line.look(-slope / bend) if bend > 0.0 else None
        if look is None or not look.f <= e.f + rounding(e.f, look.f, eps=e.eps):
            return self._restart(problem, state)
        there, point = line.take(look)
        estimate = add_cut(state.estimate, e, there.f)
        steepest = max(state.steepest, bend / size / size)
        kept = {"point": point, "direction": d, "last": e.norm2, "age": state.age + 1, "steepest": steepest}
        moved = advance(problem, state, there, estimate, 1, standing=state.standing.with_iterate(there), **kept)
        due = moved.age >= REFRESH or there.norm2 <= FALLEN * state.compared
        return recheck_gradient(problem, moved) if due else moved

    def _restart(self, problem: Problem, state: CGState) -> CGState:
        """Try again along the gradient, as f did not decrease; where that was the direction, the run ends."""
        if state.direction is None:
            raise Stop(Status.PRECISION)
        return self.step(problem, recheck_gradient(problem, replace(state, direction=None)))


def recheck_gradient(problem: Problem, state: CGState) -> CGState:
    """Compute the gradient from x_t (one product with H or two with A); where the old one disagrees, replace it."""
    fresh = refresh_image(problem, state)
    if norm2(fresh.at.g - state.at.g) <= DRIFT * state.at.norm2:
        return replace(state, age=0, compared=state.at.norm2)
    return replace(fresh, direction=None, compared=fresh.at.norm2)
