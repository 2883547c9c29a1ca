"""Dual extrapolation with an area-convex regulariser: the rival for min ||Ax - b||_inf over the box [-1, 1]^d.

Problem.    min over x in the box, max over y on the simplex of 2n signed rows, of <y, A^ x - b^>, A^ = [A; -A],
            b^ = [b; -b].  Its operator is g(x, y) = (A^^T y, b^ - A^ x).
Algorithm.  r(x, y) = alpha N sum_i y_i ln y_i + <y, |A^| x^2>, N the largest l_1 norm of a row.  From s = 0, repeat
            1. z = argmin <s, .> + r,
            2. w = argmin <s + g(z)/kappa, .> + r,
            3. s <- s + g(w)/(2 kappa); the answer is the mean of the w.
            The minima are found by turns, with s = (xi, eta): x_j = clip(-xi_j/(2 (|A^|^T y)_j), -1, 1), and y in
            proportion to exp(-(eta + |A^| x^2)/(alpha N)), from the y before, until they are close enough.
Guarantee.  If r is area convex with kappa, the mean of T points has a duality gap of at most
            2 kappa N (alpha ln 2n + 1)/T, and 4 kappa times the mean error of the minima.  This is proved for
            alpha = 4, kappa = sqrt(3)/2.  With smaller constants there is no such bound, but the gap that is computed
            from the mean is as true as before.
Proof.      docs/theory.md, "Area convexity".
Cost.       Four products with A or A^T in an iteration, and two with |A| or |A|^T in each round of its two minima.
Reference.  Sherman, Area-convexity, l_inf regularization, and undirected multicommodity flow (STOC 2017); Cohen,
            Sidford & Tian, Relative Lipschitzness in extragradient methods and a direct recipe for acceleration
            (ITCS 2021).

>>> A, b = np.array([[1.0], [1.0]]), np.array([0.0, 1.0])
>>> for _, state in zip(range(200), iterates(Saddle(A, b))):
...     pass
>>> bool(abs(state.x[0] - 0.5) < 1e-2), bool(abs(state.u.sum()) < 1e-2)
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..theory import AREA_ALPHA, AREA_KAPPA

ERROR = 1e-5
"""How close to the minimum steps 1 and 2 come by default, as a part of the range of r."""
ROUNDS = 100
"""The most rounds of one minimum."""


@dataclass(frozen=True)
class Saddle:
    """The problem with its regulariser."""

    A: Any  # dense or sparse, n x d
    b: np.ndarray
    alpha: float = AREA_ALPHA
    kappa: float = AREA_KAPPA
    error: float = ERROR  # how close the minima are found, as a part of the range of r; inf: one round each

    @cached_property
    def sizes(self) -> Any:
        """|A|."""
        return abs(self.A)

    @cached_property
    def N(self) -> float:
        """The largest l_1 norm of a row."""
        return float(self.sizes.sum(axis=1).max())

    @property
    def range(self) -> float:
        """max r - min r, or a little more."""
        return self.N * (self.alpha * math.log(2.0 * len(self.b)) + 1.0)

    def regulariser(self, x: np.ndarray, y: np.ndarray) -> float:
        """r(x, y); y has two rows, the weights of the rows of A and of those of -A."""
        entropy = float(np.sum(y * np.log(np.where(y > 0.0, y, 1.0))))
        return self.alpha * self.N * entropy + float(y.sum(axis=0) @ (self.sizes @ x**2))

    def operator(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g(x, y): the part for x, and the part for the rows of A, which is minus that for the rows of -A."""
        return self.A.T @ (y[0] - y[1]), self.b - self.A @ x


class SaddlePoint(NamedTuple):
    """A minimum of <s, .> + r, as far as it was found."""

    x: np.ndarray
    y: np.ndarray  # two rows
    mass: np.ndarray  # |A^|^T y, from which the next minimum begins
    error: float  # how far above the minimum it is at most, where r is convex (alpha >= 2); rounding aside
    products: int  # with |A| and |A|^T, that it took


@dataclass(frozen=True)
class MeanState:
    """The mean of the extrapolated points after some iterations."""

    iteration: int  # T
    x: np.ndarray
    u: np.ndarray  # weights of the rows of A minus those of the rows of -A; its l_1 norm is at most 1
    products: int  # with A, |A| and their transposes so far
    error: float  # the mean of (3 error of z + error of w)/4: what the bound calls error


def nearest(saddle: Saddle, xi: np.ndarray, eta: np.ndarray, mass: np.ndarray) -> SaddlePoint:
    """argmin <xi, x> + <eta, y> + r(x, y), by turns from |A^|^T y = mass.

    y is the best one for x.  So what <s, .> + r, which is convex for alpha >= 2, can still fall is at most what its
    linearisation falls over the box: sum_j h_j x_j + |h_j|, h the slope in x.
    """
    scale, enough = saddle.alpha * saddle.N, saddle.error * saddle.range
    error, products = math.inf, 0
    while products == 0 or (error > enough and products < 2 * ROUNDS):
        products += 2
        inside = np.abs(xi) < 2.0 * mass
        x = np.where(inside, -xi / np.where(inside, 2.0 * mass, 1.0), -np.sign(xi))
        squares = saddle.sizes @ x**2
        logits = np.stack((-eta - squares, eta - squares)) / scale
        y = np.exp(logits - logits.max())
        y /= y.sum()
        mass = saddle.sizes.T @ y.sum(axis=0)
        slope = xi + 2.0 * x * mass
        error = float(np.sum(slope * x + np.abs(slope)))
    return SaddlePoint(x, y, mass, error, products)


def iterates(saddle: Saddle) -> Iterator[MeanState]:
    """The means after 1, 2, ... iterations."""
    n, d = saddle.A.shape
    xi, eta = np.zeros(d), np.zeros(n)
    x_sum, u_sum = np.zeros(d), np.zeros(n)
    mass = saddle.sizes.T @ np.full(n, 1.0 / n)
    products, error, T = 1, 0.0, 0
    while True:
        T += 1
        z = nearest(saddle, xi, eta, mass)
        along_x, along_y = saddle.operator(z.x, z.y)
        w = nearest(saddle, xi + along_x / saddle.kappa, eta + along_y / saddle.kappa, z.mass)
        along_x, along_y = saddle.operator(w.x, w.y)
        xi, eta, mass = xi + along_x / (2.0 * saddle.kappa), eta + along_y / (2.0 * saddle.kappa), w.mass
        x_sum, u_sum = x_sum + w.x, u_sum + w.y[0] - w.y[1]
        products, error = products + z.products + w.products + 4, error + 0.75 * z.error + 0.25 * w.error
        yield MeanState(T, x_sum / T, u_sum / T, products, error / T)
