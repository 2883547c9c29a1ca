"""hasd.jax.HASD among optimistix's minimisers: their settings, their options, their derivatives.

As in optimistix's own tests, JAX refuses here to promote dtypes and ranks.
"""

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optimistix")

import jax
import jax.numpy as jnp
import optimistix as optx
from jax.flatten_util import ravel_pytree

from hasd._run.status import Status
from hasd.jax import HASD


@pytest.fixture(autouse=True)
def strict(double):
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


both_modes = pytest.mark.parametrize("mode", ["fwd", "bwd"])
every_L = pytest.mark.parametrize("L", [30.0, None], ids=["declared", "found"])

ROOT = np.random.default_rng(0).standard_normal((22, 22)) / 22.0 + np.eye(22)
"""A root of the matrix of `quadratic`, whose largest eigenvalue is 2.7 and whose smallest is 0.44."""


def quadratic(x, root):
    y, _ = ravel_pytree(x)
    return jnp.sum((root @ y) ** 2)


def matyas(x, args):
    y, z = x
    return args[0] * (y**2 + z**2) - args[1] * y * z


def coshes(x, target):
    """Minimal at the target, where it is the number of entries."""
    return jax.tree.reduce(jnp.add, jax.tree.map(lambda a, b: jnp.sum(jnp.cosh(a - b)), x, target))


NESTED = {"a": [np.full((2, 3), 0.3), (np.array(-0.5),)], "b": {"c": np.empty((0, 3)), "d": np.arange(4.0) / 4.0}}

PROBLEMS = {
    "nested": (quadratic, ({"a": np.full((2, 5, 2), 0.5)}, np.full(2, -0.5)), ROOT, 0.0),
    "two scalars": (matyas, [np.array(6.0), np.array(5.0)], (np.array(0.26), np.array(0.48)), 0.0),
    "many shapes": (coshes, jax.tree.map(np.zeros_like, NESTED), NESTED, 11.0),
}
"""Functions of pytrees, each with a start, its arguments and its minimum."""


@both_modes
@every_L
@pytest.mark.parametrize(("fun", "x0", "args", "least"), PROBLEMS.values(), ids=PROBLEMS)
def test_trees_are_minimised_in_either_mode(fun, x0, args, least, L, mode):
    has_aux = mode == "fwd"

    def with_aux(x, args):
        return fun(x, args), {"seen": x, "fixed": jnp.ones((2, 1))}

    solution = optx.minimise(
        with_aux if has_aux else fun,
        HASD(L, rtol=1e-6),
        x0,
        args,
        has_aux=has_aux,
        options={"autodiff_mode": mode},
        max_steps=5000,
    )
    assert int(solution.stats["status"]) == Status.CONVERGED.code
    assert float(solution.stats["fun"]) == pytest.approx(float(fun(solution.value, args)), abs=1e-14)
    assert float(solution.stats["fun"]) == pytest.approx(least, abs=1e-8)
    assert jax.tree.structure(solution.value) == jax.tree.structure(x0)
    if has_aux:
        jax.tree.map(np.testing.assert_array_equal, solution.aux["seen"], solution.value)


def decay(rate, n):
    """(1 - rate/10)^n, by a loop that JAX cannot differentiate backwards, because n is traced."""
    return jax.lax.fori_loop(0, n, lambda _, y: y * (1.0 - 0.1 * rate), jnp.array(1.0))


def misfit(rate, n):
    return (decay(rate, n) - decay(jnp.array(0.5), n)) ** 2


def test_a_function_without_a_backward_derivative_needs_the_forward_mode():
    """Mutation: `options` not looked at."""
    solver, rate, n = HASD(rtol=1e-8), jnp.array(0.6), jnp.array(100)
    solution = optx.minimise(misfit, solver, rate, n, options={"autodiff_mode": "fwd"}, max_steps=1000)
    assert float(solution.value) == pytest.approx(0.5, abs=1e-4)
    for options in (None, {"autodiff_mode": "bwd"}):
        with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
            optx.minimise(misfit, solver, rate, n, options=options, max_steps=1000)
    with pytest.raises(ValueError, match="autodiff_mode must be"):
        optx.minimise(misfit, solver, rate, n, options={"autodiff_mode": "reverse"})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@every_L
