"""Entropic optimal transport, solved by its semi-dual, with a feasible plan and a certified gap.

Problem.    min <C, P> + reg sum_ij P_ij log P_ij over P >= 0 with row sums a and column sums b.
Algorithm.  The dual in the log domain with u eliminated, by `scaling-newton` down a ladder of regs (see `scaling`); the
            plan rounded to the marginals by Altschuler, Weed & Rigollet's Algorithm 2.
Guarantee.  lower <= optimum <= fun: lower is the dual value of the potentials, and fun the value of a
            plan with the marginals a and b.  For mass 1 the unregularised optimum lies in [cost - d, cost], with
            d = gap + reg min(log n, log m).
Reference.  Cuturi (2013); Altschuler, Weed & Rigollet (2017).

>>> import numpy as np
>>> x, y = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 4)
>>> res = transport((x[:, None] - y) ** 2, np.full(5, 0.2), np.full(4, 0.25), reg=1e-2)
>>> res.success, 0.0 <= res.gap < 1e-6, bool(np.allclose(res.plan().sum(axis=1), 0.2, atol=1e-15))
(True, True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _inputs as inputs
from .._run.record import State
from .._run.report import Result
from .._run.status import Status
from ..objectives._operators import Vector, as_point, quiet
from ..objectives.transport import UNDERFLOW, SemiDual, as_costs, blocks, buffer
from ._scaling import MAXITER, Marginals, Solution, certified_bound, solve, stages
from ._session import Session

LIGHT, LIGHTEST = 0.1, 1e-8
"""Columns are left out of the steps while their masses add up to less than LIGHT tol and LIGHTEST."""
MESSAGES = {Status.CONVERGED: "Converged: the marginals are within the tolerance."}
TRACE = ("fun", "lower", "marginal_error", "reg", "npass")


def transport(
    C: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    reg: float,
    *,
    error_tol: float = 1e-6,
    maxiter: int | None = None,
    time_limit: float | None = None,
    x0: npt.ArrayLike | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    disp: bool = False,
) -> Result:
    """Solve entropic optimal transport: minimise <C, P> + reg sum P log P over plans P with marginals a and b.

    Parameters
    ----------
    C : array_like, shape (n, m)
        The costs, which must be finite and may be negative.  A float32 array is used without a copy; other numbers
        become float64.
    a, b : array_like
        Non-negative masses.  Their sums must be equal, but need not be 1; if they differ by rounding, b is scaled to
        the sum of a.  If a mass is 0, its row or column of the plan is 0 and its potential is -inf.
    reg : float
        The weight of the entropy, in the units of C: compare it with C.max() - C.min().  float64 is precise enough down
        to about 1e-12 of the largest cost; below that, the run ends with status 2, and its bounds still hold.
    error_tol : float
        Stop when the l_1 error of the marginals of the plan, before it is rounded, is at most this share of the mass.
    maxiter, time_limit : optional
        Limits on steps (10000 if no limit is given) and seconds.
    x0 : array_like, optional
        Potentials to start from, for example ``res.x`` of a similar problem with another reg, a or b.
    callback, progress, disp : optional
        ``callback(intermediate_result=...)`` is called with every row of the trace, as a Result with x, fun, lower, gap
        and nit (the steps so far); it ends the run by raising StopIteration.  x are potentials that can be given as x0;
        gap is inf, as fun is no bound before the plan is rounded.  ``progress=True`` shows a progress bar (needs tqdm),
        and ``disp=True`` prints a summary at the end.

    Returns
    -------
    hasd.Result
        It has the fields that every solver returns.  ``u`` and ``v`` are the potentials, and ``x`` is both as one
        vector; the plan before rounding is exp((u_i + v_j - C_ij)/reg).  ``plan()`` makes the n x m plan, rounded so
        that it has the marginals a and b; ``fun`` is its value <C, P> + reg sum P log P, and ``cost`` its <C, P>.
        ``lower`` is a certified lower bound on the optimal value, and gap = fun - lower.  ``marginal_error`` is the l_1
        error of the marginals before rounding, as a share of the mass; success means marginal_error <= error_tol.
        ``npass`` counts passes over C; products with exp(-C/reg) or with the plan are counted by the entries they
        touch, and the result itself takes one or two passes more.  ``trace`` has the columns seconds, marginal_error,
        reg, npass, lower (the best certified so far) and fun (the value of the current plan for the current reg, before
        rounding, which is no bound).

    Examples
    --------
    >>> import numpy as np
    >>> C = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> res = transport(C, [0.5, 0.5], [0.25, 0.75], reg=1e-3)
    >>> res.plan().round(3)
    array([[0.25, 0.25],
           [0.  , 0.5 ]])
    >>> round(res.cost, 6)
    0.25
    """
    cost = as_costs(C)
    marginals = Marginals.of(cost.shape, a=a, b=b)
    cost = marginals.cut(cost)
    low, high = float(cost.min()), float(cost.max())
    if not math.isfinite(high - low):
        raise ValueError("C must have a finite range, but max C - min C overflows")
    dual = SemiDual(cost, marginals.left, marginals.right, inputs.number("reg", reg, least=0.0, strict=True))
    problem = Transport(dual, max(abs(low), abs(high)), marginals)
    tol = inputs.number("error_tol", error_tol, least=0.0)
    regs = stages(dual.reg, high - low, problem.scale)
    v = regs[0] * np.log(dual.b)
    if x0 is not None:
        regs, v = regs[-1:], problem.warm_start(x0, regs[-1])
    with Session("transport", TRACE, MESSAGES, MAXITER, maxiter, time_limit, callback, progress, disp, tol) as session:
        end = problem.solve(v, regs, tol, session)
    return _result(problem, end, session)


@dataclass(frozen=True)
class Transport:
    """The checked problem: rows and columns without mass are left out of the dual, and the mass is 1 there."""

    dual: SemiDual
    scale: float  # max |C|
    marginals: Marginals

    @property
    def mass(self) -> float:
        """The sum of a."""
        return self.marginals.totals[0]

    def in_units(self, value: float) -> float:
        """A value of the problem given from one of the problem with mass 1."""
        return self.mass * (value + self.dual.reg * math.log(self.mass))

    def warm_start(self, x0: npt.ArrayLike, reg: float) -> Vector:
        """v of the potentials given; where these are not finite, reg log b, which is right for zero costs."""
        n, m = self.marginals.shape
        v = np.asarray(as_point(x0, n + m, "x0")[n:][self.marginals.columns], dtype=float)
        return np.where(np.isfinite(v), v, reg * np.log(self.dual.b))

    def solve(self, v: Vector, regs: Sequence[float], tol: float, session: Session) -> Solution:
        """Solve it; columns too light to matter for tol are left out at first and placed afterwards.

        Such a column may be far off while the error is small already.  Its curvature is then 0, Newton's step there is
        as long as the damping allows, and the line search shortens the step of all columns because of it.
        """
        dual, order = self.dual, np.argsort(self.dual.b)
        light = order[np.cumsum(dual.b[order]) <= LIGHT * min(tol, LIGHTEST)]
        if light.size == 0:
            return solve(dual, v, regs, tol, session, partial(self._record, session, np.arange(dual.b.size), 0.0))
        heavy, mass = np.setdiff1d(order, light), float(dual.b[light].sum())
        kept = dual.b[heavy]
        part = SemiDual(dual.C[:, heavy], dual.a, kept / kept.sum(), dual.reg)
        # A plan P of the whole becomes one of the part by giving each row what it had in light columns in proportion to
        # the heavy ones: the optimum of the part is above that of the whole by no more than this.
        cells = dual.a.size * light.size
        charge = mass * (2.0 * self.scale + dual.reg * (1.0 + math.log(cells) - math.log(mass)))
        # Placing them moves at most their mass from other columns, and at most their mass to them.
        end = solve(part, v[heavy], regs, tol - 4.0 * mass, session, partial(self._record, session, heavy, charge))
        v = np.empty_like(dual.b)
        u, v[heavy] = end.dual.potentials(end.x, end.found)
        v[light] = dual.reg * np.log(dual.b[light]) - _column_levels(dual, u, light)
        return Solution.at(dual.at(dual.reg, v), np.zeros_like(v), tol, end.status, end.npass)

    def _record(
        self, session: Session, columns: Vector, charge: float, dual: SemiDual, before: float, state: State
    ) -> None:
        """Add a row to the trace, for a dual with those columns.

        The plan's value differs from the dual one by the error of its column sums.
        The next step, or the result, asks for the same pass at this point: none is made for the record alone.
        """
        u, v = dual.potentials(state.x, dual.pass_at(state.x))
        value = float(dual.a @ u) + float(v @ (dual.b + dual.root * state.at.g))
        fun, lower = map(self.in_units, (value, certified_bound(dual, u, v, self.scale) - charge))
        lower = max(lower, session.last("lower"))  # the best so far
        full_v = np.full_like(self.dual.b, -np.inf)
        full_v[columns] = v
        x = np.concatenate(self.marginals.spread(u + dual.reg * math.log(self.mass), full_v))
        more: dict[str, Any] = {"x": x, "gap": math.inf, "nit": session.nit + state.iteration}
        session.note(fun, lower, state.grad_norm, dual.reg, before + dual.passes, left=state.grad_norm, **more)


@quiet
def _column_levels(dual: SemiDual, u: Vector, columns: Vector) -> Vector:
    """reg log sum_i exp((u_i - C_ij)/reg): a Sinkhorn step on these columns is v = reg log b minus this."""
    E = u[:, None] - dual.C[:, columns]
    top = E.max(axis=0)
    E -= top
    E /= dual.reg
    return top + dual.reg * np.log(np.exp(E, out=E).sum(axis=0))


@dataclass(frozen=True)
class Plan:
    """``res.plan()``, made when it is asked for: P diag(keep) + missing given^T, which has the marginals a and b.

    P is the plan of a pass, whose rows sum to a.
    """

    problem: Transport
    end: Solution
    keep: Vector  # min(b_j / column sum, 1)                      Altschuler et al., Algorithm 2, line 3
    missing: Vector  # what the rows lack after that, over the sum  line 5
    given: Vector  # what the columns lack                          line 5

    @classmethod
    @quiet
    def of(cls, problem: Transport, end: Solution) -> Plan:
        """Lines 1 and 2, for the rows, change nothing: the row sums are a."""
        a, b, column = end.dual.a, end.dual.b, end.found.column
        keep = np.where(column > b, b / column, 1.0)
        missing = np.maximum(a - end.dual.times(end.x, end.found, keep), 0.0)
        total = float(missing.sum()) or 1.0
        return cls(problem, end, keep, missing / total, np.maximum(b - keep * column, 0.0))

    @quiet
    def blocks(self) -> Iterator[tuple[slice, npt.NDArray[np.floating]]]:
        """The rounded plan by blocks of rows; a block is overwritten by the next."""
        dual, shape = self.end.dual, self.end.dual.C.shape
        shift, room = self.end.x / dual.root, buffer(*shape)
        scale = dual.a / self.end.found.total
        for here in blocks(*shape):
            P = dual.rows(shift, room, here)
            P -= self.end.found.top[here, None]
            np.exp(np.maximum(P, UNDERFLOW, out=P), out=P)
            P *= scale[here, None]
            P *= self.keep
            P += self.missing[here, None] * self.given
            yield here, P

    @quiet
    def values(self) -> tuple[float, float]:
        """<C, P> and sum P log P; one pass."""
        cost = entropy = 0.0
        for here, P in self.blocks():
            cost += float(np.vdot(P, self.end.dual.C[here]))
            entropy += float(np.vdot(P, np.log(np.maximum(P, 1e-300))))
        return cost, entropy

    def __call__(self) -> npt.NDArray[np.float64]:
        """The plan with exactly the marginals a and b."""
        rows, columns, shape = self.problem.marginals.rows, self.problem.marginals.columns, self.problem.marginals.shape
        P = np.zeros(shape)
        for here, block in self.blocks():
            if columns.size == shape[1]:
                P[rows[here]] = block
            else:
                P[np.ix_(rows[here], columns)] = block
        P *= self.problem.mass
        return P

    def __repr__(self) -> str:
        """How to get it."""
        return f"<plan of shape {self.problem.marginals.shape}: plan() computes it>"


def _result(problem: Transport, end: Solution, session: Session) -> Result:
    """The potentials of the whole problem and what they certify."""
    dual, mass = problem.dual, problem.mass
    u, v = end.dual.potentials(end.x, end.found)
    plan = Plan.of(problem, end)
    cost, entropy = plan.values()
    fun = problem.in_units(cost + dual.reg * entropy)
    full_u, full_v = problem.marginals.spread(u + dual.reg * math.log(mass), v)
    # A plan exists, so the dual is bounded: only rounding errors make a run end as unbounded.
    session.status = Status.PRECISION if end.status is Status.UNBOUNDED else end.status
    return session.result(
        x=np.concatenate((full_u, full_v)),
        u=full_u,
        v=full_v,
        plan=plan,
        cost=mass * cost,
        fun=fun,
        lower=min(problem.in_units(certified_bound(dual, u, v, problem.scale)), fun),
        marginal_error=end.error,
        method="scaling-newton",
        nprod=end.npass,
        npass=end.npass,
    )
