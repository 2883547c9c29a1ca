"""hasd.torch.StochasticHASD: its steps are those of the formulas, of `hasd`, and of the optimizers that it contains."""

import math

import pytest
import torch

import hasd
import hasd.methods.hasd as core
from hasd import theory
from hasd._math.minibatch import largest_weight
from hasd._math.pair import damping_rule, planned_weight
from hasd._math.polar import COEFFICIENTS, RAISED, SPREAD, STEPS
from hasd.torch import StochasticHASD
from hasd.torch.spectral import polar_factor
from training import close, equal, lion, start, with_noise

NORMS = (2.0, 3.0, math.inf)
CHANCE = torch.Generator().manual_seed(3)
ROWS = torch.randn(60, 12, generator=CHANCE, dtype=torch.float64)
LABELS = torch.where(torch.rand(60, generator=CHANCE, dtype=torch.float64) < 0.4, 1.0, -1.0)
LOGISTIC = hasd.objectives.Logistic(ROWS.numpy(), LABELS.numpy())


def loss_at(x, batch=slice(None)):
    """Logistic regression, on all rows or on some."""
    return torch.nn.functional.softplus(-LABELS[batch] * (ROWS[batch] @ x)).mean()


def gradient_at(x):
    x = x.detach().requires_grad_()
    value = loss_at(x)
    return value.detach(), torch.autograd.grad(value, x)[0]


class TestFullBatch:
    def use_the_rule_alone(self, monkeypatch):
        """Without values of f, gamma is what the proof gives; the slack, which may give more, needs values."""

        def damp(estimate, pair, e, N, L, plan, *more):
            found = exact(estimate, pair, e, N, L, plan, *more)
            return found._replace(gamma=damping_rule(N / e.norm2, L, plan))

        exact = core.damp
        monkeypatch.setattr(core, "damp", damp)

    @pytest.mark.parametrize("p", NORMS)
    def test_with_full_batches_and_no_floor_the_steps_are_those_of_hasd(self, p, monkeypatch):
        """Both x and y, for L = n^{1 - 2/p}/lr, to rounding.  Mutation: a norm that is not measured in means."""
        self.use_the_rule_alone(monkeypatch)
        L = LOGISTIC.smoothness(p)
        (x,) = start(12)
        states = hasd.iterate(gradient_at, x.detach().clone(), jac=True, p=p, L=float(L))
        optimizer = StochasticHASD([x], 12 ** (1.0 - 2.0 / p) / L, p=p, coupling=0.0)
        for t, state in zip(range(60), states, strict=False):
            assert torch.allclose(x, state.at.x, rtol=0.0, atol=1e-11)
            if t > 0:
                optimizer.eval()
                assert torch.allclose(x, state.x, rtol=0.0, atol=1e-11)
                optimizer.train()
                assert float(optimizer.state[x]["coupling"][0]) == pytest.approx(state.weight, rel=1e-9)
            optimizer.zero_grad()
            loss_at(x).backward()
            optimizer.step()

    @pytest.mark.parametrize("p", NORMS)
    def test_the_convex_rate_holds_at_every_iterate(self, p):
        """f(x_t) - f* <= R^2/(2 A_t), and A_t grows as the theory says."""
        L, (x,) = LOGISTIC.smoothness(p), start(12)
        best = hasd.minimize(LOGISTIC, x.detach().numpy().copy(), method="hasd-qn", tol=1e-12)
        R = float(torch.linalg.norm(x.detach() - torch.from_numpy(best.x)))
        optimizer, begin = StochasticHASD([x], 12 ** (1.0 - 2.0 / p) / L, p=p, coupling=0.0), loss_at(x).item()
        for t in range(1, 101):
            optimizer.zero_grad()
            loss_at(x).backward()
            optimizer.step()
            optimizer.eval()
            A, value = float(optimizer.state[x]["coupling"][0]), loss_at(x).item()
            optimizer.train()
            assert value - best.fun <= theory.optimised_gap(R, A, 0.0, 0.0) + 1e-12
            assert p != 2.0 or theory.optimised_weight_bound(L, p, 1.0, t) * (1.0 - 1e-9) <= A
        assert value - best.fun < 0.05 * (begin - best.fun)


