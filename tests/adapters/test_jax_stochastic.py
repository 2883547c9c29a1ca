"""hasd.jax.stochastic_hasd and stacey keep the promises of optax, and contain the optimizers that optax has."""

import math

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp
import optax

from hasd.jax import StaceyState, StochasticHASDState, eval_params, stacey, stochastic_hasd
from hasd.jax import hasd as deterministic

pytestmark = pytest.mark.usefixtures("double")

RATE = 0.05
OPTIMISERS = {
    "coupling": (stochastic_hasd, {}),
    "coupling, a norm a tensor": (stochastic_hasd, {"norm": "tensor", "p": 3.0}),
    "coupling, unit": (stochastic_hasd, {"scale": "unit", "weight_decay": 0.1}),
    "coupling, p = 2": (stochastic_hasd, {"p": 2.0, "weight_decay": 0.1}),
    "averages": (stochastic_hasd, {"coupling": None, "betas": (0.9, 0.99), "p": 3.0, "weight_decay": 0.1}),
    "averages, unit": (stochastic_hasd, {"coupling": None, "betas": (0.9, 0.99), "scale": "unit", "norm": "tensor"}),
    "no momentum": (stochastic_hasd, {"coupling": None}),
    "Stacey(p,2)": (stacey, {"tau": 0.1, "alpha": 0.01}),
    "Stacey(p,p)": (stacey, {"tau": 0.1, "alpha": 0.01, "second": "p"}),
}


def start(dtype="float64", seed=8):
    """Parameters that are not 0, in a tree."""
    chance = np.random.default_rng(seed)
    shapes = {"w": (4, 3), "b": (5,), "s": ()}
    return {name: jnp.asarray(chance.standard_normal(shape), dtype) for name, shape in shapes.items()}


def noise(params, t):
    """Gradients of step t: noise, and a pull to 0."""
    chance = np.random.default_rng(100 + t)
    return jax.tree.map(lambda p: (jnp.asarray(chance.standard_normal(p.shape)) + 0.1 * p).astype(p.dtype), params)


def run(optimiser, params, steps=12, state=None, first=0):
    """Steps on gradients of noise; the parameters and the state at their end."""
    move = jax.jit(optimiser.update)
    state = optimiser.init(params) if state is None else state
    for t in range(first, first + steps):
        updates, state = move(noise(params, t), state, params)
        params = optax.apply_updates(params, updates)
    return params, state


def assert_close(one, other, atol=1e-12):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0.0, atol=atol), one, other)


def kind(leaf):
    return leaf.dtype, leaf.shape, leaf.weak_type


