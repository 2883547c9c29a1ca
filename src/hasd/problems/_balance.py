"""Matrix balancing: positive diagonal scalings that give a matrix the row and column sums asked for.

Problem.    Find d_1, d_2 > 0 such that diag(d_1) K diag(d_2) has row sums r and column sums c, K >= 0.
Algorithm.  log d_1 and log d_2 are the potentials of the transport problem with cost -log K and reg = 1, solved by its
            semi-dual (see `scaling`); the stored entries of a sparse K are all that is ever looked at.
Guarantee.  The error is that of the sums themselves.  Scalings exist iff some matrix with K's pattern of non-zeros has
            these sums, and those of a set of rows that meets only the columns J never exceed those of J.  Where the
            potentials run away along such a set, it is found and named: a proof that there are none.
Reference.  Sinkhorn & Knopp (1967); Menon (1968) and Rothblum & Schneider (1989) for existence.

>>> import numpy as np
>>> res = balance([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0], [1.0, 1.0])
>>> res.success, bool(np.allclose(res.matrix().sum(axis=1), 1.0))
(True, True)
>>> print(balance([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0], [1.0, 1.0]).message)
No scaling exists: column 1 is to sum to 1, but has no entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from .. import _inputs as inputs
from .._run.record import State
from .._run.report import Result
from .._run.status import Status, Stop
from ..objectives._operators import Vector, is_sparse, quiet
from ..objectives.transport import SemiDual
from ._matrices import as_entries
from ._scaling import MAXITER, SAME, Marginals, Solution, column_potentials, solve, stages
from ._session import Session

TIE = {**SAME, "float64": 1e-12}
"""Sums of sets of numbers of this type are equal within this share of the mass."""
MESSAGES = {Status.CONVERGED: "Converged: the sums are within the tolerance."}
WATCH = 25
"""Steps between two looks for a proof that no scaling exists."""


def balance(
    K: Any,
    r: npt.ArrayLike,
    c: npt.ArrayLike,
    *,
    error_tol: float = 1e-8,
    maxiter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    disp: bool = False,
) -> Result:
    """Scale the rows and columns of a non-negative matrix to given sums.

    Parameters
    ----------
    K : array_like or sparse matrix, shape (n, m)
        The matrix, non-negative and finite.  A sparse matrix is never made dense.
    r, c : array_like
        The row and column sums asked for, non-negative and with equal totals, up to the rounding of their type (about
        1e-6 for float32).  If a sum is 0, its scaling is 0.
    error_tol : float
        Stop when the l_1 error of the sums is at most this share of their total.
    maxiter, time_limit : optional
        Limits on steps (10000 if no limit is given) and seconds.
    callback, progress, disp : optional
        ``callback(intermediate_result=...)`` is called with every row of the trace, as a Result with fun, lower, gap
        and nit (the steps so far); it ends the run by raising StopIteration.  If the sizes of K's entries differ by a
        factor above exp(100), the first steps are for powers of K, and fun is the error there.  ``progress=True`` shows
        a progress bar (needs tqdm), and ``disp=True`` prints a summary at the end.

    Returns
    -------
    hasd.Result
        It has the fields that every solver returns.  ``row`` and ``column`` are the scalings d_1 and d_2; ``log_row``
        and ``log_column`` are their logarithms, which never overflow, and ``x`` is both logarithms as one vector.
        ``matrix()`` makes diag(d_1) K diag(d_2) in the format of K.  ``fun`` is the l_1 error of the row and column
        sums together, divided by the total.  ``lower`` is an error that no scaling can get below, proved by a set of
        rows, or 0 if there is no such proof; gap = fun - lower.  success means fun <= error_tol; status 13 means
        that there is a proof that no scaling exists.  ``npass`` counts passes over the entries of K; nfev and nprod are
        the same number.  ``trace`` has the columns seconds, fun and npass.

    Examples
    --------
    >>> import numpy as np
    >>> res = balance(np.array([[1.0, 1.0], [0.0, 1.0]]), [2.0, 1.0], [1.0, 2.0])
    >>> res.matrix().round(6)
    array([[1., 1.],
           [0., 1.]])
    """
    matrix = _matrix(K)
    sums = Marginals.of(matrix.shape, r=r, c=c)
    problem = Balance(sums.cut(matrix), sums, inputs.number("error_tol", error_tol, least=0.0))
    obstacle = problem.evident_obstacle()
    limits = (MAXITER, maxiter, time_limit)
    with Session("balance", ("npass", "fun"), MESSAGES, *limits, callback, progress, disp, problem.tol) as session:
        end, found = (None, obstacle) if obstacle is not None else problem.solve(session)
    return _result(problem, K, end, found, session)


def _matrix(K: Any) -> Any:
    """K checked; CSR without stored zeros where it is sparse."""
    matrix = as_entries(K, "K", "balance needs the entries")
    if is_sparse(matrix):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    values = matrix.data if is_sparse(matrix) else matrix
    if values.size and float(values.min()) < 0.0:
        raise ValueError(f"K must not be negative, got an entry of {float(values.min()):g}")
    return matrix


class Obstacle(NamedTuple):
    """What stands in the way of a scaling."""

    impossible: bool  # whether it is proved that there is none with an error within tol
    words: str  # what is proved, in a sentence; empty where nothing is
    lower: float = 0.0  # the error that no scaling gets below


@dataclass(frozen=True)
class Balance:
    """The problem without the rows and columns whose sums are to be 0."""

    K: Any
    sums: Marginals  # r and c
    tol: float

    @property
    def tie(self) -> float:
        """Sums of sets that differ by less are equal, as far as their type can tell."""
        return TIE[self.sums.kind]

    @property
    def mismatch(self) -> float:
        """The share by which the totals differ (no scaling has both); 0 where the difference is rounding."""
        one, other = self.sums.totals
        share = abs(one - other) / one
        return share if share > self.tie else 0.0

    def evident_obstacle(self) -> Obstacle | None:
        """An obstacle that the data show at once: totals that differ, or a sum asked of an empty row or column."""
        one, other = self.sums.totals
        if self.mismatch > self.tol:
            words = f"No scaling exists: r sums to {one:.17g}, c to {other:.17g}."
            return Obstacle(True, words, self.mismatch - self.tie)
        sums = self.sums
        for axis, kept, wanted, name in ((1, sums.rows, sums.left, "row"), (0, sums.columns, sums.right, "column")):
            lacking = np.flatnonzero(np.asarray((self.K > 0.0).sum(axis=axis)).ravel() == 0)
            if lacking.size:
                place, share = kept[lacking[0]], float(wanted[lacking[0]])
                words = f"No scaling exists: {name} {place} is to sum to {one * share:g}, but has no entries."
                return Obstacle(True, words, share * (1.0 - 1e-15))
        return None

    def solve(self, session: Session) -> tuple[Solution, Obstacle]:
        """Where the run ended, and what stands in the way of a scaling."""
        values = self.K.data if is_sparse(self.K) else self.K[self.K > 0.0]
        span = math.log(float(values.max())) - math.log(float(values.min()))
        dual, regs = self.dual(), stages(1.0, span, 0.0)

        def record(dual: SemiDual, before: float, state: State) -> None:
            error, nit = state.grad_norm, session.nit + state.iteration
            session.note(before + dual.passes, error, left=error, nit=nit)
            due = state.iteration > 0 and state.iteration % WATCH == 0
            if due and self.obstacle(column_potentials(dual, state.x)).impossible:
                raise Stop(Status.UNBOUNDED)

        end = solve(dual, regs[0] * np.log(dual.b), regs, self.tol - self.mismatch, session, record)
        found = self.obstacle(column_potentials(end.dual, end.x))
        if end.status is Status.UNBOUNDED and not found.impossible:  # look for a set among the columns with too much
            found = self.obstacle(-end.found.column / dual.b)
        if end.status is Status.UNBOUNDED and not found.impossible:  # without a proof it may be rounding
            small = "The error that is left is within the rounding of r and c."
            words = small if end.error <= self.tie else "The scalings grow without end: perhaps none exists."
            end, found = replace(end, status=Status.PRECISION), found._replace(words=found.words or words)
        return end, found

    @quiet
    def dual(self) -> SemiDual:
        """The costs -log K; inf where K is 0."""
        if is_sparse(self.K):
            cost = csr_array((-np.log(self.K.data, dtype=float), self.K.indices, self.K.indptr), shape=self.K.shape)
        else:
            cost = -np.log(self.K, dtype=float)
        return SemiDual(cost, self.sums.left, self.sums.right, 1.0)

    def obstacle(self, v: Vector) -> Obstacle:
        """What v proves about scalings.

        Sort the columns by v; J are the first k of them, I the rows with entries in J only.  r(I) <= c(J) is
        necessary, and where r(I) = c(J) nothing is left for the other rows with entries in J.
        """
        rank = np.argsort(np.argsort(v))
        low, high = self._reach(rank)
        inside = np.cumsum(np.bincount(high, self.sums.left, len(v)))
        room = np.cumsum(np.bincount(rank, self.sums.right, len(v)))
        between = np.cumsum(np.bincount(low, minlength=len(v)) - np.bincount(high, minlength=len(v)))
        short = inside - room
        k = int(np.argmax(short))
        lower = max(2.0 * (float(short[k]) - self.tie), 0.0)
        # What a set of rows lacks is an error twice: so much proves that no scaling is within tol.
        if short[k] > self.tie + max(self.mismatch, 0.5 * self.tol):
            return Obstacle(True, f"No scaling exists: {self._words(high <= k, rank <= k, 'only')}.", lower)
        tied = np.flatnonzero((short >= -self.tie) & (between > 0))
        if tied.size:
            words = self._words(high <= tied[0], rank <= tied[0], "the same")
            vanish = "so all other entries of these columns would have to be 0"
            return Obstacle(False, f"The sums can be approached but not attained: {words}, {vanish}.", lower)
        if short[k] > TIE["float64"]:
            words = self._words(high <= k, rank <= k, "only")
            return Obstacle(False, f"No scaling comes closer than {2.0 * short[k]:.1e}: {words}.", lower)
        return Obstacle(False, "")

    def _reach(self, rank: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The least and the greatest rank among the columns that each row meets."""
        if is_sparse(self.K):
            met, starts = rank[self.K.indices], self.K.indptr[:-1]
            return np.minimum.reduceat(met, starts), np.maximum.reduceat(met, starts)
        pattern = self.K > 0.0
        return np.where(pattern, rank, len(rank)).min(axis=1), np.where(pattern, rank, -1).max(axis=1)

    def _words(self, rows: npt.NDArray[np.bool_], columns: npt.NDArray[np.bool_], how: str) -> str:
        sums, total = self.sums, self.sums.totals[0]
        wanted, room = total * float(sums.left[rows].sum()), total * float(sums.right[columns].sum())
        some, others = _name_places("row", sums.rows[rows]), _name_places("column", sums.columns[columns])
        digits = ".17g" if how == "only" and f"{wanted:g}" == f"{room:g}" else "g"
        there = f"in {others}, with a sum of {how} {room:{digits}}"
        return f"all entries of {some}, with a sum of {wanted:{digits}}, are {there}"

    def logarithms(self, end: Solution | None) -> tuple[Vector, Vector]:
        """log d_1 and log d_2, both around the same middle; of zeros where there was no run."""
        if end is None:
            return self.sums.spread(-np.inf, -np.inf)
        u, v = end.dual.potentials(end.x, end.found)
        u += math.log(self.sums.totals[0])
        shift = 0.25 * (float(u.max() + u.min()) - float(v.max() + v.min()))
        return self.sums.spread(u - shift, v + shift)


