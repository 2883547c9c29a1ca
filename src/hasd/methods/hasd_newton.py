"""Newton's method inside the certified estimate sequence: for f(x) = phi(Ax - b) + (ridge/2)||x||^2 with few columns.

Problem.    min f(x), f as above, phi convex and smooth, A an array or a sparse matrix with up to a thousand columns.
Algorithm.  d = -B_t grad f(x_t);  x_{t+1} = x_t + t d with Wolfe's conditions, by a search on the image of d;
            a = the largest root of (A_t + a) f_best <= min psi_{t+1}, f_best the least f so far;
            psi_{t+1} = psi_t + a [f(x_t) + <grad f(x_t), . - x_t> + (mu/2)||. - x_t||^2].
            B_t is the inverse of the Hessian A^T phi'' A + ridge I at an iterate, corrected by the pairs of the steps
            since then (`_curvature_pairs`).  A new Hessian is made when the steps since the last one have cost as much
            as it does, by counted cost (`_costs`); the first one at once, if it costs no more than a step.  So a run
            is charged at most about twice what it would be if it had known from the beginning whether Hessians pay:
            with few columns every step is Newton's, with many the first steps are those of hasd-qn.
Sharp       A smoothed maximum phi_alpha(z) = alpha log sum_i exp(z_i/alpha) with a small alpha bends so sharply that no
maxima.     Hessian is good for more than a short step.  So the run begins with a larger alpha, for which Newton's step
            moves the rows that count by no more than two alphas, and lowers it after every such step: to a half, or
            the further the less the step has moved them.  Where the first step ends early, as other rows begin to count
            on the way, alpha is raised once more.  With the weights w = phi'(z), <d, H d> = Var_w(A d)/alpha: the
            square of Newton's decrement over alpha is the variance of the change of z in units of alpha, and the
            curvature changes over about one of them.  As <d, H d> >= <g, g>^2/<g, H g>, two products show that an alpha
            is too small to begin with; a Hessian is made for the first that may do.
Guarantee.  A_t f_best <= min psi_t for all t, hence f_best - f* <= R^2/(2 A_T), known after the run: the gradients in
            the cuts are those of f, whatever the steps are made with.  No rate is claimed for the steps themselves
            beyond Newton's quadratic one near a minimiser, where every step has a Hessian of its own.
Cost.       Two products with A a step, three while alpha is larger than it should be, and n_a d^2/2 + d^3/6
            multiplications for a Hessian, n_a being the rows with curvature; memory for four d x d matrices.
Reference.  AGMsDR (Nesterov, Gasnikov, Guminov, Dvurechensky 2020) for the root; Byrd, Nocedal & Schnabel (1994) for
            the pairs; a smoothing that is sharpened on the way: Becker, Candes & Grant (2011).

>>> import numpy as np, hasd
>>> rng = np.random.default_rng(0)
>>> f = hasd.objectives.Logistic(rng.standard_normal((200, 5)), np.sign(rng.standard_normal(200)), ridge=1e-3)
>>> res = hasd.minimize(f, np.zeros(5), method="hasd-newton", tol=1e-10)
>>> res.success, res.nit < 10
(True, True)
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from .._checks import check_whole
from .._math.arrays import Array
from .._math.geometry import dot, norm2
from .._run.status import Status, Stop
from ..objectives._images import Images, Point
from ._costs import Costs
from ._curvature_pairs import NO_PAIRS, Pairs, factorise
from ._line_search import ImageLine, Look, evaluate_image, refresh_image, wolfe
from .base import (
    IDLE,
    Evaluation,
    ImageMethod,
    ImageState,
    Problem,
    Standing,
    State,
    add_cut,
    advance,
    falls_endlessly,
    first_state,
)

COVERED = 4.0
"""The square of the number of alphas by which a step may move the rows that count."""
SOFTER, SHARPER, SOFTEST = 64.0, 2.0, 2.0**120
"""By what alpha is multiplied while the first step is too long; what it is divided by, at least, when a step was short
enough (at most by SOFTER); and the limit."""
GROWTH = 2.5
"""Where alpha is divided by a factor, the next step moves the rows farther, by about this power of it (measured)."""
CLOSE, ROUGH = 0.1, 0.5
"""A step ends where the slope along it is this part of what it was, or less: with a Hessian, a look costs far less than
the iterations that a close search saves.  On a smoothed maximum, whose curvature changes on the way, it saves none."""
SHORT, LONG = 0.2, 0.7
"""A step of less than SHORT of Newton's raises the damping, one of more than LONG lowers it."""
REFRESH = 100
"""Iterations after which a cached image is computed again from x."""
PATIENCE = (8, 3)
"""After so many iterations in a row in which neither f nor ||g|| falls, and so many in which the gradient is nothing
but rounding, the run is at machine precision."""


