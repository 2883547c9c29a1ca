"""hasd.jax.stochastic_hasd and stacey take the steps of hasd.torch.StochasticHASD and Stacey, to rounding."""

import math
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp
import optax
import torch

from hasd.jax import eval_params, stacey, stochastic_hasd
from hasd.torch import Stacey, StochasticHASD
from training import start, with_noise

pytestmark = pytest.mark.usefixtures("double")

RATE, STEPS = 0.05, 25
SHAPES = ((4, 3), (5,), ())
MOMENTA = ({"coupling": 0.1}, {"coupling": 0.0}, {"coupling": None}, {"coupling": None, "betas": (0.9, 0.95)})
SETTINGS = [
    {"p": p, "norm": norm, "scale": scale, **momentum}
    for p, norm, scale, momentum in product((2.0, 3.0, math.inf), ("all", "tensor"), ("gradient", "unit"), MOMENTA)
]
SPECTRAL = [
    {"geometry": "spectral", "norm": norm, "scale": scale, **momentum}
    for norm, scale, momentum in product(("all", "tensor"), ("gradient", "unit"), MOMENTA)
]


def as_jax(tensor):
    """The same numbers in the same type."""
    array = jnp.asarray(tensor.detach().double().numpy())
    return array.astype(str(tensor.dtype).removeprefix("torch."))


def words(setting):
    return " ".join(f"{name}={value}" for name, value in setting.items())


def run_both(parameters, optimizer, optimiser, steps=STEPS, rates=None, missing=()):
    """Steps of both on the same gradients; yields the state and the params of JAX after each."""
    params = [as_jax(q) for q in parameters]
    state, move = optimiser.init(params), jax.jit(optimiser.update)
    for t, _ in enumerate(with_noise(parameters, steps)):
        if rates is not None:
            optimizer.param_groups[0]["lr"] = rates(t)
        if t in missing:
            parameters[1].grad = None
        gradients = [None if q.grad is None else as_jax(q.grad) for q in parameters]
        updates, state = move(gradients, state, params)
        params = [q if u is None else q + u for q, u in zip(params, updates, strict=True)]
        optimizer.step()
        yield state, params


def differ(parameters, params):
    """How far two lists of parameters are apart."""
    both = zip(parameters, params, strict=True)
    return max(float(np.abs(q.detach().double().numpy() - np.asarray(u, float)).max()) for q, u in both)


def stand_together(parameters, optimizer, state, params, atol=1e-11):
    """Whether both have the same y, and the same x."""
    apart = differ(parameters, params)
    optimizer.eval()
    apart = max(apart, differ(parameters, eval_params(state, params)))
    optimizer.train()
    return apart <= atol


@pytest.mark.parametrize("setting", SETTINGS, ids=words)
def test_every_setting_takes_the_steps_of_torch(setting):
    """x and y of every step, with weight decay.  Mutation: a decay that leaves v alone."""
    parameters = start(*SHAPES)
    optimizer = StochasticHASD(parameters, RATE, weight_decay=0.3, **setting)
    for state, params in run_both(parameters, optimizer, stochastic_hasd(RATE, weight_decay=0.3, **setting)):
        assert stand_together(parameters, optimizer, state, params)


@pytest.mark.parametrize("setting", SPECTRAL, ids=words)
@pytest.mark.parametrize("output_axis", ["first", "last"])
def test_spectral_steps_are_those_of_torch(setting, output_axis):
    """Where outputs are the last axis, torch is given the transposed matrices.  Mutation: the other shape factor."""
    parameters = start((6, 3), (3, 6), (4, 4))
    optimizer = StochasticHASD(parameters, RATE, **setting)
    optimiser = stochastic_hasd(RATE, output_axis=output_axis, **setting)
    turned = output_axis == "last"
    params = [as_jax(q.mT if turned else q) for q in parameters]
    state, move = optimiser.init(params), jax.jit(optimiser.update)
    for _ in with_noise(parameters, 10):
        gradients = [as_jax(q.grad.mT if turned else q.grad) for q in parameters]
        updates, state = move(gradients, state, params)
        params = optax.apply_updates(params, updates)
        optimizer.step()
        back = [q.T if turned else q for q in params]
        assert differ(parameters, back) <= 1e-10


