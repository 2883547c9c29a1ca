"""Optimizers for training at their edges: gradients of any size, rates in tensors, schedulers, refused steps."""

import pytest
import torch

from hasd.torch import Stacey, StochasticHASD
from hasd.torch.spectral import polar_factor
from training import close, equal, start, with_noise

SPECTRAL = {"geometry": "spectral", "scale": "unit", "coupling": None, "betas": (0.81, 0.9)}


def run(steps=8, lr=0.1, schedule=None, dtype=torch.float32, **settings):
    """The parameters after some steps with noise."""
    parameters = start((6, 4), (5,), dtype=dtype)
    optimizer = StochasticHASD(parameters, lr=lr, **settings)
    scheduler = None if schedule is None else schedule(optimizer)
    for _ in with_noise(parameters, steps):
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return [p.detach().clone() for p in parameters]


class TestGradientsOfAnySize:
    def test_a_spectral_step_survives_a_gradient_that_dies_away(self):
        """The average of the gradients falls below what float32 can square, and below its smallest number."""
        (W,) = start((4, 6), dtype=torch.float32)
        optimizer = StochasticHASD([W], lr=0.02, **SPECTRAL)
        for step in range(1200):
            W.grad = torch.ones(4, 6) if step == 0 else torch.zeros(4, 6)
            optimizer.step()
            assert W.isfinite().all()
        assert optimizer.state[W]["m"].norm() == 0.0

    @pytest.mark.parametrize("size", [1e-36, 1e-23, 1e20, 1e36])
    def test_the_polar_factor_does_not_depend_on_the_size(self, size):
        (G,) = start((5, 7), dtype=torch.float32)
        torch.testing.assert_close(polar_factor(size * G.detach()), polar_factor(G.detach()), rtol=0.0, atol=1e-5)

    @pytest.mark.parametrize("p", [2.0, 2.1, 3.0, float("inf")])
    @pytest.mark.parametrize("norm", ["all", "tensor"])
    @pytest.mark.parametrize("size", [1e-24, 1e-20, 1e20, 1e26])
    def test_unit_steps_do_not_depend_on_the_size(self, p, norm, size):
        """Mutation: the Euclidean norm in float32, or a floor under the dual norm inside the gain."""
        settings = {"p": p, "norm": norm, "scale": "unit"}
        assert close(self.noise_alone(size, **settings), self.noise_alone(1.0, **settings), atol=1e-4)

    @staticmethod
    def noise_alone(size, **settings):
        parameters = start((6, 4), (5,), dtype=torch.float32)
        optimizer = StochasticHASD(parameters, lr=0.1, **settings)
        chance = torch.Generator().manual_seed(3)
        for _ in range(8):
            for p in parameters:
                p.grad = size * torch.randn(p.shape, generator=chance)
            optimizer.step()
        return [p.detach() for p in parameters]

    @pytest.mark.parametrize("norm", ["all", "tensor"])
    @pytest.mark.parametrize("coupling", [0.1, None])
    @pytest.mark.parametrize("geometry", ["lp", "spectral"])
    @pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
    def test_a_tensor_without_entries_stays_without_entries(self, norm, coupling, geometry, shape):
        w = torch.zeros(shape, requires_grad=True)
        optimizer = StochasticHASD([w], lr=0.1, norm=norm, coupling=coupling, geometry=geometry)
        w.grad = torch.zeros(shape)
        optimizer.step()
        assert w.shape == shape


