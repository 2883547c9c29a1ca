"""Every method on every kind of objective, and the four solvers: small runs, each of which comes to one digest.

``python tests/runs.py`` prints them, a line each: that is how two processes are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import hasd
from hasd import objectives
from support import NEEDED

ITERATIONS = 12
N, D = 250, 60  # enough entries for BLAS to share a product among its threads
CLOCKS = ("seconds",)  # the only columns of a trace that may differ

Run = Callable[[], Any]


def matrix(seed: int = 0, shape: tuple[int, int] = (N, D)) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
    """A black box; its sum is as long as the vector, its gradient exact."""
    return float(np.sum((x - 1.0) ** 4) + np.sum(x**2)), 4.0 * (x - 1.0) ** 3 + 2.0 * x


def functions() -> dict[str, Any]:
    """An objective of each class, dense, sparse and in float32, and a black box."""
    A, b = matrix(), matrix(1)[:, 0]
    H = A.T @ A / N + 0.1 * np.eye(D)
    mass = np.full(30, 1.0 / 30)
    return {
        "log-sum-exp": objectives.LogSumExp(A, b, ridge=1e-3),
        "sparse": objectives.LogSumExp(csr_array(A * (np.abs(A) > 1.0)), b, ridge=1e-3),
        "float32": objectives.LogSumExp(A.astype(np.float32), b, ridge=1e-3),
        "least-squares": objectives.LeastSquares(A, b, ridge=1e-3),
        "logistic": objectives.Logistic(A, np.sign(b), ridge=1e-3),
        "power": objectives.Power(A, b, q=4.0, ridge=1e-3),
        "softmax": objectives.SymmetricSoftmax(A, b, alpha=0.5, ridge=1e-3),
        "quadratic": objectives.Quadratic(0.5 * (H + H.T), H[0]),
        "transport": objectives.EntropicTransport(np.abs(A[:30, :30]), mass, mass, reg=0.1),
        "black box": bowl,
    }


def minimized(f: Any, method: str, **options: Any) -> Any:
    """The run of that method, or the sentence that says what the method misses in the function."""
    options |= NEEDED.get(method, {})
    size = getattr(f, "dimension", None) or D
    given: dict[str, Any] = {"mu": 0.1} if isinstance(f, objectives.Quadratic) else {}
    if f is bowl:
        given = {"jac": True, "mu": 2.0}  # of its sum of squares
    try:
        return hasd.minimize(f, np.full(size, 0.3), method=method, maxiter=ITERATIONS, tol=1e-12, **given, **options)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def catalogue() -> dict[str, Run]:
    """All runs by name; calling one makes it."""
    runs: dict[str, Run] = {}
    for name, f in functions().items():
        for method in ("auto", *hasd.method_names()):
            runs[f"{method}: {name}"] = lambda f=f, method=method: minimized(f, method)
    A, b = matrix(2, (120, 6)), matrix(3, (120, 1))[:, 0]
    K = np.abs(matrix(4, (25, 30)))
    rows, columns = np.full(25, 1.0 / 25), np.linspace(1.0, 2.0, 30) / np.linspace(1.0, 2.0, 30).sum()
    return runs | {
        "finite differences": lambda: hasd.minimize(lambda x: bowl(x)[0], np.zeros(5), maxiter=ITERATIONS),
        "chebyshev": lambda: hasd.chebyshev(A, b),
        "lp_fit": lambda: hasd.lp_fit(A, b, power=4),
        "lp_fit, power 11": lambda: hasd.lp_fit(A, b, power=11.0),
        "transport": lambda: hasd.transport(K, rows, columns, reg=0.05),
        "balance": lambda: hasd.balance(K, rows, columns),
        "balance, sparse": lambda: hasd.balance(csr_array(K * (K > 0.3)), rows, columns),
        "balance, impossible": lambda: hasd.balance(np.tril(np.ones((3, 3))), [3.0, 1.0, 1.0], [1.0, 1.0, 3.0]),
    }


def digest(result: Any) -> str:
    """Every bit of a result that is a number or a text, the clock's aside."""
    sha = hashlib.sha256()
    for part in _parts(result):
        sha.update(part + b"\0")
    return sha.hexdigest()


def _parts(value: Any, name: str = "") -> Iterator[bytes]:
    if isinstance(value, dict):  # results and traces alike
        for key in sorted(value):
            if key not in (*CLOCKS, "state"):
                yield from _parts(value[key], key)
    elif isinstance(value, np.ndarray):
        yield f"{name} {value.dtype} {value.shape}".encode() + value.tobytes()
    elif isinstance(value, float | int | str | None):
        yield f"{name} {float(value).hex() if isinstance(value, float) else value}".encode()
    elif name == "gap":  # the certificate, at a radius
        yield f"{name} {float(value(1e4)).hex()}".encode()


def digests(names: Any = None) -> dict[str, str]:
    """The catalogue, or these of its runs, one after the other."""
    return {name: digest(run()) for name, run in catalogue().items() if names is None or name in names}


if __name__ == "__main__":
    for name, code in digests().items():
        print(f"{code}  {name}")
