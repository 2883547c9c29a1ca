"""A gradient that does not belong to its function: the run ends with a sentence that says so, and only then."""

import re

import numpy as np
import pytest

import hasd
from hasd._math.evaluation import Evaluation
from hasd._run.gradient_check import check_gradient

GRADIENT = hasd.Status.GRADIENT.code
SLOPES = re.compile(r"the gradient predicts the slope (\S+), but differences of function values give (\S+):")


def bowl(x):
    return float(np.sum((x - 1.0) ** 4) + x @ x), 4.0 * (x - 1.0) ** 3 + 2.0 * x


def test_a_gradient_of_the_wrong_sign_is_named():
    res = hasd.minimize(lambda x: (bowl(x)[0], -bowl(x)[1]), np.full(5, 3.0), jac=True)
    claimed, seen = map(float, SLOPES.search(res.message).groups())
    assert res.status == GRADIENT and not res.success and claimed == pytest.approx(-seen, rel=1e-2)
    assert "machine precision" not in res.message


@pytest.mark.parametrize("d", [2, 30, 300])
@pytest.mark.parametrize("off", [1.0, 1e-2])
def test_one_wrong_entry_is_named(d, off):
    def f(x):
        value, g = bowl(x)
        g[1] += off
        return value, g

    res = hasd.minimize(f, np.full(d, 3.0), jac=True, tol=1e-12)
    assert res.status == GRADIENT and SLOPES.search(res.message)


def test_a_wrong_gradient_is_told_where_a_limit_ends_the_run_too():
    def f(x):
        value, g = bowl(x)
        g[1] += 1.0
        return value, g

    res = hasd.minimize(f, np.full(4, 3.0), jac=True, method="agd", maxiter=200, tol=1e-9)
    assert res.status == 1 and SLOPES.search(res.message)


@pytest.mark.parametrize("method", ["hasd", "hasd-qn", "agd", "steepest-descent"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_a_right_gradient_is_never_accused(method, shift, size):
    """At machine precision, where all that is left is rounding.  Mutation: blur = 0."""
    target = shift + np.linspace(-1.0, 1.0, 6)

    def f(x):
        z = x - target
        return size * float(np.sqrt(1.0 + z * z).sum() + 1e-3 * z @ z), size * (z / np.sqrt(1.0 + z * z) + 2e-3 * z)

    res = hasd.minimize(f, target + np.linspace(1.0, 2.0, 6), jac=True, method=method, tol=0.0, maxiter=300)
    assert res.status != GRADIENT and "check the code" not in res.message and "kink" not in res.message


@pytest.mark.parametrize("seed", range(30))
def test_a_right_gradient_of_an_ill_conditioned_function_is_never_accused(seed):
    """Near a minimum at 0 the neighbours' values are far larger than the value there.  Mutation: neighbours = 0."""
    rng = np.random.default_rng(seed)
    h = 10.0 ** rng.uniform(-16, 0, 8)
    res = hasd.minimize(
        lambda x: (0.5 * float(h @ x**2), h * x), rng.uniform(0.5, 2.0, 8), jac=True, tol=0.0, maxfun=1200
    )
    assert res.status != GRADIENT and "check the code" not in res.message and "kink" not in res.message


def edge(x):
    """Two slopes that meet where x_0 = 1; the gradient is that of one side."""
    return 3.0 * float(abs(x[0] - 1.0)) + 0.5 * float(x @ x), np.array([3.0 if x[0] > 1.0 else -3.0, 0.0]) + x


def test_a_run_that_ends_at_a_kink_says_so():
    """Mutation: KEPT = 2."""
    res = hasd.minimize(edge, [3.0, 0.0], jac=True)
    behind, ahead = map(
        float, re.search(r"slope of the function rises from (\S+) to (\S+) within", res.message).groups()
    )
    assert res.status == hasd.Status.PRECISION.code and "kink" in res.message
    assert sorted(np.abs([behind, ahead])) == pytest.approx([2.0, 4.0], abs=1e-3)


@pytest.mark.parametrize("width", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("at", [0.01, 0.5])
def test_a_bend_that_is_wider_than_the_steps_is_no_kink(width, at):
    """Near the bottom of the bend, and on its side."""
    x = np.array([1.0 + at * width])

    def value(x):
        z = (float(x[0]) - 1.0) / width
        return width * np.sqrt(1.0 + z * z)

    slope = np.array([at / np.sqrt(1.0 + at * at)])
    assert check_gradient(value, Evaluation(x, value(x), slope), 1.0).kink == ""


def test_noise_is_not_taken_for_a_wrong_gradient():
    rng = np.random.default_rng(0)

    def f(x):
        return bowl(x)[0] + 1e-9 * rng.standard_normal(), bowl(x)[1]

    assert hasd.minimize(f, np.full(5, 3.0), jac=True, tol=0.0, maxfun=3000).status != GRADIENT


def test_the_check_is_outside_the_counts():
    calls = []

    def f(x):
        calls.append(x)
        return bowl(x)[0], -bowl(x)[1]

    res = hasd.minimize(f, np.full(5, 3.0), jac=True)
    assert res.nfev + res.nrecord == len(calls) and res.nrecord <= 8
