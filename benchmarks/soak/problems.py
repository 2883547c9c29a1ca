"""Random functions: small, of every scale and condition, in both float types, near and far from the origin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import hilbert

from benchmarks.soak import losses
from benchmarks.soak.exact import DIGITS, Exact, cholesky, exact, shifted
from benchmarks.soak.losses import Loss
from benchmarks.soak.reference import Reference, find
from hasd import objectives

Rng = np.random.Generator
CALLABLES = {
    "quadratic": "lambda x: (float(0.5 * (x @ (H @ x)) + c @ x), H @ x + c)",
    "shifted squares": "lambda x: (float(0.5 * (w @ (x - b) ** 2)), w * (x - b))",
    "roots": "lambda x: (float(s * np.sqrt(1 + (z := A @ x - b) ** 2).sum()), s * (A.T @ (z / np.sqrt(1 + z * z))))",
}
"""Functions in plain NumPy."""
OBJECTIVES = {
    "Quadratic": "O.Quadratic(H, c)",
    "LeastSquares": "O.LeastSquares(A, b, ridge=ridge)",
    "LogSumExp": "O.LogSumExp(A, b, alpha=alpha, ridge=ridge)",
    "SymmetricSoftmax": "O.SymmetricSoftmax(A, b, alpha=alpha, ridge=ridge)",
    "SymmetricSoftmax of x": "O.SymmetricSoftmax(None, b, alpha=alpha, ridge=ridge)",
    "Logistic": "O.Logistic(A, y, ridge=ridge)",
    "Power": "O.Power(A, b, q=4, ridge=ridge)",
    "EntropicTransport": "O.EntropicTransport(b.reshape(n, -1), -c[:n], -c[n:], reg=alpha)",
}
"""Those of hasd.objectives."""
KINDS = (*CALLABLES, *OBJECTIVES, *(f"{name}, black box" for name in OBJECTIVES))
"""What is drawn from."""


@dataclass(frozen=True)
class Problem:
    """A function, its start, and the truth about it."""

    kind: str
    code: str  # the function as an expression of the data
    loss: Loss | None
    data: dict[str, Any]
    x0: np.ndarray
    mu: float = 0.0  # a strong convexity that it has; 0 where none is known

    @property
    def callable(self) -> bool:
        """Whether hasd sees values and gradients only."""
        return not isinstance(self.fun, objectives.Objective)

    @property
    def ridge(self) -> float:
        """The strong convexity that hasd reads off the objective itself."""
        return 0.0 if self.callable else self.fun.ridge

    @cached_property
    def fun(self) -> Any:
        """What hasd.minimize is given."""
        return evaluate(self.code, self.data)

    @cached_property
    def exact(self) -> Exact:
        """The function that the data stand for."""
        named = {name: value for name, value in self.data.items() if name != "n"}
        return Exact(self.loss, named)

    @cached_property
    def reference(self) -> Reference | None:
        """Its minimum; None where that was not found."""
        return find(self.exact, self.x0)

    def smoothness(self, p: float) -> float:
        """A true L_p, a little above the declared one, whose last digits are rounded."""
        data = {name: np.asarray(value, dtype=float) for name, value in self.data.items() if name != "n"}
        if "w" in data:
            bound = objectives.Quadratic(np.diag(data["w"])).smoothness(p)
        elif "s" in data:
            bound = self.data["s"] * objectives.LeastSquares(data["A"], data["b"]).smoothness(p)
        elif "H" in data:
            bound = objectives.Quadratic(data["H"]).smoothness(p)
        else:
            objective = evaluate(self.code.removesuffix(".value_and_grad"), {**self.data, **data})
            bound = objective.smoothness(p)
        return 1.001 * float(bound)


def evaluate(code: str, data: dict[str, Any]) -> Any:
    """The function of that code."""
    return eval(code, {"np": np, "O": objectives, **data})


@dataclass(frozen=True)
class Scale:
    """How large things are."""

    f: float  # differences of f
    x: float  # differences of x
    centre: np.ndarray  # where the minimiser is, about
    condition: float  # of the Hessian, about
    dtype: type[np.floating[Any]]  # of the data


def draw(rng: Rng, kind: str) -> Problem:
    """A problem of that kind whose reference is known."""
    while True:
        problem = _attempt(rng, kind)
        if problem is not None and problem.reference is not None:
            return problem


def _attempt(rng: Rng, kind: str) -> Problem | None:
    data_type, x_type = _TYPES[rng.choice(len(_TYPES), p=(0.6, 0.24, 0.08, 0.08))]
    single = np.float32 in (data_type, x_type)
    d = int(rng.integers(1, 7))
    scale = _scale(rng, d, single, data_type)
    name = kind.removesuffix(", black box")
    if name != kind and data_type is np.float32:  # a black box is taken to be as good as its argument
        x_type = np.float32
    loss, data = MAKERS[name](rng, d, scale)
    code = CALLABLES.get(name) or OBJECTIVES[name] + ("" if name == kind else ".value_and_grad")
    d = data["A"].shape[1] if "A" in data else d
    centre = scale.centre if d == len(scale.centre) else np.zeros(d)
    x0 = (centre + scale.x * _magnitude(rng, -6, 1) * rng.standard_normal(d)).astype(x_type)
    problem = Problem(kind, code, loss, data, x0)
    mu = _strong_convexity(problem)
    return None if mu is None else replace(problem, mu=mu)


_TYPES = ((np.float64, np.float64), (np.float32, np.float32), (np.float64, np.float32), (np.float32, np.float64))
"""Of the data, and of x0."""


def _magnitude(rng: Rng, low: float, high: float) -> float:
    """Uniform in the exponent."""
    return float(10.0 ** rng.uniform(low, high))


def _scale(rng: Rng, d: int, single: bool, dtype: type[np.floating[Any]]) -> Scale:
    """Half of the problems are of size 1, half of them are at the origin."""
    reach, far, worst = (4, 4, 5) if single else (12, 8, 10)
    f, x = (_magnitude(rng, -reach, reach) if rng.random() < 0.5 else 1.0 for _ in range(2))
    away = x * _magnitude(rng, 0, far) if rng.random() < 0.5 else 0.0
    return Scale(f, x, away * rng.standard_normal(d), _magnitude(rng, 0, worst), dtype)


def _conjugate(rng: Rng, d: int, scale: Scale) -> np.ndarray:
    """Symmetric, with eigenvalues from 1 down to 1/condition, or Hilbert's matrix."""
    if rng.random() < 0.2:
        return hilbert(d)
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    H = (Q * np.geomspace(1.0, 1.0 / scale.condition, d)) @ Q.T
    return 0.5 * (H + H.T)


