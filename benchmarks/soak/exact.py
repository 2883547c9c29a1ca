"""f(x) = phi(Ax - b) + 1/2 <x, Hx> + <c, x> + ridge/2 ||x||^2 to sixty digits; the floats of the data are exact.

Decimal is the standard library's, in C, and as fast here as any package of arbitrary precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.soak.losses import Data, Loss, Numbers

DIGITS = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[DivisionByZero, InvalidOperation])
"""Work inside ``localcontext(DIGITS)``; a step that is far too long has the value Infinity."""


def exact(data: Any) -> Any:
    """The same numbers as Decimal, an array or a single one."""
    array = np.asarray(data, dtype=np.float64)
    return Decimal(float(array)) if array.ndim == 0 else np.vectorize(Decimal, otypes=[object])(array)


def norm(v: Numbers) -> Decimal:
    """||v||_2."""
    return (v @ v).sqrt()


@dataclass(frozen=True)
class Exact:
    """The function that the floats stand for."""

    loss: Loss | None
    data: Mapping[str, Any]  # A, b, H, c, ridge and what the loss needs, as floats

    @property
    def formula(self) -> str:
        """The value as an expression of x and of the data."""
        parts = [] if self.loss is None else [self.loss.formula]
        terms = {"H": "x @ H @ x / 2", "c": "c @ x", "ridge": "ridge * (x @ x) / 2"}
        return " + ".join(parts + [text for name, text in terms.items() if name in self.data])

    @cached_property
    def numbers(self) -> Data:
        """The data as Decimal."""
        return {name: exact(value) for name, value in self.data.items()}

    def value(self, x: Numbers) -> Decimal:
        """f(x)."""
        return eval(self.formula, {"np": np, "x": x, **self.numbers})

    def derivatives(self, x: Numbers) -> tuple[Numbers, Numbers]:
        """The gradient and the Hessian."""
        data, d = self.numbers, len(x)
        g, H = exact(np.zeros(d)), exact(np.zeros((d, d)))
        if self.loss is not None:
            A = data["A"]
            bend = self.loss.bend(A @ x - data["b"], data)
            g, H = A.T @ bend.slope, A.T @ (bend.diagonal[:, None] * A)
            if bend.rank_one is not None:
                r = A.T @ bend.rank_one
                H = H - bend.scale * np.multiply.outer(r, r)
        if "H" in data:
            g, H = g + data["H"] @ x, H + data["H"]
        if "c" in data:
            g = g + data["c"]
        if "ridge" in data:
            g, H = g + data["ridge"] * x, shifted(H, data["ridge"])
        return g, H


def shifted(H: Numbers, by: Decimal) -> Numbers:
    """H + by I."""
    out = H.copy()
    out[np.diag_indices_from(out)] += by
    return out


def cholesky(H: Numbers) -> Numbers | None:
    """The lower triangle C with C C^T = H; None where H is not positive definite."""
    d = len(H)
    C = exact(np.zeros((d, d)))
    for j in range(d):
        pivot = H[j, j] - C[j, :j] @ C[j, :j] if j else H[j, j]
        if not pivot > 0:
            return None
        C[j, j] = pivot.sqrt()
        for i in range(j + 1, d):
            C[i, j] = (H[i, j] - (C[i, :j] @ C[j, :j] if j else 0)) / C[j, j]
    return C


def solve(C: Numbers, v: Numbers) -> Numbers:
    """x with C C^T x = v."""
    d = len(v)
    x = v.copy()
    for i in range(d):
        x[i] = (x[i] - (C[i, :i] @ x[:i] if i else 0)) / C[i, i]
    for i in reversed(range(d)):
        x[i] = (x[i] - (C[i + 1 :, i] @ x[i + 1 :] if i + 1 < d else 0)) / C[i, i]
    return x
