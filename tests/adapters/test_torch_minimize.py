"""hasd.torch.minimize: any shape, autograd's gradient, clear refusals."""

import math

import numpy as np
import pytest
import torch

import hasd
from hasd.torch import minimize

TARGET = torch.linspace(-1.0, 2.0, 12, dtype=torch.float64)


def loss_at(x):
    return torch.sum(torch.cosh(x - TARGET)) + 0.05 * torch.sum(x) ** 2


def value_and_grad(x):
    x = x.detach().requires_grad_()
    value = loss_at(x)
    (g,) = torch.autograd.grad(value, x)
    return value.detach(), g


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (12,), (3, 4), (2, 3, 2)])
def test_the_minimiser_has_the_shape_and_type_of_x0(shape, dtype):
    aim = torch.full(shape, 2.0, dtype=dtype)
    x0 = torch.zeros(shape, dtype=dtype, requires_grad=True)
    seen = []
    res = minimize(lambda x, c: torch.sum((x - c) ** 2), x0, (aim,), callback=seen.append, tol=1e-4)
    assert res.success and res.x.shape == res.jac.shape == x0.shape
    assert res.x.dtype == res.jac.dtype == dtype and not res.x.requires_grad
    assert torch.allclose(res.x, aim, atol=1e-3) and x0.grad is None and float(x0.detach().sum()) == 0.0
    assert seen and all(x.shape == x0.shape for x in seen)


def test_minimize_is_the_core_with_autograds_gradient():
    x0 = torch.zeros(12, dtype=torch.float64)
    one = minimize(loss_at, x0, method="hasd", p=math.inf, maxiter=20)
    other = hasd.minimize(value_and_grad, x0, jac=True, method="hasd", p=math.inf, maxiter=20)
    assert torch.equal(one.x, other.x) and one.nfev == other.nfev


def test_the_newer_callback_gets_x_in_its_shape_and_may_end_the_run():
    seen = []

    def callback(*, intermediate_result):
        seen.append(intermediate_result)
        if len(seen) == 2:
            raise StopIteration

    res = minimize(lambda x: torch.sum((x - 1) ** 4), torch.zeros(2, 2, dtype=torch.float64), callback=callback)
    assert res.status == 99 and len(seen) == 2 and seen[0].x.shape == (2, 2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_minimize_succeeds_where_autograd_is_off(mode):
    with mode():
        assert minimize(lambda x: torch.sum((x - 1) ** 2), torch.zeros(2)).success


def test_one_further_argument_need_be_no_tuple():
    res = minimize(lambda x, c: torch.sum((x - c) ** 2), torch.zeros(3, dtype=torch.float64), torch.arange(3.0))
    assert torch.allclose(res.x, torch.arange(3.0, dtype=torch.float64), atol=1e-5)


def test_part_of_x_may_be_unused():
    res = minimize(lambda x: (x[0] - 1) ** 2, torch.zeros(3, dtype=torch.float64))
    np.testing.assert_allclose(res.x.numpy(), [1.0, 0.0, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("fun", "x0", "options", "match"),
    [
        (torch.sum, np.zeros(3), {}, "x0 must be a torch.Tensor, got ndarray"),
        (torch.sum, torch.zeros(3, dtype=torch.float16), {}, "x0 must be float32 or float64"),
        (torch.sum, torch.zeros(3), {"jac": True}, "jac must not be given"),
        (3.0, torch.zeros(3), {}, "fun must be callable"),
        (lambda x: 1.0, torch.zeros(3), {}, "fun must return a torch.Tensor, got float"),
        (lambda x: 2 * x, torch.zeros(3), {}, r"one element, got shape \(3,\)"),
        (lambda x: torch.zeros(()), torch.zeros(3), {}, "autograd sees no dependence"),
        (lambda x: torch.ones(1, requires_grad=True) ** 2, torch.zeros(3), {}, "autograd sees no dependence"),
        (hasd.objectives.LeastSquares([[1.0]], [1.0]), torch.zeros(1), {}, "give it to hasd.minimize"),
        (torch.sum, torch.zeros(3), {"callback": 3}, "callback must be callable"),
    ],
)
def test_a_wrong_start_function_or_option_is_refused(fun, x0, options, match):
    with pytest.raises(TypeError, match=match):
        minimize(fun, x0, **options)


class TestWithoutJac:
    """hasd.minimize of a tensor takes finite differences, unless it is told otherwise: it says so."""

    SAID = (
        "without jac, each gradient is taken by finite differences of 4 evaluations in {}: "
        "hasd.torch.minimize takes it from autograd"
    )

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("jac", [None, False])
    def test_warns_once_and_names_the_better_way(self, dtype, jac):
        with pytest.warns(UserWarning, match="without jac") as warned:
            hasd.minimize(lambda x: x @ x, torch.ones(3, dtype=getattr(torch, dtype)), jac=jac, maxiter=5)
        assert [str(one.message) for one in warned] == [self.SAID.format(dtype)]
        assert warned[0].filename == __file__

    def test_warns_where_the_loop_is_the_callers(self):
        with pytest.warns(UserWarning, match="hasd.torch.minimize"):
            hasd.iterate(lambda x: x @ x, torch.ones(3))

    def test_says_nothing_where_the_gradient_is_given(self):
        """A warning is an error in this suite."""
        x0 = torch.ones(3, dtype=torch.float64)
        assert hasd.minimize(lambda x: x @ x, x0, jac=lambda x: 2 * x).success
        assert hasd.minimize(lambda x: (x @ x, 2 * x), x0, jac=True).success
        assert hasd.minimize(hasd.objectives.Quadratic(torch.eye(3, dtype=torch.float64)), x0).success
        assert hasd.torch.minimize(lambda x: x @ x, x0).success


def test_a_gradient_in_float32_is_not_called_wrong():
    """PyTorch's default type, with x0 in NumPy's."""

    def f(x):
        y = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        loss = ((y - 1) ** 2).sum() + torch.logsumexp(3 * y, 0)
        loss.backward()
        return loss.item(), y.grad

    res = hasd.minimize(f, np.ones(20), jac=True, method="hasd-qn", tol=1e-12)
    assert res.status == 2 and "convex" not in res.message


def test_the_optimizers_bound_holds_for_every_method():
    for method in ("hasd", "hasd-qn"):
        x = torch.zeros(5, dtype=torch.float64, requires_grad=True)
        opt = hasd.torch.HASD([x], method=method)

        def closure(x=x, opt=opt):
            opt.zero_grad()
            loss = ((x - 1) ** 2).sum() + ((x - 1) ** 4).sum()
            loss.backward()
            return loss

        for _ in range(30):
            opt.step(closure)
        assert -10.0 < opt.bound(radius=3.0) <= 0.0
