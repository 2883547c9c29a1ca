"""STACEY (Luo, Bai, et al., ICML 2025), as published: per coordinate, with an l_p or an l_2 second sequence.

    c = b1 m + (1 - b1) g,                        y = w - lr c/(|c|^{(p-2)/(p-1)} + eps),
    (p,2):  z <- z - alpha c,                     (p,p):  u = |z|^{p-2} z - alpha c,  z <- sign(u) |u|^{1/(p-1)},
    w <- tau z + (1 - tau) y - lr weight_decay w,  m <- b2 m + (1 - b2) g,           z_0 = w_0, m_0 = 0.

There is no norm of the whole gradient in it: at p = inf it is a sign step, at tau = 0 it has the form of Lion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .._checks import check_flags, check_words, number
from .flat import as_real
from .tensor_lists import split_alike

PROXIES = {"p": 1e-8, "2": 1e-4}
"""The geometry of z, with the published eps."""


class Stacey(torch.optim.Optimizer):
    """STACEY(p,p) and STACEY(p,2), stochastic steepest descent with a second sequence z, as published.

    Its state is in `state_dict`, its learning rate is called ``lr`` as schedulers want it, settings may differ between
    groups, and `step` returns the loss of a closure.

    Parameters
    ----------
    params : iterable
        Tensors or groups, as everywhere in ``torch.optim``.
    lr : float
        The step from w to y.
    p : float
        The exponent, 2 <= p <= inf; p = inf with ``second="2"`` only.
    second : {"2", "p"}
        The geometry in which z moves: STACEY(p,2) or STACEY(p,p).
    betas : (float, float)
        The share of the old average in the step, and in the next average.
    alpha : float
        The step of z.  Schedulers leave it as it is.
    tau : float
        The share of z in the new parameters, between 0 and 1.
    eps : float, optional
        Keeps the step of small gradients finite; None takes the published 1e-4 for (p,2), 1e-8 for (p,p).
    weight_decay : float
        Decoupled.
    maximize : bool
        Maximise instead.
    foreach : bool or None
        Work on lists of tensors, or on one after the other; None takes lists where there is a device for it.

    Examples
    --------
    >>> import torch
    >>> from hasd.torch import Stacey
    >>> w = torch.zeros(5, requires_grad=True)
    >>> optimizer = Stacey([w], lr=0.02, tau=0.0, weight_decay=0.0)
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     torch.sum((w - 1.0) ** 2).backward()
    ...     optimizer.step()
    >>> bool(abs(w - 1.0).max() < 0.2)
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        p: float = 3.0,
        second: str = "2",
        betas: tuple[float, float] = (0.9, 0.999),
        alpha: float = 1e-3,
        tau: float = 1e-3,
        eps: float | None = None,
        weight_decay: float = 5e-4,
        maximize: bool = False,
        foreach: bool | None = None,
    ):
        """Check the settings of every group."""
        settings = {"p": p, "second": second, "betas": betas, "alpha": alpha, "tau": tau, "eps": eps}
        more = {"weight_decay": weight_decay, "maximize": maximize, "foreach": foreach}
        super().__init__(params, {"lr": lr, **settings, **more})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, after a look at its settings."""
        super().add_param_group(param_group)
        try:
            _check(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step with the gradients that are there, or that the closure computes; return its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            keys = [key for key in group["params"] if key.grad is not None]
            if any(key.grad.layout is not torch.strided for key in keys):
                raise RuntimeError("Stacey does not take sparse gradients: use sparse=False for embeddings")
            for chunk in split_alike(keys, group["foreach"]):
                self._step_together(group, [keys[i] for i in chunk])
        return loss

    def _step_together(self, group: dict[str, Any], keys: list[torch.Tensor]) -> None:
        """The formulas above, for tensors of one device and type."""
        w, g = (
            [as_real(key.detach()) for key in keys],
            [as_real(key.grad.detach()) for key in keys if key.grad is not None],
        )
        for key, value in zip(keys, w, strict=True):
            if not self.state[key]:
                self.state[key].update(z=value.clone(), m=torch.zeros_like(value))
        z, m = [self.state[key]["z"] for key in keys], [self.state[key]["m"] for key in keys]
        lr, (b1, b2), p = group["lr"], group["betas"], group["p"]
        g = list(torch._foreach_neg(g)) if group["maximize"] else g
        c = list(torch._foreach_mul(m, b1))
        torch._foreach_add_(c, g, alpha=1.0 - b1)
        torch._foreach_mul_(m, b2)
        torch._foreach_add_(m, g, alpha=1.0 - b2)
        if group["second"] == "p":
            _raise(z, p - 1.0)
        torch._foreach_sub_(z, list(torch._foreach_mul(c, group["alpha"])))
        if group["second"] == "p":
            _raise(z, 1.0 / (p - 1.0))
        size = list(torch._foreach_abs(c))
        torch._foreach_pow_(size, 1.0 if p == math.inf else (p - 2.0) / (p - 1.0))
        torch._foreach_add_(size, _eps(group))
        torch._foreach_div_(c, size)
        torch._foreach_mul_(c, lr * (1.0 - group["tau"]))
        torch._foreach_mul_(w, 1.0 - group["tau"] - lr * group["weight_decay"])
        torch._foreach_sub_(w, c)
        torch._foreach_add_(w, list(torch._foreach_mul(z, group["tau"])))


def _raise(tensors: list[torch.Tensor], power: float) -> None:
    """u <- sign(u) |u|^power."""
    signs = list(torch._foreach_sign(tensors))
    torch._foreach_abs_(tensors)
    torch._foreach_pow_(tensors, power)
    torch._foreach_mul_(tensors, signs)


def _eps(group: dict[str, Any]) -> float:
    return PROXIES[group["second"]] if group["eps"] is None else group["eps"]


def _check(group: dict[str, Any]) -> None:
    """Refuse settings that mean nothing."""
    if not torch.is_tensor(group["lr"]):
        number("lr", group["lr"], least=0.0)
    group["p"] = number("p", group["p"], least=2.0, finite=False)
    check_words(second=(group["second"], tuple(PROXIES)))
    if group["second"] == "p" and group["p"] == math.inf:
        raise ValueError("second='p' needs a finite p: |z|^(p-1) has no limit")
    if not (isinstance(group["betas"], tuple | list) and len(group["betas"]) == 2):
        raise TypeError(f"betas must be two numbers, got {group['betas']!r}")
    for name, beta in zip(("the first of betas", "the second of betas"), group["betas"], strict=True):
        number(name, beta, least=0.0, below=1.0)
    for name in ("alpha", "weight_decay"):
        number(name, group[name], least=0.0)
    if number("tau", group["tau"], least=0.0) > 1.0:
        raise ValueError(f"tau must be at most 1, got {group['tau']!r}")
    number("eps", _eps(group), least=0.0, strict=True)
    check_flags(maximize=group["maximize"], **({} if group["foreach"] is None else {"foreach": group["foreach"]}))
