"""Minimax (Chebyshev) fit: min over x of max_i |<a_i, x> - b_i|, exact, with a proof.

Problem.    min f(x) = ||Ax - b||_inf; dual: max -<b, w> over A^T w = 0, ||w||_1 <= 1.
Algorithm.  Least squares in coordinates where A has orthonormal columns; the smoothed maximum with decreasing alpha by
            `hasd.minimize`, on the rows with large residuals and some others; then linear programs on the rows that are
            nearly active, checked against all rows, rows exchanged until bound and value meet.  Their solutions are
            vertices by HiGHS; where few rows carry the optimum, and a vertex is one of many solutions, their centre.
Guarantee.  `lower` <= min f for the numbers A and b are, all rounding charged, whatever the condition of the columns:
            `multipliers` on the rows `active` are w to float64, w itself has twice the digits, and what it leaves of
            A^T w is charged with how far from 0 a best x can be.  `fun` is max|Ax - b| as computed over all rows:
            rounding there is not charged, and where it takes `fun` below the minimum `lower` goes with it.  No answer
            is worse than the least squares it began with, or any point after.  The exchange ends: idle rows are let go
            only after a program whose value has risen.  Columns that depend on others to rounding get 0 where A is
            dense; `lower` ignores those that w is orthogonal to but for the last digits of A: the message says so.
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
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from .. import _inputs as inputs
from .._math.arrays import to_host
from .._minimize import minimize
from .._run.report import Result
from .._run.status import Status, Stop
from ..objectives import SymmetricSoftmax
from ..objectives._operators import Matrix, Vector, as_data, as_matrix, is_sparse, quiet
from . import _active_rows as rows
from . import _centre as centre
from . import _vertex as vertex
from ._bound import MinimaxBound
from ._coordinates import BLOCK, Coordinates
from ._reporter import Reporter

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
HUGE = 1e150
"""The squares of larger entries overflow."""
TINY = 1e-140
"""Columns without a larger entry are brought to size 1 first, because their squares underflow."""
LOOSE = 1e-6
"""A relative gap up to this counts as closed where rounding explains it; a larger one is no success."""
RISE = 1e-9
"""A program's value has risen only where it is higher by more than this part."""
STALLS = 1
"""How often a vertex is tried again where the centre of the solutions adds no rows."""
ROUNDS = 200
"""Linear programs at most, unless the caller says otherwise."""


@dataclass
class Exchange:
    """The state of the exchange: the best point, the bound, and what was spent."""

    coordinates: Coordinates
    b: Vector
    deadline: float
    tell: Callable[[float, float], None]  # tells the user value and bound
    began: float = field(default_factory=time.perf_counter)
    upper: float = math.inf
    y: Vector = field(default_factory=lambda: np.zeros(0))  # the best point, in coordinates
    x: Vector = field(default_factory=lambda: np.zeros(0))
    r: Vector = field(default_factory=lambda: np.zeros(0))  # its residuals
    certificate: MinimaxBound = field(init=False)
    nit: int = 0  # iterations of the smoothed problem
    nlp: int = 0
    nprod: int = 0  # products with all of A
    trace: dict[str, list[float]] = field(default_factory=lambda: {"seconds": [], "fun": [], "lower": []})

    def __post_init__(self) -> None:
        self.certificate = MinimaxBound(self.coordinates, self.b, self._image)

    @property
    def lower(self) -> float:
        """The lower bound, or the value where rounding of Ax - b takes the value below the bound."""
        return min(self.certificate.lower, self.upper)

    def look(self, y: Vector) -> Vector:
        """The residuals at y, over all rows; the best point is kept."""
        x = self.coordinates.x(y)
        r = self.coordinates.residual(x, self.b)
        self.nprod += 1
        upper = float(np.abs(r).max())
        if upper < self.upper:
            self.upper, self.x, self.y, self.r = upper, x, y, r
        return r

    def _image(self, y: Vector) -> Vector:
        """Qy, over all rows."""
        self.nprod += 1
        return self.coordinates.residual(self.coordinates.x(y), np.zeros(len(self.b)))

    def note(self) -> None:
        """A row of the trace."""
        for name, value in (
            ("seconds", time.perf_counter() - self.began),
            ("fun", self.upper),
            ("lower", self.lower),
        ):
            self.trace[name].append(value)
        self.tell(self.upper, self.lower)

    def is_met(self, tol: float) -> bool:
        """Whether bound and value are close enough."""
        return self.upper - self.lower <= tol * self.upper

    @property
    def late(self) -> bool:
        """Whether time is up."""
        return time.perf_counter() >= self.deadline

    def _roundings(self) -> Vector:
        """What each residual may be off by, from the sizes of its own terms.  A pass over A."""
        A, x = self.coordinates.A, np.abs(self.x)
        terms = np.concatenate([abs(A[i : i + BLOCK]) @ x for i in range(0, len(self.b), BLOCK)])
        return 8.0 * 2.0**-52 * (np.abs(self.b) + terms)

    def rounding(self) -> float:
        """What the largest residual may be off by."""
        return float(self._roundings()[np.argmax(np.abs(self.r))])

    @property
    def exact(self) -> bool:
        """Whether every residual is rounding."""
        small = self.upper <= 1e-3 * float(np.abs(self.b).max())
        return small and bool(np.all(np.abs(self.r) <= self._roundings()))


