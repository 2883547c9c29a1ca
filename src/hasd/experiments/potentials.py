"""l_inf potentials on a graph: their optimum, by Newton's method with conjugate gradients, and how well it is known.

Problem.      min f(x) = alpha log sum_e (exp(z_e/alpha) + exp(-z_e/alpha)), z = Ax - b, a row x_i - x_j for each edge.
Newton.       With w and s the sums and differences of the weights of z and of -z, alpha times the Hessian is
              A^T (Diag(w) - s s^T) A.  Without its negative part, and with a little more on the diagonal, it is the
              Laplacian of the graph with D = w + DAMPING/n on its n edges.  A^T D A h = grad f, solved by conjugate
              gradients, gives the direction -alpha h.  alpha comes down a ladder; each minimiser starts the next rung.
Certificate.  f* >= -<b, u> - phi*(u) for every u with A^T u = 0.  At u = s, A^T u is the gradient, and at u = s - D A h
              it is what conjugate gradients leave of it, r.  That costs ||r||_1 max|x*| at most.  A minimiser that is 0
              at node 0 has |x*_i - x*_j| <= f(x) + max|b| along every edge, and no node is further than `depth` edges.

None of the methods that are compared takes part, and the certificate holds however x was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import shortest_path

from ..objectives import SymmetricSoftmax

RUNGS = 7
"""alpha is halved so many times on the way down."""
DAMPING = 1e-4
"""What is added to the weights of all edges together, which sum to 1."""
ROUGH, CLOSE, TIGHT = (1e-2, 300), (1e-4, 600), (1e-7, 1500)
"""How closely systems are solved, and within how many iterations: on a rung, on the last one, for the certificate,
which pays for what is left."""
DECREMENT = 0.05
"""A rung ends where the slope along the direction is this share of its alpha."""
ENOUGH = 1e-5
"""The search ends where the certified error is this share of f(0) - f."""
STEPS = 50
"""Newton steps on a rung, at most."""


@dataclass(frozen=True)
class Optimum:
    """The least value of a function, as well as it is known."""

    fun: float  # f at some point
    error: float  # the least value is at least fun - error
    x: np.ndarray  # that point; adding a constant changes nothing, and its mean is 0


class NewtonStep(NamedTuple):
    """What Newton's method makes of a point."""

    fun: float
    direction: np.ndarray
    slope: float  # along the direction, below 0
    u: np.ndarray  # A^T u is what is left of the gradient


def optimum(A: Any, b: np.ndarray, alpha: float) -> Optimum:
    """The optimum of the potentials on a connected graph, with A and b as `families.network` makes them."""
    depth = float(shortest_path(abs(A.T @ A), directed=False, unweighted=True, indices=0).max())
    if math.isinf(depth):
        raise ValueError(f"the random graph of {A.shape[1]} nodes is not connected; take more nodes or another seed")
    x = np.zeros(A.shape[1])
    for k in range(RUNGS, 0, -1):
        smooth = alpha * 2.0**k
        x = _minimiser(SymmetricSoftmax(A, b, alpha=smooth), x, smooth, ROUGH, DECREMENT * smooth)
    f = SymmetricSoftmax(A, b, alpha=alpha)
    start, largest = f(np.zeros_like(x)), float(np.abs(b).max())
    x = _minimiser(f, x, alpha, CLOSE, 0.5 * ENOUGH * (start - f(x)))
    for _ in range(STEPS):
        step = _newton(f, x, alpha, *TIGHT)
        error = step.fun - _lower_bound(f, step.u, depth * (step.fun + largest))
        if error <= ENOUGH * (start - step.fun):
            break
        x = _descend(f, x, step)
    return Optimum(step.fun, error, x - x.mean())


def _minimiser(f: Any, x: np.ndarray, alpha: float, system: tuple[float, int], enough: float) -> np.ndarray:
    """A point near the minimiser of a rung: the slope along the direction is about twice what f may still fall."""
    for _ in range(STEPS):
        step = _newton(f, x, alpha, *system)
        if -step.slope <= enough:
            break
        x = _descend(f, x, step)
    return x


def _newton(f: Any, x: np.ndarray, alpha: float, accuracy: float, most: int) -> NewtonStep:
    """The direction -alpha h with A^T D A h = grad f, and u = s - D A h."""
    phi = f.loss.expand(f.image(x))
    D = phi.diagonal + DAMPING / phi.diagonal.size
    g = f.A.T @ phi.slope
    h = _conjugate_gradients(f.A, D, g, accuracy, most)
    return NewtonStep(phi.value, -alpha * h, -alpha * float(g @ h), phi.slope - D * (f.A @ h))


def _conjugate_gradients(A: Any, D: np.ndarray, g: np.ndarray, accuracy: float, most: int) -> np.ndarray:
    """A^T D A h = g up to that accuracy, with the diagonal of the matrix as preconditioner."""
    diagonal = abs(A).T @ D  # entries are +-1
    h, r = np.zeros_like(g), g.copy()
    z = r / diagonal
    along, rz = z.copy(), float(r @ z)
    goal = accuracy**2 * rz
    for _ in range(most):
        if rz <= goal:
            break
        image = A.T @ (D * (A @ along))
        t = rz / float(along @ image)
        h += t * along
        r -= t * image
        z = r / diagonal
        rz, before = float(r @ z), rz
        along = z + (rz / before) * along
    return h


def _descend(f: Any, x: np.ndarray, step: NewtonStep) -> np.ndarray:
    """A point along the direction where f is well below; steps are halved until it is, or doubled while f falls."""
    t, fun = 1.0, f(x + step.direction)
    while fun > step.fun + 0.1 * t * step.slope and t > 1e-9:
        t *= 0.5
        fun = f(x + t * step.direction)
    while t >= 1.0 and (further := f(x + 2.0 * t * step.direction)) < fun:
        t, fun = 2.0 * t, further
    return x + t * step.direction


def _lower_bound(f: Any, u: np.ndarray, far: float) -> float:
    """-<b, u> - phi*(u) - ||A^T u||_1 far, for u itself where phi* allows it, or with ||u||_1 = 1: the larger one."""
    size = float(np.abs(u).sum())
    bounds = []
    for v in (u / max(1.0, size), u / size):
        bounds.append(-float(f.b @ v) - f.loss.conjugate(v) - far * float(np.abs(f.A.T @ v).sum()))
    return max(bounds)
