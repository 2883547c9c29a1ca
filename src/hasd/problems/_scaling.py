"""What transport and balance share: the semi-dual solved by Newton's method where the plan is sparse.

Problem.    min f, f the semi-dual of entropic transport (`objectives.transport.SemiDual`).
Algorithm.  From a large reg down by factors of four, each stage warm-started by the last.  A step is quasi-Newton's
            (`hasd-qn`) while the plan P has many entries that count, one pass over C a look; where they are few, the
            products with P that make a Hessian product cost next to nothing beside a pass over C, and the step solves
            (H + delta) d = -grad f by conjugate gradients, delta and the residual proportional to the error.
            Both searches have Wolfe's conditions, and both cut the same estimate sequence.
Guarantee.  f never increases, and every v gives a certified lower bound, -reg f(v).
Reference.  Cuturi & Peyre (2018) for the semi-dual; Brauer, Clason, Lorenz & Wirth (2017) and Tang et al. (2024) for
            Newton's method on sparsified plans; Schmitzer (2019) for the scaling of reg.  Here nothing above the last
            digit is left out of P, so that the Hessian is exact.

>>> import numpy as np, hasd
>>> t = np.linspace(0.0, 1.0, 9)
>>> f = SemiDual((t[:, None] - t**2) ** 2, np.full(9, 1 / 9), np.full(9, 1 / 9), reg=1e-3)
>>> res = hasd.minimize(f, np.zeros(9), method=PlanNewton(), tol=1e-9)
>>> res.success, bool(np.abs(f.pass_at(res.x).column - 1 / 9).max() < 1e-8)
(True, True)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from .._math.evaluation import Evaluation
from .._math.geometry import Array, dot, norm2
from .._run import loop, stopping
from .._run.bounds import Bounds
from .._run.oracle import Oracle
from .._run.problem import Problem
from .._run.record import State
from .._run.sources import ObjectiveSource
from .._run.status import Status
from ..methods._curvature_pairs import NO_PAIRS
from ..methods._line_search import BlackBoxLine, wolfe
from ..methods.base import add_cut, advance
from ..methods.hasd_qn import HASDQN, QNState
from ..objectives._operators import Vector, quiet
from ..objectives.transport import Pass, PlanCurvature, SemiDual

FIRST_STAGE = 1e-2
"""The first reg, relative to the span of C: from here on quasi-Newton alone needs some twenty passes."""
FACTOR = 4.0
"""Each reg is the one before divided by this."""
STAGE_ERROR = 1e-2
"""The error of the marginals at which a stage hands over."""
STAGE_STEPS = 50
"""Steps after which a stage hands over in any case."""
FORCING = 0.1
"""The residual of a Newton step, relative to the gradient, at most."""
DAMPING = 1e-3
"""delta over the error of the marginals."""
CHEAP = 0.5
"""Passes over C that a product with the Hessian may cost in the first steps of a stage."""
PATIENCE = 25
"""From this step of a stage on it may cost more: on an easy problem quasi-Newton would be done by then."""
PRODUCTS = 2000
"""Conjugate gradients in one step."""
EPS, BLUR = 2.0**-52, 8.0
"""Roundings charged for a sum, as in ``hasd.objectives._dual``."""
LIGHT, LIGHTEST = 0.1, 1e-8
"""Columns are left out of the steps while their masses add up to less than LIGHT tol and LIGHTEST."""
RESOLVED = 2.0**-40
"""A reg below this part of max |C| is not resolved by the exponents' own rounding."""


@dataclass(frozen=True)
class Weighted:
    """l_inf of x over sqrt(b); its dual norm of the gradient is the l_1 error of the marginals."""

    root: Vector  # sqrt(b)
    p: float = math.inf

    def norm(self, x: Array) -> float:
        """max_j |x_j|/sqrt(b_j)."""
        return float(np.max(np.abs(x) / self.root))

    def dual_norm(self, g: Array) -> float:
        """sum_j sqrt(b_j) |g_j|."""
        return float(np.abs(g) @ self.root)

    def steepest(self, g: Array) -> Array:
        """||g||_{p*} sqrt(b_j) sign(g_j)."""
        return self.dual_norm(g) * self.root * np.sign(g)


@dataclass(frozen=True)
class PlanNewton:
    """Newton's method on a sparse plan, quasi-Newton's on a dense one."""

    dense: HASDQN = field(default_factory=HASDQN)
    name: str = "hasd-newton"
    default_p: float = 2.0

    def init(self, problem: Problem, start: Evaluation) -> QNState:
        """No pairs yet."""
        return self.dense.init(problem, start)

    def step(self, problem: Problem, state: State) -> QNState:
        """One iteration."""
        assert isinstance(state, QNState)
        e = state.at
        curvature = problem.objective.curvature(e.x, CHEAP if state.iteration < PATIENCE else math.inf)
        if curvature is None:
            return self.dense.step(problem, state)
        line = BlackBoxLine(problem, e.x, newton_direction(curvature, e.g, state.grad_norm))
        look, trials = wolfe(line, e.f, dot(e.g, line.d), 1.0, e.eps)
        if look is None:
            return self.dense.step(problem, replace(state, pairs=NO_PAIRS))
        there, _ = line.take(look)
        # Curvature pairs from before would be out of date when they are used again.
        return advance(problem, state, there, add_cut(state.estimate, e, there.f), trials, pairs=NO_PAIRS)