@pytest.mark.parametrize("name", OPTIMISERS)
class TestEveryOptimiser:
    def make(self, name, rate=RATE):
        maker, options = OPTIMISERS[name]
        return maker(rate, **options)

    def test_in_a_chain_it_gets_what_comes_before(self, name):
        clip = optax.clip_by_global_norm(0.5)
        ours, params = self.make(name), start()
        inside, _ = run(optax.chain(clip, ours), params)
        state, move = ours.init(params), jax.jit(ours.update)
        for t in range(12):
            clipped, _ = clip.update(noise(params, t), clip.init(params))
            updates, state = move(clipped, state, params)
            params = optax.apply_updates(params, updates)
        assert_close(inside, params)

    def test_learning_rates_may_be_traced_scheduled_or_injected(self, name):
        """Three ways to say the same rates, of which one is 0."""
        maker, options = OPTIMISERS[name]

        def schedule(count):
            return 0.1 * jnp.minimum(jnp.asarray(count, float), 6.0) / 6.0

        scheduled, _ = run(self.make(name, schedule), start())
        injected, state = run(optax.inject_hyperparams(maker, static_args="p")(schedule, **options), start())
        params, held = start(), self.make(name).init(start())
        move = jax.jit(lambda rate, g, state, params: maker(rate, **options).update(g, state, params))
        for t in range(12):
            updates, held = move(schedule(t), noise(params, t), held, params)
            params = optax.apply_updates(params, updates)
        assert_close(scheduled, injected)
        assert_close(scheduled, params)
        assert float(state.hyperparams["learning_rate"]) == pytest.approx(0.1)
        assert move._cache_size() == 1

    def test_parts_of_a_tree_may_have_their_own(self, name):
        """multi_transform: each part steps as if it were alone, and what is frozen stays."""
        params = start()
        labels = {"w": "ours", "b": "other", "s": "frozen"}
        parts = {"ours": self.make(name), "other": optax.adam(0.1), "frozen": optax.set_to_zero()}
        both, state = run(optax.multi_transform(parts, labels), params)
        alone = {"w": params["w"]}
        ours, held = self.make(name), self.make(name).init(alone)
        move = jax.jit(ours.update)
        for t in range(12):
            everything = noise(alone | {key: params[key] for key in ("b", "s")}, t)
            updates, held = move({"w": everything["w"]}, held, alone)
            alone = optax.apply_updates(alone, updates)
        assert_close(both["w"], alone["w"])
        np.testing.assert_array_equal(both["s"], params["s"])
        if isinstance(held, StochasticHASDState):
            answer = eval_params(state, both)
            assert_close(answer["w"], eval_params(held, alone)["w"])
            assert_close({key: answer[key] for key in "bs"}, {key: both[key] for key in "bs"}, atol=0.0)

    def test_leaves_that_are_none_or_masked_are_left_out(self, name):
        params, ours = start(), self.make(name)
        partial = {"w": params["w"], "b": None, "s": params["s"]}
        state = ours.init(partial)
        updates, state = ours.update(noise(partial, 0), state, partial)
        masked = optax.masked(ours, {"w": True, "b": False, "s": True})
        others, held = masked.update(noise(partial, 0) | {"b": params["b"]}, masked.init(params), params)
        assert updates["b"] is None and others["b"] is params["b"]  # what is masked is passed on
        assert_close([updates["w"], updates["s"]], [others["w"], others["s"]])
        if isinstance(state, StochasticHASDState):
            answer = eval_params(held, params)
            assert answer["b"] is params["b"] and answer["w"].shape == (4, 3)

    def test_whole_branches_may_be_masked_and_whole_trees_empty(self, name):
        params = {"frozen": start(), "trained": start(seed=3)}
        masked = optax.masked(self.make(name), {"frozen": False, "trained": True})
        moved, state = run(masked, params, steps=3)
        assert not np.allclose(moved["trained"]["w"], params["trained"]["w"])
        if name.startswith("coupling"):
            assert jax.tree.structure(eval_params(state, moved)) == jax.tree.structure(params)
        nothing = self.make(name)
        assert nothing.update({}, nothing.init({}), {})[0] == {}

    def test_many_runs_side_by_side_are_each_by_itself(self, name):
        ours = self.make(name)
        several = [start(seed=seed) for seed in range(3)]
        together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
        state = jax.vmap(ours.init)(together)
        for t in range(4):
            gradients = [noise(one, t) for one in several]
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *gradients)
            updates, state = jax.vmap(ours.update)(stacked, state, together)
            together = optax.apply_updates(together, updates)
            if t == 0:
                held = [ours.init(one) for one in several]
            for i, one in enumerate(several):
                changes, held[i] = ours.update(gradients[i], held[i], one)
                several[i] = optax.apply_updates(one, changes)
        assert_close(together, jax.tree.map(lambda *leaves: jnp.stack(leaves), *several))

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_types_do_not_change_so_that_nothing_is_compiled_twice(self, name, dtype):
        """Leaves of two types, JAX's promotion set to be strict; kept arrays are of float32 or wider."""
        ours = self.make(name)
        for x64 in (True, False) if dtype != "float64" else (True,):
            with jax.enable_x64(x64), jax.numpy_dtype_promotion("strict"):
                params = {"a": jnp.ones((2, 2), dtype), "b": jnp.ones(3, "float32")}
                state = ours.init(params)
                updates, after = jax.eval_shape(ours.update, params, state, params)
                assert jax.tree.map(kind, after) == jax.tree.map(kind, state)
                assert jax.tree.map(kind, updates) == jax.tree.map(kind, params)
                assert not any(leaf.dtype in ("float16", "bfloat16") for leaf in jax.tree.leaves(after))
                ours.update(params, state, params)

    def test_a_state_that_is_taken_apart_and_put_together_goes_on(self, name):
        ours, params = self.make(name), start()
        whole, _ = run(ours, params, steps=10)
        half, state = run(ours, params, steps=5)
        leaves, structure = jax.tree.flatten(state)
        again = jax.tree.unflatten(structure, [jnp.asarray(np.asarray(leaf)) for leaf in leaves])
        rest, _ = run(ours, half, steps=5, state=again, first=5)
        assert_close(whole, rest, atol=0.0)

    def test_a_state_may_be_donated(self, name):
        """No two leaves of a first state share memory, and none shares that of params."""
        ours, params = self.make(name), start()
        plain, _ = ours.update(noise(params, 0), ours.init(params), params)
        move = jax.jit(ours.update, donate_argnums=1)
        updates, _ = move(noise(params, 0), ours.init(params), params)
        assert_close(updates, plain)
        assert_close(params, start(), atol=0.0)

    def test_optax_finds_the_leaves_that_belong_to_parameters(self, name):
        """`tree_map_params`, by which states are placed on devices like their parameters."""
        ours, params = self.make(name), start()
        state = ours.init(params)
        marked = optax.tree_map_params(ours, lambda _: "like params", state, transform_non_params=lambda _: "other")
        kept = [tree for tree in marked if isinstance(tree, dict)]
        assert all(leaf == "like params" for tree in kept for leaf in jax.tree.leaves(tree))
        assert len(kept) == sum(isinstance(tree, dict) for tree in state)

    def test_steps_with_gradients_that_are_not_finite_may_be_left_out(self, name):
        ours, params = optax.apply_if_finite(self.make(name), 5), start()
        state = ours.init(params)
        broken = noise(params, 0) | {"s": jnp.asarray(math.nan)}
        updates, after = ours.update(broken, state, params)
        assert_close(updates, jax.tree.map(jnp.zeros_like, params), atol=0.0)
        jax.tree.map(np.testing.assert_array_equal, after.inner_state, state.inner_state)

    def test_gradients_may_be_gathered_over_several_batches(self, name):
        """optax.MultiSteps: two gradients at the same point are one step with their mean."""
        ours, params = self.make(name), start()
        several = optax.MultiSteps(ours, 2)
        state, point = several.init(params), params
        for t in range(2):
            updates, state = several.update(noise(params, t), state, point)
            point = optax.apply_updates(point, updates)
        mean = jax.tree.map(lambda a, b: 0.5 * (a + b), noise(params, 0), noise(params, 1))
        updates, _ = ours.update(mean, ours.init(params), params)
        assert_close(point, optax.apply_updates(params, updates), atol=1e-7)  # optax takes the mean in float32

    def test_missing_params_and_states_of_others_are_refused(self, name):
        ours, params = self.make(name), start()
        with pytest.raises(ValueError, match="update needs params"):
            ours.update(params, ours.init(params))
        with pytest.raises(TypeError, match=r"must be a \w+State, got EmptyState"):
            ours.update(params, optax.EmptyState(), params)
        for dtype in (int, complex):
            with pytest.raises(TypeError, match="real floating-point leaves"):
                ours.init(jnp.ones(2, dtype))

    def test_a_traced_exponent_is_refused_by_name(self, name):
        maker, options = OPTIMISERS[name]
        ours, params = optax.inject_hyperparams(maker)(RATE, **({"p": 3.0} | options)), start()
        with pytest.raises(TypeError, match='say static_args="p"'):
            jax.jit(ours.update)(params, ours.init(params), params)


