"""Norms beyond l_p for problems of any dimension, and the constants that functions have in them."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest

import hasd
from hasd import Blocks, Lp, Schatten, objectives

NORMS = (2.0, 2.5, 3.0, 4.0, 10.0, np.inf)


def rows_and_columns(d):
    """A shape of d entries, as square as it gets."""
    rows = max(n for n in range(1, int(d**0.5) + 1) if d % n == 0)
    return rows, d // rows


def weighted(p, d):
    """Weights on both sides of 1, so that gains may be below 1."""
    return Lp(p, weights=np.geomspace(0.2, 5.0, d))


def schatten(p, d):
    return Schatten(p, rows_and_columns(d))


def blocks(d):
    """A matrix in the spectral norm, a vector in l_2, and the rest in a weighted l_3."""
    matrix, vector = rows_and_columns(d // 2), max(d // 4, 1)
    rest = d - d // 2 - vector
    return Blocks([Schatten(np.inf, matrix), Lp(2.0, shape=(vector,)), weighted(3.0, rest)])


BEYOND_LP = {
    "weighted l_2": partial(weighted, 2.0),
    "weighted l_3": partial(weighted, 3.0),
    "weighted l_inf": partial(weighted, np.inf),
    "Schatten-3": partial(schatten, 3.0),
    "spectral": partial(schatten, np.inf),
    "blocks": blocks,
}
"""From the dimension to a geometry."""
LP = {f"p={p:g}": lambda d, p=p: Lp(p) for p in NORMS}
every_norm_beyond_lp = pytest.mark.parametrize("norm", BEYOND_LP.values(), ids=BEYOND_LP)
every_geometry = pytest.mark.parametrize("norm", [*LP.values(), *BEYOND_LP.values()], ids=[*LP, *BEYOND_LP])


def smoothness_in(f, norm):
    """A true constant of f in any norm: <x, a>^2 <= ||a||_*^2 ||x||^2 for the vectors a that its Hessian is made of."""

    def size(a):
        return norm.dual_norm(a) ** 2

    if isinstance(f, objectives.Quadratic | objectives.Logistic):
        H = f.H if isinstance(f, objectives.Quadratic) else f.A.T @ f.A / (4 * len(f.A)) + f.ridge * np.eye(f.dimension)
        values, vectors = np.linalg.eigh(H)
        return sum(value * size(vector) for value, vector in zip(values, vectors.T, strict=True))
    if isinstance(f, objectives.LogSumExp):  # the Hessian is a covariance of rows
        return max(size(a - b) for a, b in combinations(f.A, 2)) / (4 * f.loss.alpha)
    assert isinstance(f, objectives.SymmetricSoftmax)
    return max(map(size, np.eye(norm_size(norm)) if f.A is None else f.A)) / f.loss.alpha


def norm_size(norm):
    """How many entries the vectors of a geometry have."""
    return sum(map(np.prod, norm.shape)) if isinstance(norm.shape, list) else int(np.prod(norm.shape))


def is_lp(norm):
    """Whether it is an exponent, or l_p without weights."""
    return not isinstance(norm, hasd.Geometry) or (isinstance(norm, Lp) and norm.weights is None)
