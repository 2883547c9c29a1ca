"""The minimax problem on a few rows: which rows, and the step to a vertex of its solutions or to their centre.

    min t  subject to  s_i (<q_i, step> + r_i) <= t, t >= 0, |step_j| <= box.

A vertex comes from a linear program posed as its dual, max sum_i m_i s_i r_i - box ||e||_1 over m >= 0, sum m <= 1,
sum_i m_i s_i q_i = e: its bases have as many rows as there are columns, those of the primal as many as there are rows.
The value that HiGHS reports is not used: `_multipliers` computes what the multipliers prove.

Where fewer rows carry the optimum than there are columns, its solutions are a face of many dimensions: two rows that
agree in everything but b are enough.  What a vertex of that face does to rows outside of the program is arbitrary; its
analytic centre keeps away from every row that need not be active.  It has both signs of every row, and comes from
Mehrotra's predictor and corrector (1992), with one Cholesky factorisation as large as there are columns a step.

The rows have large residuals and differ from each other.  Where they come from a curve (a polynomial basis, a filter's
frequencies) the largest residuals are neighbours in one peak, and nearly equal.  So candidates are taken in the order
of a pivoted QR factorisation of their rows, weighted by their residuals: each adds most to those before it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.optimize import linprog

from .._math.cholesky import cholesky, solve
from ..objectives._operators import Matrix, Vector, is_sparse
from ._coordinates import Coordinates
from ._matrices import as_dense, scale_columns

CANDIDATES = 3000
"""Rows looked at, at most: the largest, and others at random."""
PIVOTED = 500
"""Columns up to which rows are chosen by QR; with more, those with the largest residuals are taken."""
FEASIBLE = 1e-10
"""HiGHS's tolerance, its smallest."""
MANY = 300
"""Columns from which the interior-point method is faster than the simplex method."""
ACTIVE = 1e-9
"""A multiplier below this part of the largest is rounding."""
EDGE = 0.99
"""A coordinate beyond this part of the box is at its edge."""
WIDEST = 1000
"""Columns up to which the factorisations are affordable."""
STEPS = 60
"""Steps at most; ten to twenty are usual."""
CLOSE = 1e-12
"""Complementarity below this part of the value is rounding."""
INSIDE = 0.995
"""The part of the way to the boundary that a step goes."""
SHIFT = 1.0 + 2.0**-43
"""Times the diagonal, so that rounding leaves it positive definite."""


def largest_rows(r: Vector, count: int) -> Vector:
    """The rows with the largest residuals."""
    return np.arange(r.size) if count >= r.size else np.argpartition(np.abs(r), r.size - count)[r.size - count :]


def choose_rows(coordinates: Coordinates, r: Vector, above: float, times: tuple[float, float]) -> Vector:
    """The rows with the largest residuals, and distinct ones with residuals above a value: `times` the rank of each."""
    large, told = (int(part * coordinates.rank) + 1 for part in times)
    return np.union1d(largest_rows(r, large), _telling_rows(coordinates, r, above, told))


def _telling_rows(coordinates: Coordinates, r: Vector, above: float, count: int) -> Vector:
    """So many rows with residuals above a value that differ most from each other; all of them if there are no more."""
    size = np.abs(r)
    found = np.flatnonzero(size > above)
    if found.size <= count:
        return found
    order = found[np.argsort(-size[found], kind="stable")]
    if is_sparse(coordinates.A) or coordinates.rank > PIVOTED:
        return order[:count]
    if order.size > CANDIDATES:
        others = np.random.default_rng(0).choice(order.size - count, CANDIDATES - count, replace=False)
        order = np.concatenate((order[:count], order[count + np.sort(others)]))
    weighted = coordinates.rows(order) * (size[order] - above)[:, None]
    return order[scipy.linalg.qr(weighted.T, mode="r", pivoting=True, check_finite=False)[1][:count]]


def signed_rows(r: Vector, rows: Vector) -> Vector:
    """Rows with the signs of their residuals: i + 1 for row i where its residual is not negative, else -(i + 1)."""
    return np.where(r[rows] >= 0.0, rows + 1, -(rows + 1))


@dataclass(frozen=True)
class Vertex:
    """An optimal point of the linear program."""

    step: Vector  # in the coordinates of the rows
    value: float  # t
    weights: Vector  # signed multipliers of the rows, not yet projected
    slack: Vector  # t - s_i (<q_i, step> + r_i)
    Q: Matrix  # the rows

    @property
    def support(self) -> Vector:
        """The rows that carry it: those with a large weight, or a large weight times length."""
        weight = np.abs(self.weights)
        pull = weight * np.sqrt((self.Q * self.Q).sum(axis=1))
        return np.flatnonzero((weight > ACTIVE * weight.max(initial=0.0)) | (pull > ACTIVE * pull.max(initial=0.0)))

    def is_unique(self, box: float) -> bool:
        """Whether enough constraints carry it to fix one point: rows, and coordinates at the edge of the box."""
        return self.support.size + np.count_nonzero(np.abs(self.step) > EDGE * box) > self.step.size


