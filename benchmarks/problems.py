"""The problems: data from a seed, an objective, a start, and a ladder of easier problems for the reference solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special

from hasd.objectives import EntropicTransport, LeastSquares, Logistic, LogSumExp, Objective, Quadratic, SymmetricSoftmax

Rung = tuple[Objective, float]
"""An objective, and what its minimiser is multiplied by to start the next rung."""


@dataclass(frozen=True)
class Problem:
    """One instance."""

    objective: Objective
    ladder: Callable[[], Iterator[Rung]]  # from easy to the objective itself, for the reference
    black_box: bool = False  # given to the solvers as a plain callable
    chain: str = ""  # problems of the same chain share the rungs of their ladders

    @property
    def x0(self) -> np.ndarray:
        """The start, 0 everywhere."""
        assert self.objective.dimension is not None
        return np.zeros(self.objective.dimension)

    @property
    def unit(self) -> str:
        """What is counted."""
        if self.black_box or isinstance(self.objective, EntropicTransport):
            return "evaluations"
        return "products"

    @property
    def matrix(self) -> Any:
        """A of an affine objective, H of a quadratic, C of a transport problem."""
        return next(getattr(self.objective, name) for name in "AHC" if hasattr(self.objective, name))

    @property
    def nnz(self) -> int:
        """Entries of the matrix."""
        return self.matrix.nnz if scipy.sparse.issparse(self.matrix) else self.matrix.size


@dataclass(frozen=True)
class Spec:
    """A family of instances, one for each seed."""

    name: str
    family: str
    make: Callable[[int], Problem]
    repeats: int = 3  # at most so many
    peers: tuple[str, ...] | None = None  # only these beside ours and the baseline; None: all
    quick: bool = False  # part of --quick
    sklearn: bool = False  # its data come with scikit-learn


def alone(objective: Objective) -> Iterator[Rung]:
    """No easier problem is needed."""
    yield objective, 1.0


# The paper's LogSumExp


@lru_cache(maxsize=1)
def bernoulli(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A with Bernoulli(0.8) entries and a normal b."""
    rng = np.random.default_rng([seed, n, d])
    A = (rng.random((n, d), dtype=np.float32) < 0.8).astype(float)
    return A, rng.standard_normal(n)


def log_sum_exp(n: int, d: int, mu: float, seed: int) -> Problem:
    """LogSumExp(Ax - b) + mu/2 ||x||^2; its minimiser grows as 1/mu."""
    A, b = bernoulli(n, d, seed)

    def ladder() -> Iterator[Rung]:
        ridge = 1.0
        while ridge > 1.01 * mu:
            yield LogSumExp(A, b, ridge=ridge), ridge / max(mu, ridge / 10.0)
            ridge = max(mu, ridge / 10.0)
        yield LogSumExp(A, b, ridge=mu), 1.0

    return Problem(LogSumExp(A, b, ridge=mu), ladder, chain=f"{n} {d} {seed}")


# Smoothed l_inf regression


def gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """2000 x 100, normal."""
    return rng.standard_normal((2000, 100)), rng.standard_normal(2000)


def heavy_tailed(rng: np.random.Generator, n: int = 2000, d: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Student's t with three degrees of freedom."""
    return rng.standard_t(3, (n, d)), rng.standard_normal(n)


def chebyshev(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """T_0..T_39 at 2000 Chebyshev nodes against |t|, with a little noise."""
    t = np.cos(math.pi * (np.arange(2000) + 0.5) / 2000)
    return np.polynomial.chebyshev.chebvander(t, 39), np.abs(t) + 1e-3 * rng.standard_normal(2000)


def l_inf(data: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]], eps: float, seed: int) -> Problem:
    """||Ax - b||_inf smoothed to eps max|b|."""
    A, b = data(np.random.default_rng(seed))
    alpha = eps * float(np.abs(b).max()) / math.log(2 * len(b))

    def ladder() -> Iterator[Rung]:
        smooth = 1000.0 * alpha
        while smooth > 1.01 * alpha:
            yield SymmetricSoftmax(A, b, alpha=smooth), 1.0
            smooth /= 2.0
        yield SymmetricSoftmax(A, b, alpha=alpha), 1.0

    return Problem(SymmetricSoftmax(A, b, alpha=alpha), ladder)


# Logistic


def logistic(A: Any, y: np.ndarray, mu: float, black_box: bool = False) -> Problem:
    """The mean logistic loss with ridge mu."""
    return Problem(Logistic(A, y, ridge=mu), lambda: alone(Logistic(A, y, ridge=mu)), black_box)


