"""l_q regression: min_x ||Ax - b||_q for 2 <= q < inf, with a certified lower bound.

Problem.    min_x ||Ax - b||_q, with weights w (sum_i w_i |<a_i, x> - b_i|^q)^(1/q).  q = 2 is least squares, q = inf
            minimax; between them large residuals count for more and more, and the solution is unique in Ax.
Algorithm.  Least squares first, then q = 4, 8, 16, ... up to the power asked for, each stage minimising
            (1/q) sum |z_i/s|^q with s = ||z||_q of the point it starts from, so that no power over- or underflows.
            Columns of A are scaled by powers of two (which round nothing); with up to 512 of them, or 1024 that nearly
            depend on each other, A is replaced by the orthonormal factor of its pivoted QR and every stage is
            `hasd-subspace` with the whole space in its span from the start, otherwise `minimize(method="auto")`.
Guarantee.  Doubling q is what keeps a stage easy: if x minimises ||z||_q, then ||z||_2q <= n^(1/2q) times its minimum,
            so the function of the next stage starts within a factor n of its minimum, whatever q.
            For every u with A^T u = 0, ||u||_{q*} <= 1: ||Ay - b||_q >= -<b, u> for all y.  That u is the residual of
            a least-squares fit with weights |z|^(q-2), times these weights, projected once more onto A^T u = 0 without
            weights: Newton's step in the dual, so that the gap it certifies is the true one to second order.
            Where weights of rows that are fitted exactly drown in rounding, phi'(z) projected without weights is tried.
            A^T u is 0 up to rounding only.  What is left, v, is charged as ||v|| times the distance from x to a
            minimiser (columns scaled to norm about 1): at most 2 n^(1/2-1/q) fun/sigma_min, known where A was
            factored and not nearly rank-deficient; otherwise minimisers up to 100 (||x||_2 + n^(1/2-1/q) fun) away are
            reckoned with, and only one further away could make `lower` too large.  Rounding in Ax - b is charged too.
            With weights all this is done with the rows of A and b times w^(1/q), whose rounding is charged as well.
Reference.  Adil, Peng & Sachdeva (2019) for reweighted least squares in l_q; Fong & Saunders (2011) for LSMR.

>>> import numpy as np
>>> fit = lp_fit([[1.0], [1.0], [1.0]], [0.0, 0.0, 1.0], power=4)  # 2 x^3 = (1 - x)^3
>>> round(float(fit.x[0]), 4), fit.success, bool(fit.gap <= 1e-8 * fit.fun)
(0.4425, True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from .. import _inputs as inputs
from .._math.arrays import largest_size, to_host
from .._math.geometry import Lp, norm2
from .._minimize import minimize
from .._run.record import State
from .._run.report import Result
from .._run.status import Status
from ..objectives._operators import Matrix, Vector, apply, as_data, as_matrix, is_sparse, quiet
from ..objectives.affine import Affine
from ..objectives.losses import PowerLoss, SquareLoss
from ._lp_spaces import Factored, LpColumns, ScaledFit, space_of
from ._matrices import power_of_two
from ._session import Session
from ._weights import as_weights

REACH = 100.0
"""Minimisers this far away, in sizes of the solution, are reckoned with where sigma_min is unknown or tiny."""
ROUGH = 1e-2
"""The gradient of a stage on the way falls to this part: its minimiser is only a start for the next."""
ROUNDS = 25
"""How often the last stage goes on from where its certificate was not good enough."""
PASSES = 3
"""Projections onto A^T u = 0 after the first: the second is nearly always enough."""
BLUR = 8.0
"""Roundings charged for a sum, as in ``hasd.objectives._dual``."""
TRACE = ("power", "fun", "lower", "nprod")
MESSAGES = {Status.GAP: "Converged: the certified gap is within the tolerance."}


@quiet
def lp_fit(
    A: Matrix,
    b: npt.ArrayLike,
    power: float = 4.0,
    *,
    weights: npt.ArrayLike | None = None,
    gap_rtol: float = 1e-8,
    maxiter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    disp: bool = False,
) -> Result:
    """Minimise (sum_i w_i |<a_i, x> - b_i|^q)^(1/q), q = ``power``, and prove how close to the minimum the answer is.

    Parameters
    ----------
    A : array, sparse matrix or LinearOperator
        n x d, real, of any rank.  A is factored if it has at most 512 columns, or at most 1024 that nearly depend on
        each other (of an array or a sparse matrix); it is then written out as a float64 array, an operator by d
        products.  Otherwise a float64 A is not copied, unless it is an array or sparse and there are weights.  If
        several x are best and A was factored, the shortest is returned.
    b : array_like
        n values.
    power : float
        The exponent q, 2 <= q < inf.  Each doubling of q takes one more stage.  `hasd.chebyshev` is for q = inf.
    weights : array_like, optional
        n numbers w_i of at least 0, 1 without them: a row with weight 2 counts twice, one with weight 0 not at all.
    gap_rtol : float
        The relative gap to reach: success means ``gap <= gap_rtol * fun``, or a fit that is exact up to rounding.
        Rounding limits what can be proved: if the condition number (with scaled columns) is 1e8, or fun is 1e-8 ||b||,
        the gap stays at about 1e-6 fun.
    maxiter, time_limit : optional
        Limits on the iterations of all stages together (10000 by default) and on seconds.  The time is checked between
        products; the certificate of the point reached is still computed.
    callback, progress, disp : optional
        ``callback(intermediate_result=...)`` is called with every row of the trace, as a Result with x, fun, lower, gap
        and nit (the iterations so far); it ends the run by raising StopIteration.  ``progress=True`` shows a progress
        bar (needs tqdm), and ``disp=True`` prints a summary at the end.

    Returns
    -------
    hasd.Result
        It has the fields that every solver returns; ``fun`` is what is minimised, computed from x, ``lower`` allows for
        rounding, and ``nprod`` counts products with A or with the factor in its place.  It also has ``power``;
        ``residual``, Ax - b without weights; and ``dual``, a vector u with ||w^(-1/q) u||_{q*} = 1 and A^T u = 0 up to
        rounding (0 where w is), so that -<b, u> is the lower bound before the allowance for rounding.  ``trace`` has a
        row for each stage with the columns seconds, power, fun, lower and nprod; fun and lower are always for the power
        asked for, and the column power is that of the stage.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(-1, 1, 50)
    >>> fit = lp_fit(np.vander(t, 6), np.exp(t), power=10)
    >>> fit.success, bool(fit.lower <= fit.fun <= fit.lower * (1 + 1e-8)), bool(fit.fun < 1e-4)
    (True, True, True)
    """
    if isinstance(power, float) and power == math.inf:
        raise ValueError("power must be finite, got inf: hasd.chebyshev minimises the largest residual")
    q = inputs.number("power", power, least=2.0)
    tol = inputs.number("gap_rtol", gap_rtol, least=0.0)
    with Session("lp_fit", TRACE, MESSAGES, 10_000, maxiter, time_limit, callback, progress, disp, tol) as session:
        A, aim = _check_data(A, b)
        data, size = _scale_data(A, aim, None if weights is None else _roots(A, aim, weights, q))
        fit = Fit(data, space_of(data), q, tol, session, size)
        session.status = _solve(fit)
    return _result(fit, aim)


class LpPoint(NamedTuple):
    """A point and its residuals, from the data."""

    c: Vector  # D x in units of size(b)
    z: Vector  # A D^-1 c - b
    fun: float  # ||z||_q


@dataclass
class Fit:
    """Where a fit stands, in units of D and of size(b)."""

    data: ScaledFit
    space: LpColumns | Factored
    q: float
    tol: float  # the relative gap to reach
    session: Session
    size: float = 1.0  # of b
    best: LpPoint = field(init=False)  # so far; 0 at first, which is always an answer
    lower: float = 0.0
    u: Vector = field(default_factory=lambda: np.zeros(0))  # whose bound that is
    charges: float = 0.0  # what was taken off the last bound
    exact: bool = False  # whether Ax = b up to rounding
    nfev: int = 0
    method: str = "least-squares"  # until a stage is run

    def __post_init__(self) -> None:
        """Start from x = 0."""
        self.best = LpPoint(np.zeros(self.data.D.size), -self.data.b, Lp(self.q).norm(self.data.b))

    def descend(self, f: Affine, y: Vector, tol: float, gtol: float = 0.0, state: State | None = None) -> Any:
        """Go on minimising f, within what is left of the limits."""
        before = 0 if state is None else state.iteration
        limits: dict[str, Any] = {"tol": tol, "gtol": gtol, "time_limit": self.session.left}
        limits["maxiter"] = before + self.session.steps - self.session.nit
        start = y if state is None else state.origin
        result = minimize(f, start, method=self.space.method, trace=False, resume=state, **limits)
        self.session.nit += result.nit - before
        self.nfev += result.nfev
        self.data.nprod += result.nprod + 2 * result.nrecord  # the evaluations for the record took products, too
        self.method = result.method if result.nit > before else self.method
        return result

    def look(self, y: Vector) -> LpPoint:
        """Evaluate a point of the space; the best point is kept."""
        c = self.space.point(y)
        z = self.data.image(c)
        seen = LpPoint(c, z, Lp(self.q).norm(z))
        if seen.fun < self.best.fun:
            self.best = seen
        return seen

    def x(self) -> Vector:
        """The best point in the units of the data."""
        return self.best.c * self.size / self.data.D * self.data.lift

    def norm(self, residual: Vector) -> float:
        """The weighted q-norm of Ax - b."""
        return Lp(self.q).norm(self.data.weigh(residual))

    def note(self, power: float) -> None:
        """A row of the trace."""
        fun, lower = self.best.fun * self.size, self.lower * self.size
        self.session.note(power, fun, lower, self.data.nprod, left=(fun - lower) / (fun or 1.0), x=self.x())

    def least_gradient(self, power: float, size: float) -> float:
        """The size of gradient that rounding explains: that of Ax - b over size, times the curvature power - 1."""
        return BLUR * self.data.precision * (power - 1.0) * max(1.0, Lp(power).norm(self.data.b) / size)

    def rounding(self) -> float:
        """What rounding may change the residuals of the best point by; one product."""
        return BLUR * self.data.precision * Lp(self.q).norm(self.data.magnitude(self.best.c))

    def certify(self, seen: LpPoint) -> float:
        """The bound from a Newton step in the dual at that point; the relative gap that is left."""
        zeta = seen.z / seen.fun
        root = np.abs(zeta) ** (0.5 * self.q - 1.0)
        self.charges = self._bound(seen, root * self.space.leftover(root, root * zeta, 1e-3 * self.tol))
        if self.gap > max(self.tol, self.space.loose) and not self.is_mostly_rounding:
            # Without weights the bound is cruder, but no weight is lost to rounding.
            self._bound(seen, self.space.leftover(None, root * root * zeta, 0.0))
        return self.gap

    @property
    def gap(self) -> float:
        """The relative gap between the best value and the best bound."""
        return (self.best.fun - self.lower) / self.best.fun

    @property
    def is_mostly_rounding(self) -> bool:
        """Whether that gap is mostly charges for rounding: then a better point gains nothing."""
        return self.charges >= 0.9 * self.gap * self.best.fun

    def _bound(self, seen: LpPoint, u: Vector) -> float:
        """Keep what u, projected onto A^T u = 0, proves, if it is the best bound so far; the charges in it."""
        for _ in range(PASSES):
            u = u / Lp(self.q).dual_norm(u)
            left, blur = norm2(self.data.adjoint(u)), BLUR * self.data.precision * math.sqrt(seen.c.size) * norm2(u)
            if left <= BLUR * blur:
                charges = self._charges(seen, u, left + blur)
                lower = float(u @ seen.z) - charges
                if lower > self.lower:
                    self.lower, self.u = lower, u
                return charges
            u = self.space.leftover(None, u, 0.0)
        return 0.0

    def _charges(self, seen: LpPoint, u: Vector, left: float) -> float:
        """What rounding may have added to <u, z>, and <A^T u, y - c> at most, y a minimiser; ||u||_{q*} = 1."""
        spread = u.size ** (0.5 - 1.0 / self.q) * seen.fun  # at least ||z||_2, and the same of a minimiser
        distance = REACH * (norm2(seen.c) + spread)
        if self.space.sigma > 0.0:
            distance = min(distance, 2.0 * spread / self.space.sigma)
        return BLUR * self.data.precision * float(np.abs(u) @ self.data.magnitude(seen.c)) + left * distance


def _solve(fit: Fit) -> Status:
    """Least squares, the stages, and the last one until its certificate is good enough; why it ended."""
    y = fit.space.start(lambda f, y, tol, gtol: fit.descend(f, y, tol, gtol).x)
    seen = fit.look(y)
    fit.note(2.0)
    if fit.best.fun <= fit.rounding():
        fit.exact = True
        return Status.GAP
    if (y.size == 0 or fit.q == 2.0) and fit.certify(seen) <= fit.tol:
        fit.note(fit.q)
        return Status.GAP
    if y.size == 0:
        return Status.PRECISION
    power = 4.0
    while power < fit.q:
        size = Lp(power).norm(seen.z)
        f = fit.space.objective(PowerLoss(power), size)
        y = fit.descend(f, y / size, ROUGH, fit.least_gradient(power, size)).x * size
        seen = fit.look(y)
        fit.note(power)
        power *= 2.0
    return _finish(fit, y, seen.fun)


def _finish(fit: Fit, y: Vector, size: float) -> Status:
    """The last stage: the gap falls with the square of the gradient, from which the next tolerance follows."""
    f = fit.space.objective(SquareLoss() if fit.q == 2.0 else PowerLoss(fit.q), size)
    least = fit.least_gradient(fit.q, size)
    y, gtol, state, status = y / size, max(math.sqrt(fit.tol), least), None, Status.PRECISION
    for _ in range(ROUNDS):
        result = fit.descend(f, y, 0.0, gtol, state)
        state, y, status = result.state, result.x, Status.of(result.status)
        gap = fit.certify(fit.look(y * size))
        fit.note(fit.q)
        if gap <= fit.tol:
            return Status.GAP
        # A gradient of the size `least` is rounding.
        if status is not Status.CONVERGED or gtol <= least or fit.is_mostly_rounding:
            break
        gtol = max(norm2(result.jac) * min(max(0.5 * math.sqrt(fit.tol / gap), 1e-3), 0.3), least)
    return Status.PRECISION if status is Status.CONVERGED else status


def _check_data(A: Matrix, b: npt.ArrayLike) -> tuple[Matrix, Vector]:
    """A and b, checked."""
    A = as_matrix(to_host(A), "A")
    if A.dtype != np.float64 and not isinstance(A, LinearOperator):
        A = A.astype(np.float64)  # a bound to 1e-8 needs products better than float32's
    return A, as_data(to_host(b), A.shape[0], "b")


def _roots(A: Matrix, b: Vector, weights: npt.ArrayLike, q: float) -> Vector:
    """w^(1/q), what the rows are multiplied by; weights with which they overflow are refused."""
    roots = as_weights(weights, len(b)) ** (1.0 / q)
    size = 1.0 if isinstance(A, LinearOperator) else largest_size(A.data if is_sparse(A) else A)
    if not math.isfinite(float(roots.max()) * max(size, largest_size(b))):
        raise ValueError("A or b times the roots of the weights overflows: rescale the data or the weights")
    return roots


def _scale_data(A: Matrix, b: Vector, roots: Vector | None = None) -> tuple[ScaledFit, float]:
    """The data, with rows times the roots of their weights and b divided by a power of two, and that power."""
    weighted = b if roots is None else roots * b
    size = float(power_of_two(np.abs(weighted).max(keepdims=True))[0])
    return ScaledFit(A, weighted / size, roots), size


def _answer_point(fit: Fit, b: Vector) -> tuple[Vector, Vector]:
    """x in the units of the data, the shortest where there are many, and its residuals."""
    data = fit.data
    x = fit.x()
    residual = apply(data.given, x) - b
    data.nprod += 1
    short = fit.space.shortest_solution(x, data.D / data.lift)
    if short is not x:
        other = apply(data.given, short) - b
        data.nprod += 1
        # Columns of very different size: rounding may spoil the projection.
        if fit.norm(other) <= fit.norm(residual) + fit.rounding() * fit.size:
            return short, other
    return x, residual


def _result(fit: Fit, b: Vector) -> Result:
    """The result in the units of the data; the value, and success, are those of the x handed back."""
    session = fit.session
    x, residual = _answer_point(fit, b)
    fun = fit.norm(residual)
    lower = min(fit.lower * fit.size, fun)
    # x may have lost digits to underflow.
    exact, is_open = fit.exact and fun <= 4.0 * fit.rounding() * fit.size, fun - lower > fit.tol * fun
    if session.status is Status.GAP and is_open and not exact:
        session.status = Status.PRECISION
    message = "Converged: the fit is exact, Ax = b up to rounding." if exact else session.message
    if is_open and not exact:
        message += f" The certified gap is {1.0 - lower / fun:.1e} of the value, above the tolerance."
    if not (math.isfinite(fun) and np.isfinite(x).all()):
        fun, session.status = math.inf, Status.NONFINITE
        message = "x or Ax - b overflows at the answer: rescale A or b."
    return session.result(
        x=x,
        fun=fun,
        lower=lower,
        message=message,
        nfev=fit.nfev,
        nprod=fit.data.nprod,
        method=fit.method,
        power=fit.q,
        residual=residual,
        dual=fit.data.weigh(fit.u) if fit.u.size else fit.u,
    )
