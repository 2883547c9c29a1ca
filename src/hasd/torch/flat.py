"""Many parameters seen as one vector: there is one norm across all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import torch

from .._run.sources import as_scalar


class Flat:
    """Tensors of any shapes, types and devices as one vector in the widest of their types, on the first one's device.

    Complex ones count as their real and imaginary parts.  float16 and bfloat16 are worked on in float32.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]):
        """The tensors in their order; nothing is copied yet."""
        if not parameters:
            raise ValueError("there are no parameters")
        reals = [as_real(p.detach()) for p in parameters]
        self.parameters, self.shapes, self.device = parameters, [r.shape for r in reals], parameters[0].device
        self.dtype = reduce(torch.promote_types, (r.dtype for r in reals), torch.float32)

    def gather(self) -> torch.Tensor:
        """The parameters' values in a vector of our own."""
        return self._join([p.detach() for p in self.parameters])

    def gradient(self) -> torch.Tensor:
        """The parameters' gradients; 0 where there is none."""
        return self._join([torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in self.parameters])

    def scatter(self, x: torch.Tensor) -> None:
        """Write the vector into the parameters."""
        for p, piece in self._pieces(x):
            p.copy_(piece)

    def scale(self, x: torch.Tensor, factors: Sequence[float]) -> torch.Tensor:
        """The vector with the part of each parameter multiplied by its factor."""
        parts = torch.split(x, [shape.numel() for shape in self.shapes])
        return torch.cat([factor * part for factor, part in zip(factors, parts, strict=True)])

    def holds(self, x: torch.Tensor) -> bool:
        """Whether the parameters still are what `scatter(x)` wrote."""
        alike = x.dtype == self.dtype and x.shape[0] == sum(shape.numel() for shape in self.shapes)
        return alike and all(torch.equal(p, piece.to(p)) for p, piece in self._pieces(x))

    def _join(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        dense = (t.to_dense() if t.layout is not torch.strided else t for t in tensors)
        return torch.cat([as_real(t).reshape(-1).to(self.device, self.dtype) for t in dense])

    def _pieces(self, x: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Each parameter with its part of x, in its shape."""
        parts = torch.split(x, [shape.numel() for shape in self.shapes])
        for p, part, shape in zip(self.parameters, parts, self.shapes, strict=True):
            piece = part.reshape(shape)
            yield p, torch.view_as_complex(piece) if p.is_complex() else piece


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """A complex tensor as its real and imaginary parts, in the same memory; any other as it is."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class ClosureFunction:
    """f as the closure computes it, with the parameters at x, and its gradient; (decay/2) ||x||^2 is added."""

    def __init__(self, flat: Flat, closure: Callable[[], torch.Tensor], maximize: bool, decays: Sequence[float]):
        """Nothing is evaluated yet; there is a decay for each parameter."""
        self.decays = decays if any(decays) else None
        self.flat, self.closure, self.sign = flat, closure, -1.0 if maximize else 1.0
        self.first: torch.Tensor | None = None  # what the closure returned first

    def __call__(self, x: torch.Tensor) -> tuple[float, torch.Tensor]:
        """One call of the closure; the parameters are left at x."""
        self.flat.scatter(x)
        for p in self.flat.parameters:
            p.grad = None
        with torch.enable_grad():
            loss = self.closure()
        if loss is None:
            raise TypeError("the closure must return the loss")
        if all(p.grad is None for p in self.flat.parameters):
            raise TypeError("the closure must call backward on the loss: no parameter has a gradient")
        if self.first is None:
            self.first = loss
        value, gradient = self.sign * as_scalar(loss, "the closure"), self.sign * self.flat.gradient()
        if self.decays is not None:
            pull = self.flat.scale(x, self.decays)
            return value + 0.5 * float(torch.dot(pull, x)), gradient + pull
        return value, gradient
