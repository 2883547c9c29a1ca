"""Hessian products for the peers that want them, counted as any other product.

An affine objective's Hessian at x needs the image Ax - b, which the evaluation at x has just made: it is remembered, so
that a Hessian product costs two products with A and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.extend import extend
from hasd.objectives import Affine, EntropicTransport, Objective, Quadratic

KEPT = 2
"""Points remembered: the iterate and the trial point that a trust region may refuse."""


class _Memory:
    """The last points at which something was computed, with what it was."""

    remembered: list[list[Any]]

    def remember(self, x: np.ndarray, made: Any) -> None:
        self.remembered.insert(0, [x.copy(), made, None])
        del self.remembered[KEPT:]

    def recall(self, x: np.ndarray) -> list[Any] | None:
        """[x, what was made, what was derived from it], or None."""
        for index, entry in enumerate(self.remembered):
            if np.array_equal(entry[0], x):
                self.remembered.insert(0, self.remembered.pop(index))
                return entry
        return None


class AffineHessian(_Memory):
    """Before an Affine: A^T phi''(Ax - b) A p + ridge p."""

    def image(self, x: np.ndarray) -> np.ndarray:
        z = super().image(x)  # type: ignore[misc]
        self.remember(x, z)
        return z

    def hessp(self: Any, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        if self.recall(x) is None:
            self.image(x)
        entry = self.remembered[0]
        if entry[2] is None:
            entry[2] = self.loss.curvature(entry[1])
        return self.adjoint(entry[2].times(self.forward(p))) + self.ridge * p


class QuadraticHessian(_Memory):
    """Before a Quadratic: H p."""

    def hessp(self: Any, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        return self.forward(p)


class TransportHessian(_Memory):
    """Before an EntropicTransport: (Diag(m) + [0 P; P^T 0] - m m^T) p / reg, m the marginals of P; a pass each."""

    def hessp(self: Any, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        if self.recall(x) is None:
            self.remember(x, self.plan(x))
        P = self.remembered[0][1]
        self.nprod += 1
        n = P.shape[0]
        m = np.concatenate((P.sum(axis=1), P.sum(axis=0)))
        mixed = np.concatenate((P @ p[n:], P.T @ p[:n]))
        return (m * p + mixed - m * float(m @ p)) / self.reg


KINDS = {Affine: AffineHessian, Quadratic: QuadraticHessian, EntropicTransport: TransportHessian}


def with_hessian(objective: Objective) -> Any:
    """A counted twin of the objective with ``hessp(x, p)``."""
    for kind, mixin in KINDS.items():
        if isinstance(objective, kind):
            return extend(objective, mixin, remembered=[])
    raise TypeError(f"no Hessian products for {type(objective).__name__}")
