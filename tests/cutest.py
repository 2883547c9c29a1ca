"""Small versions of the CUTEst problems, OptiProfiler's perturbations of them, and sums that no order changes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hasd.methods import _curvature_pairs as pairs

ROOT = str(Path(__file__).parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)  # the benchmarks are no part of the package

from benchmarks.cutest import CONVEX, Entry, Function, Problem  # noqa: E402

SIZES = {
    "ARWHEAD": (10, 0.0),
    "BDQRTIC": (10, 18.281161753593533),
    "DIXON3DQ": (10, 0.0),
    "ENGVAL1": (10, 9.1774699571813869),
    "FLETCBV2": (10, -0.61544145326830813),
    "NONDQUAR": (10, 0.0),
    "POWELLSG": (8, 0.0),
    "POWER": (10, 0.0),
    "QUARTC": (10, 0.0),
    "SPARSQUR": (10, 0.0),
    "TRIDIA": (10, 0.0),
    "VARDIM": (10, 0.0),
}
"""The dimension in which a problem is perturbed, and its optimum there: an evaluation in Python is slow."""
LEFT_OUT = ("ARGLINA", "ARGLINB", "FMINSURF", "PALMER2C", "PALMER3C", "PALMER4C", "PALMER6C", "PALMER7C")
"""Sums over hundreds of rows, and more of the same kind."""
SMALL = tuple(
    Entry(entry.name, *SIZES[entry.name]) if entry.name in SIZES else entry
    for entry in CONVEX
    if entry.name not in LEFT_OUT
)


def permuted(problem: Problem, order: np.ndarray) -> tuple[Function, np.ndarray]:
    """The function whose variable i is the problem's order[i], and its start.  Its values are the same to the bit."""
    back = np.argsort(order)

    def fun(z: np.ndarray) -> tuple[float, np.ndarray]:
        f, g = problem.fun(z[back])
        return f, g[order]

    return fun, problem.x0[order]


Spoil = Callable[[np.random.Generator, float, np.ndarray], np.ndarray]
"""The gradient that is given with a value."""


def perturbed(problem: Problem, feature: str, gradient: Spoil, seed: int, **options: object) -> Function:
    """The problem with one of OptiProfiler's features.  These change the value only; `gradient` does as much to g.

    What is random there hangs on the point, the number of the call and the seed.  The start is left as it is: a NaN
    there ends any run (tests/faults/test_nonfinite.py).
    """
    import optiprofiler

    changed, rng, seen = optiprofiler.Feature(feature, **options), np.random.default_rng(seed), []
    known = optiprofiler.Problem(lambda _: seen[-1], problem.x0)  # its function is the value just computed

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        f, g = problem.fun(x)
        seen.append(f)
        if len(seen) == 1:
            return f, g
        f = float(changed.modifier_fun(x, seed, known, len(seen)))
        return f, gradient(rng, f, g)

    return fun


def noisy(problem: Problem, level: float, seed: int) -> Function:
    """f and every entry of g times 1 + level N(0, 1)."""

    def gradient(rng: np.random.Generator, f: float, g: np.ndarray) -> np.ndarray:
        return g * (1.0 + level * rng.standard_normal(g.shape))

    return perturbed(problem, "noisy", gradient, seed, noise_level=level, noise_type="relative")


def truncated(problem: Problem, digits: int) -> Function:
    """f and every entry of g to so many significant digits."""

    def gradient(rng: np.random.Generator, f: float, g: np.ndarray) -> np.ndarray:
        return np.array([float(f"{one:.{digits - 1}e}") for one in g])

    return perturbed(problem, "truncated", gradient, 0, significant_digits=digits)


def random_nan(problem: Problem, rate: float, seed: int) -> Function:
    """NaN at that rate, f and g together."""

    def gradient(rng: np.random.Generator, f: float, g: np.ndarray) -> np.ndarray:
        return g * math.nan if math.isnan(f) else g

    return perturbed(problem, "random_nan", gradient, seed, nan_rate=rate)


# Sums that no order changes


def exact_dot(x: np.ndarray, y: np.ndarray) -> float:
    """The sum of the rounded products, correctly rounded: that of any permutation of both is the same."""
    return math.fsum((x * y).tolist())


def exact_norm(x: np.ndarray) -> float:
    """The root of such a sum."""
    return math.sqrt(exact_dot(x, x))


class Rows(np.ndarray):
    """Rows whose products with vectors are such sums; combinations of rows are added row by row.

    What else is computed from them is a plain array.
    """

    def __array_wrap__(self, made: np.ndarray, context: object = None, return_scalar: bool = False) -> np.ndarray:
        return np.asarray(made)

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        columns = np.asarray(other).T
        sums = [[exact_dot(row, column) for column in np.atleast_2d(columns)] for row in np.asarray(self)]
        return np.array(sums).reshape(len(self), *columns.shape[:-1])

    def __rmatmul__(self, shares: np.ndarray) -> np.ndarray:
        total = np.zeros(self.shape[1])
        for share, row in zip(np.asarray(shares), np.asarray(self), strict=True):
            total = total + share * row
        return total


class ExactStore(pairs.ColumnStore):
    """A store whose columns are rows like that."""

    def __init__(self, room: int, d: int):
        super().__init__(room, d)
        self.array = self.array.view(Rows)


def sums_without_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every sum over coordinates that hasd-qn takes by one that a permutation of them does not change."""
    monkeypatch.setattr(pairs, "ColumnStore", ExactStore)
    for name, module in list(sys.modules.items()):
        if name.startswith("hasd."):
            for function, exact in (("dot", exact_dot), ("norm2", exact_norm)):
                if callable(getattr(module, function, None)):
                    monkeypatch.setattr(module, function, exact)