def newton_direction(curvature: PlanCurvature, g: Vector, error: float) -> Vector:
    """d with (H + delta) d = -g up to the forcing term, by conjugate gradients with the diagonal as preconditioner."""
    delta = DAMPING * min(error, 1.0)
    diagonal = curvature.diagonal + delta
    d, r = np.zeros_like(g), -g
    enough = min(FORCING, math.sqrt(error)) * norm2(g)
    z = r / diagonal
    p, rz = z, dot(r, z)
    for _ in range(PRODUCTS):
        Hp = curvature.times(p) + delta * p
        bend = dot(p, Hp)
        if not bend > 0.0:  # rounding, as H is positive semidefinite
            break
        d = d + (rz / bend) * p
        r = r - (rz / bend) * Hp
        if norm2(r) <= enough:
            break
        z = r / diagonal
        rz, previous = dot(r, z), rz
        p = z + (rz / previous) * p
    return d if np.any(d) else -g


def stages(reg: float, span: float, scale: float) -> list[float]:
    """The regs, from large to the one asked for, or to the least that arithmetic resolves.

    >>> [round(reg, 6) for reg in stages(1e-3, span=1.0, scale=1.0)], stages(0.5, span=1.0, scale=1.0)
    ([0.01, 0.003162, 0.001], [0.5])
    """
    last = max(reg, RESOLVED * scale)
    first = max(last, FIRST_STAGE * span)
    count = math.ceil(math.log(first / last, FACTOR) - 1e-9) if first > last else 0
    return [first * (last / first) ** (k / count) for k in range(count)] + [last]


@dataclass
class Trace:
    """A row an iterate."""

    scale: float  # max |C|
    tell: Callable[[float, float, float], None] = lambda value, lower, error: None  # tells the user
    began: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, ...]] = field(default_factory=list)
    before: float = 0.0  # passes of the stages before

    def record(self, dual: SemiDual, state: State) -> None:
        """Add a row; the plan's value differs from the dual one by the error of its column sums.

        The next step, or the result, asks for the same pass at this point: none is made for the record alone.
        """
        u, v = dual.potentials(state.x, dual.pass_at(state.x))
        lower = certified_bound(dual, u, v, self.scale)
        value = float(dual.a @ u) + float(v @ (dual.b + dual.root * state.at.g))
        seconds = time.perf_counter() - self.began
        self.rows.append((seconds, value, lower, state.grad_norm, dual.reg, self.before + dual.passes))
        self.tell(value, lower, state.grad_norm)

    def columns(self) -> dict[str, np.ndarray]:
        """The trace; `lower` is the best so far."""
        names = ("seconds", "fun", "lower", "marginal_error", "reg", "npass")
        table = {name: np.array(column) for name, column in zip(names, zip(*self.rows, strict=True), strict=True)}
        table["lower"] = np.maximum.accumulate(table["lower"])
        return table


def certified_bound(dual: SemiDual, u: Vector, v: Vector, scale: float) -> float:
    """<a, u> + <b, v>, a lower bound on <C, P> + reg sum P log P over all plans, less what rounding may have added.

    Each product and sum may be off in its last digits; scale is max |C|.
    """
    size = float(dual.a @ np.abs(u)) + float(dual.b @ np.abs(v)) + scale + dual.reg
    return float(dual.a @ u) + float(dual.b @ v) - BLUR * EPS * size


@dataclass(frozen=True)
class Solution:
    """Where the run ended, at the reg that was asked for."""

    dual: SemiDual  # the semi-dual at that reg
    x: Vector  # its point
    found: Pass  # the pass at x
    error: float  # l_1 error of the column sums; the rows are exact
    status: Status
    nit: int
    npass: int
    trace: dict[str, np.ndarray]


Watch = Callable[[Vector], bool]
"""Whether these potentials prove that no solution exists."""
WATCH = 25
"""Steps between two calls of a `Watch`."""


