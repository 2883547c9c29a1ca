"""Minimax (Chebyshev) fit: min over x of max_i w_i |<a_i, x> - b_i|, exact, with a proof.

Problem.    min f(x) = ||W(Ax - b)||_inf, W = Diag(w), w = 1 if no weights are given; dual: max -<b, u> over A^T u = 0,
            sum_i |u_i|/w_i <= 1.
Algorithm.  Least squares in coordinates where A has orthonormal columns; the smoothed maximum with decreasing alpha by
            `hasd.minimize`, on the rows with large residuals and some others; then linear programs on the rows that are
            nearly active, checked against all rows, rows exchanged until bound and value meet.  Their solutions are
            vertices by HiGHS; where few rows carry the optimum, and a vertex is one of many solutions, their centre.
Guarantee.  `lower` <= min f for the numbers A and b are, all rounding charged, whatever the condition of the columns:
            `multipliers` on the rows `active` are u to float64, u itself has twice the digits, and what it leaves of
            A^T u is charged with how far from 0 a best x can be.  Weights, too, are taken as the numbers they are: the
            proof never multiplies an entry by one, and `relative=True` also charges the rounding of 1/|b_i|.
            `fun` is max w|Ax - b| as computed over all rows; `gap` counts from the true value, which is computed with
            twice the digits on the rows that decide it, rounding charged on the others.  Where rounding takes `fun`
            below the minimum, `lower` goes with it.  No answer is worse than the least squares it began with, or any
            point after.  The exchange ends: idle rows are let go only after a program whose value has risen.  Columns
            that depend on others to rounding get 0 where A is dense; `lower` ignores those that u is orthogonal to but
            for the last digits of A: the message then says how many columns it is for.
Reference.  Cheney (1966), chapter 2, for the exchange; Barrodale & Phillips (1975) for the linear program.

>>> import numpy as np
>>> t = np.linspace(-1.0, 1.0, 201)
>>> res = chebyshev(np.vander(t, 3), np.exp(t))
>>> round(res.fun, 6), res.success, res.active.size
(0.045017, True, 4)
>>> bool(abs(res.multipliers @ np.exp(t)[res.active]) - res.fun < 1e-12)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _inputs as inputs
from .._math.arrays import to_host
from .._math.doubt import roundings
from .._minimize import minimize
from .._run.report import Result
from .._run.status import Status
from ..objectives import SymmetricSoftmax
from ..objectives._operators import Matrix, Vector, as_data, quiet
from . import _programs as programs
from ._coordinates import Coordinates
from ._matrices import as_dense, as_entries, largest_in_columns, magnitude, power_of_two, scale_columns
from ._multipliers import UP, MinimaxBound, image
from ._session import Session
from ._weights import counted_rows, row_weights, with_all_rows

LEVELS = (0.1, 0.01)
"""The smoothing of each stage, as a part of the value: the smoothed maximum is within this part of max|z|."""
SHARE = (2000, 10)
"""Rows with large residuals that the smoothed problem is posed on: so many, or so many times the rank; as many more at
random."""
FIRST, ADDED, MOST = (2.0, 1.0), (1.0, 1.0), 12.0
"""In multiples of the rank: the rows of the first linear program (with the largest residuals, and distinct ones); the
rows added to a later one (the same two kinds); the number of rows above which idle ones are left out."""
IDLE = 0.05
"""A row with more slack than this part of the value is idle."""
NEARLY = 0.05
"""A row within this part of the value is nearly active after the smoothed stage."""
BOX = 2.0
"""No coordinate of a better point is farther away than this many times the value: |y* - y| <= max|Q (y* - y)|
<= 2 max|r| where Q^T Q = n I.  With few rows the program is unbounded without this box."""
NEAR = 1e-6
"""A vertex that meets all rows this closely is worth polishing."""
TINY = 1e-140
"""Columns without a larger entry are brought to size 1 first, because their squares underflow."""
LOOSE = 1e-6
"""A relative gap up to this counts as closed where rounding explains it; a larger one is no success."""
RISE = 1e-9
"""A program's value has risen only where it is higher by more than this part."""
STALLS = 1
"""How often a vertex is tried again where the centre of the solutions adds no rows."""
SHARP = 64
"""So many rows, beside twice as many as the rank, have their residuals computed with twice the digits at the end."""
ROUNDS = 200
"""Linear programs at most, unless the caller says otherwise."""