class TestRatesInTensors:
    @pytest.mark.parametrize("settings", [{"p": 2.0}, {}, {"norm": "tensor", "p": 3.0}, {"weight_decay": 0.1}])
    def test_a_rate_of_0_moves_nothing_and_forgets_nothing(self, settings):
        def steps(rates):
            parameters = start((6, 4), (5,))
            optimizer = StochasticHASD(parameters, lr=0.1, **settings)
            for _, lr in zip(with_noise(parameters, len(rates)), rates, strict=True):
                optimizer.param_groups[0]["lr"] = lr
                before = [p.detach().clone() for p in parameters]
                optimizer.step()
                assert float(lr) > 0.0 or equal(parameters, before)
            return [p.detach() for p in parameters]

        rates = [0.0, 0.1, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1]
        as_tensors = [torch.tensor(lr, dtype=torch.float64) for lr in rates]
        assert close(steps(as_tensors), steps(rates))

    @pytest.mark.parametrize(
        "schedule",
        [
            lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
            lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: min(1.0, step / 3.0)),
        ],
        ids=["to 0 and back", "up from 0"],
    )
    def test_schedules_through_0_are_those_of_a_plain_rate(self, schedule):
        rate = torch.tensor(0.1, dtype=torch.float64)
        of_tensor = run(12, rate, schedule=schedule, dtype=torch.float64)
        assert close(of_tensor, run(12, 0.1, schedule=schedule, dtype=torch.float64))

    @pytest.mark.parametrize("settings", [{}, {"p": 2.0}, {"norm": "tensor"}, {"coupling": None}, {"p": 3.0}])
    def test_one_number_with_an_axis_is_that_number(self, settings):
        assert equal(run(lr=torch.tensor([0.1]), **settings), run(lr=torch.tensor(0.1), **settings))

    def test_stacey_takes_one_number_with_an_axis(self):
        def steps(lr):
            parameters = start((6, 4), dtype=torch.float32)
            optimizer = Stacey(parameters, lr=lr)
            for _ in with_noise(parameters, 5):
                optimizer.step()
            return parameters

        assert equal(steps(torch.tensor([0.1])), steps(torch.tensor(0.1)))

    @pytest.mark.parametrize("lr", [-1.0, float("nan"), float("inf")])
    @pytest.mark.parametrize("make", [StochasticHASD, Stacey])
    def test_a_rate_that_means_nothing_is_refused(self, make, lr):
        with pytest.raises(ValueError, match="lr must be"):
            make(start((3,)), lr=torch.tensor(lr))

    def test_decay_never_turns_the_sign(self):
        (w,) = start((4,))
        optimizer = StochasticHASD([w], lr=torch.tensor(2.0), weight_decay=1.0, coupling=None, p=2.0)
        w.grad = torch.zeros_like(w)
        optimizer.step()
        assert not w.detach().any()

    def test_a_decay_beyond_1_is_refused(self):
        for make in (StochasticHASD, Stacey):
            (w,) = start((4,))
            w.grad = torch.zeros_like(w)
            with pytest.raises(ValueError, match=r"^lr \* weight_decay must not exceed 1, got 3.0 \* 0.5$"):
                make([w], lr=3.0, weight_decay=0.5).step()


class TestSchedulers:
    @pytest.mark.parametrize("make", ["OneCycleLR", "CyclicLR"])
    def test_without_betas_there_is_no_momentum_to_cycle(self, make):
        """PyTorch's own message, as for its optimizers without momentum."""
        settings = {"max_lr": 0.1, "total_steps": 10} if make == "OneCycleLR" else {"base_lr": 0.1, "max_lr": 0.2}
        schedule = getattr(torch.optim.lr_scheduler, make)
        with pytest.raises(ValueError, match="cycle_momentum"):
            schedule(StochasticHASD(start((3,)), lr=0.1), **settings)
        schedule(StochasticHASD(start((3,)), lr=0.1), **settings, cycle_momentum=False)
        schedule(StochasticHASD(start((3,)), lr=0.1, coupling=None, betas=(0.8, 0.9)), **settings)

    def test_a_group_added_later_has_no_betas_either(self):
        optimizer = StochasticHASD(start((3,)), lr=0.1)
        optimizer.add_param_group({"params": start((4,)), "p": 2.0})
        assert optimizer.param_groups[1]["betas"] is None


class TestRefusedSteps:
    def test_what_one_group_is_refused_for_leaves_the_others_as_they_were(self):
        first, second = start((3,), (4, 2))
        optimizer = StochasticHASD([{"params": [first]}, {"params": [second]}], lr=0.1)
        before = first.detach().clone()
        first.grad = torch.ones_like(first)
        second.grad = torch.ones_like(second).to_sparse()
        with pytest.raises(RuntimeError, match="sparse"):
            optimizer.step()
        second.grad = None
        optimizer.param_groups[1].update(lr=2.0, weight_decay=1.0)
        with pytest.raises(ValueError, match="weight_decay"):
            optimizer.step()
        assert torch.equal(first, before)

    def test_without_coupling_eval_changes_nothing(self):
        (w,) = start((3,))
        optimizer = StochasticHASD([w], lr=0.1, coupling=None)
        w.grad = torch.ones_like(w)
        optimizer.eval()
        before = w.detach().clone()
        optimizer.step()
        assert not torch.equal(w, before)

    @pytest.mark.parametrize("make", [lambda w: StochasticHASD(w, lr=0.1), lambda w: Stacey(w, lr=0.1)])
    def test_the_state_of_another_optimizer_is_refused_by_name(self, make):
        w = start((3,))
        with pytest.raises(ValueError, match=r"not a state of (StochasticHASD|Stacey): its groups have no"):
            make(w).load_state_dict(torch.optim.Adam(w).state_dict())