@quiet
def chebyshev(
    A: Matrix,
    b: npt.ArrayLike,
    *,
    gap_rtol: float = 1e-9,
    maxiter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    disp: bool = False,
) -> Result:
    """Minimise the largest residual max_i |<a_i, x> - b_i| over x, and prove how close to the minimum it is.

    Parameters
    ----------
    A : array or SciPy sparse matrix
        n x d.  It is not changed.  It is copied only if it has integers or is in CSC format, or if it has dependent
        columns and some rows that are far longer than the others.
    b : array_like
        A vector of length n.
    gap_rtol : float
        The relative gap (fun - lower)/fun at which the run stops.  If rounding does not allow so small a gap, the
        message says so.
    maxiter : int, optional
        Limit on the number of linear programs.
    time_limit : float, optional
        Limit on seconds.
    callback, progress, disp : optional
        ``callback(intermediate_result=...)`` is called with every row of the trace; it ends the run by raising
        StopIteration.  ``progress=True`` shows a progress bar (needs tqdm), and ``disp=True`` prints a summary at the
        end.

    Returns
    -------
    hasd.Result
        It has the fields that every solver returns; ``fun`` is the largest residual, ``nprod`` counts products with all
        of A, and ``trace`` has the columns seconds, fun and lower.  It also has ``active``, the rows that prove the
        lower bound; ``signs``, the signs of their residuals; ``multipliers``, their weights, whose absolute values sum
        to 1 and for which A[active]^T multipliers = 0 up to rounding; ``residual``, Ax - b; ``rank``, the rank of A;
        and ``nlp``, the number of linear programs.

    Examples
    --------
    >>> res = chebyshev([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0])
    >>> res.x, res.fun, res.active, res.signs
    (array([2.5]), 2.5, array([0, 2]), array([ 1., -1.]))
    """
    A, b = _check_data(A, b)
    tol = inputs.number("gap_rtol", gap_rtol, least=0.0)
    rounds = ROUNDS if maxiter is None else int(min(inputs.count("maxiter", maxiter, least=0), sys.maxsize))
    limit = inputs.seconds(time_limit)
    unit = _units(A)
    if unit is not None:
        A = A @ scipy.sparse.diags_array(unit) if is_sparse(A) else A * unit
    with Reporter("chebyshev", callback, progress, disp) as reporter:
        res = _solve(A, b, tol, rounds, limit, reporter)
    res.x = res.x if unit is None else res.x * unit
    return reporter.summarise(res)


def _units(A: Matrix) -> Vector | None:
    """Powers of two that bring columns whose squares underflow to size 1, changing no digit; None without such."""
    ends = (A.max(axis=0), A.min(axis=0))  # this takes no copy of A
    top, bottom = ((e.toarray() if is_sparse(e) else np.asarray(e)).ravel().astype(np.float64) for e in ends)
    size = np.maximum(top, -bottom)
    if not ((size > 0.0) & (size < TINY)).any():
        return None
    return np.where((size > 0.0) & (size < TINY), 2.0 ** -np.maximum(np.frexp(size)[1], -1000), 1.0)