class TestEquivalences:
    @pytest.mark.parametrize("norm", ["all", "tensor"])
    def test_unit_steps_at_p_inf_with_averages_are_lion(self, norm):
        ours = stochastic_hasd(0.02, coupling=None, scale="unit", betas=(0.9, 0.99), weight_decay=0.1, norm=norm)
        assert_close(run(ours, start())[0], run(optax.lion(0.02, 0.9, 0.99, weight_decay=0.1), start())[0])

    def test_p_2_without_coupling_is_sgd(self):
        ours = stochastic_hasd(0.02, p=2, coupling=None)
        assert_close(run(ours, start())[0], run(optax.sgd(0.02), start())[0])

    def test_p_2_with_averages_b_squared_and_b_is_nesterov_sgd(self):
        ours, b = stochastic_hasd(0.02, p=2, coupling=None, betas=(0.81, 0.9)), 0.9
        assert_close(run(ours, start())[0], run(optax.sgd(0.02 * (1.0 - b), momentum=b, nesterov=True), start())[0])

    @pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
    def test_full_batches_without_a_floor_are_the_deterministic_transformation(self, p):
        """That one without values of f, for L = n^{1 - 2/p}/lr; it is one update behind with x."""
        H = jnp.diag(jnp.array([1.0, 2.0, 3.0]))
        L = float(jnp.sum(H))
        ours, exact = stochastic_hasd(3.0 ** (1.0 - 2.0 / p) / L, p=p, coupling=0.0), deterministic(L, p)
        y = other = jnp.array([1.0, -2.0, 0.5])
        state, held = ours.init(y), exact.init(y)
        updates, held = jax.jit(exact.update)(H @ other, held, other)
        other = other + updates
        for _ in range(30):
            updates, state = jax.jit(ours.update)(H @ y, state, y)
            y = y + updates
            assert_close(y, other, atol=1e-11)
            updates, held = jax.jit(exact.update)(H @ other, held, other)
            other = other + updates
            assert_close(eval_params(state, y), eval_params(held), atol=1e-11)


