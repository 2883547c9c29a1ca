"""The optimum by a third solver: Newton's method with Cholesky, down a ladder of problems; CG inside where d is large.

None of the solvers that are compared takes part.  Whether any of them found a lower value is checked afterwards.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import issparse

from benchmarks.curvature import with_hessian
from benchmarks.problems import Problem
from hasd.objectives import EntropicTransport, LeastSquares, Objective, Quadratic

EPS = 2.0**-52
DENSE = 2500
"""Up to this dimension the Hessian of a dense problem is written out."""
STEPS = 300
"""Newton steps on a rung, at most."""


_rungs: dict[tuple[str, float], np.ndarray] = {}
"""Minimisers on the rungs of chains, by ridge: vectors of length d, kept as long as the process."""


@dataclass(frozen=True)
class Reference:
    """A minimiser and how well it is known."""

    x: np.ndarray
    fun: float
    start: float  # f(x0)
    grad_norm: float
    how: str

    def value(self, gap: float) -> float:
        """The value at that relative gap."""
        return self.fun + gap * (self.start - self.fun)

    def gap(self, value: float) -> float:
        """(f - f*)/(f0 - f*)."""
        return (value - self.fun) / (self.start - self.fun)


def find(problem: Problem, cache: Path | None = None, key: str = "") -> Reference:
    """The reference of a problem, from the cache where it is there and still fits."""
    f, x0 = problem.objective.with_own_counter(), problem.x0
    start = f(x0)
    digest = hashlib.sha256(f"{key}|{start!r}|{problem.nnz}".encode()).hexdigest()[:16]
    path = None if cache is None else cache / f"{digest}.npz"
    if path is not None and path.exists():
        x, how = np.load(path)["x"], "cached"
    else:
        x, how = solve(problem)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, x=x)
    fun, g = f.value_and_grad(x)
    return Reference(x, fun, start, float(np.linalg.norm(g)), how)


def solve(problem: Problem) -> tuple[np.ndarray, str]:
    """The minimiser and how it was found."""
    f: Any = problem.objective
    if isinstance(problem.objective, LeastSquares) and f.ridge == 0.0:
        return np.linalg.lstsq(f.A, f.b, rcond=None)[0], "least squares by SVD"
    if isinstance(problem.objective, Quadratic):
        return np.linalg.solve(f.H, -f.c), "linear system"
    dense = problem.x0.size <= DENSE and not issparse(problem.matrix)
    x = problem.x0
    for rung, scale in problem.ladder():
        key = (problem.chain, rung.ridge)
        known = _rungs.get(key)
        x = newton(rung, x, cholesky_step if dense else cg_step) if known is None else known
        if problem.chain:
            _rungs[key] = x
        x = scale * x
    return x, "Newton with " + ("Cholesky" if dense else "preconditioned CG")


Step = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


def newton(objective: Objective, x: np.ndarray, solver: Step) -> np.ndarray:
    """Damped by halving, until the predicted decrease is rounding; then polished while the gradient falls."""
    f = with_hessian(objective)
    fun, g = f.value_and_grad(x)
    for _ in range(STEPS):
        s = solver(f, x, g)
        slope = float(g @ s)
        if not slope < 0.0 or -slope <= EPS * max(1e-3, abs(fun)):
            break
        t = 1.0
        while t > 1e-10:
            there, g_there = f.value_and_grad(x + t * s)
            if there <= fun + 1e-4 * t * slope + 4.0 * EPS * abs(fun):
                break
            t *= 0.5
        else:
            break
        x, fun, g = x + t * s, there, g_there
    for _ in range(3):
        there = x + solver(f, x, g)
        f_there, g_there = f.value_and_grad(there)
        if not (np.linalg.norm(g_there) < np.linalg.norm(g) and f_there <= fun + 4.0 * EPS * abs(fun)):
            break
        x, fun, g = there, f_there, g_there
    return x


def hessian(f: Any, x: np.ndarray) -> np.ndarray:
    """The Hessian written out.  Rows of A whose curvature is below rounding are left out."""
    if isinstance(f, EntropicTransport):
        P = f.plan(x)
        m = np.concatenate((P.sum(axis=1), P.sum(axis=0)))
        H = np.diag(m) - np.outer(m, m)
        n = P.shape[0]
        H[:n, n:] += P
        H[n:, :n] += P.T
        return H / f.reg
    curvature = f.loss.curvature(f.image(x))
    alive = np.flatnonzero(curvature.diagonal > 1e-18 * curvature.diagonal.max())
    rows = f.A if alive.size == f.A.shape[0] else f.A[alive]
    weighted = np.sqrt(curvature.diagonal[alive])[:, None] * rows
    H = weighted.T @ weighted
    if curvature.rank_one is not None:
        r = curvature.rank_one[alive] @ rows
        H -= np.outer(r, r)
    H[np.diag_indices_from(H)] += f.ridge
    return H


def cholesky_step(f: Any, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """-H^{-1} g, with as little added to the diagonal as Cholesky needs."""
    H = hessian(f, x)
    diagonal = H.diagonal().copy()
    jitter = 64.0 * EPS * float(diagonal.mean()) if f.ridge == 0.0 else 0.0
    while True:
        try:
            H[np.diag_indices_from(H)] = diagonal + jitter
            return cho_solve(cho_factor(H, check_finite=False), -g)
        except LinAlgError:
            jitter = max(10.0 * jitter, EPS * float(diagonal.mean()))


def cg_step(f: Any, x: np.ndarray, g: np.ndarray, most: int = 1000) -> np.ndarray:
    """-H^{-1} g by conjugate gradients with the Hessian's diagonal, far beyond what the Newton step needs."""
    diagonal = _diagonal(f, x)
    s, r = np.zeros_like(x), -g
    z = r / diagonal
    p, rz = z.copy(), float(r @ z)
    goal = 1e-8 * math.sqrt(rz)
    for _ in range(most):
        Hp = f.hessp(x, p)
        curved = float(p @ Hp)
        if not curved > 0.0:  # rounding, where f is flat along some direction
            break
        t = rz / curved
        s, r = s + t * p, r - t * Hp
        z = r / diagonal
        rz, old = float(r @ z), rz
        if math.sqrt(rz) <= goal:
            break
        p = z + (rz / old) * p
    return s


def _diagonal(f: Any, x: np.ndarray) -> np.ndarray:
    return f.A.power(2).T @ f.loss.curvature(f.image(x)).diagonal + f.ridge
