"""Problems with a known optimum, and ways to run methods on them."""

from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import hasd
from hasd import objectives
from norms import NORMS, is_lp, smoothness_in

BAD_VALUES = {
    "a vector": lambda x: x,
    "nothing": lambda x: None,
    "complex": lambda x: 1.0 + 0j,
    "text": lambda x: "1.0",
    "empty": lambda x: [],
}
"""Functions whose value is not one real number."""
CONSTANTS: dict[Any, float] = {}
"""Smoothness constants in norms beyond l_p by problem and norm: some take thousands of dual norms."""


@dataclass(frozen=True)
class Known:
    """An objective with its start, optimum and optimal value."""

    name: str
    f: Any
    x0: np.ndarray
    x_star: np.ndarray
    f_star: float
    mu: float = 0.0

    @property
    def R(self) -> float:
        return float(np.linalg.norm(self.x0 - self.x_star))

    def L(self, p: float | hasd.Geometry) -> float:
        """A constant in l_p, or in the norm given."""
        if not is_lp(p):
            if (self.name, p) not in CONSTANTS:
                CONSTANTS[self.name, p] = float(smoothness_in(self.f, p))
            return CONSTANTS[self.name, p]
        return float(self.f.smoothness(getattr(p, "p", p)))


def newton(f, hessian, x):
    """An optimum found without any code of ours but the gradient: damped Newton with the exact Hessian."""
    for _ in range(200):
        value, g = f.value_and_grad(x)
        step = cho_solve(cho_factor(hessian(x) + 1e-14 * np.eye(x.size)), g)
        t = 1.0
        while f(x - t * step) > value - 0.25 * t * (g @ step) and t > 1e-12:
            t *= 0.5
        if t <= 1e-12 or g @ step < 1e-24:
            break
        x = x - t * step
    assert np.linalg.norm(f.value_and_grad(x)[1]) < 1e-9
    return x


def softmax_hessian(f, A):
    """A^T phi'' A of LogSumExp, written out with NumPy."""

    def hessian(x):
        z = (A @ x - f.b) / f.loss.alpha
        w = np.exp(z - z.max())
        w /= w.sum()
        return A.T @ ((np.diag(w) - np.outer(w, w)) / f.loss.alpha) @ A

    return hessian


@cache
def quadratic() -> Known:
    """A random rotation, condition number 1000."""
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    H = Q @ np.diag(np.geomspace(1e-2, 10.0, 12)) @ Q.T
    H = 0.5 * (H + H.T)
    x_star = rng.standard_normal(12)
    f = objectives.Quadratic(H, -H @ x_star)
    return Known("quadratic", f, np.zeros(12), x_star, f(x_star), mu=1e-2)


@cache
def diagonal() -> Known:
    """A diagonal quadratic with one steep direction, started on it: the smoothness inequality is tight."""
    h = np.array([10.0, 0.1, 0.05, 0.01])
    f = objectives.Quadratic(np.diag(h))
    return Known("diagonal", f, np.array([1.0, 1.0, 1.0, 1.0]), np.zeros(4), 0.0, mu=0.01)


@cache
def log_sum_exp() -> Known:
    """The paper's experiment with random signs (well-posed at mu = 0)."""
    rng = np.random.default_rng(2)
    A = rng.choice([-1.0, 1.0], (80, 10)) * (rng.random((80, 10)) < 0.8)
    f = objectives.LogSumExp(A, rng.standard_normal(80))
    x_star = newton(f, softmax_hessian(f, A), np.zeros(10))
    return Known("log-sum-exp", f, np.full(10, 0.7), x_star, f(x_star))


@cache
def softmax() -> Known:
    """The appendix's example from a random start: x* = 0."""
    f = objectives.SymmetricSoftmax(alpha=0.5)
    return Known("softmax", f, np.random.default_rng(3).standard_normal(15), np.zeros(15), 0.5 * np.log(30.0))


@cache
def logistic() -> Known:
    """Ridge logistic regression, mu = 0.02."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 8)) * np.geomspace(3.0, 0.3, 8)
    y = np.where(A @ rng.standard_normal(8) + rng.standard_normal(60) > 0, 1.0, -1.0)
    f = objectives.Logistic(A, y, ridge=0.02)
    signed = A * y[:, None]

    def hessian(x):
        s = 1.0 / (1.0 + np.exp(signed @ x))
        return (signed.T * (s * (1.0 - s))) @ signed / 60 + 0.02 * np.eye(8)

    x_star = newton(f, hessian, np.zeros(8))
    return Known("logistic", f, np.full(8, 1.0), x_star, f(x_star), mu=0.02)


def chain(d: int) -> Known:
    """Nesterov's tridiagonal quadratic: as slow as smooth convex functions get; L_2 = 4."""
    H = 2.0 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)
    c = np.zeros(d)
    c[0] = -1.0
    x_star = 1.0 - np.arange(1, d + 1) / (d + 1.0)
    f = objectives.Quadratic(H, c)
    return Known("chain", f, np.zeros(d), x_star, f(x_star))


