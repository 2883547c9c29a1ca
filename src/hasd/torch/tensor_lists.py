"""Lists of tensors: norms and steepest directions, by PyTorch's functions for lists, without waiting for a device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from .._math.minibatch import dual_exponent

Tensors = list[torch.Tensor]


class Directions(Protocol):
    """The norm of a group, by its steepest directions d(g): their dual norm is <g, d(g)>^{1/p*}."""

    @property
    def p(self) -> float:
        """The exponent that joins the norms of tensors to one."""

    def count(self, tensor: torch.Tensor) -> int:
        """How many coordinates the tensor has."""

    def directions(self, gradients: Tensors) -> Tensors:
        """d(g) for each; not to be written into."""


@dataclass(frozen=True)
class Entrywise:
    """The l_p norm of the entries: d(g) = sign(g) |g|^{1/(p-1)}.

    >>> [d.tolist() for d in Entrywise(3.0).directions([torch.tensor([4.0, -9.0])])]
    [[2.0, -3.0]]
    """

    p: float

    def count(self, tensor: torch.Tensor) -> int:
        """All entries."""
        return tensor.numel()

    def directions(self, gradients: Tensors) -> Tensors:
        """The gradients themselves at p = 2, their signs at p = inf."""
        if self.p == 2.0:
            return gradients
        signs = list(torch._foreach_sign(gradients))
        if self.p < math.inf:
            sizes = list(torch._foreach_abs(gradients))
            torch._foreach_pow_(sizes, 1.0 / (self.p - 1.0))
            torch._foreach_mul_(signs, sizes)
        return signs


def inner_products(ones: Tensors, others: Tensors) -> Tensors:
    """<a, b> for each two of them."""
    return [torch.dot(a.reshape(-1), b.reshape(-1)) for a, b in zip(ones, others, strict=True)]


def split_alike(tensors: Tensors, foreach: bool) -> Iterator[list[int]]:
    """Which tensors are worked on together: those of one device and type, or with foreach = False each alone."""
    alike: dict[object, list[int]] = {}
    for i, tensor in enumerate(tensors):
        alike.setdefault((tensor.device, tensor.dtype) if foreach else i, []).append(i)
    yield from alike.values()


def working_type(tensor: torch.Tensor) -> torch.dtype:
    """The type to compute in: float32 for the types that are coarser."""
    return torch.promote_types(tensor.dtype, torch.float32)


def steepest_directions(norm: Directions, gradients: Tensors, chunks: list[list[int]]) -> Tensors:
    """The steepest directions, chunk by chunk."""
    directions: list[Any] = [None] * len(gradients)
    for chunk in chunks:
        for i, direction in zip(chunk, norm.directions(pick(gradients, chunk)), strict=True):
            directions[i] = direction
    return directions


def dual_norms(p: float, gradients: Tensors, directions: Tensors, one_norm: bool) -> torch.Tensor:
    """The dual norm <g, d(g)>^{1/p*} of all together, or of each; tiny in place of 0."""
    products = stack(inner_products(gradients, directions))
    total = products.sum() if one_norm else products
    norms = total if p == math.inf else total ** (1.0 / dual_exponent(p))
    return norms.clamp(min=torch.finfo(norms.dtype).tiny)


def measure(p: float, unit: bool, gradients: Tensors, directions: Tensors, one_norm: bool) -> tuple[Any, Any]:
    """The dual norm, where it is needed, and the gain; NaN where the gradient is 0."""
    if p == 2.0:
        return (dual_norms(p, gradients, directions, one_norm) if unit else 1.0), 1.0
    dual, euclidean = dual_norms(p, gradients, directions, one_norm), stack(list(torch._foreach_norm(gradients)))
    if one_norm:
        euclidean = torch.linalg.vector_norm(euclidean)
    return dual, torch.where(euclidean > 0.0, dual / euclidean, math.nan)


def stack(numbers: Tensors) -> torch.Tensor:
    """Numbers of any devices and types in one vector, in the widest of the types."""
    kind = torch.float64 if any(n.dtype == torch.float64 for n in numbers) else torch.float32
    return torch.stack([n.to(numbers[0].device, kind) for n in numbers])


def pick(tensors: Sequence[torch.Tensor], chunk: list[int]) -> Tensors:
    """Those of the chunk."""
    return [tensors[i] for i in chunk]


def pick_factor(factor: Any, chunk: list[int]) -> Any:
    """A factor for all tensors as it is; of factors for each, those of the chunk."""
    return pick(factor.unbind(), chunk) if torch.is_tensor(factor) and factor.dim() else factor


def subtract(points: Tensors, directions: Tensors, factor: Any) -> None:
    """points <- points - factor * directions."""
    if isinstance(factor, float | int):
        torch._foreach_add_(points, directions, alpha=-factor)
    else:
        torch._foreach_sub_(points, list(torch._foreach_mul(directions, factor)))


def interpolate(points: Tensors, ends: Tensors, share: Any) -> None:
    """points <- points + share (ends - points)."""
    shares = share if isinstance(share, list) else [share] * len(points)
    torch._foreach_lerp_(points, ends, [s.to(point) for s, point in zip(shares, points, strict=True)])
