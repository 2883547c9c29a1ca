"""Lists of tensors: norms and steepest directions, by PyTorch's functions for lists, without waiting for a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Protocol

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

    @property
    def is_costly(self) -> bool:
        """Whether directions are better kept than computed twice in a step."""

    def directions(self, gradients: Tensors) -> Tensors:
        """d(g) for each; not to be written into."""


@dataclass(frozen=True)
class Entrywise:
    """The l_p norm of the entries: d(g) = sign(g) |g|^{1/(p-1)}.

    >>> [d.tolist() for d in Entrywise(3.0).directions([torch.tensor([4.0, -9.0])])]
    [[2.0, -3.0]]
    """

    p: float

    @property
    def is_costly(self) -> bool:
        """Powers cost more than memory; signs, and the gradients themselves, do not."""
        return 2.0 < self.p < math.inf

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


class Measured(NamedTuple):
    """Gradients in their norm: all of them together, or each by itself."""

    kept: list[Tensors | None]  # the directions of each list, where that is cheaper than to make them again
    dual_norm: Any = 1.0  # a tiny number in place of 0
    gain: Any = 1.0  # dual over Euclidean norm; NaN where the gradient is 0


def measure(norm: Directions, lists: Sequence[Tensors], one_norm: bool, with_gain: bool) -> Measured:
    """The dual norms <g, d(g)>^{1/p*}, and with_gain the gains, which at p = 2 are 1."""
    if norm.p == 2.0:
        return Measured([None] * len(lists), _away_from_zero(_euclidean(lists, one_norm)))
    kept: list[Tensors | None] = []
    norms: Tensors = []
    for gradients in lists:
        directions = norm.directions(gradients)
        norms += _dual_norms(norm.p, gradients, directions)
        # those of one tensor are made again while it is in the cache; memory for those of many costs more than signs
        kept.append(directions if norm.is_costly or len(gradients) > 1 else None)
    dual = join_numbers(norms)
    if one_norm:
        dual = dual.sum() if norm.p == math.inf else _join_norms(dual, dual_exponent(norm.p))
    if not with_gain:
        return Measured(kept, _away_from_zero(dual))
    euclidean = _euclidean(lists, one_norm)
    gain = torch.where((euclidean > 0.0) & (dual > 0.0), dual / euclidean, math.nan)
    return Measured(kept, _away_from_zero(dual), gain)


def _dual_norms(p: float, gradients: Tensors, directions: Tensors) -> Tensors:
    """<g, d(g)>^{1/p*} for each tensor; where p < inf, <g, d> could overflow or vanish, and g is divided by max|g|."""
    pairs = [(g.reshape(-1), d.reshape(-1)) for g, d in zip(gradients, directions, strict=True)]
    if p == math.inf:
        return [torch.dot(g, d) for g, d in pairs]
    power = 1.0 / dual_exponent(p)
    tops = [_away_from_zero(_largest_size(g)) for g, _ in pairs]
    return [(torch.dot(g / top, d) ** power) * top**power for (g, d), top in zip(pairs, tops, strict=True)]


def _largest_size(g: torch.Tensor) -> torch.Tensor:
    """max|g|, 0 without entries: several times faster than the maximum norm of `torch.linalg`."""
    if g.numel() == 0:
        return g.new_zeros(())
    low, high = torch.aminmax(g)
    return torch.maximum(high, -low)


def _join_norms(norms: torch.Tensor, q: float) -> torch.Tensor:
    """The l_q norm of all from those of the parts, in float64 where the device has it."""
    wide = norms if norms.device.type == "mps" else norms.to(torch.float64)
    return torch.linalg.vector_norm(wide, q).to(norms.dtype)


def _away_from_zero(dual: torch.Tensor) -> torch.Tensor:
    """The same number, or where it is too small one whose inverse is far from overflow."""
    return dual.clamp(min=torch.finfo(dual.dtype).tiny ** 0.8)


def _euclidean(lists: Sequence[Tensors], one_norm: bool) -> torch.Tensor:
    """The Euclidean norms.  Squares of float32 are added up in float64, where the device has it: none is too large."""
    gradients = [g for each in lists for g in each]
    wide = None if gradients[0].device.type == "mps" else torch.float64
    lengths = join_numbers([length for each in lists for length in torch._foreach_norm(each, 2, dtype=wide)])
    return (torch.linalg.vector_norm(lengths) if one_norm else lengths).to(_widest(gradients))


def join_numbers(numbers: Tensors) -> torch.Tensor:
    """Numbers of any devices and types in one vector, in the widest of the types."""
    return torch.stack([n.to(numbers[0].device, _widest(numbers)) for n in numbers])


def _widest(tensors: Tensors) -> torch.dtype:
    """The type to compute numbers of all of them in."""
    return torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32


def split_alike(tensors: Tensors, foreach: bool | None) -> list[list[int]]:
    """Which tensors are worked on together: neighbours of one device and type, or each alone.

    On a CPU one after the other is faster, because what is computed for one stays in the cache.  The order is kept, so
    that sums over all of them have the same bits either way.
    """
    together = any(tensor.device.type != "cpu" for tensor in tensors) if foreach is None else foreach
    if not together:
        return [[i] for i in range(len(tensors))]
    runs = groupby(range(len(tensors)), key=lambda i: (tensors[i].device, tensors[i].dtype))
    return [list(run) for _, run in runs]


def working_type(tensor: torch.Tensor) -> torch.dtype:
    """The type to compute in: float32 for the types that are coarser."""
    return torch.promote_types(tensor.dtype, torch.float32)


def pick(values: Any, chunk: Sequence[int]) -> Any:
    """Those numbers of the chunk, where there is one for each tensor; a number for all as it is."""
    if torch.is_tensor(values) and values.dim() > 0:
        each = values.unbind()
        return [each[i] for i in chunk]
    return values


def subtract(points: Tensors, directions: Tensors, factor: Any) -> None:
    """points <- points - factor directions, for a number, a tensor with one, or a list of those."""
    if isinstance(factor, float | int):
        torch._foreach_add_(points, directions, alpha=-factor)
    else:
        torch._foreach_addcmul_(points, directions, _one_each(factor, directions), value=-1.0)


def interpolate(points: Tensors, ends: Tensors, share: Any) -> None:
    """points <- points + share (ends - points)."""
    torch._foreach_lerp_(points, ends, _one_each(share, points))


def _one_each(factor: Any, tensors: Iterable[torch.Tensor]) -> Tensors:
    """A factor for each tensor, in its type and on its device."""
    tensors = list(tensors)
    factors = factor if isinstance(factor, list) else [factor] * len(tensors)
    return [one.to(tensor) for one, tensor in zip(factors, tensors, strict=True)]