class TestCoupling:
    @pytest.mark.parametrize("norm", ["all", "tensor"])
    @pytest.mark.parametrize("tau", [0.05, 0.3])
    @pytest.mark.parametrize("p", NORMS)
    def test_the_planned_share_never_falls_below_the_floor(self, p, tau, norm):
        """Whatever the noise and the learning rates.  Mutation: tau for tau^2 in `largest_weight`."""
        parameters = start((4, 3), 5)
        optimizer = StochasticHASD(parameters, 0.1, p=p, coupling=tau, norm=norm)
        reached = False
        for t, _ in enumerate(with_noise(parameters, 80)):
            optimizer.param_groups[0]["lr"] = 0.1 * (1.0 + math.sin(t))
            optimizer.step()
            for q in parameters:
                A, c = optimizer.state[q]["coupling"].tolist()
                sigma = hasd.Lp(p).dual_convexity
                a = planned_weight(A, 1.0, 0.0, c, sigma)
                assert a / (A + a) >= tau * (1.0 - 1e-9)
                reached |= a / (A + a) <= tau * (1.0 + 1e-9)
        assert reached

    def test_the_largest_weight_is_where_the_share_is_the_floor(self):
        for sigma in (0.0, 0.5, 1.0):
            for tau in (0.01, 0.1, 0.5, 0.99):
                A = largest_weight(7.0, sigma, tau)
                a = planned_weight(A, 1.0, 0.0, 7.0, sigma)
                assert a / (A + a) == pytest.approx(tau, rel=1e-12)

    def test_one_norm_has_one_sequence_also_for_parameters_that_had_no_gradient(self):
        """Mutation: only the parameters with a gradient learn of the new A."""
        parameters = start((4, 3), 5)
        optimizer = StochasticHASD(parameters, 0.1)
        for t, _ in enumerate(with_noise(parameters, 9)):
            if t % 2:
                parameters[0].grad = None
            optimizer.step()
            held = [optimizer.state[q]["coupling"] for q in parameters]
            assert equal(held[:1], held[1:])

    def test_y_lies_between_x_and_v(self):
        parameters = start((4, 3), 5)
        optimizer = StochasticHASD(parameters, 0.1)
        for _ in with_noise(parameters, 30):
            optimizer.step()
        for p in parameters:
            state = optimizer.state[p]
            A, c = state["coupling"].tolist()
            a = planned_weight(A, 1.0, 0.0, c, 0.0)
            assert torch.allclose(p, state["x"] + (a / (A + a)) * (state["v"] - state["x"]), atol=1e-12)

    @pytest.mark.parametrize("scale", ["gradient", "unit"])
    @pytest.mark.parametrize("p", NORMS)
    def test_a_gradient_of_zero_makes_nothing_infinite(self, p, scale):
        parameters = start((4, 3), 5)
        optimizer = StochasticHASD(parameters, 0.1, p=p, norm="tensor", scale=scale)
        for t, _ in enumerate(with_noise(parameters, 12)):
            for q in parameters[: t % 3]:
                q.grad = torch.zeros_like(q)
            optimizer.step()
            assert all(torch.isfinite(value).all() for q in parameters for value in optimizer.state[q].values())


def muon(W, g, m, lr, momentum):
    """Jordan et al. 2024, with its Newton-Schulz in the precision of W."""
    m.lerp_(g, 1.0 - momentum)
    X = g.lerp(m, momentum)
    X = X.mT if W.shape[0] > W.shape[1] else X
    X = X / X.norm()
    for _ in range(5):
        B = X @ X.mT
        X = 3.4445 * X + (-4.7750 * B + 2.0315 * B @ B) @ X
    X = X.mT if W.shape[0] > W.shape[1] else X
    W.sub_(lr * max(1.0, W.shape[0] / W.shape[1]) ** 0.5 * X)


