"""Conjugate gradients inside the certified estimate sequence: for quadratics of many variables.

Problem.    min f(x), f quadratic and convex: a `Quadratic`, or `LeastSquares` with or without a ridge.
Algorithm.  d_t = -g_t + (||g_t||/||g_{t-1}||)^2 d_{t-1};  x_{t+1} = the minimiser of f on x_t + t d_t, in closed form;
            a = the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};  psi_{t+1} = psi_t + a [the cut at x_t].
            One product with H an iteration, two with A.
Guarantee.  x_t minimises f over x_0 + span{g_0, ..., g_{t-1}}, which v_t is in: so <g_t, v_t - x_t> = 0, the segment
            search's coupling point is x_t, and f(x_T) - f* <= 2 L_2 R^2/T^2 beside the linear rate of conjugate
            gradients.  In floating point these orthogonalities fade; A_t f(x_t) <= min psi_t, hence
            f(x_T) - f* <= R^2/(2 A_T), is kept by the choice of a whatever the directions are.
Numerics.   The gradient's own recursion is what keeps conjugate gradients fast: an image is compared with the one made
            from x on a schedule, and replaced only where they disagree.
Reference.  Hestenes & Stiefel (1952); AGMsDR (Nesterov, Gasnikov, Guminov, Dvurechensky 2020) for the root.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 10.0, 100.0]), c=[1.0, 1.0, 1.0])
>>> res = hasd.minimize(f, np.zeros(3), method="hasd-cg", tol=1e-12)
>>> res.success, res.nit, res.nprod
(True, 3, 4)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..estimate import rounding
from ..geometry import Array, dot
from ..objectives.images import Images, Point
from ..oracle import Evaluation
from ..result import Status, Stop
from .base import Problem, State, advanced, first_state, weighed
from .lines import ImageLine, evaluated

REFRESH = 100
"""Iterations after which a cached image is compared with one made anew from x."""
DRIFT = 1e-11
"""Where they differ by more than this, relatively, the new one is taken and the directions start anew."""


@dataclass(frozen=True)
class CGState(State):
    """A state with its image and the direction that led to it."""

    point: Point = None  # type: ignore[assignment]  # phi expanded at A x_t - b
    direction: Array | None = None  # None: the next one is -g
    last: float = math.nan  # ||g_{t-1}||, which the direction was made with
    age: int = 0  # iterations since the image was compared with x's own


@dataclass(frozen=True)
class HASDCG:
    """Conjugate gradients with a certificate."""

    name: str = "hasd-cg"
    default_p: float = 2.0
    needs_images: bool = True

    def init(self, problem: Problem, start: Evaluation) -> CGState:
        """No direction yet."""
        images: Images = problem.objective.images()
        if not images.constant:
            raise ValueError("method 'hasd-cg' is for Quadratic and LeastSquares objectives; 'auto' suits the others")
        return CGState(**first_state(problem, start, problem.mu), point=images.at(start.x))

    def step(self, problem: Problem, state: State) -> CGState:
        """One iteration."""
        assert isinstance(state, CGState)
        e = state.at
        d = -e.g
        if state.direction is not None:
            ratio = e.norm2 / state.last
            d += (ratio * ratio) * state.direction
        slope = dot(e.g, d)
        line = ImageLine(problem, e.x, d, state.point)
        bend = line.bend()
        if not bend > 0.0 and slope < 0.0:
            raise Stop(Status.UNBOUNDED)
        look = line.look(-slope / bend)
        if not (slope < 0.0 and look.f <= e.f + rounding(e.f, look.f, eps=e.eps)):
            return self._anew(problem, state)
        there, point = line.take(look)
        estimate = weighed(state.estimate, e, there.f)
        moved = advanced(problem, state, there, estimate, 1, point=point, direction=d, last=e.norm2, age=state.age + 1)
        return compared(problem, moved) if moved.age >= REFRESH else moved

    def _anew(self, problem: Problem, state: CGState) -> CGState:
        """No decrease: from the gradient alone; where that is what failed, the end."""
        if state.direction is None:
            raise Stop(Status.PRECISION)
        return self.step(problem, compared(problem, replace(state, direction=None)))


def compared(problem: Problem, state: CGState) -> CGState:
    """The image of x_t made from x_t, one product; where it disagrees it is taken, with the gradient it gives."""
    images: Images = problem.objective.images()
    point = images.at(state.x)
    if images.distance(point.z, state.point.z) <= DRIFT:
        return replace(state, age=0)
    e = evaluated(problem, state.x, point)
    grad_norm = problem.geometry.dual_norm(e.g)
    return replace(state, point=point, fun=e.f, at=e, grad_norm=grad_norm, direction=None, age=0)