def test_convolutions_of_flax_are_matrices_of_their_output_channels():
    """A kernel of height, width, inputs and outputs is that of PyTorch with its axes in another order."""
    parameters = start((4, 3, 2, 2))
    optimizer = StochasticHASD(parameters, RATE, geometry="spectral")
    optimiser = stochastic_hasd(RATE, geometry="spectral")
    params = as_jax(parameters[0]).transpose(2, 3, 1, 0)
    state = optimiser.init(params)
    for _ in with_noise(parameters, 5):
        updates, state = optimiser.update(as_jax(parameters[0].grad).transpose(2, 3, 1, 0), state, params)
        params = params + updates
        optimizer.step()
        assert differ(parameters, [params.transpose(3, 2, 0, 1)]) <= 1e-11


@pytest.mark.parametrize("setting", [{}, {"norm": "tensor", "p": 3.0}, {"coupling": None, "betas": (0.9, 0.99)}])
def test_schedules_that_begin_and_end_at_zero_are_those_of_torch(setting):
    """A step with the learning rate 0 changes neither x, v nor A.  Mutation: `rate >= 0` in `_step_coupled`."""

    def rates(t):
        return RATE * (t % 4) / 3.0

    parameters = start(*SHAPES)
    optimizer = StochasticHASD(parameters, RATE, **setting)
    for state, params in run_both(parameters, optimizer, stochastic_hasd(rates, **setting), rates=rates):
        assert stand_together(parameters, optimizer, state, params)


@pytest.mark.parametrize("norm", ["all", "tensor"])
@pytest.mark.parametrize("p", [2.0, math.inf])
def test_gradients_that_are_missing_leave_the_same_leaves_alone(p, norm):
    parameters = start(*SHAPES)
    optimizer, optimiser = StochasticHASD(parameters, RATE, p=p, norm=norm), stochastic_hasd(RATE, p=p, norm=norm)
    for state, params in run_both(parameters, optimizer, optimiser, missing={0, 3, 4}):
        assert stand_together(parameters, optimizer, state, params)


def test_gradients_of_zero_are_treated_alike():
    """The gain of the plan is kept; nothing becomes infinite."""
    for p, scale in product((2.0, 3.0, math.inf), ("gradient", "unit")):
        setting = {"p": p, "scale": scale, "norm": "tensor"}
        parameters = start(*SHAPES)
        optimizer, optimiser = StochasticHASD(parameters, RATE, **setting), stochastic_hasd(RATE, **setting)
        params = [as_jax(q) for q in parameters]
        state = optimiser.init(params)
        for t, _ in enumerate(with_noise(parameters, 12)):
            for q in parameters[: t % 3]:
                q.grad = torch.zeros_like(q)
            updates, state = optimiser.update([as_jax(q.grad) for q in parameters], state, params)
            params = optax.apply_updates(params, updates)
            optimizer.step()
            assert stand_together(parameters, optimizer, state, params)


@pytest.mark.parametrize("setting", [{}, {"p": 3.0, "norm": "tensor"}, {"coupling": None, "scale": "unit"}], ids=words)
def test_coarse_parameters_have_the_same_state_in_float32(setting):
    """bfloat16: both round the same numbers of float32, so that parameters differ by one unit in places at most.

    Mutations: the difference to params rounded, not the new point; decay and step rounded one after the other.
    """
    parameters = start(*SHAPES, dtype=torch.bfloat16)
    setting = {"weight_decay": 0.3, **setting}
    optimizer, optimiser = StochasticHASD(parameters, RATE, **setting), stochastic_hasd(RATE, **setting)
    for state, params in run_both(parameters, optimizer, optimiser, steps=8):
        assert all(q.dtype == "bfloat16" for q in params)
        assert differ(parameters, params) <= 2.0**-6  # a unit in the last place of numbers between 1 and 4
        if state.x is not None:
            assert all(x.dtype == "float32" for x in state.x)
            assert differ([optimizer.state[q]["x"] for q in parameters], state.x) <= 2.0**-8


@pytest.mark.parametrize(("p", "second"), [(2.0, "2"), (3.0, "2"), (math.inf, "2"), (3.0, "p"), (6.0, "p")])
def test_stacey_takes_the_steps_of_torch(p, second):
    """Mutations: the decay of the new parameters; z of the old average."""
    setting = {"p": p, "second": second, "alpha": 0.02, "tau": 0.1, "betas": (0.9, 0.95), "weight_decay": 0.1}
    parameters = start(*SHAPES)
    for _, params in run_both(parameters, Stacey(parameters, RATE, **setting), stacey(RATE, **setting)):
        assert differ(parameters, params) <= 1e-10


def test_stacey_has_the_same_defaults_as_torch():
    parameters = start(*SHAPES)
    for _, params in run_both(parameters, Stacey(parameters), stacey()):
        assert differ(parameters, params) <= 1e-12
