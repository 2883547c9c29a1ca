"""A declared L is called too small only where it is, rounding counted; where it is, it is raised and said."""

import itertools

import numpy as np
import pytest

import hasd
from hasd.objectives import Quadratic

SEEDS = range(15)


def quadratic(seed, dtype=float):
    """A quadratic whose value is near 0 far from its minimiser, so that values hide no rounding of the slopes."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    M = rng.standard_normal((d + 1, d)) * 10.0 ** rng.integers(-3, 4)
    H, x_star = M.T @ M, rng.standard_normal(d)
    x0 = x_star + rng.standard_normal(d) * 10.0 ** rng.integers(-2, 5)
    rise = 0.5 * float((x0 - x_star) @ H @ (x0 - x_star))

    def f(x):
        away = x.astype(float) - x_star
        return 0.5 * float(away @ H @ away) - rise, (H @ away).astype(dtype)

    return f, x0.astype(dtype), H


def constant(H, p):
    """The exact L of 1/2 <x, Hx>: the largest eigenvalue, or for p = inf the largest <x, Hx> over signs."""
    if p == 2.0:
        return float(np.linalg.eigvalsh(H)[-1])
    return max(float(np.array(s) @ H @ np.array(s)) for s in itertools.product((-1.0, 1.0), repeat=len(H)))


@pytest.mark.parametrize("p", [2.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_exact_constant_is_never_called_too_small(p, dtype):
    for seed in SEEDS:
        f, x0, H = quadratic(seed, dtype)
        L = constant(H, p) * (1.0 + 1e-12)
        res = hasd.minimize(f, x0, jac=True, method="hasd", p=p, L=L, tol=0, maxiter=80, trace=False)
        assert "too small" not in res.message, seed
        assert res.L == L


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_half_of_the_constant_is_raised_said_and_still_solved(p):
    said = 0
    for seed in SEEDS:
        f, x0, H = quadratic(seed)
        res = hasd.minimize(f, x0, jac=True, method="hasd", p=p, L=0.5 * constant(H, p), tol=1e-6, maxiter=500)
        said += "too small for this function; it was raised to" in res.message
        largest = 1.11 * constant(H, p)  # L rises by a tenth at least, and else to what gradients prove
        assert largest >= res.L
        assert res.status in (0, 1, 2)
    assert said >= len(SEEDS) // 2


def test_a_constant_that_is_too_small_is_raised_in_the_message_and_never_in_the_certificate():
    f = Quadratic(np.diag([1.0, 10.0]))
    res = hasd.minimize(f, [1.0, 1.0], method="hasd", p=2, L=1.0, tol=1e-9)
    assert res.success and "The declared L = 1 is too small" in res.message
    assert "The rate that it promised does not hold." in res.message
    assert res.fun <= res.certificate.gap(radius=2.0) and res.fun <= 1e-12


def test_values_that_are_not_finite_do_not_make_the_constant_too_small():
    def f(x):
        return (float(x @ x), 2.0 * x) if abs(x[0]) <= 3.0 else (np.nan, x)

    res = hasd.minimize(f, [3.0, 1.0], jac=True, method="hasd", p=2, L=2.0, stronger_cuts=True)
    assert res.success and "too small" not in res.message and res.L <= 2.0
