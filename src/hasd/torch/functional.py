"""minimize() for a function of a tensor, differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from scipy.optimize import OptimizeResult

from .._minimize import minimize as core
from .._scipy_style import wants_result

UNSEEN = "fun must return a tensor computed from x by PyTorch's operations: autograd sees no dependence on x"


def minimize(
    fun: Callable[..., torch.Tensor],
    x0: torch.Tensor,
    args: Any = (),
    *,
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise a smooth convex function of a tensor; its gradient comes from autograd.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a tensor with one element, computed from x by operations that autograd knows.
    x0 : torch.Tensor
        The start, of any shape, float32 or float64, on any device.  It is never changed, and its autograd history is
        ignored.
    args : tuple
        Further arguments for fun; anything but a tuple is passed as the only one.
    callback : callable, optional
        As in `hasd.minimize`, with x in the shape of x0.
    **options
        Those of `hasd.minimize`: method, p, L, tol, maxiter, ...  jac cannot be given, because autograd computes it.

    Returns
    -------
    hasd.Result
        The result of `hasd.minimize`, with x and jac in the shape, type and device of x0.

    Examples
    --------
    >>> import torch
    >>> target = torch.arange(4.0).reshape(2, 2)
    >>> res = minimize(lambda x: torch.sum((x - target) ** 4) + torch.sum((x - target) ** 2), torch.zeros(2, 2))
    >>> bool(torch.allclose(res.x, target, atol=1e-3)), res.x.dtype
    (True, torch.float32)
    """
    if not isinstance(x0, torch.Tensor):
        raise TypeError(f"x0 must be a torch.Tensor, got {type(x0).__name__}; hasd.minimize takes other arrays")
    if x0.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"x0 must be float32 or float64, got {x0.dtype}")
    if "jac" in options:
        raise TypeError("jac must not be given: autograd computes it; hasd.minimize takes a jac, also for tensors")
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {type(fun).__name__}")
    if hasattr(fun, "value_and_grad") and hasattr(fun, "with_own_counter"):
        raise TypeError("fun is an objective with its own gradient: give it to hasd.minimize, which takes tensors too")
    shape = x0.shape
    more = args if isinstance(args, tuple) else (args,)

    def value_and_grad(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.inference_mode(False), torch.enable_grad():
            x = x.clone().reshape(shape).requires_grad_()
            value = fun(x, *more)
            _check(value)
            (g,) = torch.autograd.grad(value.reshape(()), x, allow_unused=True)
        if g is None:
            raise TypeError(UNSEEN)
        return value.detach(), g.reshape(-1)

    res = core(value_and_grad, x0.detach().reshape(-1), jac=True, callback=_reshape_for(callback, shape), **options)
    res.x, res.jac = res.x.reshape(shape), res.jac.reshape(shape)
    return res


def _check(value: Any) -> None:
    """Refuse a value that autograd cannot differentiate, and say why."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"fun must return a torch.Tensor, got {type(value).__name__}")
    if value.numel() != 1:
        raise TypeError(f"fun must return a tensor with one element, got shape {tuple(value.shape)}")
    if not value.requires_grad:
        raise TypeError(UNSEEN)


def _reshape_for(callback: Callable[..., Any] | None, shape: torch.Size) -> Callable[..., Any] | None:
    """The user's callback with x in the shape of x0, in either of SciPy's forms."""
    if callback is None or not callable(callback):
        return callback
    if wants_result(callback):

        def with_result(*, intermediate_result: OptimizeResult) -> None:
            intermediate_result.x = intermediate_result.x.reshape(shape)
            callback(intermediate_result=intermediate_result)

        return with_result
    return lambda x: callback(x.reshape(shape))