@dataclass
class Exchange:
    """The state of the exchange: the best point, the bound, and what was spent."""

    coordinates: Coordinates
    b: Vector
    certificate: MinimaxBound
    tol: float  # the relative gap to reach
    session: Session
    unit: Vector | None = None  # what the columns of A were multiplied by
    upper: float = math.inf
    y: Vector = field(init=False)  # the best point, in coordinates
    x: Vector = field(init=False)
    residual: Vector = field(init=False)  # Ax - b there
    r: Vector = field(init=False)  # the same times the weights
    nlp: int = 0
    exact: bool = False  # whether the residuals are no larger than rounding errors

    @property
    def lower(self) -> float:
        """The lower bound, or the value where rounding of Ax - b takes the value below the bound."""
        return min(self.certificate.lower, self.upper)

    def look(self, y: Vector) -> Vector:
        """The residuals at y times the weights, over all rows; the best point is kept."""
        x = self.coordinates.x(y)
        residual = self.coordinates.residual(x, self.b)
        r = residual if self.coordinates.row_weights is None else self.coordinates.row_weights * residual
        upper = float(np.abs(r).max())
        if upper < self.upper:
            self.upper, self.x, self.y, self.residual, self.r = upper, x, y, residual, r
        return r

    def answer(self) -> Vector:
        """The best x for the columns as they were given."""
        return self.x * (1.0 if self.unit is None else self.unit)

    def note(self) -> None:
        """A row of the trace."""
        left = self.gap / (self.upper or 1.0)
        self.session.note(self.upper, self.lower, left=left, steps=self.nlp, x=self.answer())

    @property
    def gap(self) -> float:
        """How far the value may be above the minimum."""
        return self.upper - self.lower

    @property
    def met(self) -> bool:
        """Whether bound and value are close enough."""
        return self.gap <= self.tol * self.upper

    def residual_doubts(self) -> Vector:
        """What each residual times its weight may be off by, from the sizes of its own terms.  A pass over A."""
        unit = max(8.0, roundings(self.coordinates.A.shape[1]) + 2.0) * 2.0**-52
        return unit * self.coordinates.weights_of() * magnitude(self.coordinates.A, self.x, self.b)

    def sharp_value(self) -> float:
        """No less than the true value at x, and than the computed one.

        Residuals are computed with twice the digits on the rows that decide it; on the others rounding is charged.
        """
        A, off = self.coordinates.A, self.residual_doubts()
        most = np.abs(self.r) + off
        top = programs.largest_rows(most, 2 * self.coordinates.rank + SHARP)
        columns = np.vstack((as_dense(A[top]).T, self.b[top]))
        residual, error = image(columns, np.append(self.x, -1.0), np.zeros(len(columns)))
        values, w = np.abs(residual), self.coordinates.weights_of(top)
        highest = float((UP * w * (values + error)).max())
        if not math.isfinite(highest):  # an overflow in the parts of the products
            return float(most.max())
        return max(self.upper, highest, float(np.delete(most, top).max(initial=0.0)))

    @property
    def closed_to_rounding(self) -> bool:
        """Whether the gap is small, and no more than what the largest residual may be off by."""
        return self.gap <= LOOSE * self.upper and self.gap <= float(self.residual_doubts()[np.argmax(np.abs(self.r))])


@quiet
def chebyshev(
    A: Matrix,
    b: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    relative: bool = False,
    gap_rtol: float = 1e-9,
    maxiter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    disp: bool = False,
) -> Result:
    """Minimise the largest residual max_i w_i |<a_i, x> - b_i| over x, and prove how close to the minimum it is.

    Parameters
    ----------
    A : array or SciPy sparse matrix
        n x d.  It is not changed.  It is copied only if it has integers or is in CSC format, if it has dependent
        columns and some rows that are far longer than the others, or if rows have weights.
    b : array_like
        A vector of length n.
    weights : array_like, optional
        n numbers w_i, each between 1e-50 and 1e50, or 0 for a row that does not count.  Without them all are 1.
    relative : bool
        Whether to minimise the largest relative residual max_i |<a_i, x> - b_i|/|b_i|.  No b_i may then be 0, and no
        weights be given.
    gap_rtol : float
        The relative gap (fun - lower)/fun at which the run stops.  If rounding does not allow so small a gap, the
        message says so.
    maxiter : int, optional
        Limit on the number of linear programs.
    time_limit : float, optional
        Limit on seconds.
    callback, progress, disp : optional
        ``callback(intermediate_result=...)`` is called with every row of the trace, as a Result with x, fun, lower, gap
        and nit (the iterations of the smoothed problem so far); it ends the run by raising StopIteration.
        ``progress=True`` shows a progress bar (needs tqdm), and ``disp=True`` prints a summary at the end.

    Returns
    -------
    hasd.Result
        It has the fields that every solver returns; ``fun`` is the largest residual times its weight, ``nprod`` counts
        products with all of A, and ``trace`` has the columns seconds, fun and lower.  It also has ``active``, the rows
        that prove the lower bound; ``signs``, the signs of their residuals; ``multipliers``, numbers u for which
        A[active]^T u = 0 up to rounding and whose sizes, each divided by the weight of its row, sum to 1, so that
        |<u, b[active]>| is the lower bound before the allowance for rounding; ``residual``, Ax - b without weights, for
        all rows; ``rank``, the rank of A; and ``nlp``, the number of linear programs.

    Examples
    --------
    >>> res = chebyshev([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0])
    >>> res.x, res.fun, res.active, res.signs
    (array([2.5]), 2.5, array([0, 2]), array([ 1., -1.]))
    >>> chebyshev([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0], weights=[4.0, 1.0, 1.0]).x
    array([1.])
    >>> chebyshev([[1.0], [1.0]], [1.0, 3.0], relative=True).x  # 50% off both
    array([1.5])
    """
    A = as_entries(A, "A", "chebyshev needs the rows")
    aim: Vector = as_data(to_host(b), A.shape[0], "b")
    w = row_weights(A, aim, weights, relative)
    tol = inputs.number("gap_rtol", gap_rtol, least=0.0)
    limits = (ROUNDS, maxiter, time_limit)
    with Session("chebyshev", ("fun", "lower"), MESSAGES, *limits, callback, progress, disp, tol) as session:
        search = _pose(*counted_rows(A, aim, w), tol, session)
        session.status = _fit(search)
    return with_all_rows(_result(search), A, aim, w)


