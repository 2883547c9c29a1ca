"""The minimax problem on a few rows, by an interior-point method: the centre of its solutions, and its multipliers.

    min t  subject to  |<q_i, step> + r_i| <= t, |step_j| <= box.

Where fewer rows carry the optimum than there are columns, its solutions are a face of many dimensions: two rows that
agree in everything but b are enough.  What a vertex of that face does to rows outside of the program is arbitrary; its
analytic centre keeps away from every row that need not be active.  Mehrotra's predictor and corrector (1992), with one
Cholesky factorisation as large as there are columns a step.
"""

from __future__ import annotations

import math
import time

import numpy as np
import scipy.linalg
import scipy.sparse

from ..objectives._operators import Matrix, Vector, is_sparse
from ._vertex import Vertex, lengths

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


def solve(Q: Matrix, r: Vector, box: float, time_limit: float = math.inf) -> Vertex:
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
    return Vertex(point[:d], value, dual[:n] - dual[n : 2 * n], value - off, lengths(Q))


class CentreNewton:
    """The linear equations of one step."""

    def __init__(self, Q: Matrix, slack: Vector, dual: Vector) -> None:
        """Factor the normal equations; LinAlgError where rounding leaves them indefinite."""
        self.Q, self.slack, self.dual = Q, slack, dual
        self.factor = scipy.linalg.cho_factor(_normal(Q, dual / slack), check_finite=False)
        self.missing = np.append(np.zeros(Q.shape[1]), 1.0) - _pull(Q, dual)

    def direction(self, aim: Vector) -> tuple[Vector, Vector, Vector]:
        """Changes of (step, t), slack and dual that add `aim` to dual * slack to first order, dual made feasible."""
        move = scipy.linalg.cho_solve(self.factor, _pull(self.Q, aim / self.slack) - self.missing, check_finite=False)
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
    root = np.sqrt(above + below)
    if is_sparse(Q):
        scaled = scipy.sparse.diags_array(root) @ Q
        H[:d, :d] = (scaled.T @ scaled).toarray()
    else:
        scaled = Q * root[:, None]
        H[:d, :d] = scaled.T @ scaled
    H[:d, d] = H[d, :d] = Q.T @ (below - above)
    H[d, d] = above.sum() + below.sum()
    diagonal = np.einsum("ii->i", H)
    diagonal[:d] += right + left
    diagonal *= SHIFT
    return H


def _way(values: Vector, change: Vector) -> float:
    """How far positive values can go along a change, at most 1."""
    falling = change < 0.0
    return min(1.0, float((-values[falling] / change[falling]).min(initial=1.0)))
