"""hasd.torch.Stacey takes the published steps."""

import math

import pytest
import torch

from hasd.torch import Stacey
from training import close, lion, start, with_noise

SHAPES = ((4, 3), (5,))


class Published:
    """The formulas, coordinate by coordinate, in Python's numbers."""

    def __init__(self, w, p, second, lr, alpha, tau, betas, eps, decay):
        self.w, self.z, self.m = list(w), list(w), [0.0] * len(w)
        self.settings = p, second, lr, alpha, tau, betas, eps, decay

    def step(self, grads):
        p, second, lr, alpha, tau, (b1, b2), eps, decay = self.settings
        power = 1.0 if p == math.inf else (p - 2) / (p - 1)
        for i, g in enumerate(grads):
            c = b1 * self.m[i] + (1 - b1) * g
            y = self.w[i] - lr * c / (abs(c) ** power + eps)
            if second == "2":
                self.z[i] -= alpha * c
            else:
                u = abs(self.z[i]) ** (p - 2) * self.z[i] - alpha * c
                self.z[i] = math.copysign(abs(u) ** (1 / (p - 1)), u)
            self.w[i] = tau * self.z[i] + (1 - tau) * y - lr * decay * self.w[i]
            self.m[i] = b2 * self.m[i] + (1 - b2) * g


@pytest.mark.parametrize(("p", "second"), [(2.0, "2"), (3.0, "2"), (math.inf, "2"), (2.0, "p"), (3.0, "p"), (6.0, "p")])
@pytest.mark.parametrize("tau", [1e-3, 0.3])
def test_the_steps_are_the_published_ones(p, second, tau):
    """Mutations: the decay taken of the new parameters; m before c; z of the old average."""
    parameters = start(*SHAPES)
    settings = {"alpha": 0.02, "tau": tau, "betas": (0.9, 0.95)}
    optimizer = Stacey(parameters, 0.05, p=p, second=second, weight_decay=0.1, **settings)
    eps = 1e-4 if second == "2" else 1e-8
    published = Published(
        torch.cat([q.detach().reshape(-1) for q in parameters]).tolist(),
        p,
        second,
        0.05,
        eps=eps,
        decay=0.1,
        **settings,
    )
    for _ in with_noise(parameters, 30):
        grads = torch.cat([q.grad.reshape(-1) for q in parameters]).tolist()
        optimizer.step()
        published.step(grads)
        w = torch.cat([q.detach().reshape(-1) for q in parameters])
        assert torch.allclose(w, torch.tensor(published.w, dtype=torch.float64), rtol=0.0, atol=1e-10)


def test_without_z_at_p_inf_it_is_lion():
    ours, theirs = start(*SHAPES), start(*SHAPES)
    optimizer = Stacey(ours, 0.02, p=math.inf, tau=0.0, eps=1e-30, betas=(0.9, 0.99), weight_decay=0.1)
    m = [torch.zeros_like(q) for q in theirs]
    for _ in with_noise(ours, 30):
        lion(theirs, [q.grad for q in ours], m, 0.02, (0.9, 0.99), 0.1)
        optimizer.step()
        assert close(ours, theirs)


def test_the_defaults_are_the_published_ones():
    (group,) = Stacey(start(3)).param_groups
    names = ("lr", "alpha", "tau", "betas", "weight_decay", "p")
    assert [group[name] for name in names] == [1e-3, 1e-3, 1e-3, (0.9, 0.999), 5e-4, 3.0]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"lr": -1.0}, ValueError, "lr must be"),
        ({"p": 1.0}, ValueError, "p must be"),
        ({"p": math.inf, "second": "p"}, ValueError, "needs a finite p"),
        ({"second": 2}, ValueError, "second must be 'p' or '2'"),
        ({"betas": (0.9,)}, TypeError, "betas must be two numbers"),
        ({"betas": (1.0, 0.9)}, ValueError, "the first of betas must be"),
        ({"alpha": -1.0}, ValueError, "alpha must be"),
        ({"tau": 1.5}, ValueError, "tau must be at most 1"),
        ({"eps": 0.0}, ValueError, "eps must be"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay must be"),
        ({"foreach": "yes"}, TypeError, "foreach must be"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        Stacey(start(3), **options)