def _solve(A: Matrix, b: Vector, tol: float, rounds: int, limit: float, reporter: Reporter) -> Result:
    """The fit, for columns whose squares can be computed."""
    search = Exchange(Coordinates.of(A), b, time.perf_counter() + limit, reporter.tell)
    try:
        return _fit(search, b, tol, rounds)
    except Stop as stop:
        return _answer(search, tol, stop.status, stop.status.message)


def _fit(search: Exchange, b: Vector, tol: float, rounds: int) -> Result:
    """Least squares, the smoothed problem, the exchange."""
    y, _ = search.coordinates.least_squares(b)
    search.look(y)
    if search.upper > float(np.abs(b).max()):  # rows of very different lengths: x = 0 is better
        search.look(np.zeros(search.coordinates.rank))
    search.note()
    if search.exact:
        return _answer(search, tol, Status.GAP, "Exact fit: every residual is rounding.")
    if search.coordinates.rank > 0:
        _smooth(search, tol)
        return _answer(search, tol, _exchange(search, tol, rounds))
    top = np.argmax(np.abs(b))  # A = 0: no x changes the largest |b_i|
    search.certificate.bound(np.array([top]), np.ones(1), np.zeros(0, dtype=int))
    return _answer(search, tol, Status.GAP)


def _check_data(A: Matrix, b: npt.ArrayLike) -> tuple[Matrix, Vector]:
    if isinstance(A, LinearOperator):
        raise TypeError("chebyshev needs the rows of A: give an array or a sparse matrix, not a LinearOperator")
    A = as_matrix(to_host(A), "A")
    data = as_data(to_host(b), A.shape[0], "b")
    for name, values in (("A", A.data if is_sparse(A) else A), ("b", data)):
        if values.size and max(float(values.max()), -float(values.min())) > HUGE:
            raise ValueError(
                f"{name} must have entries below {HUGE:g} in size, whose squares can be computed; rescale it"
            )
    return A.tocsr() if is_sparse(A) else A, data


def _smooth(search: Exchange, tol: float) -> None:
    """Minimise the smoothed maximum on a share of the rows, with less and less smoothing."""
    which = _share(search)
    Q = search.coordinates.rows(which)
    for level in LEVELS:
        if search.is_met(tol) or search.late:
            return
        scale = search.upper
        alpha = level / math.log(2 * which.size + 1)
        objective = SymmetricSoftmax(Q, -search.r[which] / scale, alpha=alpha)
        left = search.deadline - time.perf_counter()
        limit = max(left, 1e-3) if math.isfinite(left) else None
        start = np.zeros(search.coordinates.rank)
        res = minimize(objective, start, tol=1e-2, maxiter=500, time_limit=limit, trace=False)
        search.nit += res.nit
        search.look(search.y + scale * res.x)
        search.note()


def _share(search: Exchange) -> Vector:
    """Rows with large residuals, and as many at random: the same ones at every call."""
    n, size = len(search.b), max(SHARE[0], SHARE[1] * search.coordinates.rank)
    if 2 * size >= n:
        return np.arange(n)
    others = np.random.default_rng(0).choice(n, size, replace=False)
    return np.union1d(rows.largest_rows(search.r, size), others)