class TestInjectedSettings:
    def test_every_number_but_p_may_be_changed_during_a_run(self):
        """A coupling that is injected is the same coupling, also where it is 0."""
        for coupling in (0.0, 0.2):
            options = {"coupling": coupling, "weight_decay": 0.1}
            injected = optax.inject_hyperparams(stochastic_hasd, static_args="p")(RATE, **options)
            assert_close(run(injected, start())[0], run(stochastic_hasd(RATE, **options), start())[0])

    def test_a_schedule_may_be_given_for_the_coupling(self):
        made = optax.inject_hyperparams(stochastic_hasd, static_args="p")
        changing = made(RATE, coupling=optax.linear_schedule(0.5, 0.05, 10))
        params, state = run(changing, start())
        assert float(state.hyperparams["coupling"]) == pytest.approx(0.05)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((params, state)))


class TestEvalParams:
    def test_it_is_the_averaged_point_in_the_types_of_params(self):
        params = {"a": jnp.ones((2, 2), "bfloat16"), "b": jnp.ones(3, "float32")}
        ours = optax.chain(optax.clip(1.0), stochastic_hasd(0.3))
        params, state = run(ours, params, steps=6)
        answer = eval_params(state, params)
        assert jax.tree.map(lambda leaf: leaf.dtype, answer) == jax.tree.map(lambda leaf: leaf.dtype, params)
        assert_close(jax.tree.map(lambda leaf: leaf.astype("float32"), eval_params(state)), state[1].x, atol=0.0)
        assert not np.array_equal(answer["b"], params["b"])

    def test_without_coupling_it_is_params(self):
        params, state = run(stochastic_hasd(RATE, coupling=None), start(), steps=2)
        assert eval_params(state, params) is params
        with pytest.raises(ValueError, match="found 0: give params, too"):
            eval_params(state)

    def test_it_works_inside_compiled_functions(self):
        params, state = run(stochastic_hasd(RATE), start())
        assert_close(jax.jit(eval_params)(state, params), eval_params(state, params), atol=0.0)

    def test_states_of_others_are_refused(self):
        with pytest.raises(ValueError, match="found 0"):
            eval_params(optax.adam(0.1).init(start()), start())

    def test_x_is_better_than_y_where_gradients_are_noisy(self):
        """On a quadratic around 0: the mean over the last steps of many coordinates."""
        ours, y = stochastic_hasd(0.1, p=2), jnp.ones(2000)
        state, move, at_x, at_y = ours.init(y), jax.jit(ours.update), 0.0, 0.0
        for t in range(150):
            updates, state = move(noise(y, t), state, y)
            y = y + updates
            if t >= 75:
                at_x, at_y = at_x + float(jnp.sum(state.x**2)), at_y + float(jnp.sum(y**2))
        assert at_x < at_y


@pytest.mark.parametrize("p", [2.0, 2.1, 3.0, math.inf])
@pytest.mark.parametrize("norm", ["all", "tensor"])
@pytest.mark.parametrize("size", [1e-24, 1e-20, 1e20])
def test_unit_steps_do_not_depend_on_the_size_of_gradients(p, norm, size):
    """In float32.  Mutation: a floor under the dual norm inside the gain."""
    ends = []
    for scale in (size, 1.0):
        params = start("float32")
        optimiser = stochastic_hasd(0.1, p=p, norm=norm, scale="unit")
        state = optimiser.init(params)
        for t in range(8):
            gradients = jax.tree.map(lambda g, scale=scale: scale * g, noise(start("float32"), t))
            updates, state = optimiser.update(gradients, state, params)
            params = optax.apply_updates(params, updates)
        ends.append(params)
    assert_close(*ends, atol=1e-4)


