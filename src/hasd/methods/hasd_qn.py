"""A quasi-Newton step inside the certified estimate sequence: for black boxes, and where products with A are cheap.

Problem.    min f(x), f convex and smooth.
Algorithm.  d = -H_t grad f(x_t), H_t the inverse Hessian of limited memory (from the last m pairs, which correct a
            diagonal that knows the scales of the variables: `_curvature_pairs`);
            x_{t+1} = x_t + t d with Wolfe's conditions;  a = the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};
            psi_{t+1} = psi_t + a [f(x_t) + <grad f(x_t), . - x_t> + (mu/2)||. - x_t||^2]  (the cut at y = x_t).
            On a black box a look along d is an evaluation; on an affine objective d has one image and every look is
            a pass over n, so the first is at Newton's step, the search is closer and an iteration costs two products.
            Where the objective knows the best values of some variables for given others (`settle`: one of the two
            potentials of a transport dual), every look takes them: their gradient is 0 there, so this is the same
            method on f minimised over them.
Guarantee.  f(x_t) never increases, and A_t f(x_t) <= min psi_t: f(x_T) - f* <= R^2/(2 A_T), known after the run.  No
            rate is claimed for the step itself beyond Liu & Nocedal's linear one for strongly convex f.
Reference.  Liu & Nocedal (1989), Byrd, Nocedal & Schnabel (1994) for H; AGMsDR (Nesterov et al. 2020) for the root.

>>> import numpy as np, hasd
>>> res = hasd.minimize(lambda x: (x @ x + np.exp(x).sum(), 2 * x + np.exp(x)), np.ones(4), jac=True, method="hasd-qn")
>>> res.success
True
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from .._checks import check_whole
from .._math.geometry import Array, dot, norm2
from .._run.status import Status, Stop
from ._curvature_pairs import NO_PAIRS, Pairs
from ._line_search import BlackBoxLine, ImageLine, Line, refresh_image, wolfe
from .base import (
    VAST,
    Evaluation,
    ImageMethod,
    ImageState,
    Problem,
    State,
    add_cut,
    advance,
    falls_endlessly,
    first_state,
)

SHORT, MANY, FEW = 200, 30, 20
"""With up to SHORT variables as many pairs are kept as there are variables, from FEW to MANY; with more variables FEW,
as further pairs saved no iterations there when this was measured."""
REFRESH = 100
"""Iterations after which a cached image is computed again from x."""


@dataclass(frozen=True, repr=False)
class QNState(ImageState):
    """A state with its curvature pairs."""

    pairs: Pairs = NO_PAIRS


@dataclass(frozen=True)
class HASDQN(ImageMethod):
    """Limited-memory quasi-Newton with a certificate.  `memory`: pairs kept (None: 20, or up to 30 of short x)."""

    memory: int | None = None
    name: str = "hasd-qn"
    default_p: float = 2.0
    state_classes: ClassVar[tuple[type, ...]] = (QNState,)
    fresh: ClassVar[Pairs] = NO_PAIRS  # what a run begins with, and where a step along its pairs has failed

    def __post_init__(self) -> None:
        """Refuse a memory below one."""
        if self.memory is not None:
            check_whole("memory", self.memory, least=1)

    def capacity(self, d: int) -> int:
        """How many pairs to keep of so many variables."""
        if self.memory is not None:
            return self.memory
        return max(FEW, min(MANY, d)) if d <= SHORT else FEW

    def init(self, problem: Problem, start: Evaluation) -> QNState:
        """No pairs yet."""
        point: Any = problem.images.at(start.x) if problem.traits.has_images else None
        return QNState(**first_state(problem, start, problem.mu), point=point, pairs=self.fresh)

    def step(self, problem: Problem, state: State) -> QNState:
        """One iteration along the quasi-Newton direction; where that fails, along the negative gradient."""
        assert isinstance(state, QNState)
        if falls_endlessly(state):
            raise Stop(Status.UNBOUNDED)
        e = state.at
        if state.iteration == 0 and problem.traits.settle is not None:  # the first step; it may be all that is needed
            there = problem.oracle.settle(e.x)
            return advance(problem, state, there, add_cut(state.estimate, e, there.f), 1)
        for pairs in (self.fresh,) if state.pairs.rows is None else (state.pairs, self.fresh):
            d = _first_direction(e) if pairs.rows is None else -pairs.times(e.g)
            slope = dot(e.g, d)
            line: Line = BlackBoxLine(problem, e.x, d) if state.point is None else ImageLine(problem, e, d, state.point)
            noise = partial(_slope_noise, state, d)
            look, trials = wolfe(line, e.f, slope, line.first_length(slope), e.eps, noise)
            if look is not None:
                break
        else:
            if state.age > 0 and state.point is not None:
                fresh = refresh_image(problem, state)
                if fresh.grad_norm == 0.0:
                    raise Stop(Status.CONVERGED)
                return self.step(problem, fresh)
            raise Stop(Status.UNBOUNDED if falls_endlessly(state, stuck=True) else Status.PRECISION)
        there, point = line.take(look)
        change, y = problem.oracle.change(e, there), there.g - e.g
        if dot(change.s, y) > e.eps * change.length * change.turn:
            pairs = pairs.append(change.s, y, change.turn, self.capacity(y.shape[0]))
        estimate = add_cut(state.estimate, e, there.f)
        standing = state.standing.with_iterate(there, there.dg(pairs.steepest))
        kept = {"pairs": pairs, "point": point, "age": state.age + 1, "standing": standing}
        moved = advance(problem, state, there, estimate, trials, **kept)
        return refresh_image(problem, moved) if point is not None and moved.age >= REFRESH else moved


def _first_direction(e: Evaluation) -> Array:
    """-g, of length 1, so that no square of ||g|| is taken; or so long that f, if far larger, can be seen to fall."""
    length = max(1.0, min(4.0 * e.eps * abs(e.f) / e.norm2, VAST**20))
    return e.g / -e.norm2 * length


def _slope_noise(state: QNState, d: Array) -> float:
    """How large a slope along d the gradient's rounding explains."""
    return state.at.dg(state.pairs.steepest) * norm2(d)