def _exchange(search: Exchange, tol: float, rounds: int) -> Status:
    """Solve programs on some rows: rows that the optimum violates are added, idle rows are left out.

    Once a vertex is one of many solutions, the centre of the solutions is taken instead, and no row is left out.
    """
    coordinates, rank = search.coordinates, search.coordinates.rank
    first = rows.choose_rows(coordinates.rows, search.r, (1.0 - NEARLY) * search.upper, rank, FIRST)
    pairs, box, value, centred, stalled = rows.signed_rows(search.r, first), BOX, 0.0, False, 0
    for _ in range(rounds):
        if search.is_met(tol):
            return Status.GAP
        if search.late:
            return Status.TIME
        scale = search.upper
        which, found = _program(search, pairs, box, centred)
        if found is None:
            return Status.TIME if search.late else Status.PRECISION
        rising, value = scale * found.value > (1.0 + RISE) * value, scale * found.value
        there = _judge_optimum(search, which, found, tol)
        more = rows.choose_rows(coordinates.rows, there, value, rank, ADDED)
        new = rows.new_rows(rows.signed_rows(there, more[np.abs(there[more]) > value]), pairs)
        many = not centred and rank <= centre.WIDEST and not found.is_unique(box)
        if not len(new) and np.abs(found.step).max() > vertex.EDGE * box:  # with scaled columns the box is a guess
            box *= 10.0
        elif not len(new) and not (centred and stalled < STALLS):
            close = search.is_met(max(tol, LOOSE)) and search.upper - search.lower <= search.rounding()
            return Status.GAP if close or search.is_met(tol) else Status.PRECISION
        elif not len(new):  # the centre adds no rows: a vertex may
            centred, many, stalled = False, False, stalled + 1
        centred = centred or (many and stalled < STALLS)
        if len(pairs) > MOST * rank and rising and not centred:
            pairs = pairs[found.slack <= IDLE]
        pairs = np.vstack((pairs, new))
    return Status.GAP if search.is_met(tol) else Status.MAXITER


def _program(search: Exchange, pairs: Vector, box: float, centred: bool) -> tuple[Vector, vertex.Vertex | None]:
    """The rows of a program, and its optimum as a step from the best point: a vertex, or the centre of all optima."""
    search.nlp += 1
    which, left = np.unique(pairs[:, 0]) if centred else pairs[:, 0], search.deadline - time.perf_counter()
    Q, r = search.coordinates.rows(which), search.r[which] / search.upper
    return which, centre.solve(Q, r, box, left) if centred else vertex.solve(Q, r, pairs[:, 1].astype(float), box, left)


def _judge_optimum(search: Exchange, which: Vector, found: vertex.Vertex, tol: float) -> Vector:
    """Evaluate and polish an optimum on those rows, and bound the minimum by its multipliers; its residuals."""
    scale, y = search.upper, search.y + search.upper * found.step
    there, on = search.look(y), found.support
    search.certificate.bound(which[on], found.weights[on], np.delete(which, on))
    if not search.is_met(tol) and float(np.abs(there).max()) <= (1.0 + NEAR) * scale * found.value:
        Q, signs = search.coordinates.rows(which[on]), np.sign(found.weights[on])
        search.look(y + scale * vertex.polishing_step(Q, there[which[on]] / scale, signs))
    search.note()
    return there


MESSAGES = {
    Status.GAP: "Converged: no x does better by more than the tolerance.",
    Status.MAXITER: "Maximum number of linear programs reached.",
    Status.PRECISION: "No further progress is possible: the rest of the gap is rounding, or the solver's tolerance.",
    Status.TIME: Status.TIME.message,
}


def _answer(search: Exchange, tol: float, status: Status, message: str = "") -> Result:
    """The result; all its fields belong to the same x."""
    certificate, d = search.certificate, search.coordinates.A.shape[1]
    order = np.argsort(certificate.active, kind="stable")
    active, counted = certificate.active[order], certificate.columns_counted
    rank = np.count_nonzero(counted < search.coordinates.rank)
    message = message or MESSAGES[status]
    if status is Status.GAP and search.lower > 0.0 and not search.is_met(tol):
        message = f"Converged to rounding: the gap of {search.upper - search.lower:.2g} is within the rounding of Ax."
    if counted.size < d:
        message += f" Up to rounding, {counted.size} of the {d} columns of A span the others; the bound ignores those."
    if rank < counted.size:
        message += f" {counted.size - rank} of the {d} columns of A are too near to others and get the coefficient 0."
    return Result(
        x=search.x,
        fun=search.upper,
        lower=search.lower,
        gap=search.upper - search.lower,
        active=active,
        signs=np.sign(search.r[active]),
        multipliers=certificate.weights[order],
        residual=search.r,
        rank=rank,
        success=status.success,
        status=status.code,
        message=message,
        method="exchange",
        nit=search.nit,
        nfev=search.nprod,
        nprod=search.nprod,
        nlp=search.nlp,
        seconds=time.perf_counter() - search.began,
        trace={name: np.asarray(column) for name, column in search.trace.items()},
    )