def digits(mu: float, seed: int, black_box: bool = False) -> Problem:
    """scikit-learn's 1797 x 64 digits: the class `seed` against the rest."""
    from sklearn.datasets import load_digits

    A, digit = load_digits(return_X_y=True)
    return logistic(A, np.where(digit == seed, 1.0, -1.0), mu, black_box)


def cancer(mu: float, seed: int) -> Problem:
    """scikit-learn's 569 x 30 breast cancer, standardised: nine rows of ten, chosen by the seed."""
    from sklearn.datasets import load_breast_cancer

    A, label = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(A))[: (9 * len(A)) // 10]
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    return logistic(A[rows], 2.0 * label[rows] - 1.0, mu)


def sparse_logistic(n: int, d: int, density: float, mu: float, seed: int) -> Problem:
    """Normal entries at random places, labels from a sparse model with noise."""
    rng = np.random.default_rng(seed)
    A = scipy.sparse.random(n, d, density, "csr", random_state=rng, data_rvs=rng.standard_normal)
    model = rng.standard_normal(d) * (rng.random(d) < 0.1)
    y = np.where(A @ model + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    return logistic(A, y, mu)


def noisy_labels(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """+1 with the logistic probability of the score, otherwise -1."""
    return np.where(rng.random(scores.size) < scipy.special.expit(scores), 1.0, -1.0)


def decaying_logistic(n: int, d: int, least: float, mu: float, seed: int) -> Problem:
    """Normal columns whose sizes fall geometrically from 1 to `least`."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * np.geomspace(1.0, least, d)
    return logistic(A, noisy_labels(A @ rng.standard_normal(d), rng), mu)


CENSUS = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)
"""The categories of the 14 attributes in the data set a9a: 123 columns."""


def one_hot_logistic(n: int, mu: float, seed: int) -> Problem:
    """A table of the shape of a9a: one 1 for each attribute in every row, categories that get rarer, noisy labels."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum((0, *CENSUS))
    chosen = np.empty((n, len(CENSUS)), dtype=np.intp)
    for k, count in enumerate(CENSUS):
        share = np.arange(1.0, count + 1.0) ** -2
        chosen[:, k] = starts[k] + rng.choice(count, n, p=share / share.sum())
    A = _csr(chosen.ravel(), np.repeat(np.arange(n), len(CENSUS)), (n, int(starts[-1])))
    return logistic(A, noisy_labels(A @ rng.standard_normal(A.shape[1]), rng), mu)


def text_logistic(n: int, d: int, words: int, mu: float, seed: int) -> Problem:
    """Rows of norm 1 with the logarithms of how often each word occurs; word frequencies follow Zipf's law."""
    rng = np.random.default_rng(seed)
    share = 1.0 / (np.arange(d) + 10.0)
    A = _csr(rng.choice(d, n * words, p=share / share.sum()), np.repeat(np.arange(n), words), (n, d))
    A.data = 1.0 + np.log(A.data)
    A = scipy.sparse.csr_matrix(scipy.sparse.diags_array(1.0 / np.sqrt(A.power(2).sum(axis=1)).A1) @ A)
    return logistic(A, noisy_labels(5.0 * (A @ rng.standard_normal(d)), rng), mu)


def _csr(columns: np.ndarray, rows: np.ndarray, shape: tuple[int, int]) -> Any:
    """A sparse matrix that counts how often each place is named."""
    return scipy.sparse.csr_matrix((np.ones(rows.size), (rows, columns)), shape=shape)


# Quadratics


def least_squares(n: int, d: int, least: float, seed: int) -> Problem:
    """Singular values from 1 down to `least`, no ridge."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((n, d)))
    V, _ = np.linalg.qr(rng.standard_normal((d, d)))
    A = (U * np.geomspace(1.0, least, d)) @ V.T
    b = A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    return Problem(LeastSquares(A, b), lambda: alone(LeastSquares(A, b)))


def quadratic(d: int, least: float, seed: int) -> Problem:
    """1/2 <x, Hx> + <c, x> with eigenvalues from 1 down to `least`."""
    rng = np.random.default_rng(seed)
    V, _ = np.linalg.qr(rng.standard_normal((d, d)))
    H = (V * np.geomspace(1.0, least, d)) @ V.T
    H, c = 0.5 * (H + H.T), rng.standard_normal(d)
    return Problem(Quadratic(H, c), lambda: alone(Quadratic(H, c)))


# Transport


def transport(n: int, reg: float, seed: int, black_box: bool = False) -> Problem:
    """n against n uniform points in the unit square, squared distances, equal masses."""
    rng = np.random.default_rng(seed)
    here, there = rng.random((n, 2)), rng.random((n, 2))
    C = ((here[:, None, :] - there[None, :, :]) ** 2).sum(axis=-1)
    mass = np.full(n, 1.0 / n)

    def ladder() -> Iterator[Rung]:
        smooth = 1.0
        while smooth > 1.01 * reg:
            yield EntropicTransport(C, mass, mass, smooth), 1.0
            smooth /= 2.0
        yield EntropicTransport(C, mass, mass, reg), 1.0

    return Problem(EntropicTransport(C, mass, mass, reg), ladder, black_box)


def specs() -> list[Spec]:
    """All of them, in the order of the report."""
    return [*_log_sum_exp(), *_l_inf(), *_logistic(), *_others()]


def _log_sum_exp() -> Iterator[Spec]:
    sizes: Sequence[tuple[int, int, tuple[float, ...], dict[str, Any]]] = (
        (500, 100, (1e-2, 1e-4, 1e-6), {"quick": True}),
        (700, 260, (1e-2, 1e-4, 1e-6), {}),
        (2000, 500, (1e-2, 1e-4, 1e-6), {"repeats": 2}),
        (10000, 1000, (1e-2, 1e-4, 1e-6), {"repeats": 1, "peers": ("L-BFGS-B m=30",)}),
        (20000, 2000, (1e-2, 1e-3, 1e-6), {"repeats": 1, "peers": ()}),
    )
    for n, d, ridges, settings in sizes:
        for mu in ridges:
            name = f"lse-{n}x{d}-mu{mu:.0e}".replace("e-0", "e-")
            yield Spec(name, "LogSumExp", partial(log_sum_exp, n, d, mu), **settings)


def _l_inf() -> Iterator[Spec]:
    for data, label in ((gaussian, "gauss"), (chebyshev, "cheb"), (heavy_tailed, "heavy")):
        for eps in (1e-2, 1e-3):
            name = f"linf-{label}-eps{eps:.0e}".replace("e-0", "e-")
            yield Spec(name, "smoothed l_inf", partial(l_inf, data, eps), quick=eps == 1e-2)
    make = partial(l_inf, partial(heavy_tailed, n=3000, d=150), 2e-3)
    yield Spec("linf-heavy-3000x150-eps2e-3", "smoothed l_inf", make)


def _logistic() -> Iterator[Spec]:
    yield Spec("logistic-digits-mu1e-3", "logistic", partial(digits, 1e-3), quick=True, sklearn=True)
    for mu, label in ((1e-2, "1e-2"), (1e-4, "1e-4")):
        yield Spec(f"logistic-cancer-mu{label}", "logistic", partial(cancer, mu), quick=True, sklearn=True)
    make = partial(sparse_logistic, 100_000, 20_000, 1e-3, 1e-4)
    yield Spec("logistic-sparse-100000x20000", "logistic", make, repeats=2)
    yield Spec("logistic-decaying-4000x1500", "logistic", partial(decaying_logistic, 4000, 1500, 1e-3, 1e-4))
    for scale, label in ((1.0, "1/n"), (1e-3, "1e-3/n")):
        make = partial(one_hot_logistic, 32561, scale / 32561)
        yield Spec(f"logistic-onehot-32561x123-mu{label}", "logistic", make)
    for scale, label in ((1.0, "1/n"), (1e-2, "1e-2/n")):
        make = partial(text_logistic, 5000, 62061, 84, scale / 5000)
        yield Spec(f"logistic-text-5000x62061-mu{label}", "logistic", make)


def _others() -> Iterator[Spec]:
    yield Spec("lsq-2000x500", "quadratic", partial(least_squares, 2000, 500, 1e-3), repeats=2)
    yield Spec("lsq-400x100", "quadratic", partial(least_squares, 400, 100, 1e-3), quick=True)
    yield Spec("quadratic-500", "quadratic", partial(quadratic, 500, 1e-4), quick=True)
    yield Spec("transport-500x500-reg1e-2", "transport", partial(transport, 500, 1e-2), quick=True)
    yield Spec("transport-500x500-reg1e-3", "transport", partial(transport, 500, 1e-3), repeats=2)
    yield Spec("blackbox-digits", "black box", partial(digits, 1e-3, black_box=True), quick=True, sklearn=True)
    yield Spec("blackbox-transport", "black box", partial(transport, 500, 1e-2, black_box=True), repeats=2)