def solve(
    dual: SemiDual,
    v: Vector,
    regs: Sequence[float],
    tol: float,
    maxiter: float,
    seconds: float,
    *,
    tell: Callable[[float, float, float], None],
    scale: float = math.inf,
    watch: Watch | None = None,
) -> Solution:
    """The stages one after the other; `maxiter` and the clock go through all of them; scale is max |C|."""
    deadline = time.perf_counter() + seconds
    trace, method = Trace(scale, tell), PlanNewton()
    nit = 0
    for k, reg in enumerate(regs):
        last = reg == dual.reg
        if k > 0:  # v contains reg log b, which changes with reg
            v = v + (reg - regs[k - 1]) * np.log(dual.b)
        oracle = Oracle(ObjectiveSource(dual.at(reg, v)))
        here: SemiDual = oracle.source.objective  # type: ignore[attr-defined]
        start = oracle.evaluate(np.zeros_like(v))
        oracle.deadline = deadline
        steps = maxiter - nit if last else min(STAGE_STEPS, maxiter - nit)
        within = stopping.Tolerances(0.0, tol if last else max(tol, STAGE_ERROR), Bounds(None, 0.0))
        criteria: list[loop.Criterion] = [within, stopping.iterations(steps), *_watch_criteria(here, watch)]
        problem = Problem(oracle, Weighted(here.root))
        outcome = loop.follow(problem, method, start, loop.Watch(partial(trace.record, here), None, criteria))
        x, status = outcome.state.x, outcome.status
        v = here.origin + here.reg * (x / here.root)
        nit += outcome.state.iteration
        trace.before += here.passes
        if status in (Status.TIME, Status.UNBOUNDED, Status.CALLBACK):
            break
        if nit >= maxiter and reg != regs[-1]:  # later stages were not reached, however this one ended
            status = Status.MAXITER
            break
        if status is Status.MAXITER and nit < maxiter:  # the stage's own limit: hand over to the next
            status = Status.CONVERGED
    return _final_solution(dual, here, x, v, status, tol, nit, trace)


def solve_heavy(
    dual: SemiDual,
    v: Vector,
    regs: Sequence[float],
    tol: float,
    maxiter: float,
    seconds: float,
    *,
    tell: Callable[[float, float, float], None],
    scale: float,
) -> Solution:
    """`solve` for a dense C, where columns too light to matter for tol are left out and placed afterwards.

    Such a column may be far off while the error is small already.  Its curvature is then 0, Newton's step there is as
    long as the damping allows, and the line search shortens the step of all columns because of it.
    """
    order = np.argsort(dual.b)
    light = order[np.cumsum(dual.b[order]) <= LIGHT * min(tol, LIGHTEST)]
    if light.size == 0:
        return solve(dual, v, regs, tol, maxiter, seconds, tell=tell, scale=scale)
    heavy, mass = np.setdiff1d(order, light), float(dual.b[light].sum())
    kept = dual.b[heavy]
    part = SemiDual(dual.C[:, heavy], dual.a, kept / kept.sum(), dual.reg)
    # Placing them moves at most their mass from other columns, and at most their mass to them.
    end = solve(part, v[heavy], regs, tol - 4.0 * mass, maxiter, seconds, tell=tell, scale=scale)
    v = np.empty_like(dual.b)
    u, v[heavy] = end.dual.potentials(end.x, end.found)
    v[light] = dual.reg * np.log(dual.b[light]) - _column_potentials(dual, u, light)
    # A plan P of the whole becomes one of the part by giving each row what it had in light columns in proportion to
    # the heavy ones: the optimum of the part is above that of the whole by no more than this.
    cells = dual.a.size * light.size
    end.trace["lower"] -= mass * (2.0 * scale + dual.reg * (1.0 + math.log(cells) - math.log(mass)))
    return _solution_on_whole(end, dual.at(dual.reg, v), tol)


@quiet
def _column_potentials(dual: SemiDual, u: Vector, columns: Vector) -> Vector:
    """reg log sum_i exp((u_i - C_ij)/reg): a Sinkhorn step on these columns is v = reg log b minus this."""
    E = u[:, None] - dual.C[:, columns]
    top = E.max(axis=0)
    E -= top
    E /= dual.reg
    return top + dual.reg * np.log(np.exp(E, out=E).sum(axis=0))


def _solution_on_whole(end: Solution, whole: SemiDual, tol: float) -> Solution:
    """The solution of a run on some columns as one of the whole problem: one more pass."""
    x = np.zeros_like(whole.b)
    found = whole.pass_at(x)
    error = float(np.abs(found.column - whole.b).sum())
    status = _final_status(end.status, error, tol)
    return replace(end, dual=whole, x=x, found=found, error=error, status=status, npass=end.npass + 1)


def _final_status(status: Status, error: float, tol: float) -> Status:
    """The status of a run whose plan has that error at the reg and on the columns that were asked for."""
    if error <= tol:
        return Status.CONVERGED
    # It converged at the least reg that arithmetic resolves, above the one asked for, or up to rounding.
    return Status.PRECISION if status is Status.CONVERGED else status


def _watch_criteria(dual: SemiDual, watch: Watch | None) -> Iterator[loop.Criterion]:
    if watch is not None:

        def criterion(state: State) -> Status | None:
            due = state.iteration > 0 and state.iteration % WATCH == 0
            return Status.UNBOUNDED if due and watch(dual.origin + dual.reg * (state.x / dual.root)) else None

        yield criterion


def _final_solution(
    dual: SemiDual, here: SemiDual, x: Vector, v: Vector, status: Status, tol: float, nit: int, trace: Trace
) -> Solution:
    """The solution at the reg asked for: one more pass where the run stopped at another reg."""
    before = trace.before - here.passes
    if here.reg != dual.reg:
        before, here, x = trace.before, dual.at(dual.reg, v), np.zeros_like(v)
    found = here.pass_at(x)
    error = float(np.abs(found.column - here.b).sum())
    return Solution(
        here, x, found, error, _final_status(status, error, tol), nit, math.ceil(before + here.passes), trace.columns()
    )
