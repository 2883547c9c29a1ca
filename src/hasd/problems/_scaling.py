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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, cg

from .._math.arrays import to_host
from .._math.geometry import Array, dot, norm2
from .._run import loop, stopping
from .._run.bounds import Bounds
from .._run.oracle import Oracle
from .._run.problem import Problem
from .._run.record import State
from .._run.sources import ObjectiveSource
from .._run.status import Status
from ..methods._curvature_pairs import SCALED, Pairs
from ..methods._line_search import BlackBoxLine, wolfe
from ..methods.base import add_cut, advance
from ..methods.hasd_qn import HASDQN, QNState
from ..objectives._operators import Matrix, Vector, as_data, quiet
from ..objectives.transport import Pass, PlanCurvature, SemiDual
from ._session import Session

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
MAXITER = 10_000
"""Steps where the caller sets no limit: some tens are usual."""
SAME = {"float16": 2.0**-8, "float32": 2.0**-20, "float64": 2.0**-30}
"""Sums that differ by less than this part are the same, of numbers of this type."""
RESOLVED = 2.0**-40
"""A reg below this part of max |C| is not resolved by the exponents' own rounding."""


@dataclass(frozen=True)
class Marginals:
    """The masses of rows and columns over their totals; rows and columns without mass are left out."""

    left: Vector  # of the rows
    right: Vector  # of the columns
    rows: npt.NDArray[np.int64]  # those with mass
    columns: npt.NDArray[np.int64]
    totals: tuple[float, float]
    shape: tuple[int, int]
    kind: str  # the name of the coarsest type among the two given, one of `SAME`

    @classmethod
    @quiet
    def of(cls, shape: tuple[int, int], **given: Any) -> Marginals:
        """Two vectors by their names, checked: not negative, and with the same sum up to rounding in their type."""
        left, right = (masses(one, length, name) for length, (name, one) in zip(shape, given.items(), strict=True))
        types = {np.asarray(to_host(one)).dtype.name for one in given.values()}
        kind = next((name for name in SAME if name in types), "float64")
        one, other = float(left.sum()), float(right.sum())
        if not 0.0 < one < math.inf or not abs(one - other) <= SAME[kind] * one:
            sums = f"{one:.17g} and {other:.17g}"
            raise ValueError(f"{' and '.join(given)} must have the same positive and finite sum, got {sums}")
        left, right = left / one, right / other
        rows, columns = np.flatnonzero(left > 0.0), np.flatnonzero(right > 0.0)
        return cls(left[rows], right[columns], rows, columns, (one, other), shape, kind)

    def cut(self, C: Matrix) -> Matrix:
        """C without the rows and columns that have no mass."""
        whole = (self.rows.size, self.columns.size) == self.shape
        return C if whole else C[self.rows][:, self.columns]

    def spread(self, u: Vector, v: Vector) -> tuple[Vector, Vector]:
        """The potentials of all rows and columns: -inf for those without mass."""
        full_u, full_v = (np.full(length, -np.inf) for length in self.shape)
        full_u[self.rows], full_v[self.columns] = u, v
        return full_u, full_v


def masses(given: Any, length: int, name: str) -> Vector:
    """A finite vector without negative entries."""
    checked = as_data(to_host(given), length, name)
    if checked.min() < 0.0:
        place = int(np.argmin(checked))
        raise ValueError(f"{name} must not be negative, but {name}[{place}] is {checked[place]:g}")
    return checked


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
class PlanNewton(HASDQN):
    """Newton's method on a sparse plan, quasi-Newton's on a dense one."""

    memory: int | None = 20
    name: str = "scaling-newton"
    fresh: ClassVar[Pairs] = SCALED

    def step(self, problem: Problem, state: State) -> QNState:
        """One iteration."""
        assert isinstance(state, QNState)
        e = state.at
        curvature = problem.objective.curvature(e.x, CHEAP if state.iteration < PATIENCE else math.inf)
        if curvature is None:
            return super().step(problem, state)
        line = BlackBoxLine(problem, e.x, newton_direction(curvature, e.g, state.grad_norm))
        look, trials = wolfe(line, e.f, dot(e.g, line.d), 1.0, e.eps)
        if look is None:
            return super().step(problem, replace(state, pairs=self.fresh))
        there, _ = line.take(look)
        # Curvature pairs from before would be out of date when they are used again.
        return advance(problem, state, there, add_cut(state.estimate, e, there.f), trials, pairs=self.fresh)