PROBLEMS = (quadratic, diagonal, log_sum_exp, softmax, logistic)
STRONG = (quadratic, diagonal, logistic)


def least_squares() -> Known:
    rng = np.random.default_rng(6)
    U, _ = np.linalg.qr(rng.standard_normal((60, 20)))
    V, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    A = U * np.geomspace(1.0, 0.03, 20) @ V.T
    b = rng.standard_normal(60)
    f = objectives.LeastSquares(A, b)
    x_star = np.linalg.lstsq(A, b, rcond=None)[0]
    return Known("least-squares", f, np.zeros(20), x_star, f(x_star))


def minimax() -> Known:
    """Smoothed l_inf regression with a small alpha: curvature vanishes at the start."""
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal((120, 10)), rng.standard_normal(120)
    f = objectives.SymmetricSoftmax(A, b, alpha=0.02)
    both = objectives.LogSumExp(np.vstack((A, -A)), np.concatenate((b, -b)), alpha=0.02)
    rough = hasd.minimize(f, np.zeros(10), method="hasd-qn", tol=1e-9, trace=False).x
    x_star = newton(both, softmax_hessian(both, np.vstack((A, -A))), rough)
    return Known("minimax", f, np.zeros(10), x_star, f(x_star))


def quartic() -> Known:
    """|z|^4: no global L; an exact fit exists, so the optimum is known."""
    rng = np.random.default_rng(8)
    A, x_star = rng.standard_normal((40, 6)), rng.standard_normal(6)
    return Known("quartic", objectives.Power(A, A @ x_star, q=4), np.zeros(6), x_star, 0.0)


AFFINE = (log_sum_exp, logistic, least_squares, minimax, quartic)
every_affine = pytest.mark.parametrize("known", AFFINE, ids=lambda make: make.__name__)
"""Functions of Ax - b."""


def states(known, method, T, **options):
    """The states of a run, t = 0, ..., T; mu = 0 where it is not given."""
    options.setdefault("mu", 0.0)
    return list(islice(hasd.iterate(known.f, known.x0, method=method, **options), T + 1))


CERTIFIED_DESCENT = ("hasd-subspace", "hasd-qn", "hasd-cg", "hasd-newton")  # test_subspace.py and test_newton.py
STRUCTURED = ("hasd-subspace", "hasd-cg", "hasd-newton")
"""Methods that need an objective of the package."""
NEEDED = {"nemirovskii-nesterov": {"T": 300, "R": 10.0}}
"""The options of methods that cannot be run without; `conftest.py` fills them in, so that every method has a run."""
BLACK_BOX = [name for name in hasd.method_names() if name not in STRUCTURED]
"""Methods that take any function."""
METHODS = tuple(name for name in hasd.method_names() if name not in CERTIFIED_DESCENT)  # the paper and its rivals
every_method = pytest.mark.parametrize("method", METHODS)
declared_and_not = pytest.mark.parametrize("L", [None, 30.0], ids=["backtracked", "declared"])
every_problem = pytest.mark.parametrize("known", PROBLEMS, ids=lambda make: make.__name__)
strongly_convex = pytest.mark.parametrize("known", STRONG, ids=lambda make: make.__name__)
every_norm = pytest.mark.parametrize("p", NORMS, ids=lambda p: f"p={p:g}")


def run(known: Known, method: str, p: float | hasd.Geometry, T: int, L: float | str | None = "declared", **options):
    """The first T + 1 states (fewer where the method ends by itself)."""
    if L == "declared":
        L = known.L(p)
    options.setdefault("mu", 0.0)
    if method == "hasd" and L is None:
        options.setdefault("restart", False)  # one epoch: the invariant is stated for one
    return list(islice(hasd.iterate(known.f, known.x0, method=method, p=p, L=L, **options), T + 1))


def allowance(*values: float) -> float:
    """What rounding may add to a comparison of these values."""
    return 1e-11 * max(1.0, *(abs(value) for value in values))
