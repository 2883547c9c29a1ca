"""Steepest descent on functions that are not convex: the least gradient of T iterations."""

import re
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

import hasd
from hasd import theory
from support import NORMS

H = np.array([4.0, 1.0, 0.3, 0.1, 2.0, 0.01])
X0 = np.array([2.5, -3.0, 0.4, 3.1, -0.9, 1.7])


def waves(x):
    """sum h (1 - cos x): its second derivatives are between -h and h, its infimum is 0."""
    return float(H @ (1.0 - np.cos(x))), H * np.sin(x)


def wells(x):
    """sum h x^2/(1 + x^2): second derivatives between -h/2 and 2h, infimum 0; flat far from it."""
    return float(H @ (x * x / (1.0 + x * x))), H * 2.0 * x / (1.0 + x * x) ** 2


def hills(x):
    """sum h/(1 + x^2): second derivatives between -2h and h/2, and the infimum 0 is nowhere attained."""
    return float(H @ (1.0 / (1.0 + x * x))), -H * 2.0 * x / (1.0 + x * x) ** 2


FUNCTIONS = {waves: 1.0, wells: 2.0, hills: 2.0}
"""Each with the largest size of its second derivatives over h."""


def smoothness(f, p):
    """The constant in l_p where the Hessian is diagonal and at most c h in size: ||c h||_{p/(p-2)}, by Hölder."""
    power = np.inf if p == 2.0 else 1.0 if p == np.inf else p / (p - 2.0)
    return FUNCTIONS[f] * float(np.linalg.norm(H, power))


def least_gradients(f, p, L, T):
    """min_{t<k} ||grad f(x_t)||_{p*}^2 for k = 1, ..., T."""
    states = islice(hasd.iterate(f, X0, jac=True, method="steepest-descent", p=p, L=L), T)
    return np.minimum.accumulate([state.grad_norm**2 for state in states])


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("p", NORMS)
def test_the_least_gradient_keeps_its_bound_without_convexity(f, p):
    L = smoothness(f, p)
    least = least_gradients(f, p, L, 200)
    assert len(least) > 20
    for T, square in enumerate(least, 1):
        assert square <= theory.steepest_descent_gradient_bound(L, f(X0)[0], T) * (1.0 + 1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("p", NORMS)
def test_every_step_lowers_a_function_that_is_not_convex(f, p):
    """What the bound is summed up from; with L found as well."""
    for L in (smoothness(f, p), None):
        states = list(islice(hasd.iterate(f, X0, jac=True, method="steepest-descent", p=p, L=L), 60))
        for before, after in pairwise(states):
            assert after.fun <= before.fun - before.grad_norm**2 / (2.0 * after.L) + 1e-13


@pytest.mark.parametrize("f", FUNCTIONS)
def test_quasi_newton_never_lets_a_function_rise_that_is_not_convex(f):
    rng = np.random.default_rng(3)
    for x0 in rng.uniform(-6.0, 6.0, (10, H.size)):
        values = hasd.minimize(f, x0, jac=True, method="hasd-qn", tol=1e-9, maxiter=200).trace["fun"]
        assert (np.diff(values) <= 1e-13 * H.sum()).all()


def test_the_guide_says_what_every_method_promises():
    page = Path(__file__).parents[2] / "docs" / "guide.md"
    section = page.read_text(encoding="utf-8").split("## Without convexity")[1].split("\n## ")[0]
    first = " ".join(row.split("|")[1] for row in section.splitlines() if row.startswith("| "))
    assert sorted(re.findall(r"`([a-z-]+)`", first)) == sorted(hasd.method_names())


@pytest.mark.parametrize("p", NORMS)
def test_mutation_a_tenth_of_L_breaks_the_bound(p):
    L = smoothness(waves, p) / 10.0
    least = least_gradients(waves, p, L, 200)
    bounds = [theory.steepest_descent_gradient_bound(L, waves(X0)[0], T) for T in range(1, len(least) + 1)]
    assert (least > np.array(bounds) * (1.0 + 1e-9)).any()
