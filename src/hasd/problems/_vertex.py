"""The minimax problem on a few rows, by a linear program: its vertex and its multipliers.

    min t  subject to  s_i (<q_i, step> + r_i) <= t, t >= 0, |step_j| <= box,

posed as its dual, max sum_i m_i s_i r_i - box ||e||_1 over m >= 0, sum m <= 1, sum_i m_i s_i q_i = e: its bases have as
many rows as there are columns, those of the primal as many as there are rows.  The value that HiGHS reports is not
used: `_multipliers` computes what the multipliers prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from scipy.optimize import linprog

from ..objectives._operators import Matrix, Vector, is_sparse

FEASIBLE = 1e-10
"""HiGHS's tolerance, its smallest."""
MANY = 300
"""Columns from which the interior-point method is faster than the simplex method."""
ACTIVE = 1e-9
"""A multiplier below this part of the largest is rounding."""
EDGE = 0.99
"""A coordinate beyond this part of the box is at its edge."""


@dataclass(frozen=True)
class Vertex:
    """An optimal point of the linear program."""

    step: Vector  # in the coordinates of the rows
    value: float  # t
    weights: Vector  # signed multipliers of the rows, not yet projected
    slack: Vector  # t - s_i (<q_i, step> + r_i)
    lengths: Vector  # ||q_i||

    @property
    def support(self) -> Vector:
        """The rows that carry it: those with a large weight, or a large weight times length."""
        weight = np.abs(self.weights)
        pull = weight * self.lengths
        return np.flatnonzero((weight > ACTIVE * weight.max(initial=0.0)) | (pull > ACTIVE * pull.max(initial=0.0)))

    def is_unique(self, box: float) -> bool:
        """Whether enough constraints carry it to fix one point: rows, and coordinates at the edge of the box."""
        return self.support.size + np.count_nonzero(np.abs(self.step) > EDGE * box) > self.step.size


def solve(Q: Matrix, r: Vector, s: Vector, box: float, time_limit: float = math.inf) -> Vertex | None:
    """The vertex for rows Q with residuals r, whose sizes are about 1, and signs s; None where HiGHS finds none."""
    n, d = Q.shape
    if is_sparse(Q):
        one = scipy.sparse.eye_array(d)
        turned = scipy.sparse.hstack(((scipy.sparse.diags_array(s) @ Q).T, one, -one), format="csr")
    else:
        turned = np.hstack(((s[:, None] * Q).T, np.eye(d), -np.eye(d)))
    cost = np.concatenate((-s * r, np.full(2 * d, box)))
    mass = np.concatenate((np.ones(n), np.zeros(2 * d)))[None, :]
    options: dict[str, float] = {"primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE}
    if math.isfinite(time_limit):
        options["time_limit"] = max(time_limit, 0.0)
    methods = ("highs-ds", "highs-ipm") if d < MANY else ("highs-ipm", "highs-ds")
    for method in methods:
        res = linprog(cost, A_ub=mass, b_ub=[1.0], A_eq=turned, b_eq=np.zeros(d), method=method, options=options)
        if res.status == 0:
            step, value = res.eqlin.marginals, -float(res.ineqlin.marginals[0])
            return Vertex(step, value, s * res.x[:n], value - s * (Q @ step + r), lengths(Q))
        if res.status == 1:  # out of time
            return None
    return None


def lengths(Q: Matrix) -> Vector:
    """The l_2 norms of rows."""
    return scipy.sparse.linalg.norm(Q, axis=1) if is_sparse(Q) else np.linalg.norm(Q, axis=1)


def polishing_step(Q: Matrix, r: Vector, s: Vector) -> Vector:
    """The step that makes s_i (<q_i, step> + r_i) equal on all these rows, where HiGHS leaves its tolerance."""
    system = np.hstack((Q.toarray() if is_sparse(Q) else Q, -s[:, None]))
    return np.linalg.lstsq(system, -r, rcond=None)[0][:-1]
