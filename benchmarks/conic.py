"""Fits as cone programs for Clarabel, in the forms that were fastest there, and transport as a linear program."""

from __future__ import annotations

import time
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr


def solve(
    cost: np.ndarray, rows: Any, right: np.ndarray, cones: list[Any], cap: float, squares: Any = None
) -> tuple[np.ndarray | None, float]:
    """min <cost, v> + <v, squares v>/2 with right - rows v in the cones: v, or None where it failed, and seconds."""
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, cap
    d = cost.size
    squares = sp.csc_matrix((d, d)) if squares is None else squares
    rows = sp.csc_matrix(rows)
    began = time.perf_counter()
    found = clarabel.DefaultSolver(squares, cost, rows, right, cones, settings).solve()
    seconds = time.perf_counter() - began
    return np.array(found.x) if str(found.status) in ("Solved", "AlmostSolved") else None, seconds


def minimax(A: Any, b: np.ndarray, cap: float) -> tuple[np.ndarray | None, float]:
    """min t with z = Ax - b and -t <= z <= t, over x, z and t: every entry of A is there once."""
    n, d = A.shape
    one, unit = sp.csc_array(np.ones((n, 1))), sp.eye_array(n)
    rows = sp.block_array([[sp.csc_array(A), -unit, None], [None, unit, -one], [None, -unit, -one]])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(2 * n)]
    v, seconds = solve(np.append(np.zeros(d + n), 1.0), rows, np.append(b, np.zeros(2 * n)), cones, cap)
    return (None if v is None else v[:d]), seconds


def power_fit(A: Any, b: np.ndarray, doublings: int, cap: float) -> tuple[np.ndarray | None, float]:
    """min ||Ax - b||_q with q = 2^(1 + doublings), as min ||w||_2^2/2 over w_k >= w_{k-1}^2, w_0 = Ax - b.

    Second-order cones are faster and more precise there than power cones.  The residuals of least squares are brought
    to size 1 first, without a clock: their powers would be smaller than Clarabel's tolerances.
    """
    start = lsqr(A, b)[0]
    b = b - A @ start
    scale = float(np.abs(b).max())
    y, seconds = _scaled_power_fit(A, b / scale, doublings, cap)
    return (None if y is None else start + scale * y), seconds


def _scaled_power_fit(A: Any, b: np.ndarray, doublings: int, cap: float) -> tuple[np.ndarray | None, float]:
    n, d = A.shape
    size = d + doublings * n
    blocks = [sp.csr_array(sp.hstack([sp.csc_array(A), sp.csc_array((n, size - d))]))]
    for k in range(doublings):
        left, right = sp.csr_array((n, d + k * n)), sp.csr_array((n, size - d - (k + 1) * n))
        blocks.append(sp.csr_array(sp.hstack([left, sp.eye_array(n), right])))
    rows, right = [], []
    order = np.arange(3 * n).reshape(3, n).T.ravel()  # the three rows of each cone side by side
    for k in range(doublings):  # ||(2 w_{k-1}, w_k - 1)|| <= w_k + 1
        shift = -2.0 * b if k == 0 else np.zeros(n)
        rows.append(sp.csr_array(sp.vstack([-blocks[k + 1], -2.0 * blocks[k], -blocks[k + 1]]))[order])
        right.append(np.concatenate((np.ones(n), shift, -np.ones(n)))[order])
    squares = sp.csc_matrix(sp.block_diag([sp.csc_array((size - n, size - n)), sp.eye_array(n)]))
    cones = [clarabel.SecondOrderConeT(3)] * (doublings * n)
    v, seconds = solve(np.zeros(size), sp.vstack(rows), np.concatenate(right), cones, cap, squares)
    return (None if v is None else v[:d]), seconds


def transport_rows(n: int, m: int) -> Any:
    """The matrix that takes an n x m plan, row by row, to its marginals."""
    return sp.vstack(
        [sp.kron(sp.eye_array(n), np.ones((1, m))), sp.kron(np.ones((1, n)), sp.eye_array(m))], format="csc"
    )


def transport(C: np.ndarray, a: np.ndarray, b: np.ndarray, cap: float) -> tuple[np.ndarray | None, float]:
    """The plan of least cost."""
    rows = sp.vstack([transport_rows(*C.shape), -sp.eye_array(C.size)])
    cones = [clarabel.ZeroConeT(a.size + b.size), clarabel.NonnegativeConeT(C.size)]
    v, seconds = solve(C.ravel(), rows, np.concatenate((a, b, np.zeros(C.size))), cones, cap)
    return (None if v is None else v.reshape(C.shape)), seconds