class TestEquivalences:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("norm", ["all", "tensor"])
    @pytest.mark.parametrize("betas", [(0.9, 0.99), (0.9, 0.9)], ids=["Lion", "signSGD with momentum"])
    def test_unit_steps_at_p_inf_with_averages_are_lion_bit_for_bit(self, betas, norm, dtype):
        ours, theirs = start((4, 3), 5, (), dtype=dtype), start((4, 3), 5, (), dtype=dtype)
        options = {"coupling": None, "scale": "unit", "betas": betas, "weight_decay": 0.1, "norm": norm}
        optimizer, m = StochasticHASD(ours, 0.02, **options), [torch.zeros_like(p) for p in theirs]
        for _ in with_noise(ours, 40):
            lion(theirs, [p.grad.clone() for p in ours], m, 0.02, betas, 0.1)
            optimizer.step()
            assert equal(ours, theirs)

    @pytest.mark.parametrize("maximize", [False, True])
    def test_p_2_without_coupling_is_sgd_bit_for_bit(self, maximize):
        ours, theirs = start((4, 3), 5), start((4, 3), 5)
        one = StochasticHASD(ours, 0.02, p=2, coupling=None, maximize=maximize)
        two = torch.optim.SGD(theirs, 0.02, maximize=maximize)
        for _ in zip(with_noise(ours, 40), with_noise(theirs, 40), strict=True):
            one.step()
            two.step()
            assert equal(ours, theirs)

    def test_p_2_with_averages_b_squared_and_b_is_nesterov_sgd(self):
        ours, theirs, b = start((4, 3), 5), start((4, 3), 5), 0.9
        one = StochasticHASD(ours, 0.02, p=2, coupling=None, betas=(b * b, b))
        two = torch.optim.SGD(theirs, 0.02 * (1.0 - b), momentum=b, nesterov=True)
        for _ in zip(with_noise(ours, 40), with_noise(theirs, 40), strict=True):
            one.step()
            two.step()
            assert close(ours, theirs)

    def test_spectral_unit_steps_with_averages_are_muon(self):
        ours, theirs, b = start((6, 3), (3, 6), (4, 4)), start((6, 3), (3, 6), (4, 4)), 0.9
        options = {"geometry": "spectral", "coupling": None, "scale": "unit", "betas": (b * b, b)}
        optimizer, m = StochasticHASD(ours, 0.02, **options), [torch.zeros_like(p) for p in theirs]
        for _ in with_noise(ours, 20):
            with torch.no_grad():
                for W, p, average in zip(theirs, ours, m, strict=True):
                    muon(W, p.grad, average, 0.02, b)
            optimizer.step()
            assert close(ours, theirs)

    @pytest.mark.parametrize("scale", ["gradient", "unit"])
    @pytest.mark.parametrize("coupling", [None, 0.1])
    @pytest.mark.parametrize("p", NORMS)
    def test_splitting_tensors_changes_nothing_with_one_norm(self, p, coupling, scale):
        (whole,) = start(12)
        parts = [piece.detach().clone().requires_grad_() for piece in (whole[:5].reshape(5), whole[5:].reshape(7, 1))]
        options = {"p": p, "coupling": coupling, "scale": scale}
        one, two = StochasticHASD([whole], 0.05, **options), StochasticHASD(parts, 0.05, **options)
        for _ in with_noise([whole], 40):
            parts[0].grad, parts[1].grad = whole.grad[:5].clone(), whole.grad[5:].reshape(7, 1).clone()
            one.step()
            two.step()
            assert torch.allclose(whole, torch.cat([q.reshape(-1) for q in parts]), rtol=0.0, atol=1e-12)

    @pytest.mark.parametrize("norm", ["all", "tensor"])
    @pytest.mark.parametrize("p", [2.0, 3.0, 10.0, math.inf])
    def test_steps_without_momentum_are_steepest_steps_of_length_one_over_L(self, p, norm):
        """With means over n = 17 coordinates, or a norm a tensor; unit steps are lr long in the same norm."""
        geometry = hasd.Lp(p)
        for scale in ("gradient", "unit"):
            parameters = start((4, 3), 5)
            before = [q.detach().reshape(-1).clone() for q in parameters]
            optimizer = StochasticHASD(parameters, 0.05, p=p, coupling=None, norm=norm, scale=scale)
            next(with_noise(parameters, 1))
            grads = [q.grad.reshape(-1) for q in parameters]
            optimizer.step()
            steps = [(b - q.detach().reshape(-1)) for b, q in zip(before, parameters, strict=True)]
            if norm == "all":
                grads, steps, n = [torch.cat(grads)], [torch.cat(steps)], 17
            else:
                n = 1
            for g, step in zip(grads, steps, strict=True):
                if scale == "gradient":
                    assert torch.allclose(step, geometry.steepest(g) * 0.05 / n ** (1.0 - 2.0 / p), atol=1e-12)
                else:
                    assert geometry.norm(step) == pytest.approx(0.05 * n ** (1.0 / p))
                    assert float(step @ g) == pytest.approx(geometry.norm(step) * geometry.dual_norm(g))


