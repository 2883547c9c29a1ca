"""hasd.torch: the optimizer takes the core's steps, and keeps the promises of torch.optim."""

import copy
import io
import math
import pickle

import pytest
import torch
from torch.optim import lr_scheduler

import hasd
from hasd.torch import HASD, minimize
from support import BLACK_BOX

GENERATOR = torch.Generator().manual_seed(3)
ROWS = torch.randn(40, 12, generator=GENERATOR, dtype=torch.float64)
RIGHT = torch.randn(40, generator=GENERATOR, dtype=torch.float64)
SMOOTHNESS = float(torch.abs(ROWS).sum(1).max() ** 2) / 0.5 + 0.1 * 12
"""Of `loss_at` w.r.t. l_inf."""


def loss_at(x):
    """A smoothed maximum with a ridge: strongly convex, not quadratic."""
    return torch.logsumexp((ROWS.to(x.dtype) @ x - RIGHT.to(x.dtype)) / 0.5, 0) * 0.5 + 0.05 * x @ x


def closure_for(optimizer, parameters, value=loss_at):
    def closure():
        optimizer.zero_grad()
        loss = value(torch.cat([p.reshape(-1) for p in parameters]))
        loss.backward()
        return loss

    return closure


def fresh(shapes=((12,),), dtype=torch.float64, **options):
    parameters = [torch.zeros(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    optimizer = HASD(parameters, **options)
    return parameters, optimizer, closure_for(optimizer, parameters)


def joined(parameters):
    return torch.cat([p.detach().reshape(-1) for p in parameters])


def settings(method):
    return {"method": method, "mu": 0.1 if method == "hasd-restart" else 0.0}


def value_and_grad(x):
    x = x.detach().requires_grad_()
    value = loss_at(x)
    (g,) = torch.autograd.grad(value, x)
    return value.detach(), g


class TestSteps:
    @pytest.mark.parametrize("L", [None, 30.0, 0.3])  # the last is too small
    @pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
    @pytest.mark.parametrize("method", BLACK_BOX)
    def test_the_optimizers_steps_are_the_cores_bit_for_bit(self, method, p, L):
        """Whatever the shapes and groups: one vector, one norm."""
        parameters, optimizer, closure = fresh(((3, 2), (), (5,)), p=p, L=L, **settings(method))
        states = hasd.iterate(
            value_and_grad, torch.zeros(12, dtype=torch.float64), jac=True, p=p, L=L, **settings(method)
        )
        next(states)
        for _, state in zip(range(8), states, strict=False):
            optimizer.step(closure)
            assert optimizer.status == ""
            assert torch.equal(joined(parameters), state.x)

    def test_groups_are_one_vector(self):
        one, optimizer, closure = fresh(L=SMOOTHNESS, lr=0.5)
        parts = [torch.zeros(5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        parts.append(torch.zeros(2, dtype=torch.float64, requires_grad=True))
        grouped = HASD([{"params": parts[:1]}, {"params": parts[1:], "lr": 0.5}], L=SMOOTHNESS)
        for _ in range(6):
            optimizer.step(closure)
            grouped.step(closure_for(grouped, parts))
        assert torch.equal(joined(one), joined(parts))

    def test_the_closures_are_counted_and_the_first_loss_returned(self):
        _, optimizer, closure = fresh()
        seen = []

        def counting():
            seen.append(closure())
            return seen[-1]

        for _ in range(4):
            before = len(seen)
            assert optimizer.step(counting) is seen[before]
        assert optimizer.nfev == len(seen)

    @pytest.mark.parametrize(("L", "most"), [(SMOOTHNESS, 0), (None, 5)], ids=["declared", "found"])
    def test_a_step_is_one_closure_after_the_first(self, L, most):
        """An L that is found may ask for some more, and steps 2, 4, 8, 16 and 32 look at a point twice more.

        Mutation: `method="hasd-paper"`.
        """
        _, optimizer, closure = fresh(L=L)
        optimizer.step(closure)
        first = optimizer.nfev
        for _ in range(50):
            optimizer.step(closure)
            assert optimizer.status == ""
        assert 2 <= first <= 2 + most
        assert 60 <= optimizer.nfev - first <= 60 + most

    def test_parameters_hold_x_and_the_loss_falls(self):
        parameters, optimizer, closure = fresh(p=2.0, method="hasd-qn")
        losses = []
        for _ in range(25):
            optimizer.step(closure)
            losses.append(float(loss_at(joined(parameters))))
        best = minimize(loss_at, torch.zeros(12, dtype=torch.float64), tol=1e-10).fun
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] - best < 1e-8

    def test_lbfgs_is_matched_on_a_module(self):
        torch.manual_seed(0)
        X, y = torch.randn(200, 10), (torch.rand(200) > 0.5).float()

        def train(make, steps):
            model = torch.nn.Linear(10, 1)
            with torch.no_grad():
                for p in model.parameters():
                    p.zero_()
            optimizer = make(model.parameters())

            def closure():
                optimizer.zero_grad()
                loss = torch.nn.functional.binary_cross_entropy_with_logits(model(X)[:, 0], y)
                loss.backward()
                return loss

            for _ in range(steps):
                optimizer.step(closure)
            return closure().item()

        assert train(lambda ps: HASD(ps, method="hasd-qn"), 20) == pytest.approx(
            train(lambda ps: torch.optim.LBFGS(ps, line_search_fn="strong_wolfe"), 5), abs=1e-6
        )

    def test_maximize_takes_the_steps_of_minimising_the_negative(self):
        down, one, closure = fresh()
        up = [torch.zeros(12, dtype=torch.float64, requires_grad=True)]
        other = HASD(up, maximize=True)
        for _ in range(6):
            one.step(closure)
            other.step(closure_for(other, up, lambda x: -loss_at(x)))
        assert torch.equal(joined(down), joined(up))
        assert other.bound(radius=5.0) == -one.bound(radius=5.0)


class TestBound:
    @pytest.mark.parametrize("method", ["hasd", "hasd-qn", "hasd-paper"])
    def test_the_bound_stays_below_the_minimum_and_comes_near_it(self, method):
        _, optimizer, closure = fresh(p=2.0, method=method)
        best = minimize(loss_at, torch.zeros(12, dtype=torch.float64), tol=1e-12)
        radius = float(torch.linalg.norm(best.x))
        assert optimizer.bound(radius) == -math.inf
        for _ in range(60):
            optimizer.step(closure)
            assert optimizer.bound(radius) <= best.fun + 1e-12
        assert optimizer.bound(radius) > best.fun - (1.0 if method == "hasd-paper" else 0.1)
        assert optimizer.grad_norm < 1e-1

    def test_the_bound_needs_a_radius_or_mu(self):
        _, optimizer, closure = fresh()
        optimizer.step(closure)
        with pytest.raises(ValueError, match="bound needs radius"):
            optimizer.bound()
        with pytest.raises(ValueError, match="radius must be"):
            optimizer.bound(-1.0)
        _, strong, closure = fresh(mu=0.1)
        strong.step(closure)
        assert math.isfinite(strong.bound())


def make_steps(optimizer, closure, steps):
    for _ in range(steps):
        optimizer.step(closure)


class TestMisuse:
    def minibatches(self, each_call):
        """A least-squares loss of another batch in every call, or in every step."""
        x = torch.zeros(12, dtype=torch.float64, requires_grad=True)
        optimizer, chance = HASD([x], p=2.0), torch.Generator().manual_seed(0)
        batch = torch.arange(10)

        def closure():
            nonlocal batch
            batch = torch.randint(40, (10,), generator=chance) if each_call else batch
            optimizer.zero_grad()
            loss = torch.mean((ROWS[batch] @ x - RIGHT[batch]) ** 2)
            loss.backward()
            return loss

        def step():
            nonlocal batch
            batch = torch.randint(40, (10,), generator=chance)
            optimizer.step(closure)

        return optimizer, step

    @pytest.mark.parametrize("each_call", [True, False])
    def test_a_noisy_closure_is_warned_of_once_and_ends_the_certificate(self, each_call):
        optimizer, step = self.minibatches(each_call)
        step()
        with pytest.warns(RuntimeWarning, match="StochasticHASD"):
            step()
        assert "mini-batches" in optimizer.note and optimizer.bound(10.0) == -math.inf
        for _ in range(8):  # warnings are errors here
            step()
        again = HASD(optimizer.param_groups[0]["params"], p=2.0)
        again.load_state_dict(optimizer.state_dict())
        assert again.note == optimizer.note

    def test_noise_is_no_excuse_for_itself(self):
        """From a start where all batches have one value, in float32: noisy gradients seem to have huge curvature.

        Mutation: what rounding explains grows with the curvature that was seen.
        """
        for seed in range(24):
            chance = torch.Generator().manual_seed(seed)
            X = torch.randn(1000, 20, generator=chance)
            y = (X[:, 0] + torch.randn(1000, generator=chance)).sign()
            w = torch.zeros(20, requires_grad=True)
            optimizer = HASD([w], p=2.0)

            def closure(X=X, y=y, w=w, chance=chance, optimizer=optimizer):
                batch = torch.randint(1000, (64,), generator=chance)
                optimizer.zero_grad()
                loss = torch.nn.functional.softplus(-y[batch] * (X[batch] @ w)).mean()
                loss.backward()
                return loss

            with pytest.warns(RuntimeWarning, match="StochasticHASD"):
                make_steps(optimizer, closure, 64)
            assert "mini-batches" in optimizer.note

    def test_two_batches_that_take_turns_are_seen(self):
        """The value two calls later is the same again.  Mutation: one more evaluation instead of two."""
        x = torch.zeros(12, dtype=torch.float64, requires_grad=True)
        optimizer, calls = HASD([x], p=2.0, L=50.0), 0

        def closure():
            nonlocal calls
            calls += 1
            half = slice(0, 20) if calls % 2 else slice(20, 40)
            optimizer.zero_grad()
            loss = torch.mean((ROWS[half] @ x - RIGHT[half]) ** 2)
            loss.backward()
            return loss

        with pytest.warns(RuntimeWarning, match="StochasticHASD"):
            make_steps(optimizer, closure, 9)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    def test_a_closure_that_rounds_differently_in_each_call_is_not_accused(self, dtype):
        """Sums in a random order, as threads make them.  Mutation: no allowance."""
        chance = torch.Generator().manual_seed(1)
        parameters, optimizer, _ = fresh(dtype=dtype, p=2.0)

        def closure():
            optimizer.zero_grad()
            order = torch.randperm(40, generator=chance)
            residuals = ROWS.to(dtype)[order] @ parameters[0] - RIGHT.to(dtype)[order]
            loss = residuals.square().cumsum(0)[-1] + 1.0
            loss.backward()
            return loss

        for _ in range(40):
            optimizer.step(closure)
        assert "StochasticHASD" not in optimizer.note

    def test_a_loss_that_is_not_convex_loses_its_bound(self):
        x = torch.full((3,), 0.1, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([x], p=2.0)
        closure = closure_for(optimizer, [x], lambda x: torch.sum(torch.cos(x) + 0.01 * x * x))
        for _ in range(30):
            optimizer.step(closure)
        assert "not convex" in optimizer.note and optimizer.bound(100.0) == -math.inf

    @pytest.mark.parametrize("p", [2.0, math.inf])
    @pytest.mark.parametrize("maximize", [False, True])
    def test_weight_decay_adds_a_square_to_the_loss_and_to_mu(self, p, maximize):
        sign = -1.0 if maximize else 1.0
        decayed, one, _ = fresh(p=p, L=SMOOTHNESS, weight_decay=0.3, maximize=maximize)
        written, two, _ = fresh(
            p=p, L=SMOOTHNESS + 0.3 * 12 ** (1.0 if p == math.inf else 0.0), mu=0.3, maximize=maximize
        )
        for _ in range(20):
            one.step(closure_for(one, decayed, lambda x: sign * loss_at(x)))
            two.step(closure_for(two, written, lambda x: sign * (loss_at(x) + 0.15 * x @ x)))
        assert torch.allclose(joined(decayed), joined(written), rtol=0, atol=1e-12)
        assert math.isfinite(one.bound()) and one.bound() == pytest.approx(two.bound(), abs=1e-9)

    @pytest.mark.parametrize("name", ["weight_decay", "mu"])
    def test_a_run_begins_anew_where_the_function_changes(self, name):
        """Cuts of the loss with a larger square prove nothing of the loss with a smaller one."""
        x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([x], p=2.0, **{name: 0.7})
        closure = closure_for(optimizer, [x], lambda x: torch.sum((x - 1.0) ** 2))
        for _ in range(5):
            optimizer.step(closure)
        assert math.isfinite(optimizer.bound(2.0))
        optimizer.param_groups[0][name] = 0.1
        assert optimizer.bound(2.0) == -math.inf
        least = 3.0 * 0.1 / 2.1 if name == "weight_decay" else 0.0  # of (x - 1)^2 + 0.05 x^2, in each entry: 0.1/2.1
        for _ in range(5):
            optimizer.step(closure)
            assert optimizer.bound() <= least + 1e-12

    def test_weight_decay_may_differ_between_groups(self):
        x, y = (torch.zeros(6, dtype=torch.float64, requires_grad=True) for _ in range(2))
        optimizer = HASD([{"params": [x], "weight_decay": 0.5}, {"params": [y]}])
        for _ in range(60):
            optimizer.step(closure_for(optimizer, [x, y]))
        full = minimize(lambda z: loss_at(z) + 0.25 * z[:6] @ z[:6], torch.zeros(12, dtype=torch.float64))
        assert torch.allclose(joined([x, y]), full.x, atol=1e-3)
        with pytest.raises(ValueError, match="radius"):
            optimizer.bound()  # the second group adds nothing to mu


class TestStateDict:
    @pytest.mark.parametrize("method", BLACK_BOX)
    @pytest.mark.parametrize("at", [1, 7])
    def test_a_round_trip_through_a_file_changes_no_bit(self, method, at):
        parameters, optimizer, closure = fresh(p=3.0, **settings(method))
        for _ in range(at):
            optimizer.step(closure)
        file = io.BytesIO()
        torch.save({"parameters": parameters, "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=True)
        again = [p.detach().clone().requires_grad_() for p in loaded["parameters"]]
        other = HASD(again, p=2.0)  # the settings come with the state
        other.load_state_dict(loaded["optimizer"])
        for _ in range(12):
            optimizer.step(closure)
            other.step(closure_for(other, again))
            assert torch.equal(joined(parameters), joined(again))
        assert other.nfev == optimizer.nfev and other.bound(3.0) == optimizer.bound(3.0)

    def test_loading_does_not_tie_the_two_together(self):
        parameters, optimizer, closure = fresh()
        optimizer.step(closure)
        saved = copy.deepcopy(optimizer.state_dict())
        again = [p.detach().clone().requires_grad_() for p in parameters]
        other = HASD(again)
        other.load_state_dict(optimizer.state_dict())
        for _ in range(5):
            other.step(closure_for(other, again))
        now = optimizer.state_dict()["state"]["hasd"]
        assert all(torch.equal(a, b) for a, b in zip(saved["state"]["hasd"]["arrays"], now["arrays"], strict=True))

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
    def test_copies_go_on_alike(self, copied):
        parameters, optimizer, closure = fresh(method="hasd-qn")
        for _ in range(4):
            optimizer.step(closure)
        other = copied(optimizer)
        theirs = other.param_groups[0]["params"]
        other.step(closure_for(other, theirs))
        optimizer.step(closure)
        assert torch.equal(joined(parameters), joined(theirs)) and other.nfev == optimizer.nfev


class TestSchedulers:
    @pytest.mark.parametrize(
        "make",
        [
            lambda o: lr_scheduler.StepLR(o, 2, 0.5),
            lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
            lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
            lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0),
            lambda o: lr_scheduler.ExponentialLR(o, 0.9),
            lambda o: lr_scheduler.CosineAnnealingLR(o, 5),  # ends at 0
            lambda o: lr_scheduler.LambdaLR(o, lambda epoch: epoch / 5),  # begins at 0
        ],
    )
    @pytest.mark.parametrize("L", [None, 30.0])
    def test_the_loss_falls_under_every_learning_rate_scheduler(self, make, L):
        parameters, optimizer, closure = fresh(L=L)
        scheduler, start = make(optimizer), float(loss_at(torch.zeros(12, dtype=torch.float64)))
        for _ in range(8):
            loss = optimizer.step(closure)
            scheduler.step(*((loss.detach(),) if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) else ()))
        assert float(loss_at(joined(parameters))) < start

    def test_lr_divides_a_given_L(self):
        one, optimizer, closure = fresh(L=30.0, lr=0.5)
        two, other, close_other = fresh(L=60.0)
        for _ in range(4):
            optimizer.step(closure)
            other.step(close_other)
        assert torch.equal(joined(one), joined(two))


class TestParameters:
    def test_parameters_moved_from_outside_start_the_run_anew(self):
        parameters, optimizer, closure = fresh()
        for _ in range(3):
            optimizer.step(closure)
        with torch.no_grad():
            parameters[0].mul_(0.5)
        start = joined(parameters).clone()
        optimizer.step(closure)
        again, other, close_other = fresh()
        with torch.no_grad():
            again[0].copy_(start)
        other.step(close_other)
        assert torch.equal(joined(parameters), joined(again))

    def test_a_group_that_is_added_later_moves_too(self):
        x = torch.zeros(5, dtype=torch.float64, requires_grad=True)
        y = torch.zeros(7, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([x])
        optimizer.step(closure_for(optimizer, [x, y]))
        assert float(abs(y.detach()).max()) == 0.0
        optimizer.add_param_group({"params": [y]})
        for _ in range(3):
            optimizer.step(closure_for(optimizer, [x, y]))
        assert float(abs(y.detach()).max()) > 0.0 and optimizer.status == ""

    def test_types_are_kept_and_may_be_mixed(self):
        kinds = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
        parameters = [torch.zeros(3, dtype=kind, requires_grad=True) for kind in kinds]
        optimizer = HASD(parameters)

        def closure():
            optimizer.zero_grad()
            loss = loss_at(torch.cat([p.double() for p in parameters]))
            loss.backward()
            return loss

        first = float(optimizer.step(closure).detach())
        for _ in range(10):
            last = float(optimizer.step(closure).detach())
        assert [p.dtype for p in parameters] == list(kinds)
        assert last < first
        assert optimizer.nfev < 40  # it did not start anew each time
        assert optimizer.bound(100.0) == -math.inf

    def test_complex_parameters_count_as_two(self):
        z = torch.zeros(2, dtype=torch.complex128, requires_grad=True)
        aim = torch.tensor([1.0 + 2.0j, -1.0j], dtype=torch.complex128)
        optimizer = HASD([z], p=2.0)

        def closure():
            optimizer.zero_grad()
            loss = torch.sum(torch.abs(z - aim) ** 2)
            loss.backward()
            return loss

        for _ in range(10):
            optimizer.step(closure)
        assert torch.allclose(z, aim, atol=1e-8)

    def test_sparse_gradients_are_used_and_missing_ones_move_nothing(self):
        table = torch.nn.Embedding(6, 2, sparse=True, dtype=torch.float64)
        idle = torch.ones(3, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([table.weight, idle], p=2.0)

        def closure():
            optimizer.zero_grad()
            loss = torch.sum((table(torch.tensor([1, 4])) - 2.0) ** 2)
            loss.backward()
            return loss

        for _ in range(20):
            optimizer.step(closure)
        assert torch.allclose(table.weight[[1, 4]], torch.full((2, 2), 2.0, dtype=torch.float64), atol=1e-6)
        assert torch.equal(idle, torch.ones(3, dtype=torch.float64))


class TestFaults:
    def test_a_closure_that_raises_leaves_the_parameters_at_x(self):
        """In the first step at its second call, and in a later one at its only call."""
        parameters, optimizer, closure = fresh()
        for calls in (2, 1):
            x, left = joined(parameters).clone(), iter(range(calls - 1))

            def failing(left=left):
                if next(left, None) is None:
                    raise RuntimeError("no more")
                return closure()

            with pytest.raises(RuntimeError, match="no more"):
                optimizer.step(failing)
            assert torch.equal(joined(parameters), x)
            optimizer.step(closure)
            assert not torch.equal(joined(parameters), x)

    def test_a_minimum_is_not_left(self):
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([x])
        optimizer.step(closure_for(optimizer, [x], lambda x: torch.sum((x - 1) ** 2)))
        assert torch.equal(x, torch.ones(3, dtype=torch.float64)) and "Converged" in optimizer.status
        assert optimizer.step(closure_for(optimizer, [x], lambda x: torch.sum((x - 1) ** 2))).item() == 0.0

    def test_parameters_end_where_a_gradient_was_zero(self):
        """Mutation: the parameters left at x, of which the gradient's point y is ahead."""
        x = torch.full((2,), 3.0, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([x], p=2.0, L=5.0)
        closure = closure_for(optimizer, [x], lambda x: torch.sum(torch.relu(x - 1.0) ** 2))
        values = []
        while optimizer.status == "":
            optimizer.step(closure)
            values.append(closure().item())
        assert "Converged" in optimizer.status and optimizer.grad_norm == 0.0
        assert values[-2] > values[-1] == 0.0

    def test_a_loss_that_is_not_finite_moves_nothing_and_is_told_by_status(self):
        x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        optimizer = HASD([x])
        optimizer.step(closure_for(optimizer, [x], lambda x: torch.sum(x) * math.nan))
        assert torch.equal(x, torch.zeros(3, dtype=torch.float64)) and "not finite" in optimizer.status

    def test_bad_options_closures_and_foreign_states_are_refused(self):
        x = torch.zeros(3, requires_grad=True)
        for options, error, match in (
            ({"p": 1.5}, ValueError, "p must be"),
            ({"L": -1.0}, ValueError, "L must be"),
            ({"lr": -1.0, "L": 1.0}, ValueError, "lr must be"),
            ({"lr": 0.1}, ValueError, "lr has no effect without L"),
            ({"weight_decay": -1.0}, ValueError, "weight_decay must be"),
            ({"mu": 2.0, "L": 1.0}, ValueError, "mu = 2 cannot exceed L = 1"),
            ({"method": "adam"}, ValueError, "unknown method"),
            ({"method": "hasd-subspace"}, TypeError, "needs an objective"),
            ({"momentum": 0.9}, TypeError, "unknown option 'momentum'"),
        ):
            with pytest.raises(error, match=match):
                HASD([x], **options)
        with pytest.raises(ValueError, match="lr has no effect without L"):
            HASD([{"params": [x], "lr": 0.1}])
        with pytest.raises(TypeError, match="step needs a closure"):
            HASD([x]).step()
        with pytest.raises(TypeError, match="closure must return the loss"):
            HASD([x]).step(lambda: None)
        with pytest.raises(TypeError, match="closure must call backward"):
            HASD([x]).step(lambda: torch.sum(x))
        with pytest.raises(ValueError, match="p must be the same in all groups"):
            HASD([{"params": [x]}, {"params": [torch.zeros(1, requires_grad=True)], "p": 2.0}])
        with pytest.raises(ValueError, match="no parameters"):
            HASD([{"params": []}]).step(lambda: torch.zeros(()))
        mine, other = HASD([x]), torch.optim.Adam([x])
        mine.load_state_dict(other.state_dict())
        with pytest.raises(ValueError, match="not of this optimizer"):
            mine.step(lambda: torch.zeros(()))

    def test_gradients_left_over_do_no_harm(self):
        one, optimizer, closure = fresh()
        two = [torch.zeros(12, dtype=torch.float64, requires_grad=True)]
        careless = HASD(two)

        def without_clearing():
            loss = loss_at(two[0])
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
            careless.step(without_clearing)
        assert torch.equal(joined(one), joined(two))
