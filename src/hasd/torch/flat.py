"""Many parameters seen as one vector: there is one norm across all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import torch

from .._math.arrays import Array
from .._math.doubt import Doubt, doubt_of_function
from .._math.evaluation import Evaluation
from .._run.sources import as_scalar


class Flat:
    """Tensors of any shapes, types and devices as one vector in the widest of their types, on the first one's device.

    Complex ones count as their real and imaginary parts.  float16 and bfloat16 are worked on in float32.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]):
        """The tensors in their order; nothing is copied yet."""
        if not parameters:
            raise ValueError("there are no parameters")
        self.parameters = parameters
        widest = reduce(torch.promote_types, (_as_real(p.detach()).dtype for p in parameters), torch.float32)
        self.dtype, self.device = widest, parameters[0].device

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

    def holds(self, x: torch.Tensor) -> bool:
        """Whether the parameters still are what `scatter(x)` wrote."""
        if x.shape[0] != sum(_as_real(p.detach()).numel() for p in self.parameters):
            return False
        return all(torch.equal(p, piece.to(p)) for p, piece in self._pieces(x))

    def _join(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        dense = (t.to_dense() if t.layout is not torch.strided else t for t in tensors)
        return torch.cat([_as_real(t).reshape(-1).to(self.device, self.dtype) for t in dense])

    def _pieces(self, x: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each parameter with its part of x, in its shape."""
        pairs, start = [], 0
        for p in self.parameters:
            shape = _as_real(p.detach()).shape
            size = shape.numel()
            piece = x[start : start + size].reshape(shape)
            pairs.append((p, torch.view_as_complex(piece) if p.is_complex() else piece))
            start += size
        return pairs


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class ClosureSource:
    """f as the closure computes it, with the parameters at x: an `Oracle`'s source."""

    precision = 0.0  # taken to be as precise as the parameters
    by_curvature = True

    def __init__(self, flat: Flat, closure: Callable[[], torch.Tensor], maximize: bool):
        """Nothing is evaluated yet."""
        self.flat, self.closure, self.sign = flat, closure, -1.0 if maximize else 1.0
        self.evaluations = 0
        self.first: torch.Tensor | None = None  # what the closure returned first

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """The doubt of any user's function."""
        return doubt_of_function(e.f, e.norm2, e.size, e.x.shape[0], e.eps)

    def sharpen(self, e: Evaluation) -> None:
        """None: a closure cannot be evaluated more accurately."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """Every call gives value and gradient."""
        return self.evaluations, self.evaluations, 0

    def price(self, x: Array) -> int:
        """One call."""
        return 1

    def charge(self) -> None:
        """One call."""
        self.evaluations += 1

    def resume(self, counts: tuple[int, int, int]) -> None:
        """Go on counting from there."""
        self.evaluations = counts[0]

    def value_and_grad(self, x: Array, deadline: float = math.inf) -> tuple[float, Array]:
        """f and its gradient at x, in one call; the parameters are left there."""
        self.charge()
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
        return self.sign * as_scalar(loss, "the closure"), self.sign * self.flat.gradient()

    def value(self, x: Array) -> float:
        """f at x; the closure computes the gradient, too."""
        return self.value_and_grad(x)[0]