@dataclass(frozen=True, repr=False)
class NewtonState(ImageState):
    """A state with the metric of the next step."""

    pairs: Pairs = NO_PAIRS  # B
    softness: float = math.nan  # what alpha is multiplied by; NaN: as much as it takes
    damping: float = 0.0  # the multiple of ||g|| that is added to a Hessian
    spent: float = 0.0  # what the steps since the last Hessian have cost
    best: float = math.inf  # the least f so far


class Model(NamedTuple):
    """What a step is made with: f, or f with a softer loss, and its metric."""

    images: Images
    softness: float
    point: Point  # phi expanded at z
    e: Evaluation  # value and gradient
    pairs: Pairs
    step: Array  # -B g
    top: float  # the largest entry of the Hessian, over ||g||; NaN where the Hessian is an older one

    @property
    def slope(self) -> float:
        """<g, step>."""
        return dot(self.e.g, self.step)

    @property
    def moved(self) -> float:
        """The variance, over the rows that count, of what the step changes z by, in units of alpha^2."""
        return -self.slope / self.images.width if self.pairs.factor is not None else math.inf


@dataclass(frozen=True)
class HASDNewton(ImageMethod):
    """Newton's method with a certificate.  `memory`: pairs kept between two Hessians."""

    memory: int = 20
    name: str = "hasd-newton"
    default_p: float = 2.0
    state_classes: ClassVar[tuple[type, ...]] = (NewtonState,)
    needs_images: bool = True
    needs_hessian: bool = True

    def __post_init__(self) -> None:
        """Refuse a memory below one."""
        check_whole("memory", self.memory, least=1)

    def init(self, problem: Problem, start: Evaluation) -> NewtonState:
        """The image of x_0; a loss without a width is not softened."""
        images = problem.images
        softness = 1.0 if math.isinf(images.width) else math.nan
        own = {"point": images.at(start.x), "softness": softness, "best": start.f}
        own |= {"spent": Costs.in_run(problem).step(1)}  # a Hessian that costs less than a step is made at once
        return NewtonState(**first_state(problem, start, problem.mu), **own)

    def step(self, problem: Problem, state: State) -> NewtonState:
        """One step."""
        assert isinstance(state, NewtonState)
        if state.at.norm2 == 0.0:  # seen in an image that was made anew
            raise Stop(Status.CONVERGED)
        if falls_endlessly(state):
            raise Stop(Status.UNBOUNDED)
        costs = Costs.in_run(problem)
        model = _choose_model(problem, state, costs)
        flat = CLOSE if math.isinf(model.images.width) else ROUGH
        line = ImageLine(problem, model.e, model.step, model.point, model.images, flat)
        slope = model.slope
        faint = partial(_faint_slope, problem, state, model.step)
        look, trials = wolfe(line, model.e.f, slope, line.first_length(slope), state.at.eps, faint)
        if look is None:
            return self._try_again(problem, state, model)
        there, point = _take(problem, state, model, look)
        spent = costs.step(2 * len(model.pairs) + 2) + (state.spent if math.isnan(model.top) else 0.0)
        # A pair is of use where the next step has no Hessian of its own.
        is_kept = model.softness == 1.0 and spent < costs.hessian(_rows_that_count(point))
        pairs = self._add_pair(model, there) if is_kept else NO_PAIRS
        best, e = min(state.best, there.f), state.at
        own = {"point": point, "age": state.age + 1, "pairs": pairs, "best": best}
        own |= {"standing": _next_standing(state, model, there)}
        own |= {"softness": _next_softness(state, model, look.t), "damping": _next_damping(state, model, look.t)}
        own |= {"spent": spent}
        moved = advance(problem, state, there, add_cut(state.estimate, e, best), trials, **own)
        return refresh_image(problem, moved) if moved.age >= REFRESH else moved

    def _add_pair(self, model: Model, there: Evaluation) -> Pairs:
        """The metric with the pair of this step, where that has curvature."""
        s, y = there.x - model.e.x, there.g - model.e.g
        size = norm2(y)
        return model.pairs.append(s, y, size, self.memory) if dot(s, y) > there.eps * norm2(s) * size else model.pairs

    def _try_again(self, problem: Problem, state: NewtonState, model: Model) -> NewtonState:
        """The step from the same point, where f did not fall: with a smaller alpha, a new image, or a new metric."""
        if model.softness > 1.0:
            again = state.with_fields(softness=max(1.0, model.softness / SHARPER))
        elif state.age > 0:
            again = refresh_image(problem, state).with_fields(softness=1.0)
        elif math.isnan(model.top):
            again = state.with_fields(spent=math.inf)
        elif state.damping < model.top:
            again = state.with_fields(softness=1.0, damping=max(16.0 * state.damping, 1e-6 * model.top), spent=math.inf)
        else:
            raise Stop(Status.UNBOUNDED if falls_endlessly(state, stuck=True) else Status.PRECISION)
        return self.step(problem, again)