def _rows(rng: Rng, n: int, d: int, condition: float) -> np.ndarray:
    """Columns of falling size, rarely so small that A itself is of that condition; two may be dependent, or nearly."""
    least = 1.0 / (condition if rng.random() < 0.2 else math.sqrt(condition))
    A = rng.standard_normal((n, d)) * np.geomspace(1.0, least, d)
    if d > 1 and rng.random() < 0.3:
        A[:, -1] = A[:, 0] + rng.choice([0.0, 1.0 / condition]) * rng.standard_normal(n)
    return A


def _ridge(rng: Rng, scale: Scale) -> float:
    """In units of the Hessian."""
    return _magnitude(rng, -8, 0) * scale.f / scale.x**2


def _quadratic(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    H = (_conjugate(rng, d, scale) * (scale.f / scale.x**2)).astype(scale.dtype)
    return None, {"H": H, "c": (-H.astype(float) @ scale.centre).astype(scale.dtype)}


def _shifted_squares(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    w = np.ones(d) if rng.random() < 0.5 else np.geomspace(1.0, 1.0 / scale.condition, d)
    w = (w * (scale.f / scale.x**2)).astype(scale.dtype)
    return losses.WEIGHTED_SQUARES, {"A": np.eye(d), "b": scale.centre.astype(scale.dtype), "w": w}


def _affine(rng: Rng, d: int, scale: Scale, z: float, noise: float = 1.0) -> dict[str, Any]:
    """A and b for images of size z at distance scale.x from the minimiser, or thereabouts."""
    A = (_rows(rng, int(rng.integers(d, 2 * d + 1)), d, scale.condition) * (z / scale.x)).astype(scale.dtype)
    b = A.astype(float) @ scale.centre + noise * z * rng.standard_normal(len(A))
    return {"A": A, "b": b.astype(scale.dtype)}


def _least_squares(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    noise = float(rng.choice([0.0, 1e-8, 1.0]))
    ridge = _ridge(rng, scale) if rng.random() < 0.5 else 0.0
    return losses.SQUARES, {**_affine(rng, d, scale, math.sqrt(scale.f), noise), "ridge": ridge}


def _log_sum_exp(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    data = _affine(rng, d, scale, scale.f)
    ridge = _ridge(rng, scale) if rng.random() < 0.5 else 0.0
    if ridge == 0.0:  # bounded below, as for every row there is its negative
        noise = scale.f * rng.standard_normal(len(data["b"]))
        data["b"] = np.concatenate((data["b"], -data["b"] + noise)).astype(scale.dtype)
        data["A"] = np.concatenate((data["A"], -data["A"]))
    return losses.LOG_SUM_EXP, {**data, "alpha": scale.f * _magnitude(rng, -1, 1), "ridge": ridge}


def _symmetric_softmax(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    data, ridge = _affine(rng, d, scale, scale.f), _ridge(rng, scale) if rng.random() < 0.5 else 0.0
    return losses.SYMMETRIC_SOFTMAX, {**data, "alpha": scale.f * _magnitude(rng, -1, 1), "ridge": ridge}


def _softmax_of_x(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    ridge = _magnitude(rng, -8, 0) / scale.x if rng.random() < 0.5 else 0.0
    b = scale.centre.astype(scale.dtype)
    data = {"A": np.eye(d), "b": b, "alpha": scale.x * _magnitude(rng, -1, 1), "ridge": ridge}
    return losses.SYMMETRIC_SOFTMAX, data


def _logistic(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    A = (_rows(rng, 2 * d, d, scale.condition) / scale.x).astype(scale.dtype)
    data = {"A": A, "b": np.zeros(2 * d), "y": rng.choice([-1.0, 1.0], 2 * d)}
    return losses.LOGISTIC, {**data, "ridge": _magnitude(rng, -6, 0) / scale.x**2}


def _fourth_powers(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    ridge = _ridge(rng, scale) if rng.random() < 0.5 else 0.0
    return losses.FOURTH_POWERS, {**_affine(rng, d, scale, scale.f**0.25), "ridge": ridge}


def _roots(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    return losses.ROOTS, {**_affine(rng, d, scale, 1.0), "s": scale.f}


def _transport(rng: Rng, d: int, scale: Scale) -> tuple[Loss | None, dict[str, Any]]:
    """LogSumExp of the operator with two ones a row; masses that sum to 1 exactly, or f were unbounded below."""
    n, m = (int(size) for size in rng.integers(2, 4, 2))
    A = np.concatenate((np.kron(np.eye(n), np.ones((m, 1))), np.kron(np.ones((n, 1)), np.eye(m))), axis=1)
    C = (scale.x * rng.random(n * m)).astype(scale.dtype)
    masses = np.concatenate([rng.multinomial(1024 - k, np.full(k, 1.0 / k)) + 1 for k in (n, m)]) / 1024.0
    return losses.LOG_SUM_EXP, {"A": A, "b": C, "alpha": scale.x * _magnitude(rng, -1.5, 0), "c": -masses, "n": n}


Maker = Callable[[Rng, int, Scale], tuple[Loss | None, dict[str, Any]]]
MAKERS: dict[str, Maker] = {
    "quadratic": _quadratic,
    "shifted squares": _shifted_squares,
    "roots": _roots,
    "Quadratic": _quadratic,
    "LeastSquares": _least_squares,
    "LogSumExp": _log_sum_exp,
    "SymmetricSoftmax": _symmetric_softmax,
    "SymmetricSoftmax of x": _softmax_of_x,
    "Logistic": _logistic,
    "Power": _fourth_powers,
    "EntropicTransport": _transport,
}


def _strong_convexity(problem: Problem) -> float | None:
    """A mu that f has for certain: the least eigenvalue of a constant Hessian, the ridge of another.

    None where a quadratic is not convex, as rounding its entries may have made it.
    """
    ridge = float(problem.data.get("ridge", 0.0))
    if problem.loss not in (None, losses.SQUARES, losses.WEIGHTED_SQUARES):
        return ridge
    with localcontext(DIGITS):
        _, H = problem.exact.derivatives(exact(problem.x0))
        if problem.loss is None and cholesky(H) is None:
            return None
        least = float(np.linalg.eigvalsh(H.astype(float))[0])
        for mu in (0.999 * least, 0.5 * least, 0.1 * least):
            if mu > ridge and cholesky(shifted(H, -Decimal(mu))) is not None:
                return mu
    return ridge