def _pose(A: Matrix, b: Vector, w: Vector | None, tol: float, session: Session) -> Exchange:
    """The search before its first step.

    Columns whose squares underflow, or may do so times a weight, are brought to size 1.
    """
    unit = _units(A, TINY if w is None else 1.0)
    coordinates = Coordinates.of(A if unit is None else scale_columns(A, unit), w)
    return Exchange(coordinates, b, MinimaxBound(coordinates, b), tol, session, unit)


def _units(A: Matrix, tiniest: float) -> Vector | None:
    """Powers of two that bring columns below this size to size 1, changing no digit; None without such."""
    size = largest_in_columns(A)
    tiny = (size > 0.0) & (size < tiniest)
    return np.where(tiny, 1.0 / np.maximum(power_of_two(size), 2.0**-1000), 1.0) if tiny.any() else None


def _fit(search: Exchange) -> Status:
    """Least squares, the smoothed problem, the exchange; why it ended."""
    rank, at_zero = search.coordinates.rank, np.abs(search.coordinates.weights_of() * search.b)
    top = np.argmax(at_zero)
    search.look(search.coordinates.least_squares(search.b))
    if search.upper > at_zero[top]:  # rows of very different lengths: x = 0 is better
        search.look(np.zeros(rank))
    search.note()
    if search.upper <= 1e-3 * at_zero[top] and np.all(np.abs(search.r) <= search.residual_doubts()):
        search.exact = True
        return Status.GAP
    if rank > 0:
        _smooth(search)
        return _exchange(search)
    # A = 0: no x changes the largest |b_i|.
    search.certificate.bound(np.array([top]), np.ones(1), np.zeros(0, dtype=int))
    return Status.GAP


def _smooth(search: Exchange) -> None:
    """Minimise the smoothed maximum on a share of the rows, with less and less smoothing."""
    which = _share(search)
    Q = search.coordinates.rows(which)
    for level in LEVELS:
        left = search.session.left
        if search.met or left == 0.0:
            return
        scale = search.upper
        alpha = level / math.log(2 * which.size + 1)
        objective = SymmetricSoftmax(Q, -search.r[which] / scale, alpha=alpha)
        start = np.zeros(search.coordinates.rank)
        res = minimize(objective, start, tol=1e-2, maxiter=500, time_limit=left, trace=False)
        search.session.nit += res.nit
        search.look(search.y + scale * res.x)
        search.note()


def _share(search: Exchange) -> Vector:
    """Rows with large residuals, and as many at random: the same ones at every call."""
    n, size = len(search.b), max(SHARE[0], SHARE[1] * search.coordinates.rank)
    if 2 * size >= n:
        return np.arange(n)
    others = np.random.default_rng(0).choice(n, size, replace=False)
    return np.union1d(programs.largest_rows(search.r, size), others)