def _choose_model(problem: Problem, state: NewtonState, costs: Costs) -> Model:
    """A model with a new Hessian, where the steps since the last one have cost as much, or with the metric there is."""
    if math.isnan(state.softness):
        return _first_model(problem, state)
    if state.softness > 1.0 or state.spent >= costs.hessian(_rows_that_count(state.point)):
        return _make_model(problem, state, state.softness)
    e = state.at
    step = -state.pairs.times(e.g) if state.pairs or state.pairs.factor is not None else e.g / -e.norm2
    return Model(problem.images, 1.0, state.point, e, state.pairs, step, math.nan)


def _first_model(problem: Problem, state: NewtonState) -> Model:
    """The model at x_0, with as soft a loss as it takes for the step to be short; with the loss itself if none is."""
    softness = 1.0
    seen: list[float] = []
    while softness <= SOFTEST:
        moved = _least_move(problem, state, softness)
        if moved <= COVERED:
            model = _make_model(problem, state, softness)
            if model.moved <= COVERED:
                return model
            moved = model.moved
        seen = [*seen[-2:], moved]
        if problem.objective.ridge == 0.0 and len(seen) == 3 and 0.99 * max(seen) < min(seen):
            break  # without a ridge all rows count alike sooner or later, and nothing changes from then on
        softness *= SOFTER
    return _make_model(problem, state, 1.0)


def _least_move(problem: Problem, state: NewtonState, softness: float) -> float:
    """A lower bound on what a step moves the rows by (`Model.moved`), for two products and no Hessian.

    <g, H^{-1} g> <g, H g> >= <g, g>^2, by Cauchy and Schwarz.
    """
    images, point, e = _soften(problem, state, softness)
    size = e.norm2
    if size == 0.0:
        return 0.0
    bend = images.bend(point, images.multiply(e.g / size)) + problem.objective.ridge
    return size / bend * (size / images.width) if bend > 0.0 else math.inf


