"""Directions of a subspace with their images: S orthonormal, W = A S, each image from a product of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..geometry import Array, norm2
from ..objectives.images import Basis, Image, Images, Point, Small, Store

DEPENDENT = 1e-8
"""A direction with less than this part outside the span is in it."""
FAINT = 0.05
"""The same for a direction whose image is a difference of images: what is divided by must not be small."""


@dataclass(frozen=True)
class Span:
    """A subspace of R^d with its images."""

    images: Images
    S: Basis  # d x k, orthonormal columns
    W: Any  # their images
    steps: tuple[Small, ...] = ()  # the last steps taken, in these coordinates
    gram: Small | None = None  # W^T phi'' W, kept where phi'' is constant

    @classmethod
    def empty(cls, images: Images, d: int, room: int) -> Span:
        """No direction yet, room for so many."""
        gram = np.zeros((0, 0)) if images.constant else None
        return cls(images, Basis(Store(room, d), 0), images.basis(room), gram=gram)

    @property
    def k(self) -> int:
        """How many directions."""
        return self.S.k

    def split(self, vector: Array) -> tuple[Small, Array, float]:
        """Coordinates of the vector in the span, the unit vector of what is left, and how much that is."""
        S = self.S.columns
        h = S.T @ vector
        rest = vector - S @ h
        again = S.T @ rest  # twice is enough (Kahan)
        rest = rest - S @ again
        left = norm2(rest)
        return h + again, rest / left if left > 0.0 else rest, left

    def with_direction(self, vector: Array) -> tuple[Span, Small]:
        """The span with the vector in it, and its coordinates; one product, none where it was there already."""
        h, q, left = self.split(vector)
        if left <= DEPENDENT * norm2(vector):
            return self, h
        return self._with(q, self.images.multiply(q)), np.append(h, left)

    def _with(self, q: Array, image: Image) -> Span:
        W, gram = self.images.append(self.W, image), self.gram
        if gram is not None:
            row = self.images.against(W, image)
            gram = np.block([[gram, row[:-1, None]], [row]])
        return replace(self, S=self.S.append(q), W=W, gram=gram)

    def bends(self, point: Point) -> Small:
        """The curvature of phi in these coordinates."""
        return self.images.bends(self.W, point) if self.gram is None else self.gram.copy()

    def with_known(self, vector: Array, image: Image) -> Span:
        """The span with a vector in it whose image is known: no product."""
        h, q, left = self.split(vector)
        if left <= FAINT * norm2(vector):
            return self
        inside = self.images.expand(self.W, h)
        outside = self.images.combine((1.0 / left, image), (-1.0 / left, inside))
        return self._with(q, outside)

    def without_last(self) -> Span:
        """Without the newest direction."""
        gram = None if self.gram is None else self.gram[:-1, :-1]
        return replace(self, S=self.S.drop_last(), W=self.images.drop_last(self.W), gram=gram)

    def remember(self, step: Small, most: int) -> Span:
        """Note a step; where fewer than three of `most` places are left, keep the last steps, half as many.

        Three: an iteration brings g, s_p(g) and v - x.  A span that may be the whole space is never cut down.
        """
        steps = (*self.steps, step)  # older ones are shorter: they know nothing of later directions
        if self.k + 3 <= most or most >= len(self.S.store.array):
            return replace(self, steps=steps[-most:])
        newest = np.zeros((self.k, min(len(steps), max(1, most // 2))))
        for column, old in zip(newest.T, reversed(steps), strict=False):
            column[: old.size] = old / norm2(old)
        Q, _ = np.linalg.qr(newest)
        rotated = tuple(Q[: old.size].T @ old for old in steps[-Q.shape[1] :])
        gram = None if self.gram is None else Q.T @ self.gram @ Q
        return replace(self, S=self.S.rotate(Q), W=self.images.rotate(self.W, Q), steps=rotated, gram=gram)
