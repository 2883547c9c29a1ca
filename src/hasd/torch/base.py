"""What optimizers for training share: groups are checked, states loaded as they are, gradients put into lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .._checks import check_betas, check_flags, number
from .flat import as_real
from .tensor_lists import Tensors, split_alike, working_type


class Chunk(NamedTuple):
    """Parameters of a group, with a gradient, that are worked on together."""

    numbers: list[int]  # which they are, of those of the group that have a gradient
    keys: Tensors  # the parameters, by which their state is found
    points: Tensors  # their values, to be written into; complex ones as real and imaginary parts
    gradients: Tensors  # in the type to compute in; negative with maximize

    def points_to_compute_with(self) -> Tensors:
        """The values in the type to compute in: themselves, or copies where their type is coarser."""
        return [point.to(g.dtype) for point, g in zip(self.points, self.gradients, strict=True)]

    def write(self, points: Tensors) -> None:
        """Round what was computed to the values' own type, where it is another one."""
        if points[0] is not self.points[0]:
            torch._foreach_copy_(self.points, points)


class TrainingOptimizer(torch.optim.Optimizer):
    """An optimizer for dense gradients that are there when `step` is called.

    A subclass defines `_check_group(group)`, `_check_step(group)` and `_step_group(group, chunks)`.  Groups have
    ``lr``, ``p``, ``betas``, ``weight_decay``, ``maximize`` and ``foreach``.
    """

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, after a look at its settings."""
        super().add_param_group({"betas": self.defaults.get("betas"), **param_group})
        try:
            _check_shared(self.param_groups[-1])
            self._check_group(self.param_groups[-1])
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
            self._check_step(group)
        gathered = [self._gather(group) for group in self.param_groups]  # what is refused is refused before any moves
        for group, chunks in zip(self.param_groups, gathered, strict=True):
            self._step_group(group, chunks)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state, bit for bit and as a copy: PyTorch would round it to the type of the parameters."""
        for group in state_dict["param_groups"]:
            if missing := sorted(self.defaults.keys() - group.keys()):
                raise ValueError(f"this is not a state of {type(self).__name__}: its groups have no {missing[0]!r}")
        super().load_state_dict(state_dict)
        saved = [i for group in state_dict["param_groups"] for i in group["params"]]
        keys = [key for group in self.param_groups for key in group["params"]]
        for i, key in zip(saved, keys, strict=True):
            for name, value in state_dict["state"].get(i, {}).items():
                self.state[key][name] = value.to(key.device, copy=True) if torch.is_tensor(value) else value

    def _check_group(self, group: dict[str, Any]) -> None:
        """Refuse settings of its own that mean nothing."""
        raise NotImplementedError

    def _check_step(self, group: dict[str, Any]) -> None:
        """Refuse a step of a group, before any group is stepped."""
        lr, decay = group["lr"], group["weight_decay"]
        if not torch.is_tensor(lr) and lr * decay > 1.0:
            raise ValueError(f"lr * weight_decay must not exceed 1, got {lr!r} * {decay!r}")

    def _step_group(self, group: dict[str, Any], chunks: list[Chunk]) -> None:
        """Step the parameters of a group that have a gradient, which may be none."""
        raise NotImplementedError

    def _average(self, chunk: Chunk, betas: tuple[float, float] | None) -> Tensors:
        """b1 m + (1 - b1) g, after which m is b2 m + (1 - b2) g; the gradients without betas."""
        if betas is None:
            return chunk.gradients
        for key, g in zip(chunk.keys, chunk.gradients, strict=True):
            if "m" not in self.state[key]:
                self.state[key]["m"] = torch.zeros_like(g)
        m = [self.state[key]["m"] for key in chunk.keys]
        c = list(torch._foreach_mul(m, betas[0]))
        torch._foreach_add_(c, list(torch._foreach_mul(chunk.gradients, 1.0 - betas[0])))
        torch._foreach_mul_(m, betas[1])
        torch._foreach_add_(m, chunk.gradients, alpha=1.0 - betas[1])
        return c

    def _gather(self, group: dict[str, Any]) -> list[Chunk]:
        """What there is to be stepped; the numbers of all chunks are 0, 1, 2, ... in this order."""
        keys = [key for key in group["params"] if key.grad is not None]
        if any(key.grad.layout is not torch.strided for key in keys):
            name = type(self).__name__
            raise RuntimeError(f"{name} does not take sparse gradients: use sparse=False for embeddings")
        chunks: list[Chunk] = []
        for places in split_alike(keys, group["foreach"]):
            alike = [keys[i] for i in places]
            gradients = [as_real(key.grad) for key in alike]
            gradients = [g.to(working_type(g)) for g in gradients]
            if group["maximize"]:
                gradients = list(torch._foreach_neg(gradients))
            begin = sum(len(chunk.keys) for chunk in chunks)
            points = [as_real(key.detach()) for key in alike]
            chunks.append(Chunk(list(range(begin, begin + len(alike))), alike, points, gradients))
        return chunks


def rate_of(group: dict[str, Any]) -> Any:
    """The learning rate: a number, or a tensor without axes."""
    lr = group["lr"]
    return lr.reshape(()) if torch.is_tensor(lr) else lr


def _check_shared(group: dict[str, Any]) -> None:
    """Refuse values of the settings that all groups have."""
    lr, betas = group["lr"], group["betas"]
    if torch.is_tensor(lr) and lr.numel() != 1:
        raise ValueError(f"lr must be one number, got a tensor of shape {tuple(lr.shape)}")
    rate = number("lr", float(lr) if torch.is_tensor(lr) else lr, least=0.0)
    if not torch.is_tensor(lr):
        group["lr"] = rate
    group["p"] = number("p", group["p"], least=2.0, finite=False)
    number("weight_decay", group["weight_decay"], least=0.0)
    check_flags(maximize=group["maximize"], **({} if group["foreach"] is None else {"foreach": group["foreach"]}))
    if betas is not None:
        check_betas(betas)
