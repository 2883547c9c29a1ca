"""The dual of entropic optimal transport, in the log domain."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hasd.geometry import largest_gain
from hasd.objectives.base import Objective, in_precision_of
from hasd.objectives.operators import Vector, as_data, as_matrix, as_point, as_scalar, quiet
from hasd.objectives.smoothness import Smoothness


class EntropicTransport(Objective):
    """f(u, v) = reg log sum_ij exp((u_i + v_j - C_ij)/reg) - <a, u> - <b, v>, x = (u, v) one vector.

    Its minimisers are the optimal potentials of min <C, P> + reg sum P log P over plans P with marginals a and b; the
    gradient is the error of the marginals of P_ij ~ exp((u_i + v_j - C_ij)/reg).  a and b are positive and sum to 1.
    LogSumExp of an operator with two ones a row: L_inf = 4/reg and L_2 = 1/reg, so large p has a large gain here.
    `nprod` counts passes over C.

    >>> f = EntropicTransport([[0.0, 1.0], [1.0, 0.0]], a=[0.5, 0.5], b=[0.5, 0.5], reg=0.1)
    >>> f.value_and_grad(np.zeros(4))[1]
    array([0., 0., 0., 0.])
    >>> f.smoothness(float("inf"))
    Smoothness(40.0, exact=True)
    """

    ridge = 0.0

    def __init__(self, C: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, reg: float) -> None:
        """Check and keep the data."""
        self.C = as_matrix(np.asarray(C), "C")
        n, m = self.C.shape
        self.a, self.b = as_data(a, n, "a"), as_data(b, m, "b")
        for name, mass in (("a", self.a), ("b", self.b)):
            if mass.min() <= 0.0 or abs(mass.sum() - 1.0) > 1e-9:
                raise ValueError(f"{name} must be positive and sum to 1, got a sum of {mass.sum():g}")
        self.reg = as_scalar(reg, "reg", "> 0", lambda value: value > 0.0)
        self.dimension = n + m
        self.nprod = 0

    def _split(self, x: npt.ArrayLike) -> tuple[Vector, Vector, Vector]:
        point = as_point(x, self.dimension, "x")
        return point, point[: len(self.a)], point[len(self.a) :]

    def _exponentials(self, u: Vector, v: Vector) -> tuple[float, npt.NDArray[np.floating], float]:
        """The largest exponent times reg, exp of the rest, and their sum: one pass over C."""
        self.nprod += 1
        E = v - self.C
        E += u[:, None]
        top = float(E.max())
        E -= top
        E /= self.reg
        np.exp(E, out=E)
        return top, E, float(E.sum())

    def _value(self, u: Vector, v: Vector, top: float, total: float) -> float:
        smooth = top + self.reg * math.log(total) if math.isfinite(top) else top
        return smooth - float(self.a @ u) - float(self.b @ v)

    @quiet
    def __call__(self, x: npt.ArrayLike) -> float:
        """f(x); one pass over C."""
        _, u, v = self._split(x)
        top, _, total = self._exponentials(u, v)
        return self._value(u, v, top, total)

    @quiet
    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, Vector]:
        """f(x) and the errors of the marginals; one pass over C."""
        point, u, v = self._split(x)
        top, E, total = self._exponentials(u, v)
        g = np.concatenate((E.sum(axis=1) / total - self.a, E.sum(axis=0) / total - self.b))
        return self._value(u, v, top, total), in_precision_of(point, g)

    def plan(self, x: npt.ArrayLike) -> npt.NDArray[np.floating]:
        """P_ij = exp((u_i + v_j - C_ij)/reg), of total mass 1."""
        _, u, v = self._split(x)
        _, E, total = self._exponentials(u, v)
        return E / total

    def smoothness(self, p: float) -> Smoothness:
        """max over pairs of rows of ||difference||_{p*}^2/(4 reg): four ones where both indices differ."""
        n, m = self.C.shape
        entries = 2 * (n > 1) + 2 * (m > 1)
        if entries == 0:
            return Smoothness(0.0, exact=True)
        gain = largest_gain(p, entries)  # ||1||_{p*} = sqrt(entries) gain
        return Smoothness(entries * gain * gain / (4.0 * self.reg), exact=True)