def _name_places(noun: str, places: npt.NDArray[np.int64]) -> str:
    """The noun with up to five of these numbers."""
    names = ", ".join(map(str, places[:5])) + (", ..." if len(places) > 5 else "")
    return f"{noun} {names}" if len(places) == 1 else f"{noun}s {names} ({len(places)} of them)"


@dataclass(frozen=True)
class BalancedMatrix:
    """``res.matrix()``: made when it is asked for."""

    K: Any
    log_row: Vector
    log_column: Vector

    @quiet
    def __call__(self) -> Any:
        """diag(d_1) K diag(d_2) in K's own format; the logarithms are added first, so that nothing overflows."""
        if not is_sparse(self.K):
            K = np.asarray(self.K, dtype=float)
            return np.exp(np.log(K) + self.log_row[:, None] + self.log_column)
        out = self.K.tocsr(copy=True).astype(float)
        rows = np.repeat(self.log_row, np.diff(out.indptr))
        out.data = np.exp(np.log(out.data) + rows + self.log_column[out.indices])
        return out.asformat(self.K.format)

    def __repr__(self) -> str:
        """How to get it."""
        return f"<matrix of shape {np.shape(self.K)}: matrix() computes it>"


@quiet
def _result(problem: Balance, K: Any, end: Solution | None, obstacle: Obstacle, session: Session) -> Result:
    """The result; scalings of 0, and sums of 0, where the run did not start (end is None)."""
    one, other = problem.sums.totals
    error, npass = (1.0 + other / one, 0) if end is None else (end.error + problem.mismatch, end.npass)
    session.status = Status.UNBOUNDED if obstacle.impossible or end is None else end.status
    if error <= problem.tol:
        session.status = Status.CONVERGED
    said = "" if session.status is Status.UNBOUNDED else session.message
    log_row, log_column = problem.logarithms(end)
    return session.result(
        x=np.concatenate((log_row, log_column)),
        row=np.exp(log_row),
        column=np.exp(log_column),
        log_row=log_row,
        log_column=log_column,
        matrix=BalancedMatrix(K, log_row, log_column),
        fun=error,
        lower=min(obstacle.lower, error),
        message=f"{said} {obstacle.words}".strip(),
        method="scaling-newton",
        nprod=npass,
        npass=npass,
    )
