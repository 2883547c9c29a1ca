"""HASD for training: steepest descent on gradients of mini-batches, with momentum by coupling or by averaging."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from .._checks import check_stochastic
from .._math.minibatch import (
    LEAST_RATE,
    Coupling,
    dual_exponent,
    first_or_later_step,
    gradient_factor,
    needs_dual_norm,
    smoothness_for,
    step_factor,
)
from .base import Chunk, TrainingOptimizer, rate_of
from .flat import as_real
from .spectral import Spectral
from .tensor_lists import (
    Directions,
    Entrywise,
    Measured,
    Tensors,
    interpolate,
    measure,
    pick,
    subtract,
)


class StochasticHASD(TrainingOptimizer):
    """Steepest descent on gradients of mini-batches, with coupling or averaged gradients as momentum.

    The step is that of method ``hasd`` without its search, with the smoothness constant taken from ``lr`` and a floor
    under the share that the newest gradient gets.  During training the parameters hold the point y where gradients are
    taken.  Before you validate or save a model, call `eval`, which puts the iterate x into them, and `train` before you
    go on.  Where ``coupling`` is None, y and x are the same, and neither call does anything.

    BatchNorm collects its running means at y.  Before you validate at x, collect them anew after `eval`, for example
    with ``torch.optim.swa_utils.update_bn``.  Only the optimizer may change the parameters: if you overwrite them, make
    a new one, or load the state that belongs to them.

    Parameters
    ----------
    params : iterable
        Tensors or groups; every setting below may differ between groups.  `parameter_groups` makes them from a model.
    lr : float or tensor
        The learning rate.  It is read at every step, so schedulers work.  A loss that is L-smooth in the norm allows
        1/L (with ``norm="all"``, n^{1 - 2/p}/L for n parameters).
    p : float
        The norm, 2 <= p <= inf.  p = 2 is gradient descent, p = inf sign descent.
    coupling : float or None
        The floor under the share of v in y = (1 - share) x + share v, between 0 and 1; it acts like 1 minus the
        momentum.  0 is no floor: method ``hasd``, for full batches.  None is no coupling, and nothing to remember.
    norm : {"all", "tensor"}
        One norm for all tensors of a group together, measured in means, or one for each.
    scale : {"gradient", "unit"}
        A step of lr times the dual norm of the gradient, or of lr: the gradient is divided by its dual norm.
    betas : (float, float) or None
        The step is made with b1 m + (1 - b1) g, and m becomes b2 m + (1 - b2) g, as in Lion.  It takes the place of
        the coupling, which must be None.
    geometry : {"lp", "spectral"}
        The norm of the entries, or the largest singular value, for tensors of two or more axes (p = inf).
    weight_decay : float
        Decoupled: all points are multiplied by 1 - lr * weight_decay at each step.
    maximize : bool
        Maximise instead.
    foreach : bool or None
        Work on lists of tensors, or on one after the other, which on a CPU is faster; None chooses by the device.

    Notes
    -----
    With full batches, coupling 0, one norm and a convex loss that is L-smooth for the L above, the steps are those of
    method ``hasd``, with its rate.  What is proved with noise is in docs/training.md; it is about steps without
    momentum.  Parameters without a gradient are left as they are.  Sparse gradients are refused.  float16 and bfloat16
    are worked on in float32, in which x and v are kept.

    Examples
    --------
    >>> import torch
    >>> from hasd.torch import StochasticHASD
    >>> X = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    >>> w = torch.zeros(5, requires_grad=True)
    >>> optimizer = StochasticHASD([w], lr=0.2, p=2)
    >>> for step in range(60):
    ...     rows = X[step % 4 :: 4]
    ...     optimizer.zero_grad()
    ...     torch.mean((rows @ (w - 1.0)) ** 2).backward()
    ...     optimizer.step()
    >>> optimizer.eval()
    >>> bool(abs(w - 1.0).max() < 0.01)
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | torch.Tensor,
        *,
        p: float = math.inf,
        coupling: float | None = 0.1,
        norm: str = "all",
        scale: str = "gradient",
        betas: tuple[float, float] | None = None,
        geometry: str = "lp",
        weight_decay: float = 0.0,
        maximize: bool = False,
        foreach: bool | None = None,
    ):
        """Check the settings of every group."""
        settings = {"p": p, "coupling": coupling, "norm": norm, "scale": scale, "betas": betas, "geometry": geometry}
        more = {"weight_decay": weight_decay, "maximize": maximize, "foreach": foreach, "training": True}
        super().__init__(params, {"lr": lr, **settings, **more})
        if betas is None:  # OneCycleLR and CyclicLR take what has betas for something they can cycle
            del self.defaults["betas"]

    def _check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings that mean nothing."""
        check_stochastic(**{name: group[name] for name in ("p", "coupling", "norm", "scale", "betas", "geometry")})
        if group["geometry"] == "spectral":
            for shape in (tuple(q.shape) for q in group["params"] if q.dim() < 2 or q.is_complex()):
                raise ValueError(
                    f"geometry='spectral' takes real tensors of two or more axes, got one of shape {shape}"
                )

    def _check_step(self, group: dict[str, Any]) -> None:
        super()._check_step(group)
        if group["coupling"] is not None and not group["training"]:
            raise RuntimeError("the parameters hold x since eval() was called: call train() before step()")

    def _step_group(self, group: dict[str, Any], chunks: list[Chunk]) -> None:
        if chunks and group["coupling"] is None:
            self._step_uncoupled(group, chunks)
        elif chunks:
            self._step_coupled(group, chunks)

    @torch.no_grad()
    def eval(self) -> None:
        """Put the iterates x into the parameters, for validation or for good."""
        for group in self.param_groups:
            for key in group["params"] if group["training"] else ():
                state = self.state.get(key, {})
                if "x" in state:
                    state["y"] = as_real(key).clone()
                    as_real(key).copy_(state["x"])
            group["training"] = False

    @torch.no_grad()
    def train(self) -> None:
        """Put the points y back, where the next gradients are to be taken."""
        for group in self.param_groups:
            for key in group["params"]:
                state = self.state.get(key, {})
                if "y" in state:
                    as_real(key).copy_(state.pop("y"))
            group["training"] = True

    def _step_uncoupled(self, group: dict[str, Any], chunks: list[Chunk]) -> None:
        """x <- x - s_p(c)/L, c the gradient or its average."""
        norm, unit, one_norm = _norm_of(group), group["scale"] == "unit", group["norm"] == "all"
        averages: Iterable[Tensors] = (self._average(chunk, group["betas"]) for chunk in chunks)
        measured, shrink = Measured([None] * len(chunks)), _shrinkage(group)
        if needs_dual_norm(norm.p, unit):
            averages = list(averages)
            measured = measure(norm, averages, one_norm, with_gain=False)
        factor = step_factor(rate_of(group), norm.p, _count(norm, chunks, one_norm), measured.dual_norm, unit)
        for chunk, c, directions in zip(chunks, averages, measured.kept, strict=True):
            points = chunk.points_to_compute_with()
            if shrink is not None:
                torch._foreach_mul_(points, shrink)
            subtract(points, directions or norm.directions(c), pick(factor, chunk.numbers))
            chunk.write(points)

    def _step_coupled(self, group: dict[str, Any], chunks: list[Chunk]) -> None:
        """One step of `hasd._math.minibatch`."""
        lr, shrink = rate_of(group), _shrinkage(group)
        if not torch.is_tensor(lr) and lr == 0.0:
            return
        moves = lr > 0.0
        lr = lr.clamp(min=LEAST_RATE) if torch.is_tensor(lr) else lr
        norm, unit, one_norm = _norm_of(group), group["scale"] == "unit", group["norm"] == "all"
        count, measured = _count(norm, chunks, one_norm), Measured([None] * len(chunks))
        if norm.p > 2.0 or unit:
            measured = measure(norm, [chunk.gradients for chunk in chunks], one_norm, with_gain=True)
        old = self._coupling(group, chunks, one_norm)
        L = torch.zeros_like(old.c) + smoothness_for(lr, norm.p, count)
        numbers = old, L, measured.gain, dual_exponent(norm.p) - 1.0, group["coupling"]
        step = first_or_later_step(*numbers, torch.where, torch.sqrt, lambda one, most: torch.clamp(one, max=most))
        if torch.is_tensor(moves):  # where it is false, every number is as if there had been no step
            kept = Coupling(*(torch.where(moves, new, was) for new, was in zip(step.coupling, old, strict=True)))
            step = step._replace(weight=step.weight * moves, mix=step.mix * moves, coupling=kept)
        self._keep_coupling(group, chunks, step.coupling, one_norm)
        factor = step_factor(lr, norm.p, count, measured.dual_norm, unit)
        pull = step.weight * gradient_factor(norm.p, count, measured.dual_norm, unit)
        for chunk, directions in zip(chunks, measured.kept, strict=True):
            factors = [pick(each, chunk.numbers) for each in (factor, step.mix, pull, step.share)]
            before = [point.clone() for point in chunk.points] if torch.is_tensor(moves) else []
            self._move(chunk, directions or norm.directions(chunk.gradients), factors, shrink)
            for point, old_one in zip(chunk.points, before, strict=False):
                point.copy_(torch.where(moves, point, old_one))

    def _move(self, chunk: Chunk, directions: Tensors, factors: list[Any], shrink: Any) -> None:
        """The new x, v and y; factors are those of the steepest step, of x, of v and of y."""
        factor, mix, pull, share = factors
        x, v = ([self.state[key][name] for key in chunk.keys] for name in ("x", "v"))
        y = chunk.points_to_compute_with()
        if shrink is not None:
            torch._foreach_mul_([*x, *v, *y], shrink)
        subtract(y, directions, factor)
        interpolate(x, y, mix)
        subtract(v, chunk.gradients, pull)
        torch._foreach_copy_(y, x)
        interpolate(y, v, share)
        chunk.write(y)

    def _coupling(self, group: dict[str, Any], chunks: list[Chunk], one_norm: bool) -> Coupling:
        """A and c as the last step left them, and 0 where there was none; new parameters get their x and v."""
        old = [self.state[key]["coupling"] for key in group["params"] if "x" in self.state.get(key, {})]
        double = any(g.dtype == torch.float64 for chunk in chunks for g in chunk.gradients)
        kind, device = torch.float64 if double else torch.float32, chunks[0].points[0].device
        nothing = torch.zeros(2, dtype=kind, device=device)
        for chunk in chunks:
            for key, point, g in zip(chunk.keys, chunk.points, chunk.gradients, strict=True):
                if "x" not in self.state[key]:
                    x, v = (point.to(g.dtype, copy=True) for _ in range(2))
                    self.state[key].update(x=x, v=v, coupling=nothing)
        if one_norm:
            return Coupling(*(old[0].to(nothing) if old else nothing).unbind())
        each = [self.state[key]["coupling"].to(nothing) for key in _in_order(chunks)]
        return Coupling(*torch.stack(each).unbind(1))

    def _keep_coupling(self, group: dict[str, Any], chunks: list[Chunk], new: Coupling, one_norm: bool) -> None:
        """Keep A and c with each parameter; where there is one norm, with those too that had no gradient."""
        numbers = torch.stack(new, -1)
        if one_norm:
            for key in group["params"]:
                if "x" in self.state.get(key, {}):
                    self.state[key]["coupling"] = numbers
        else:
            for key, pair in zip(_in_order(chunks), numbers.unbind(), strict=True):
                self.state[key]["coupling"] = pair.clone()


def _in_order(chunks: list[Chunk]) -> Tensors:
    """The parameters by their numbers."""
    return [key for chunk in chunks for key in chunk.keys]


def _norm_of(group: dict[str, Any]) -> Directions:
    return Spectral() if group["geometry"] == "spectral" else Entrywise(group["p"])


def _count(norm: Directions, chunks: list[Chunk], one_norm: bool) -> int:
    """n, the coordinates over which means are taken; 1 where each tensor has its norm."""
    return max(1, sum(norm.count(point) for chunk in chunks for point in chunk.points)) if one_norm else 1


def _shrinkage(group: dict[str, Any]) -> Any:
    """1 - lr * weight_decay; None without decay.  Where lr is a tensor, which is not looked at, it is 0 at least."""
    if group["weight_decay"] == 0.0:
        return None
    shrink = 1.0 - rate_of(group) * group["weight_decay"]
    return shrink.clamp(min=0.0) if torch.is_tensor(shrink) else shrink
