"""Fits in l_q with a known optimum, and a table whose columns depend on each other."""

import numpy as np
import pytest

POWERS = (2.0, 2.5, 4.0, 10.0, 100.0)
every_power = pytest.mark.parametrize("q", POWERS, ids="q={:g}".format)


def value(z, q):
    top = np.abs(z).max()
    return top * np.sum((np.abs(z) / top) ** q) ** (1 / q)


def planted(n, d, q, seed=0, condition=1.0):
    """A, b, x*, v* with v* = min ||Ax - b||_q at x*: A is made orthogonal to phi'(z*)."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.5, 1.0, n) * rng.choice([-1.0, 1.0], n)
    u = np.sign(z) * np.abs(z) ** (q - 1)
    u /= np.linalg.norm(u)
    A = rng.standard_normal((n, d))
    if condition > 1.0:
        left, _ = np.linalg.qr(A)
        right, _ = np.linalg.qr(rng.standard_normal((d, d)))
        A = left * np.geomspace(1.0, 1.0 / condition, d) @ right
    for _ in range(2):
        A -= np.outer(u, u @ A)
    x = rng.standard_normal(d)
    return A, A @ x - z, x, value(z, q)


def table_of_counts(seed, n):
    """Counts with heavy tails, their sums, roots and thresholds, and all products of two: 231 columns of rank 147.

    A, b, and half the largest range of b over rows that agree: no fit has a smaller largest residual.
    """
    rng = np.random.default_rng(seed)
    counts = np.floor(np.exp(1.2 * rng.standard_normal((n, 5))))
    rare = (rng.random((n, 1)) < 0.02) * 1.0
    sums, roots = counts[:, :3] + counts[:, 1:4], np.floor(np.sqrt(counts))
    X = np.column_stack([counts, sums, (counts > 2) * 1.0, roots, counts[:, [0]] * 2, rare])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    i, j = np.triu_indices(X.shape[1])
    y = np.log1p(counts).sum(axis=1) + rng.uniform(-0.5, 0.5, n) + (rng.random(n) < 1e-3) * 5
    y = (y - y.mean()) / y.std()
    _, group = np.unique(np.column_stack((counts, rare)), axis=0, return_inverse=True)
    top, bottom = np.full(group.max() + 1, -np.inf), np.full(group.max() + 1, np.inf)
    np.maximum.at(top, group.ravel(), y)
    np.minimum.at(bottom, group.ravel(), y)
    return np.column_stack([np.ones(n), X, X[:, i] * X[:, j]]), y, 0.5 * float((top - bottom).max())
