"""The Hessian of ||z||_p^2 (Lemma lp_hessian of the paper): the one place of the theory that takes vectors.

2 <= p < inf.  The paper uses it for Theorem 2, with p -> p norms; smoothness in l_p is measured by p -> p*.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._math.arrays import as_numpy
from ._check import check

__all__ = [
    "lp_hessian_norm_bound",
    "lp_hessian_norm_bound_as_printed",
    "lp_hessian_smoothness_range",
    "lp_squared_hessian",
    "lp_squared_hessian_minorant",
]


def _normalise(z: ArrayLike, p: float) -> NDArray[Any]:
    """z / ||z||_p: the Hessian is homogeneous of degree 0, so this is exact and free of overflow."""
    check(p=p)
    vector = as_numpy(z, "z").astype(float)
    top = float(np.max(np.abs(vector), initial=0.0))
    if p == math.inf or vector.ndim != 1 or not 0.0 < top < math.inf:
        raise ValueError("the Hessian of the squared l_p norm needs p < inf and a finite nonzero vector")
    u = vector / top
    return np.asarray(u / np.sum(np.abs(u) ** p) ** (1.0 / p))


def lp_squared_hessian(z: ArrayLike, p: float) -> NDArray[Any]:
    """Hess ||z||_p^2 = 2(p-1) ||z||_p^{2-p} Diag(|z|^{p-2}) + 2(2-p) ||z||_p^{2(1-p)} s s^T, s = |z|^{p-2} z.

    Lemma lp_hessian (1) of the paper.  The printed form is right.

    >>> lp_squared_hessian([3.0, -1.0], 2)
    array([[2., 0.],
           [0., 2.]])
    """
    u = _normalise(z, p)
    s = np.abs(u) ** (p - 2.0) * u
    return np.asarray(2.0 * (p - 1.0) * np.diag(np.abs(u) ** (p - 2.0)) + 2.0 * (2.0 - p) * np.outer(s, s))


def lp_squared_hessian_minorant(z: ArrayLike, p: float) -> NDArray[Any]:
    """Hess ||z||_p^2 >= 2 ||z||_p^{2(1-p)} s s^T  (Loewner order),  s = |z|^{p-2} z.

    Lemma lp_hessian (2) of the paper.  The printed form is right.

    >>> lp_squared_hessian_minorant([1.0, 0.0], 4)
    array([[2., 0.],
           [0., 0.]])
    """
    u = _normalise(z, p)
    s = np.abs(u) ** (p - 2.0) * u
    return np.asarray(2.0 * np.outer(s, s))


def lp_hessian_norm_bound(d: int, p: float) -> float:
    """||Hess ||z||_p^2||_{p -> p} >= lambda_max >= 2 / d^{(p-2)/p}.

    Lemma lp_hessian (3) of the paper.  It prints 2/d^{(p-2)/2}, which is true but an arithmetic slip: the exponent
    2(p-1) (1/p - 1/(2(p-1))) is (p-2)/p, as Lemma d_theta then uses it.  The printed proof passes from the Loewner
    order to p -> p norms, which do not respect it; the spectral radius does, and is below every induced norm, so it
    repairs the proof.

    >>> lp_hessian_norm_bound(16, 4), lp_hessian_norm_bound_as_printed(16, 4)
    (0.5, 0.125)
    """
    check(d=d, p=p)
    return 2.0 * float(d) ** (2.0 / p - 1.0)


def lp_hessian_norm_bound_as_printed(d: int, p: float) -> float:
    """||Hess ||z||_p^2||_{p -> p} >= 2 / d^{(p-2)/2}: true but weak, and empty as p -> inf.

    Lemma lp_hessian (3) of the paper; :func:`lp_hessian_norm_bound` is what its argument gives.

    >>> lp_hessian_norm_bound_as_printed(4, 3)
    1.0
    """
    check(d=d, p=p)
    return 2.0 * float(d) ** (1.0 - p / 2.0)


def lp_hessian_smoothness_range(p: float) -> tuple[float, float]:
    """2 <= ||Hess ||z||_p^2||_{p -> p*} <= 2 (p - 1), for every z and d.

    Ours (the upper half is classical).  This is the norm that measures smoothness in l_p.  v = z attains 2, and
    Hoelder's inequality gives 2(p-1).

    >>> lp_hessian_smoothness_range(4)
    (2.0, 6.0)
    """
    check(p=p)
    return 2.0, 2.0 * (p - 1.0)
