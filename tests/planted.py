"""Fits in l_q with a known optimum."""

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
