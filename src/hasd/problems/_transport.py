"""Entropic optimal transport, solved by its semi-dual, with a feasible plan and a certified gap.

Problem.    min <C, P> + reg sum_ij P_ij log P_ij over P >= 0 with row sums a and column sums b.
Algorithm.  The dual in the log domain with u eliminated, by `hasd-newton` down a ladder of regs (see `scaling`); the
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
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _inputs as inputs
from .._math.arrays import to_host
from .._run.report import Result
from .._run.status import Status
from ..objectives._operators import Vector, as_data, as_point, quiet
from ..objectives.transport import UNDERFLOW, SemiDual, as_costs, blocks, buffer
from ._reporter import Reporter
from ._scaling import Solution, certified_bound, solve_heavy, stages

MAXITER = 10_000
"""Steps where the caller sets no limit: some tens are usual."""
SAME = {"float16": 2.0**-8, "float32": 2.0**-20, "float64": 2.0**-30}
"""Sums that differ by less than this part are the same, of numbers of this type."""


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
        ``callback(intermediate_result=...)`` is called with every row of the trace; it ends the run by raising
        StopIteration.  ``progress=True`` shows a progress bar (needs tqdm), and ``disp=True`` prints a summary at the
        end.

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
    began = time.perf_counter()
    problem = _problem(C, a, b, reg)
    dual = problem.dual
    tol = inputs.number("error_tol", error_tol, least=0.0)
    limit = MAXITER if maxiter is None else inputs.count("maxiter", maxiter, least=0)
    seconds = inputs.seconds(time_limit)
    regs = stages(dual.reg, problem.span, problem.scale)
    v = regs[0] * np.log(dual.b)
    if x0 is not None:
        regs, v = regs[-1:], problem.warm_start(x0, regs[-1])
    mass = problem.mass
    with Reporter("transport", callback, progress, disp) as reporter:

        def tell(value: float, lower: float, error: float) -> None:
            reporter.tell(*(mass * (one + dual.reg * math.log(mass)) for one in (value, lower)))

        end = solve_heavy(dual, v, regs, tol, limit, seconds, tell=tell, scale=problem.scale)
    return reporter.summarise(_result(problem, end, tol, began))


@dataclass(frozen=True)
class Transport:
    """The checked problem: rows and columns without mass are left out of the dual, and the mass is 1 there."""

    dual: SemiDual
    span: float  # max C - min C
    scale: float  # max |C|
    mass: float
    rows: npt.NDArray[np.bool_]  # those with mass
    columns: npt.NDArray[np.bool_]

    def warm_start(self, x0: npt.ArrayLike, reg: float) -> Vector:
        """v of the potentials given; where these are not finite, reg log b, which is right for zero costs."""
        x = as_point(x0, len(self.rows) + len(self.columns), "x0")
        v = np.asarray(x[len(self.rows) :][self.columns], dtype=float)
        return np.where(np.isfinite(v), v, reg * np.log(self.dual.b))


def _problem(C: Any, a: Any, b: Any, reg: Any) -> Transport:
    """The checked problem."""
    cost = as_costs(C)
    n, m = cost.shape
    left, right = masses(a, n, "a"), masses(b, m, "b")
    mass = common_sum(left, right, "a", "b", kind=coarsest_type(a, b))
    left, right = left / mass, right / float(right.sum())
    rows, columns = left > 0.0, right > 0.0
    if not (rows.all() and columns.all()):
        cost = cost[np.ix_(rows, columns)]
    low, high = float(cost.min()), float(cost.max())
    if not math.isfinite(high - low):
        raise ValueError("C must have a finite range, but max C - min C overflows")
    dual = SemiDual(cost, left[rows], right[columns], inputs.number("reg", reg, least=0.0, strict=True))
    return Transport(dual, high - low, max(abs(low), abs(high)), mass, rows, columns)


def masses(given: Any, length: int, name: str) -> Vector:
    """A finite vector without negative entries."""
    checked = as_data(to_host(given), length, name)
    if checked.min() < 0.0:
        place = int(np.argmin(checked))
        raise ValueError(f"{name} must not be negative, but {name}[{place}] is {checked[place]:g}")
    return checked


def coarsest_type(*given: Any) -> str:
    """The name of the coarsest type among the arrays given, one of `SAME`."""
    types = {np.asarray(to_host(one)).dtype.name for one in given}
    return next((name for name in SAME if name in types), "float64")


@quiet
def common_sum(left: Vector, right: Vector, *names: str, kind: str) -> float:
    """The sum that both share, up to rounding in numbers of that type; a ValueError where they differ by more."""
    one, other = float(left.sum()), float(right.sum())
    if not 0.0 < one < math.inf or not abs(one - other) <= SAME[kind] * one:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same positive and finite sum, got {one:.17g} and {other:.17g}"
        )
    return one


@dataclass(frozen=True)
class Rounded:
    """The plan of a pass, whose rows sum to a, rounded to the marginals: P diag(keep) + missing given^T."""

    end: Solution
    keep: Vector  # min(b_j / column sum, 1)                      Altschuler et al., Algorithm 2, line 3
    missing: Vector  # what the rows lack after that, over the sum  line 5
    given: Vector  # what the columns lack                          line 5

    @classmethod
    @quiet
    def of(cls, end: Solution) -> Rounded:
        """Lines 1 and 2, for the rows, change nothing: the row sums are a."""
        a, b, column = end.dual.a, end.dual.b, end.found.column
        keep = np.where(column > b, b / column, 1.0)
        missing = np.maximum(a - end.dual.times(end.x, end.found, keep), 0.0)
        total = float(missing.sum())
        return cls(end, keep, missing / total if total > 0.0 else missing, np.maximum(b - keep * column, 0.0))

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


@dataclass(frozen=True)
class Plan:
    """``res.plan()``: made when it is asked for."""

    rounded: Rounded
    problem: Transport

    def __call__(self) -> npt.NDArray[np.float64]:
        """The plan with exactly the marginals a and b."""
        rows, columns, mass = self.problem.rows, self.problem.columns, self.problem.mass
        P = np.zeros((len(rows), len(columns)))
        places, whole = np.flatnonzero(rows), bool(columns.all())
        for here, block in self.rounded.blocks():
            if whole:
                P[places[here]] = block
            else:
                P[np.ix_(places[here], columns)] = block
        P *= mass
        return P

    def __repr__(self) -> str:
        """How to get it."""
        return f"<plan of shape ({len(self.problem.rows)}, {len(self.problem.columns)}): call it>"


def _result(problem: Transport, end: Solution, tol: float, began: float) -> Result:
    """The potentials of the whole problem and what they certify."""
    dual, mass = problem.dual, problem.mass
    u, v = end.dual.potentials(end.x, end.found)
    rounded = Rounded.of(end)
    cost, entropy = rounded.values()
    log = math.log(mass)
    fun = mass * (cost + dual.reg * (entropy + log))
    lower = min(mass * (certified_bound(dual, u, v, problem.scale) + dual.reg * log), fun)
    full_u, full_v = np.full(len(problem.rows), -np.inf), np.full(len(problem.columns), -np.inf)
    full_u[problem.rows], full_v[problem.columns] = u + dual.reg * log, v
    # A plan exists, so the dual is bounded: a run that seems unbounded shows rounding.
    status = Status.PRECISION if end.status is Status.UNBOUNDED else end.status
    note = "" if math.isclose(mass, 1.0, rel_tol=1e-9) else f" The masses were divided by their sum, {mass:g}."
    trace = dict(end.trace)
    for name in ("fun", "lower"):
        trace[name] = mass * (trace[name] + dual.reg * log)
    return Result(
        x=np.concatenate((full_u, full_v)),
        u=full_u,
        v=full_v,
        plan=Plan(rounded, problem),
        cost=mass * cost,
        fun=fun,
        lower=lower,
        gap=fun - lower,
        marginal_error=end.error,
        success=end.error <= tol,
        status=status.code,
        message=status.message.replace("the gradient's dual norm is", "the marginals are") + note,
        method="hasd-newton",
        nit=end.nit,
        nfev=end.npass,
        nprod=end.npass,
        npass=end.npass,
        seconds=time.perf_counter() - began,
        trace=trace,
    )
