"""hasd.jax.hasd in optax: params are where the gradient is taken, eval_params(state) is the point to use."""

from itertools import islice

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp
import optax

import hasd
from hasd._run.status import Status
from hasd.jax import HASDState, eval_params
from hasd.jax import hasd as transform
from reference.pseudocode import optimised_form

pytestmark = pytest.mark.usefixtures("double")

every_L = pytest.mark.parametrize("L", [30.0, None], ids=["declared", "found"])

H = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 0.5]])
C = np.array([1.0, -2.0, 3.0])
L_INF = float(np.abs(H).sum())


def fun(x):
    return 0.5 * x @ (H @ x) + C @ x


@jax.jit
def step(L, params, state):
    """The usual step; L is an argument, so that another is no other program."""
    optimiser = transform(L)
    value, grad = jax.value_and_grad(fun)(params)
    updates, state = optimiser.update(grad, state, params, value=value)
    return optax.apply_updates(params, updates), state


@pytest.mark.parametrize("L", [L_INF, L_INF / 100.0], ids=["true L", "L too small"])
def test_the_plain_loop_is_the_numpy_core(L):
    """x_t of every iterate; params are the y it wants next."""
    params = jnp.zeros(3)
    state = transform(L).init(params)
    core = hasd.iterate(lambda x: (fun(x), H @ x + C), np.zeros(3), jac=True, method="hasd", p=np.inf, L=L, mu=0.0)
    for one in islice(core, 1, 40):
        while int(state.iteration) < one.iteration:
            params, state = step(jnp.asarray(L), params, state)
            np.testing.assert_allclose(params, state.y, atol=1e-14)
        np.testing.assert_allclose(eval_params(state), one.x, rtol=0, atol=1e-12)
        assert float(state.estimate.weight) == pytest.approx(one.weight, rel=1e-12)
    assert step._cache_size() == 1
    assert fun(eval_params(state)) - fun(-np.linalg.solve(H, C)) < 0.05


@pytest.mark.parametrize("mu", [0.0, 0.2])
@pytest.mark.parametrize("p", [2.0, np.inf])
def test_a_scan_with_a_declared_L_needs_gradients_only(p, mu):
    """The iterates are those of the textbook, with gamma = min(1, r^2/s^2); U and psi are unknown.

    Mutation: gamma = 1.
    """
    optimiser = transform(L_INF, p, mu=mu)

    def body(carry, _):
        params, state = carry
        updates, state = optimiser.update(jax.grad(fun)(params), state, params)
        return (optax.apply_updates(params, updates), state), state.iteration

    @jax.jit
    def run(params):
        return jax.lax.scan(body, (params, optimiser.init(params)), None, 30)

    (_, state), iterations = run(jnp.zeros(3))
    assert iterations.tolist() == list(range(30))
    book = list(optimised_form(fun, lambda x: H @ x + C, np.zeros(3), L_INF, p, 29, mu, exact=False))
    np.testing.assert_allclose(eval_params(state), book[-1]["x"], atol=1e-9)
    assert float(state.estimate.weight) == pytest.approx(book[-1]["A"], rel=1e-9)
    assert np.isnan(state.U)
    assert fun(eval_params(state)) - fun(-np.linalg.solve(H, C)) < 0.05
    assert (min(step["gamma"] for step in book) < 0.9) == (p > 2.0)


def test_a_chain_that_finds_L_ends_at_the_minimiser_and_stays_there():
    """A pytree; after the end params stay where they are, which is the minimiser."""
    optimiser = optax.chain(optax.identity(), transform())

    @jax.jit
    def move(params, state):
        value, grad = jax.value_and_grad(lambda x: jnp.sum((x["a"] - 1.0) ** 2) + jnp.cosh(x["b"]).sum())(params)
        updates, state = optimiser.update(grad, state, params, value=value)
        return optax.apply_updates(params, updates), state

    params = {"a": jnp.zeros((2, 2)), "b": jnp.ones(3)}
    state = optimiser.init(params)
    for _ in range(400):
        params, state = move(params, state)
    (ours,) = (part for part in state if isinstance(part, HASDState))
    assert int(ours.status) in (Status.CONVERGED.code, Status.PRECISION.code)
    for point in (params, eval_params(state)):
        np.testing.assert_allclose(point["a"], 1.0, atol=1e-6)
        np.testing.assert_allclose(point["b"], 0.0, atol=1e-6)
    after, ended = move(params, state)
    jax.tree.map(np.testing.assert_array_equal, (after, ended), (params, state))
    assert move._cache_size() == 1


@every_L
@pytest.mark.parametrize("raise_L", [True, False], ids=["raised", "kept"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_step_keeps_every_type(L, raise_L, dtype):
    """Dtype, shape and weakness of every leaf are a fixed point of the step, so that nothing compiles a second time.

    JAX's promotion is set to be strict: no dtypes are mixed on the way.

    Mutation: `jnp.asarray(status.code, int)` in `HASDState.end`.
    """
    optimiser = transform(L, 3.0, raise_L=raise_L)

    def moved(params, state):
        return optimiser.update(params, state, params, value=1.0)

    for x64 in (True, False) if dtype != "float64" else (True,):
        with jax.enable_x64(x64), jax.numpy_dtype_promotion("strict"):
            params = {"a": jnp.ones((2, 2), dtype), "b": jnp.ones(3, "float32")}
            state = optimiser.init(params)
            updates, after = jax.eval_shape(moved, params, state)
            assert jax.tree.map(kind, after) == jax.tree.map(kind, state)
            assert jax.tree.map(kind, updates) == jax.tree.map(kind, params)


def kind(leaf):
    return leaf.dtype, leaf.shape, leaf.weak_type


def test_a_state_may_be_donated():
    """No two leaves of a first state share memory; params are not touched."""
    optimiser = transform(4.0, 2.0)
    move = jax.jit(optimiser.update, donate_argnums=1)
    params = jnp.ones(3)
    updates, state = move(params, optimiser.init(params), params)
    _, state = move(params + updates, state, params + updates)
    np.testing.assert_allclose(eval_params(state), 0.75)
    np.testing.assert_array_equal(params, 1.0)


def test_missing_params_and_values_and_wrong_types_are_refused():
    optimiser, searching, x = transform(1.0, 2.0), transform(), jnp.ones(2)
    for call, error, words in (
        (lambda: optimiser.update(x, optimiser.init(x)), ValueError, "update needs params"),
        (lambda: searching.update(x, searching.init(x), x), ValueError, r"L=None update needs value=f\(params\)"),
        (lambda: optimiser.update(x, optimiser.init(x), x, value=x), ValueError, r"one number, got shape \(2,\)"),
        (lambda: optimiser.init(jnp.ones(2, int)), TypeError, "floating"),
        (lambda: optimiser.init(jnp.ones(2, complex)), TypeError, "floating"),
        (lambda: optimiser.update(x, optax.EmptyState(), x), TypeError, "HASDState"),
        (lambda: eval_params(optax.EmptyState()), ValueError, "found 0"),
    ):
        with pytest.raises(error, match=words):
            call()