def _exchange(search: Exchange) -> Status:
    """Solve programs on some rows: rows that the optimum violates are added, idle rows are left out.

    Once a vertex is one of many solutions, the centre of the solutions is taken instead, and no row is left out.
    """
    coordinates, rank, session = search.coordinates, search.coordinates.rank, search.session
    first = programs.choose_rows(coordinates, search.r, (1.0 - NEARLY) * search.upper, FIRST)
    signed, box = programs.signed_rows(search.r, first), BOX
    value, centred, stalled = 0.0, False, 0
    while search.nlp < session.steps:
        if search.met:
            return Status.GAP
        if session.left == 0.0:
            return Status.TIME
        scale = search.upper
        which, found = _program(search, signed, box, centred)
        if found is None:
            return Status.TIME if session.left == 0.0 else Status.PRECISION
        rising, value = scale * found.value > (1.0 + RISE) * value, scale * found.value
        there = _judge_optimum(search, which, found)
        more = programs.choose_rows(coordinates, there, value, ADDED)
        new = programs.signed_rows(there, more[np.abs(there[more]) > value])
        new = new[~np.isin(new, signed)]
        many = not centred and rank <= programs.WIDEST and not found.is_unique(box)
        if not new.size and np.abs(found.step).max() > programs.EDGE * box:
            box *= 10.0  # BOX is proved for orthonormal columns; a solution for scaled ones may be outside
        elif not new.size and not (centred and stalled < STALLS):
            return Status.GAP if search.met or search.closed_to_rounding else Status.PRECISION
        elif not new.size:  # the centre violates no other row, but a vertex may
            centred, many, stalled = False, False, stalled + 1
        centred = centred or (many and stalled < STALLS)
        if signed.size > MOST * rank and rising and not centred:
            signed = signed[found.slack <= IDLE]
        signed = np.concatenate((signed, new))
    return Status.GAP if search.met else Status.MAXITER


def _program(search: Exchange, signed: Vector, box: float, centred: bool) -> tuple[Vector, programs.Vertex | None]:
    """The rows of a program, and its optimum as a step from the best point: a vertex, or the centre of all optima."""
    search.nlp += 1
    signed, left = np.unique(np.abs(signed)) if centred else signed, search.session.left
    which, signs = np.abs(signed) - 1, np.sign(signed).astype(float)
    Q, r = search.coordinates.rows(which), search.r[which] / search.upper
    return which, programs.find_centre(Q, r, box, left) if centred else programs.find_vertex(Q, r, signs, box, left)


def _judge_optimum(search: Exchange, which: Vector, found: programs.Vertex) -> Vector:
    """Evaluate and polish an optimum on those rows, and bound the minimum by its multipliers; its residuals."""
    scale, y = search.upper, search.y + search.upper * found.step
    there, on = search.look(y), found.support
    search.certificate.bound(which[on], found.weights[on], np.delete(which, on))
    if not search.met and float(np.abs(there).max()) <= (1.0 + NEAR) * scale * found.value:
        Q, signs = search.coordinates.rows(which[on]), np.sign(found.weights[on])
        search.look(y + scale * programs.polishing_step(Q, there[which[on]] / scale, signs))
    search.note()
    return there


MESSAGES = {
    Status.GAP: "Converged: no x does better by more than the tolerance.",
    Status.MAXITER: "Maximum number of linear programs reached.",
    Status.PRECISION: "No further progress is possible: the remaining gap is within rounding or within the tolerance "
    "of the linear-programming solver.",
}


def _result(search: Exchange) -> Result:
    """The result; all its fields belong to the same x."""
    certificate, session, d = search.certificate, search.session, search.coordinates.A.shape[1]
    order = np.argsort(certificate.active, kind="stable")
    active, counted = certificate.active[order], certificate.columns_counted
    rank = np.count_nonzero(counted < search.coordinates.rank)
    fun, lower = search.upper, search.lower
    gap = search.sharp_value() - lower
    if session.status is Status.GAP and lower > 0.0 and gap > max(search.tol, LOOSE) * fun:
        session.status = Status.PRECISION
    message = "Exact fit: the residuals are no larger than rounding errors." if search.exact else session.message
    if session.status is Status.GAP and lower > 0.0 and gap > search.tol * fun:
        message = f"Converged: the gap of {gap:.2g} is no larger than the rounding errors of Ax."
    if 0 < counted.size < d and lower > 0.0:
        message += f" {counted.size} of the {d} columns of A are independent up to rounding; "
        message += "the lower bound holds for combinations of these."
    if rank < counted.size:
        depend = "depend on others up to rounding and get the coefficient 0"
        message += f" {counted.size - rank} of the {d} columns of A {depend}."
    return session.result(
        x=search.answer(),
        fun=fun,
        lower=lower,
        gap=gap,
        active=active,
        signs=np.sign(search.r[active]),
        multipliers=certificate.weights[order],
        residual=search.residual,
        rank=rank,
        message=message,
        method="exchange",
        nprod=search.coordinates.nprod,
        nlp=search.nlp,
    )
