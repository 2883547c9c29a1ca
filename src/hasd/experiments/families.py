"""The data of the experiments from a seed: the paper's, its well-posed twins, and random graphs.

published   A_ij ~ Bernoulli(0.8), b ~ N(0, 1), LogSumExp(Ax - b): at mu = 0 unbounded below, as f(-s 1) -> -inf
signs       the same A with random signs: for n well above 2d, 0 lies inside the hull of the rows: a minimiser exists
symmetric   the same A, symmetric softmax of Ax - b, that is LogSumExp over [A; -A]: a minimiser always exists
logistic    the A of signs, mean logistic loss with the signs of b as labels: for the search only
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse

from ..objectives import Affine, Logistic, LogSumExp, SymmetricSoftmax

FAMILIES = ("published", "signs", "symmetric", "logistic")
DENSITY = 0.8
"""The paper's Bernoulli parameter."""
DEGREE = 3
"""Edges that are drawn for each node of a random graph."""


@lru_cache(maxsize=4)
def data(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, b and the signs, each from a stream of its own."""
    streams = [np.random.default_rng([seed, k]) for k in range(3)]
    A = (streams[0].random((n, d)) < DENSITY).astype(float)
    return A, streams[1].standard_normal(n), streams[2].choice([-1.0, 1.0], (n, d))


def problem(family: str, n: int, d: int, seed: int, mu: float, alpha: float = 1.0) -> Affine:
    """The objective of that family.

    >>> bool(problem("published", 6, 2, seed=0, mu=0.0).A.min() >= 0.0)
    True
    """
    A, b, signs = data(n, d, seed)
    if family == "published":
        return LogSumExp(A, b, alpha=alpha, ridge=mu)
    if family == "signs":
        return LogSumExp(A * signs, b, alpha=alpha, ridge=mu)
    if family == "symmetric":
        return SymmetricSoftmax(A, b, alpha=alpha, ridge=mu)
    if family == "logistic":
        return Logistic(A * signs, np.where(b >= 0.0, 1.0, -1.0), ridge=mu)
    raise ValueError(f"unknown family {family!r}; the known ones are {', '.join(FAMILIES)}")


def is_unbounded(family: str, mu: float) -> bool:
    """Whether the problem has no minimiser: the published one without its ridge."""
    return family == "published" and mu == 0.0


def network(nodes: int, seed: int, degree: int = DEGREE) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """A random graph, `degree` edges drawn a node: a row x_i - x_j of A for each edge, and a normal b.

    >>> A, b = network(nodes=5, seed=0)
    >>> A.shape, b.shape, bool(np.all(A @ np.ones(5) == 0.0))
    ((15, 5), (15,), True)
    """
    if nodes < 2:
        raise ValueError(f"a graph needs at least 2 nodes, got {nodes}")
    rng = np.random.default_rng([seed, nodes])
    tail = np.repeat(np.arange(nodes), degree)
    head = (tail + rng.integers(1, nodes, tail.size)) % nodes
    rows = np.arange(tail.size)
    signs = np.concatenate((np.ones(tail.size), -np.ones(tail.size)))
    A = scipy.sparse.csr_matrix((signs, (np.tile(rows, 2), np.concatenate((tail, head)))), shape=(tail.size, nodes))
    return A, rng.standard_normal(tail.size)
