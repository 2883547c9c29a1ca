"""Functions that return different values at the same point: a run ends with a status that is true, and never hangs."""

import numpy as np
import pytest

import hasd
from support import BLACK_BOX

every_black_box = pytest.mark.parametrize("method", BLACK_BOX)
declared_and_not = pytest.mark.parametrize("L", [None, 30.0], ids=["backtracked", "declared"])

CURVATURE = np.geomspace(0.05, 5.0, 6)
TARGET = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0])
ENOUGH = 20_000
"""Evaluations after which a run with no limit on them is said to hang."""


class Noisy:
    """A bowl of minimum 1 with noise of this size in its values and in its gradients; it remembers what it said."""

    def __init__(self, value, gradient, seed=0):
        self.value, self.gradient = value, gradient
        self.rng = np.random.default_rng(seed)
        self.said = {}

    def __call__(self, x):
        f = 1.0 + 0.5 * float(CURVATURE @ (x - TARGET) ** 2) + self.value * self.rng.uniform(-1.0, 1.0)
        g = CURVATURE * (x - TARGET) + self.gradient * self.rng.uniform(-1.0, 1.0, x.size)
        self.said.setdefault(x.tobytes(), []).append((f, g))
        if len(self.said) > ENOUGH:
            pytest.fail("this run does not end")
        return f, g

    @staticmethod
    def above(x):
        """The true gap."""
        return 0.5 * float(CURVATURE @ (x - TARGET) ** 2)


KINDS = {"values": (1e-8, 0.0), "gradients": (0.0, 1e-8), "both": (1e-8, 1e-8)}


def solve(f, method, L, **options):
    options.setdefault("mu", 0.05 if method == "hasd-restart" else 0.0)
    return hasd.minimize(f, np.zeros(6), jac=True, method=method, L=L, trace=False, **options)


@every_black_box
@declared_and_not
@pytest.mark.parametrize("kind", KINDS)
def test_above_the_noise_runs_converge(method, L, kind):
    f = Noisy(*KINDS[kind])
    res = solve(f, method, L, tol=1e-3, maxfun=5000)
    assert res.success
    assert f.above(res.x) <= 1e-2


@every_black_box
@declared_and_not
@pytest.mark.parametrize("kind", KINDS)
def test_below_the_noise_runs_end(method, L, kind):
    """No limit but the iterations: backtracking on values that are noise must end by itself."""
    f = Noisy(*KINDS[kind])
    res = solve(f, method, L, tol=1e-12, maxiter=400)
    assert res.status in (0, 1, 2, 15)
    assert any(value == res.fun and np.array_equal(g, res.jac) for value, g in f.said[res.x.tobytes()])
    assert f.above(res.x) <= f.above(np.zeros(6))
    if res.success:
        assert f.above(res.x) <= 1e-2


@every_black_box
@pytest.mark.parametrize("seed", range(3))
def test_at_the_minimum_runs_end(method, seed):
    """All that there is to see is noise."""
    f = Noisy(1e-8, 1e-8, seed)
    options = {"mu": 0.05 if method == "hasd-restart" else 0.0, "tol": 0, "maxiter": 200, "trace": False}
    res = hasd.minimize(f, TARGET, jac=True, method=method, **options)
    assert not res.success
    assert f.above(res.x) <= 1e-5


@every_black_box
def test_a_limit_on_evaluations_holds(method):
    f = Noisy(1e-2, 1e-2)
    res = solve(f, method, None, tol=0, maxfun=123)
    assert res.nfev <= 123
    assert res.status in (2, 10, 15)
    assert f.above(res.x) <= f.above(np.zeros(6)) + 2e-2