def find_vertex(Q: Matrix, r: Vector, s: Vector, box: float, time_limit: float = math.inf) -> Vertex | None:
    """The vertex for rows Q with residuals r, whose sizes are about 1, and signs s; None where HiGHS finds none."""
    n, d = Q.shape
    one = scipy.sparse.eye_array(d)
    turned = scipy.sparse.hstack((scale_columns(Q.T, s), one, -one), format="csr")
    cost = np.concatenate((-s * r, np.full(2 * d, box)))
    mass = np.concatenate((np.ones(n), np.zeros(2 * d)))[None, :]
    options = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), FEASIBLE)
    options["time_limit"] = time_limit
    methods = ("highs-ds", "highs-ipm") if d < MANY else ("highs-ipm", "highs-ds")
    for method in methods:
        res = linprog(cost, A_ub=mass, b_ub=[1.0], A_eq=turned, b_eq=np.zeros(d), method=method, options=options)
        if res.status == 0:
            step, value = res.eqlin.marginals, -float(res.ineqlin.marginals[0])
            return Vertex(step, value, s * res.x[:n], value - s * (Q @ step + r), Q)
        if res.status == 1:  # out of time
            return None
    return None


def polishing_step(Q: Matrix, r: Vector, s: Vector) -> Vector:
    """The step that makes s_i (<q_i, step> + r_i) equal on all these rows, where HiGHS leaves its tolerance."""
    system = np.column_stack((as_dense(Q), -s))
    return np.linalg.lstsq(system, -r, rcond=None)[0][:-1]


def find_centre(Q: Matrix, r: Vector, box: float, time_limit: float = math.inf) -> Vertex:
    """The centre for rows Q with residuals r, all of size about 1; where time is up, the point reached."""
    n, d = Q.shape
    deadline = time.perf_counter() + time_limit
    t = 1.1 * float(np.abs(r).max())
    point = np.append(np.zeros(d), t)  # step, t
    slack = np.concatenate((t - r, t + r, np.full(2 * d, box)))
    dual = np.concatenate((np.full(2 * n, 1.0), np.full(2 * d, t / box))) / (2 * n)
    for _ in range(STEPS):
        gap = float(dual @ slack)
        if gap <= CLOSE * point[d] or time.perf_counter() >= deadline:
            break
        try:
            newton = CentreNewton(Q, slack, dual)
        except np.linalg.LinAlgError:
            break
        _, along, turn = newton.direction(-dual * slack)
        left = float((dual + _way(dual, turn) * turn) @ (slack + _way(slack, along) * along)) / gap
        move, along, turn = newton.direction(left**3 * gap / slack.size - dual * slack - along * turn)
        if not (np.isfinite(move).all() and np.isfinite(turn).all()):
            break
        far = INSIDE * _way(slack, along)
        point, slack, dual = point + far * move, slack + far * along, dual + INSIDE * _way(dual, turn) * turn
    off = np.abs(Q @ point[:d] + r)
    value = float(off.max())
    return Vertex(point[:d], value, dual[:n] - dual[n : 2 * n], value - off, Q)


class CentreNewton:
    """The linear equations of one step."""

    def __init__(self, Q: Matrix, slack: Vector, dual: Vector) -> None:
        """Factor the normal equations; LinAlgError where rounding leaves them indefinite."""
        self.Q, self.slack, self.dual = Q, slack, dual
        self.factor = cholesky(_normal(Q, dual / slack))
        self.missing = np.append(np.zeros(Q.shape[1]), 1.0) - _pull(Q, dual)

    def direction(self, aim: Vector) -> tuple[Vector, Vector, Vector]:
        """Changes of (step, t), slack and dual that add `aim` to dual * slack to first order, dual made feasible."""
        move = solve(self.factor, _pull(self.Q, aim / self.slack) - self.missing)
        along = _push(self.Q, move)
        return move, along, (aim - self.dual * along) / self.slack


def _push(Q: Matrix, move: Vector) -> Vector:
    """The change of the slacks with a move in (step, t): t - Q step, t + Q step, box - step, box + step."""
    image = Q @ move[:-1]
    return np.concatenate((move[-1] - image, move[-1] + image, -move[:-1], move[:-1]))


def _pull(Q: Matrix, dual: Vector) -> Vector:
    """The transpose of `_push`."""
    n, d = Q.shape
    above, below, right, left = np.split(dual, (n, 2 * n, 2 * n + d))
    return np.append(Q.T @ (below - above) - right + left, above.sum() + below.sum())


def _normal(Q: Matrix, weights: Vector) -> Vector:
    """The matrix of the normal equations: transpose, times weights, times the map itself."""
    n, d = Q.shape
    above, below, right, left = np.split(weights, (n, 2 * n, 2 * n + d))
    H = np.empty((d + 1, d + 1))
    scaled = scale_columns(Q.T, np.sqrt(above + below))
    H[:d, :d] = as_dense(scaled @ scaled.T)
    H[:d, d] = H[d, :d] = Q.T @ (below - above)
    H[d, d] = above.sum() + below.sum()
    diagonal = np.einsum("ii->i", H)
    diagonal[:d] += right + left
    diagonal *= SHIFT
    return H


def _way(values: Vector, change: Vector) -> float:
    """How far positive values can go along a change, at most 1."""
    falling = change < 0.0
    return float((-values[falling] / change[falling]).min(initial=1.0))
