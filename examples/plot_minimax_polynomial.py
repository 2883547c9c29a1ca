"""
The best polynomial for a function with a kink
==============================================

Which polynomial of degree 8 is closest to :math:`|x|` on :math:`[-1, 1]`, if closeness is measured by the *largest*
error? Least squares gives another polynomial. :func:`hasd.chebyshev` finds the best one, and a few points prove that no
other polynomial is better.
"""

# %%
# The fit
# -------
# Rows are points, columns are Chebyshev polynomials. The points are denser towards the ends of the interval, as the
# waves of the error are. The kink at 0 is one of them.

import matplotlib.pyplot as plt
import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial.chebyshev import chebvander

import hasd

DEGREE = 8
x = np.cos(np.linspace(np.pi, 0.0, 8001))
x[4000] = 0.0
f = np.abs(x)


def minimax(degree):
    return hasd.chebyshev(chebvander(x, degree), f)


res = minimax(DEGREE)
squares = np.linalg.lstsq(chebvander(x, DEGREE), f, rcond=None)[0]
error_minimax = res.fun
error_squares = np.abs(chebvander(x, DEGREE) @ squares - f).max()
print(res.message)
print(f"largest error: {error_minimax:.9f} minimax, {error_squares:.9f} least squares")

# %%
# The proof
# ---------
# ``res.active`` names a few points, and ``res.multipliers`` gives each a weight. The weighted sum of any polynomial of
# degree 8 over these points is 0, and the absolute values of the weights sum to 1. So for every polynomial :math:`q`
# the weighted sum of the errors :math:`q - f` equals that of :math:`-f`, and the largest error is at least as large as
# its absolute value. Two lines check this without relying on the solver.

weights, points = res.multipliers, x[res.active]
polynomials_left = np.abs(weights @ chebvander(points, DEGREE)).max()
proven = abs(weights @ np.abs(points)) / np.abs(weights).sum()
print(f"{points.size} points; weighted sums of the basis: {polynomials_left:.0e}; no error below {proven:.9f}")

# %%
# A second opinion
# ----------------
# Remez's exchange finds the same number in another way. The best approximation is even, so it is enough to look at
# :math:`[0, 1]` and at polynomials with even powers only. There the extremes of the error are 0, 1 and the places
# where the derivative of the polynomial is 1, so no grid is needed. The two results differ only by the grid of the
# first: 8001 points miss the peaks by a little, so the least error over the points is smaller by less than a part in a
# million.


def remez(degree):
    even = np.arange(0, degree + 1, 2)
    reference = np.cos(np.linspace(np.pi / 2, 0.0, even.size + 1))
    for _ in range(12):
        signs = (-1.0) ** np.arange(reference.size)
        system = np.column_stack((chebvander(reference, degree)[:, even], signs))
        *coefficients, level = np.linalg.solve(system, reference)
        series = np.zeros(degree + 1)
        series[even] = coefficients
        turning = (Chebyshev(series).deriv() - 1.0).roots()
        inside = turning[(np.abs(turning.imag) < 1e-9) & (turning.real > 0.0) & (turning.real < 1.0)].real
        reference = np.concatenate(([0.0], np.sort(inside), [1.0]))
    return abs(level)


error_remez = remez(DEGREE)
print(f"Remez: {error_remez:.9f}, relative difference {1.0 - error_minimax / error_remez:.1e}")

# %%
# How fast does it fall?
# ----------------------
# Bernstein showed in 1914 that the least error times the degree has a limit, and guessed that it is
# :math:`1/(2\sqrt\pi) = 0.28209\ldots`. Varga and Carpenter computed it: :math:`0.28016949\ldots` For degree 2 the
# best polynomial is :math:`x^2 + \frac18` with the error :math:`\frac18`, so the first point is :math:`\frac14`.

BERNSTEIN = 0.2801694990238691
degrees = np.array([2, 4, 6, 8, 10, 12])
scaled = np.array([degree * minimax(degree).fun for degree in degrees])

# %%
# The picture
# -----------
# The error of the minimax polynomial swings between :math:`\pm` the same value: it *equioscillates*. The marks are the
# points of the proof, one more than there are coefficients. The error reaches its largest value at one more point: the
# best polynomial of degree 8 is also the best one of degree 9, and the proof of that would need this point too. Least
# squares has smaller errors elsewhere, but a large one at the kink.

fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained", width_ratios=(2, 1))
left.plot(x, chebvander(x, DEGREE) @ squares - f, "--", color="#E69F00", label="least squares")
left.plot(x, res.residual, color="#0072B2", label="minimax")
left.plot(points, res.residual[res.active], "o", color="black", markersize=5, label="points of the proof")
for level in (-error_minimax, error_minimax):
    left.axhline(level, color="0.5", linewidth=0.8, linestyle=":")
left.set(title=f"Error of degree {DEGREE} for |x|", xlabel="x", ylabel="polynomial − |x|", ylim=(-0.05, 0.085))
left.legend(loc="upper left", frameon=False, ncols=1)
right.plot(degrees, scaled, "o-", color="#0072B2", label="degree × least error")
right.axhline(BERNSTEIN, color="black", linestyle="--", linewidth=1, label="Bernstein's constant")
right.axhline(0.5 / np.sqrt(np.pi), color="0.5", linestyle=":", linewidth=1.5, label="his guess")
right.set(title="Towards the limit", xlabel="degree", xticks=degrees, ylim=(0.245, 0.285))
right.legend(loc="lower right", frameon=False)
plt.show()