def test_a_batch_is_minimised_in_its_own_dtype(dtype, L):
    """Compiled, as one program for all."""
    rng = np.random.default_rng(0)
    target = {"u": rng.standard_normal((3, 2, 2)).astype(dtype), "w": [rng.standard_normal(3).astype(dtype)]}

    @jax.jit
    @jax.vmap
    def run(b):
        start = jax.tree.map(jnp.zeros_like, b)
        return optx.minimise(coshes, HASD(L, rtol=1e-3), start, b, throw=False, max_steps=2000)

    solution = run(target)
    assert solution.stats["status"].tolist() == [0, 0, 0]
    for ours, theirs in zip(jax.tree.leaves(solution.value), jax.tree.leaves(target), strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, atol=1e-2)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(solution.state)} == {dtype, "int32", "bool"}


@every_L
def test_leaves_may_have_dtypes_of_their_own(L):
    target = {"a": jnp.array([0.5, -1.0], "bfloat16"), "b": jnp.ones(3, "float32"), "c": jnp.array(2.0, "float64")}

    def fun(x, b):
        wide = jax.tree.map(lambda leaf: leaf.astype("float64"), (x, b))
        return coshes(*wide)

    solution = optx.minimise(fun, HASD(L, rtol=1e-1), jax.tree.map(jnp.zeros_like, target), target, throw=False)
    assert int(solution.stats["status"]) == Status.CONVERGED.code
    assert jax.tree.map(lambda leaf: leaf.dtype, solution.value) == jax.tree.map(lambda leaf: leaf.dtype, target)
    assert float(solution.stats["fun"]) == pytest.approx(6.0, abs=0.1)


def implicit(x, args):
    """Minimal at x = c/(1 + t), for the tree c."""
    c, t = args
    squares = jax.tree.map(lambda a, b: 0.5 * (1.0 + t) * jnp.sum(a**2) - jnp.sum(a * b), x, c)
    return jax.tree.reduce(jnp.add, squares)


@pytest.mark.parametrize(("L", "mode"), [(30.0, "bwd"), (None, "fwd")], ids=["declared", "found"])
def test_derivatives_go_through_the_solution(L, mode):
    """Forwards, and backwards and forwards under vmap, against d(c/(1 + t)) = dc/(1 + t) - c dt/(1 + t)^2."""
    c, t = {"a": jnp.array([[1.0, -2.0]]), "b": jnp.array(3.0)}, jnp.array(0.5)
    dc, dt = {"a": jnp.array([[0.5, 1.0]]), "b": jnp.array(-1.0)}, jnp.array(2.0)

    def solution(c, t):
        options = {"autodiff_mode": mode}
        x0 = jax.tree.map(jnp.zeros_like, c)
        solver = HASD(L, rtol=1e-10)
        return optx.minimise(implicit, solver, x0, (c, t), options=options, throw=False, max_steps=5000).value

    expected = jax.tree.map(lambda c, dc: dc / (1.0 + t) - c * dt / (1.0 + t) ** 2, c, dc)
    x, dx = jax.jit(lambda: jax.jvp(solution, (c, t), (dc, dt)))()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b / 1.5, atol=1e-8), x, c)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-8), dx, expected)

    times = jnp.array([0.5, 1.0, 3.0])
    for jacobian in (jax.jacfwd, jax.jacrev):
        by_c, by_t = jax.jit(jax.vmap(jacobian(solution, argnums=(0, 1)), in_axes=(None, 0)))(c, times)["b"]
        np.testing.assert_allclose(by_c["b"], 1.0 / (1.0 + np.asarray(times)), atol=1e-7)
        np.testing.assert_allclose(by_c["a"], 0.0, atol=1e-7)
        np.testing.assert_allclose(by_t, -3.0 / (1.0 + np.asarray(times)) ** 2, atol=1e-7)
