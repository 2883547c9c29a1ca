"""STACEY (Luo, Bai, et al., ICML 2025), as published: per coordinate, with an l_p or an l_2 second sequence.

    c = b1 m + (1 - b1) g,                        y = w - lr c/(|c|^{(p-2)/(p-1)} + eps),
    (p,2):  z <- z - alpha c,                     (p,p):  u = |z|^{p-2} z - alpha c,  z <- sign(u) |u|^{1/(p-1)},
    w <- tau z + (1 - tau) y - lr weight_decay w,  m <- b2 m + (1 - b2) g,           z_0 = w_0, m_0 = 0.

There is no norm of the whole gradient in it: at p = inf it is a sign step, at tau = 0 it has the form of Lion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from .._checks import STACEY_EPS, check_stacey
from .base import Chunk, TrainingOptimizer, rate_of
from .tensor_lists import Tensors, subtract


class Stacey(TrainingOptimizer):
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
        Work on lists of tensors, or on one after the other, which on a CPU is faster; None chooses by the device.

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
        lr: float | torch.Tensor = 1e-3,
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

    def _check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings that mean nothing."""
        check_stacey(**{name: group[name] for name in ("p", "second", "betas", "alpha", "tau", "eps")})

    def _step_group(self, group: dict[str, Any], chunks: list[Chunk]) -> None:
        for chunk in chunks:
            w = chunk.points_to_compute_with()
            for key, value in zip(chunk.keys, w, strict=True):
                if "z" not in self.state[key]:
                    self.state[key]["z"] = value.clone()
            c = self._average(chunk, group["betas"])
            z = [self.state[key]["z"] for key in chunk.keys]
            _move_second(z, c, group)
            _move(w, c, z, group)
            chunk.write(w)


def _move_second(z: Tensors, c: Tensors, group: dict[str, Any]) -> None:
    """The next z."""
    if group["second"] == "p":
        _raise(z, group["p"] - 1.0)
    torch._foreach_add_(z, c, alpha=-group["alpha"])
    if group["second"] == "p":
        _raise(z, 1.0 / (group["p"] - 1.0))


def _move(w: Tensors, c: Tensors, z: Tensors, group: dict[str, Any]) -> None:
    """The next w; c is written into."""
    lr, tau, p = rate_of(group), group["tau"], group["p"]
    sizes = list(torch._foreach_abs(c))
    torch._foreach_pow_(sizes, 1.0 if p == math.inf else (p - 2.0) / (p - 1.0))
    torch._foreach_add_(sizes, _eps(group))
    torch._foreach_div_(c, sizes)
    torch._foreach_mul_(w, 1.0 - tau - lr * group["weight_decay"])
    subtract(w, c, lr * (1.0 - tau))
    torch._foreach_add_(w, z, alpha=tau)


def _raise(tensors: Tensors, power: float) -> None:
    """u <- sign(u) |u|^power."""
    signs = list(torch._foreach_sign(tensors))
    torch._foreach_abs_(tensors)
    torch._foreach_pow_(tensors, power)
    torch._foreach_mul_(tensors, signs)


def _eps(group: dict[str, Any]) -> float:
    return STACEY_EPS[group["second"]] if group["eps"] is None else group["eps"]
