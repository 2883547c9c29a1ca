"""Area convexity: the inequality that its proof rests on, the proof's invariant, and the bound at every iterate."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy.signal import convolve2d
from scipy.sparse import csr_array

from hasd.experiments.box_duality import lower_value, upper_value
from hasd.experiments.dual_extrapolation import Saddle, iterates, nearest
from hasd.theory import AREA_ALPHA, AREA_KAPPA, area_convexity_bound, area_inequality

ORIENTATIONS = (1.0, -1.0)


def largest_on_cells(alpha, kappa, orientation, cells=1000):
    """An upper bound on area_inequality/s^3 over x = 1 - (0, s, s m), 0 < s <= 2, 0 <= m <= 1, in one orientation.

    exp(v) <= 1 + v + v^2/2 + v^3/6 + v^4/24 exp(top) for v <= top makes it a polynomial in s and m.  Its terms below
    s^3 must cancel.  The others divided by s^3 are bounded by their values on a grid and their slopes: no point is
    farther than half a cell from one of the grid.
    """
    s, sm = np.zeros((2, 2)), np.zeros((2, 2))
    s[1, 0] = sm[1, 1] = 1.0
    w = (np.zeros((2, 2)), s, sm)
    mean = sum(w) / 3.0
    top = (1.0 + 2.0 / kappa) / alpha
    total = np.zeros((9, 9))
    for k in range(3):
        v = convolve2d(mean, mean) - convolve2d(w[k], w[k])
        v[:2, :2] += 2.0 * (w[k] - mean) + orientation * (w[(k + 1) % 3] - w[k - 1]) / kappa
        power = v = v / alpha
        for weight in (1.0, 1.0 / 2.0, 1.0 / 6.0, math.exp(top) / 24.0):
            total[: len(power), : len(power)] += weight / 3.0 * power
            power = convolve2d(power, v)
    assert np.abs(total[:3]).max() < 1e-15
    terms, i, j = total[3:], np.arange(6)[:, None], np.arange(9)
    slope_s = np.sum(np.abs(terms) * i * 2.0 ** np.maximum(i - 1, 0))
    slope_m = np.sum(np.abs(terms) * 2.0**i * j)
    grid = polynomial.polygrid2d(np.linspace(0.0, 2.0, cells + 1), np.linspace(0.0, 1.0, cells + 1), terms)
    return grid.max() + 0.5 * (2.0 * slope_s + slope_m) / cells


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_the_inequality_in_three_numbers_is_proved_on_every_cell(orientation):
    assert largest_on_cells(AREA_ALPHA, AREA_KAPPA, orientation) < -1e-4


def test_the_condition_on_the_hessian_alone_does_not_prove_it():
    kappa = math.sqrt(3.0 / 8.0)  # that of alpha = 6
    assert max(largest_on_cells(6.0, kappa, orientation) for orientation in ORIENTATIONS) > 0.0
    assert area_inequality((-1.0, 0.0, 1.0), 6.0, kappa) > 1e-3


def test_the_polynomial_is_above_the_inequality():
    rng = np.random.default_rng(0)
    for s, m in rng.random((200, 2)) * (2.0, 1.0):
        x = (1.0, 1.0 - s, 1.0 - s * m)
        for triple in (x, x[::-1]):
            assert area_inequality(triple) <= -1e-4 * s**3 + 1e-15


def test_the_inequality_holds_for_random_numbers_and_fails_with_a_smaller_kappa():
    rng = np.random.default_rng(1)
    triples = np.concatenate((rng.uniform(-1.0, 1.0, (2000, 3)), rng.choice([-1.0, 0.0, 0.5, 1.0], (500, 3))))
    assert max(area_inequality(tuple(x)) for x in triples) <= 1e-15
    assert max(area_inequality(tuple(x), kappa=0.9 * AREA_KAPPA) for x in 1.0 - 0.01 * rng.random((200, 3))) > 1e-15


def problems():
    """A and b: dense, sparse, one column, rows of very different sizes."""
    rng = np.random.default_rng(2)
    sparse = csr_array(rng.standard_normal((60, 12)) * (rng.random((60, 12)) < 0.2))
    uneven = rng.standard_normal((40, 6)) * 10.0 ** rng.uniform(-3.0, 1.0, (40, 1))
    made = [rng.standard_normal((50, 8)), sparse, rng.standard_normal((9, 1)), uneven]
    return [(A, A @ rng.uniform(-1.0, 1.0, A.shape[1]) + 0.3 * rng.standard_normal(A.shape[0])) for A in made]


def random_point(saddle, rng, sharpness):
    """x in the box, often at its corners, and weights of the rows, often nearly all on one."""
    n, d = saddle.A.shape
    x = rng.uniform(-1.0, 1.0, d) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], d)
    y = rng.exponential(size=(2, n)) ** sharpness
    return x, y / y.sum()


def area_slack(saddle, z, w, u):
    """kappa (r(z) + r(w) + r(u) - 3 r(mean)) - <g(w) - g(z), w - u>."""
    mean = [sum(parts) / 3.0 for parts in zip(z, w, u, strict=True)]
    spread = sum(saddle.regulariser(*point) for point in (z, w, u)) - 3.0 * saddle.regulariser(*mean)
    (wx, wy), (zx, zy) = saddle.operator(*w), saddle.operator(*z)
    rows = wy - zy
    return saddle.kappa * spread - (wx - zx) @ (w[0] - u[0]) - np.sum(np.stack((rows, -rows)) * (w[1] - u[1]))


def least_slack(saddle):
    """Over random triples, near and far."""
    rng, least = np.random.default_rng(3), math.inf
    for _ in range(300):
        z, w, u = (random_point(saddle, rng, rng.choice([0.3, 1.0, 8.0])) for _ in range(3))
        near = 10.0 ** rng.uniform(-3.0, 0.0)
        w, u = (tuple(a + near * (c - a) for a, c in zip(z, point, strict=True)) for point in (w, u))
        least = min(least, area_slack(saddle, z, w, u))
    return least


@pytest.mark.parametrize("number", range(4))
def test_the_regulariser_is_area_convex_and_is_not_with_a_far_smaller_kappa(number):
    A, b = problems()[number]
    assert least_slack(Saddle(A, b)) >= -1e-12 * Saddle(A, b).range
    assert least_slack(Saddle(A, b, kappa=0.02)) < -1e-6


@pytest.mark.parametrize("number", range(4))
def test_no_iterate_has_a_gap_above_the_bound(number):
    A, b = problems()[number]
    saddle = Saddle(A, b)
    for state in islice(iterates(saddle), 300):
        gap = upper_value(A, b, state.x) - lower_value(A, b, state.u)
        assert gap <= area_convexity_bound(saddle.N, len(b), state.iteration, error=state.error) * (1.0 + 1e-9)
        assert state.error <= 1e-5 * saddle.range and np.abs(state.x).max() <= 1.0


def test_the_bound_is_broken_where_kappa_is_far_too_small():
    A, b = problems()[0]
    saddle = Saddle(A, b, kappa=0.005)
    last = next(islice(iterates(saddle), 300, None))
    gap = upper_value(A, b, last.x) - lower_value(A, b, last.u)
    assert gap > 2.0 * area_convexity_bound(saddle.N, len(b), last.iteration, kappa=0.005)


def potentials(saddle, T):
    """min <s_t, .> + r - (1/(2 kappa)) sum of <g(w), w> for every t, by the steps written out, minima to 1e-9."""
    n, d = saddle.A.shape
    xi, eta, paid, mass = np.zeros(d), np.zeros(n), 0.0, np.full(d, 1.0)
    out = []
    for _ in range(T):
        z = nearest(saddle, xi, eta, mass)
        linear = xi @ z.x + eta @ (z.y[0] - z.y[1])
        out.append(linear + saddle.regulariser(z.x, z.y) - paid)
        gx, gy = saddle.operator(z.x, z.y)
        w = nearest(saddle, xi + gx / saddle.kappa, eta + gy / saddle.kappa, z.mass)
        gx, gy = saddle.operator(w.x, w.y)
        paid += (gx @ w.x + gy @ (w.y[0] - w.y[1])) / (2.0 * saddle.kappa)
        xi, eta, mass = xi + gx / (2.0 * saddle.kappa), eta + gy / (2.0 * saddle.kappa), w.mass
    return out


@pytest.mark.parametrize("number", range(4))
def test_the_potential_of_the_proof_never_falls(number):
    A, b = problems()[number]
    fine = Saddle(A, b, error=1e-9)
    assert all(after >= before - 4e-9 * fine.range for before, after in pairwise(potentials(fine, 60)))


def test_the_potential_falls_where_kappa_is_far_too_small():
    A, b = problems()[0]
    wrong = Saddle(A, b, error=1e-9, kappa=0.02)
    assert min(after - before for before, after in pairwise(potentials(wrong, 60))) < -1e-3


def published(A, b, alpha, kappa, T, rounds=400):
    """Dual extrapolation with all 2n rows written out, and a fixed number of rounds."""
    rows, right = np.vstack((A, -A)), np.concatenate((b, -b))
    sizes, N = np.abs(rows), np.abs(A).sum(axis=1).max()

    def prox(xi, eta):
        y = np.full(len(right), 1.0 / len(right))
        for _ in range(rounds):
            x = np.clip(-xi / (2.0 * (sizes.T @ y)), -1.0, 1.0)
            y = np.exp(-(eta + sizes @ x**2) / (alpha * N))
            y /= y.sum()
        return x, y

    xi, eta, mean = np.zeros(A.shape[1]), np.zeros(len(right)), 0.0
    for t in range(T):
        x, y = prox(xi, eta)
        x, y = prox(xi + rows.T @ y / kappa, eta - (rows @ x - right) / kappa)
        xi, eta = xi + rows.T @ y / (2.0 * kappa), eta - (rows @ x - right) / (2.0 * kappa)
        mean = mean + (x - mean) / (t + 1)
        yield mean


def test_the_iterates_are_those_of_the_published_steps():
    A, b = problems()[0]
    pairs = zip(iterates(Saddle(A, b, error=1e-14)), published(A, b, AREA_ALPHA, AREA_KAPPA, 40), strict=False)
    for state, x in pairs:
        assert np.abs(state.x - x).max() <= 1e-5


class CountedMatrix:
    """A matrix whose products are counted, with those of its transpose and its absolute value."""

    def __init__(self, A, counts):
        self.A, self.counts, self.shape = A, counts, A.shape

    @property
    def T(self):
        return CountedMatrix(self.A.T, self.counts)

    def __abs__(self):
        return CountedMatrix(abs(self.A), self.counts)

    def __matmul__(self, x):
        self.counts.append(1)
        return self.A @ x

    def sum(self, axis):
        return self.A.sum(axis=axis)


@pytest.mark.parametrize("error", [1e-9, math.inf])
def test_every_product_is_counted(error):
    A, b = problems()[0]
    counts = []
    for state in islice(iterates(Saddle(CountedMatrix(A, counts), b, error=error)), 20):
        assert state.products == len(counts)
    assert (state.products == 1 + 8 * 20) == (error == math.inf)