@pytest.mark.parametrize("coupling", [0.1, None])
def test_decay_never_turns_the_sign(coupling):
    """Where the learning rate is scheduled, and so not known when the product could be refused."""
    optimiser, params = stochastic_hasd(lambda count: 3.0, weight_decay=0.5, p=2.0, coupling=coupling), start()
    updates, _ = optimiser.update(jax.tree.map(jnp.zeros_like, params), optimiser.init(params), params)
    assert not any(map(np.any, jax.tree.leaves(optax.apply_updates(params, updates))))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_derivatives_by_the_learning_rate_are_those_of_differences(name):
    """Through several updates, the first included, whose A and c are 0."""
    maker, options = OPTIMISERS[name]

    def end(rate):
        optimiser, params = maker(rate, **options), start()
        state = optimiser.init(params)
        for t in range(3):
            updates, state = optimiser.update(noise(start(), t), state, params)
            params = optax.apply_updates(params, updates)
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(eval_params_or_params(state, params)))

    slope, step = jax.jit(jax.grad(end))(RATE), 1e-6
    by_hand = (end(RATE + step) - end(RATE - step)) / (2.0 * step)
    assert float(slope) == pytest.approx(float(by_hand), rel=1e-6)


def eval_params_or_params(state, params):
    return params if isinstance(state, StaceyState) else eval_params(state, params)


def test_numbers_count_up_to_the_largest():
    ours, params = stochastic_hasd(lambda count: 1.0 / (1.0 + count)), jnp.ones(2)
    state = ours.init(params)._replace(count=jnp.asarray(jnp.iinfo(jnp.int32).max, jnp.int32))
    assert int(ours.update(params, state, params)[1].count) == jnp.iinfo(jnp.int32).max


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"learning_rate": -1.0}, ValueError, "learning_rate must be"),
        ({"learning_rate": jnp.ones(2)}, TypeError, "learning_rate must be one real number"),
        ({"learning_rate": 3.0, "weight_decay": 0.5}, ValueError, "must not exceed 1"),
        ({"p": 1.5}, ValueError, "p must satisfy"),
        ({"coupling": 1.0}, ValueError, "coupling must be"),
        ({"coupling": "no"}, TypeError, "coupling must be"),
        ({"norm": "each"}, ValueError, "norm must be 'all' or 'tensor'"),
        ({"scale": 1.0}, ValueError, "scale must be 'gradient' or 'unit'"),
        ({"geometry": "l2"}, ValueError, "geometry must be 'lp' or 'spectral'"),
        ({"geometry": "spectral", "p": 2.0}, ValueError, "p = inf only"),
        ({"output_axis": 0}, ValueError, "output_axis must be 'first' or 'last'"),
        ({"betas": (0.9, 0.99)}, ValueError, "two kinds of momentum"),
        ({"betas": 0.9, "coupling": None}, TypeError, "betas must be two numbers"),
        ({"betas": (0.9, 1.0), "coupling": None}, ValueError, "the second of betas must be"),
        ({"weight_decay": -0.1}, ValueError, "weight_decay must be"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        stochastic_hasd(**({"learning_rate": 0.1} | options))


def test_spectral_steps_need_matrices():
    with pytest.raises(ValueError, match=r"leaves of two or more axes, got one of shape \(5,\)"):
        stochastic_hasd(0.1, geometry="spectral").init(start())


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"learning_rate": -1.0}, ValueError, "learning_rate must be"),
        ({"p": 1.0}, ValueError, "p must satisfy"),
        ({"p": math.inf, "second": "p"}, ValueError, "needs a finite p"),
        ({"second": 2}, ValueError, "second must be 'p' or '2'"),
        ({"betas": None}, TypeError, "betas must be two numbers"),
        ({"alpha": -1.0}, ValueError, "alpha must be"),
        ({"tau": 1.5}, ValueError, "tau must be at most 1"),
        ({"eps": 0.0}, ValueError, "eps must be"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay must be"),
    ],
)
def test_settings_of_stacey_that_mean_nothing_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        stacey(**options)
