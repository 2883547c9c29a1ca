"""hasd.minimize of a JAX array: by finite differences, of which it warns, or with the gradient that JAX makes."""

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import hasd

SAID = (
    "without jac, each gradient is taken by finite differences of 4 evaluations in float32: "
    "give jac=jax.grad(fun), or use hasd.jax"
)


def bowl(x):
    return jnp.sum((x - 1.0) ** 2)


def test_without_jac_it_warns_once_and_names_the_better_way():
    with pytest.warns(UserWarning, match="without jac") as warned:
        hasd.minimize(bowl, jnp.zeros(3), maxiter=5)
    assert [str(one.message) for one in warned] == [SAID]


def test_what_the_warning_names_works_and_says_nothing():
    """A warning is an error in this suite."""
    res = hasd.minimize(bowl, jnp.zeros(3), jac=jax.grad(bowl))
    assert res.success and isinstance(res.x, jax.Array) and bool(jnp.allclose(res.x, 1.0))


def test_a_matrix_and_a_list_of_jax_arrays_are_minimised_in_their_own_norms():
    def f(x):
        return bowl(x[0]) + bowl(x[1])

    norm = hasd.Blocks([hasd.Schatten(float("inf"), (2, 3)), hasd.Lp(3.0, weights=[1.0, 2.0])])
    res = hasd.minimize(f, [jnp.zeros((2, 3)), jnp.zeros(2)], jac=jax.grad(f), p=norm, tol=1e-3)
    assert res.success and [part.shape for part in res.x] == [(2, 3), (2,)]
    assert all(isinstance(part, jax.Array) and bool(jnp.allclose(part, 1.0, atol=1e-2)) for part in res.x)
