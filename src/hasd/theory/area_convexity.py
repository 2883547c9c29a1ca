"""Area convexity: the bound of dual extrapolation for min ||Ax - b||_inf over the box, and what its proof rests on.

N is the largest l_1 norm of a row of A, n the number of rows.  The regulariser is
r(x, y) = alpha N sum_i y_i ln y_i + sum_ij y_i |A_ij| x_j^2, with y on the simplex of the 2n rows of A and -A.  The
method is in `hasd.experiments.dual_extrapolation`, the proof in docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ._check import check

__all__ = ["AREA_ALPHA", "AREA_KAPPA", "area_convexity_bound", "area_inequality"]

AREA_ALPHA = 4.0
"""The weight of the entropy for which the area inequality is proved."""
AREA_KAPPA = math.sqrt(3.0) / 2.0
"""The least kappa that it allows."""


def area_inequality(x: Sequence[float], alpha: float = AREA_ALPHA, kappa: float = AREA_KAPPA) -> float:
    """(1/3) sum_k exp((m^2 - x_k^2 + (x_{k+1} - x_{k-1})/kappa)/alpha) - 1  <=  0,  m the mean of three x_k in [-1, 1].

    Ours: where this is never positive, r is area convex with kappa for every A, that is
    kappa (r(z) + r(w) + r(u) - 3 r((z + w + u)/3)) >= <g(w) - g(z), w - u> for all z, w, u, g the operator of the
    saddle point.  With the default constants it never is.  For three equal x_k it is 0, and close to them it needs
    kappa^2 >= 3/(2 alpha - 4), the condition on the Hessian of r; at alpha = 6, for one, that is not enough.

    >>> area_inequality((1.0, 0.0, -1.0)) < 0.0, area_inequality((1.0, 0.9, 0.8), kappa=0.5) < 0.0
    (True, False)
    >>> area_inequality((-1.0, 0.0, 1.0), alpha=6.0, kappa=math.sqrt(3.0 / 8.0)) <= 0.0
    False
    """
    check(alpha=alpha, kappa=kappa)
    if len(x) != 3 or not all(-1.0 <= value <= 1.0 for value in x):
        raise ValueError(f"x must be three numbers from -1 to 1, got {x!r}")
    square = math.fsum(x) ** 2 / 9.0
    terms = [(square - x[k] ** 2 + (x[(k + 1) % 3] - x[k - 1]) / kappa) / alpha for k in range(3)]
    return math.fsum(map(math.expm1, terms)) / 3.0


def area_convexity_bound(
    N: float, n: int, T: int, alpha: float = AREA_ALPHA, kappa: float = AREA_KAPPA, error: float = 0.0
) -> float:
    """gap(x_T, y_T)  <=  2 kappa N (alpha ln 2n + 1)/T + 4 kappa error.

    (x_T, y_T) is the mean of the T extrapolated points, and its gap is ||A x_T - b||_inf - min over the box of
    <y_T, A x - b>, which is at least f(x_T) - f*.  ``error`` is what the minima of each iteration may be off by.
    Sherman 2017, in the form of Cohen, Sidford & Tian 2021; the constants, for which it is 1.73 N (4 ln 2n + 1)/T, are
    ours.  With others it holds as long as :func:`area_inequality` is never positive.

    >>> round(area_convexity_bound(N=1.0, n=500, T=100), 3)
    0.496
    """
    check(N=N, n=n, T=T, alpha=alpha, kappa=kappa, error=error)
    return 2.0 * kappa * N * (alpha * math.log(2.0 * n) + 1.0) / T + 4.0 * kappa * error