def _soften(problem: Problem, state: NewtonState, softness: float) -> tuple[Images, Point, Evaluation]:
    """x_t seen with a loss that is so many times as wide: images, the image of x_t, value and gradient."""
    e, ridge = state.at, problem.objective.ridge
    if softness == 1.0:
        return problem.images, state.point, e
    images = problem.images.soften(softness)
    point = images.expand_again(state.point)
    f, g = point.value + 0.5 * ridge * dot(e.x, e.x), images.gradient(point) + ridge * e.x
    return images, point, Evaluation(e.x, f, g)


def _make_model(problem: Problem, state: NewtonState, softness: float) -> Model:
    """The model at x_t with a Hessian of its own."""
    images, point, e = _soften(problem, state, softness)
    H = images.hessian(point)
    H.flat[:: len(H) + 1] += problem.objective.ridge
    largest = float(H.diagonal().max(initial=0.0))
    if not math.isfinite(largest):  # its entries overflow: steps go along the gradient, and pairs of steps help them
        return Model(images, softness, point, e, NO_PAIRS, e.g / -(e.norm2 or 1.0), math.inf)
    top = largest / e.norm2 if e.norm2 > 0.0 else math.inf  # a softer f may be at its minimum
    pairs = Pairs.on(factorise(H, state.damping * e.norm2))
    if pairs.factor is not None:
        step = -pairs.times(e.g)
    else:  # no curvature to speak of
        step = e.g / -(largest or e.norm2 or 1.0)
    return Model(images, softness, point, e, pairs, step, top)


def _take(problem: Problem, state: NewtonState, model: Model, look: Look) -> tuple[Evaluation, Point]:
    """f itself where the search ended: one product."""
    own = problem.images
    point = look.found if model.softness == 1.0 else own.expand_again(look.found)
    problem.oracle.charge()
    return evaluate_image(problem, state.x + look.t * model.step, point, state.at.doubt.image), point


def _next_standing(state: NewtonState, model: Model, there: Evaluation) -> Standing:
    """The standing with the new iterate; while alpha is raised, f itself need not fall in every step."""
    if model.softness > 1.0:
        return state.standing
    idle, blurred = PATIENCE
    if there.f + there.df() < state.standing.lowest:  # a gradient that may be rounding still leads downwards
        blurred = IDLE
    try:
        return state.standing.with_iterate(there, there.doubt.true, (idle, blurred))
    except Stop:
        raise Stop(Status.UNBOUNDED if falls_endlessly(state, stuck=True) else Status.PRECISION) from None


def _faint_slope(problem: Problem, state: NewtonState, step: Array) -> float:
    """How large a slope along the step does not yet prove that f falls without end."""
    return math.inf if problem.bounded_below else state.at.dg() * norm2(step)


def _next_softness(state: NewtonState, model: Model, t: float) -> float:
    """The softness of the next step: less, after a step that the curvature at its beginning covers.

    More, where the first step was a small part of Newton's: along it, rows began to count that did not count at x_0.
    """
    if state.iteration == 0 and t < SHORT and math.isfinite(model.images.width):
        return SOFTER * model.softness
    if model.moved > COVERED:
        return model.softness
    room = COVERED / max(model.moved, sys.float_info.min)  # so many times as far may the next step move them
    return max(1.0, model.softness / min(max(SHARPER, room ** (1.0 / GROWTH)), SOFTER))


def _next_damping(state: NewtonState, model: Model, t: float) -> float:
    """The damping of the next Hessian, after a step of t times Newton's."""
    if math.isnan(model.top):
        return state.damping
    if t < SHORT:
        return max(4.0 * state.damping, 1e-4 * model.top)
    if t <= LONG:
        return state.damping
    return 0.25 * state.damping if state.damping > 1e-9 * model.top else 0.0


def _rows_that_count(point: Point) -> int | None:
    """Rows with curvature, as far as that can be told."""
    places, diagonal = (getattr(point.expansion, name, None) for name in ("places", "diagonal"))
    if places is not None:
        return len(places)
    return int(np.count_nonzero(diagonal)) if type(diagonal) is np.ndarray else None