@pytest.mark.parametrize("p", NORMS)
def test_with_minibatches_every_step_falls_by_what_is_promised(p):
    """The proved inequality, with the exact gradient, at every step of a run; it holds for every batch."""
    L, (x,), chance = LOGISTIC.smoothness(p), start(12), torch.Generator().manual_seed(2)
    optimizer = StochasticHASD([x], 12 ** (1.0 - 2.0 / p) / L, p=p, coupling=None)
    for _ in range(100):
        value, exact = gradient_at(x)
        optimizer.zero_grad()
        loss_at(x, torch.randint(60, (6,), generator=chance)).backward()
        noise = hasd.Lp(p).dual_norm(x.grad - exact)
        optimizer.step()
        most = theory.noisy_progress(float(value), hasd.Lp(p).dual_norm(exact), noise, float(L))
        assert loss_at(x).item() <= most + 1e-12


class TestSpectral:
    def test_singular_values_end_where_it_is_said(self):
        """The map of a singular value, on a grid: the constants of the module."""
        s = torch.logspace(-6, 0, 200_001, dtype=torch.float64)
        t, (a, b, c) = s.clone(), COEFFICIENTS
        for _ in range(STEPS):
            t = a * t + b * t**3 + c * t**5
        raised = t[s >= RAISED]
        assert SPREAD[0] <= float(raised.min()) and float(raised.max()) <= SPREAD[1]
        assert float(t.min()) > 0.0 and float(t[s < RAISED].max()) <= SPREAD[1]

    @pytest.mark.parametrize("shape", [(5, 9), (9, 5), (7, 7), (1, 6)])
    def test_the_polar_factor_keeps_singular_vectors_and_maps_values(self, shape):
        chance = torch.Generator().manual_seed(sum(shape))
        G = torch.randn(shape, generator=chance, dtype=torch.float64)
        U, S, V = torch.linalg.svd(G, full_matrices=False)
        inside = U.mT @ polar_factor(G) @ V.mT
        values = torch.diagonal(inside)
        assert torch.allclose(inside, torch.diag(values), atol=1e-10)
        assert SPREAD[0] <= float(values[RAISED * S.norm() <= S].min()) and float(values.max()) <= SPREAD[1]
        assert torch.equal(polar_factor(torch.zeros(shape)), torch.zeros(shape))

    def test_convolutions_are_matrices_of_their_output_channels(self):
        kernel, matrix = start((4, 3, 2, 2)), start((4, 12))
        with torch.no_grad():
            matrix[0].copy_(kernel[0].reshape(4, 12))
        one, two = (StochasticHASD(q, 0.1, geometry="spectral") for q in (kernel, matrix))
        for _ in with_noise(kernel, 5):
            matrix[0].grad = kernel[0].grad.reshape(4, 12).clone()
            one.step()
            two.step()
        assert torch.allclose(kernel[0].reshape(4, 12), matrix[0], atol=1e-12)