def newton_direction(curvature: PlanCurvature, g: Vector, error: float) -> Vector:
    """d with (H + delta) d = -g up to the forcing term, by conjugate gradients with the diagonal as preconditioner."""
    delta, shape = DAMPING * min(error, 1.0), (g.size, g.size)
    damped = LinearOperator(shape, matvec=lambda d: curvature.times(d) + delta * d, dtype=g.dtype)
    scaled = LinearOperator(shape, matvec=lambda r: r / (curvature.diagonal + delta), dtype=g.dtype)
    enough = min(FORCING, math.sqrt(error)) * norm2(g)
    d, _ = cg(damped, -g, rtol=0.0, atol=enough, maxiter=PRODUCTS, M=scaled)
    return d if dot(d, g) < 0.0 else -g  # H is positive semidefinite: only rounding turns d


def stages(reg: float, span: float, scale: float) -> list[float]:
    """The regs, from large to the one asked for, or to the least that arithmetic resolves.

    >>> [round(reg, 6) for reg in stages(1e-3, span=1.0, scale=1.0)], stages(0.5, span=1.0, scale=1.0)
    ([0.01, 0.003162, 0.001], [0.5])
    """
    last = max(reg, RESOLVED * scale)
    first = max(last, FIRST_STAGE * span)
    count = math.ceil(math.log(first / last, FACTOR) - 1e-9) if first > last else 0
    return [first * (last / first) ** (k / count) for k in range(count)] + [last]


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
    npass: int

    @classmethod
    def at(cls, dual: SemiDual, x: Vector, tol: float, status: Status, before: float) -> Solution:
        """The solution at a point, where a run ended with that status after so many passes before."""
        found = dual.pass_at(x)
        error = float(np.abs(found.column - dual.b).sum())
        if error <= tol:
            status = Status.CONVERGED
        elif status is Status.CONVERGED:  # at the least reg that arithmetic resolves, above the one asked for
            status = Status.PRECISION
        return cls(dual, x, found, error, status, math.ceil(before + dual.passes))


Record = Callable[[SemiDual, float, State], None]
"""Adds a row to the trace, from the semi-dual of the stage, the passes of the stages before, and the state."""


def solve(dual: SemiDual, v: Vector, regs: Sequence[float], tol: float, session: Session, record: Record) -> Solution:
    """The stages one after the other; the limits of the session are for all of them."""
    method, here, before = PlanNewton(), dual, 0.0
    for k, reg in enumerate(regs):
        last = reg == dual.reg
        if k > 0:  # v contains reg log b, which changes with reg
            v = v + (reg - regs[k - 1]) * np.log(dual.b)
        before += here.passes
        oracle = Oracle(ObjectiveSource(dual.at(reg, v)))
        here = oracle.source.objective  # type: ignore[attr-defined]
        start = oracle.evaluate(np.zeros_like(v))
        oracle.deadline = session.deadline
        steps = session.steps - session.nit if last else min(STAGE_STEPS, session.steps - session.nit)
        aim = tol if last else max(tol, STAGE_ERROR)
        within = stopping.Tolerances(0.0, aim, Bounds(None, 0.0))
        session.begin_stage(k, len(regs), aim)
        problem = Problem(oracle, Weighted(here.root))
        watch = loop.Watch(partial(record, here, before), None, (within, stopping.iterations(steps)))
        outcome = loop.follow(problem, method, start, watch)
        x, status = outcome.state.x, outcome.status
        v = column_potentials(here, x)
        session.nit += outcome.state.iteration
        if status in (Status.TIME, Status.UNBOUNDED, Status.CALLBACK):
            break
        if session.nit >= session.steps and reg != regs[-1]:  # later stages were not reached, however this one ended
            status = Status.MAXITER
            break
        if status is Status.MAXITER and session.nit < session.steps:  # the stage's own limit: hand over to the next
            status = Status.CONVERGED
    if here.reg != dual.reg:  # one more pass, at the reg asked for
        before, here, x = before + here.passes, dual.at(dual.reg, v), np.zeros_like(v)
    return Solution.at(here, x, tol, status, before)


def column_potentials(dual: SemiDual, x: Vector) -> Vector:
    """v at the point x."""
    return dual.origin + dual.reg * (x / dual.root)
