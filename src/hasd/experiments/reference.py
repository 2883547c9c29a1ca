"""A reference optimum found without any of the package's methods: Newton's method with Cholesky, d up to a thousand.

Where mu is small and the minimiser far (about 1/mu), the ridge is lowered by factors of ten from 1, and each minimiser,
scaled as 1/mu, starts the next.  The result carries what it takes to trust it: the gradient's norm, for mu > 0 the
certificate f - f* <= ||g||^2/(2 mu), and Newton's decrement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..objectives import Affine

EPS = 2.0**-52
FLOOR = 4.0 * EPS
"""Gaps below this, relative to max(1, |f*|), are rounding: they are shown as this."""


@dataclass(frozen=True)
class Reference:
    """A minimiser and how well it is known."""

    x: np.ndarray
    fun: float
    grad_norm: float  # ||grad f(x)||_2
    decrement: float  # <g, H^{-1} g>/2 of the last step
    newton_steps: int  # all ridges together
    mu: float

    @property
    def certificate(self) -> float:
        """f(x) - f* <= ||g||^2/(2 mu); NaN at mu = 0, where only the decrement tells."""
        return self.grad_norm**2 / (2.0 * self.mu) if self.mu > 0.0 else math.nan

    @property
    def radius(self) -> float:
        """The distance from 0, where the runs start."""
        return float(np.linalg.norm(self.x))

    @property
    def floor(self) -> float:
        """What counts as zero gap."""
        return FLOOR * max(1.0, abs(self.fun))

    def gap(self, fun: np.ndarray) -> np.ndarray:
        """f - f*, floored at rounding level."""
        return np.maximum(fun - self.fun, self.floor)


def reference(make: Callable[[float], Affine], mu: float) -> Reference:
    """The minimiser of make(mu), an objective with ridge mu."""
    f = make(mu)
    n, d = np.asarray(f.A).shape
    x, steps = np.zeros(d), 0
    ladder = [mu]
    while mu > 0.0 and ladder[-1] < 1.0:
        ladder.append(10.0 * ladder[-1])
    try:
        for ridge, previous in zip(reversed(ladder), [0.0, *reversed(ladder[1:])], strict=True):
            x, decrement, taken = _newton(make(ridge), x * (previous / ridge if previous else 1.0))
            steps += taken
        fun, g = f.value_and_grad(x)
        grad_norm = float(np.linalg.norm(g))
        if not grad_norm <= 1e-8 * max(1.0, mu * float(np.linalg.norm(x))):
            raise LinAlgError("Newton's method ended far from a minimiser")
    except LinAlgError as error:
        raise ValueError(
            f"no minimiser was found with n = {n}, d = {d}, mu = {mu:g}: "
            "without a ridge there may be none unless n is well above 2 d"
        ) from error
    return Reference(x, fun, grad_norm, decrement, steps, mu)


def hessian(f: Affine, x: np.ndarray) -> np.ndarray:
    """A^T phi''(Ax - b) A + mu I."""
    A = np.asarray(f.A)
    H = A.T @ f.loss.curvature(f.image(x)).times(A)
    H[np.diag_indices_from(H)] += f.ridge
    return H


def _newton(f: Affine, x: np.ndarray, most: int = 200) -> tuple[np.ndarray, float, int]:
    """Newton's method: steps are halved until f decreases enough; it ends where the predicted decrease is rounding."""
    decrement = math.inf
    for steps in range(1, most + 1):
        fun, g = f.value_and_grad(x)
        H = hessian(f, x)
        H[np.diag_indices_from(H)] += 64.0 * EPS * float(np.trace(H)) / len(x)
        s = cho_solve(cho_factor(H), -g)
        decrement = -0.5 * float(g @ s)
        if decrement <= 0.1 * EPS * max(1.0, abs(fun)):
            return x + s, decrement, steps
        t = 1.0
        while t > 1e-12 and not f(x + t * s) <= fun - 1e-4 * t * decrement + EPS * abs(fun):
            t *= 0.5
        x = x + t * s
    return x, decrement, most
