"""Directions of a subspace with their images: S orthonormal, W = A S, each image from a product of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._math.geometry import Array, norm2
from ..objectives._images import Basis, ColumnStore, Images, Small

DEPENDENT = 1e-8
"""A direction of which less than this part lies outside the span counts as inside."""
ENOUGH = 0.7
"""Where more than this part of a direction is left after one orthogonalisation, a second is not needed (Kahan)."""


@dataclass(frozen=True)
class Span:
    """A subspace of R^d with its images: data only, the space of images is handed in where it is needed."""

    S: Basis  # d x k, orthonormal columns
    W: Any  # their images
    steps: tuple[Small, ...] = ()  # the last steps taken, in these coordinates

    @classmethod
    def empty(cls, images: Images, x: Array, room: int) -> Span:
        """A span without directions in x's space, with room for so many."""
        return cls(Basis(ColumnStore(room, x.shape[0], x), 0), images.basis(room))

    @property
    def k(self) -> int:
        """How many directions."""
        return self.S.k

    @property
    def grows(self) -> bool:
        """Whether it has room for the whole space."""
        return self.S.store.room >= self.S.store.array.shape[0]

    def with_direction(self, images: Images, vector: Array) -> tuple[Span, Small]:
        """The span extended by the vector, and its coordinates; one product, none where the span had it already."""
        S, size = self.S, norm2(vector)
        h = S.inner_products(vector)
        rest = vector - S.expand(h)
        left = norm2(rest)
        if left < ENOUGH * size:  # two orthogonalisations are always enough
            again = S.inner_products(rest)
            rest -= S.expand(again)
            h, left = h + again, norm2(rest)
        if left <= DEPENDENT * size:
            return self, h
        q = rest / left
        return Span(S.append(q), images.append(self.W, images.multiply(q)), self.steps), np.append(h, left)

    def remember(self, images: Images, step: Small, apart: Small, most: int) -> tuple[Span, Small]:
        """Add a step; where fewer than two of `most` places are left, keep only v - x and half as many last steps.

        `apart` holds the coordinates of v - x, which the rate needs in the span; its new coordinates are returned.
        Two places, because an iteration adds g and s_p(g).  A span that may be the whole space is never cut down.
        """
        if self.grows:
            return self, apart
        steps = (*self.steps, step)  # older ones have fewer coordinates: later directions were added after them
        if self.k + 2 <= most:
            return Span(self.S, self.W, steps[-most:]), apart
        wanted = ([apart] if apart.any() else []) + list(reversed(steps))
        newest = np.zeros((self.k, min(len(wanted), max(2, most // 2))))
        for column, vector in zip(newest.T, wanted, strict=False):
            column[: vector.size] = vector / norm2(vector)
        Q, _ = np.linalg.qr(newest)
        rotated = tuple(Q[: old.size].T @ old for old in steps[-Q.shape[1] :])
        return Span(self.S.rotate(Q), images.rotate(self.W, Q), rotated), Q.T @ apart
