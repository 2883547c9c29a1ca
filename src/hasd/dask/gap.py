"""A bound on f(x) - f* from what the blocks tell of u = phi'(Ax - b): ``hasd.objectives._dual`` has the formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..objectives._operators import Vector

SAFE = 8.0
"""Rounding is charged at so many times the machine's precision of the sizes that were added."""


def gap(
    objective: Any,
    x: Vector,
    radius: float | None,
    values: Sequence[float],
    gradients: Sequence[Vector],
    sizes: Sequence[tuple[float, float, float]],
) -> float:
    """The bound from u and v = A^T u, as `DualPoint.gap` has it; at u = phi'(z) Fenchel-Young holds with equality."""
    mixture, ridge, eps = objective.mixture, objective.ridge, objective.precision
    value, weights = mixture.weigh(values)
    if not math.isfinite(value):
        return math.inf if value > 0.0 else math.nan
    v, size = mixture.total(weights, gradients), float(np.linalg.norm(x))
    u_norm = math.sqrt(mixture.total(weights**2, [squared for squared, _, _ in sizes]))
    image_norm = math.sqrt(sum(squared for _, squared, _ in sizes))
    inner = float(mixture.total(weights, [inner for _, _, inner in sizes]))
    terms = 2.0 * abs(value) + 2.0 * inner + ridge * size**2
    v_norm = float(np.linalg.norm(v))
    norm = max(v_norm / u_norm if u_norm > 0.0 else 0.0, image_norm / size if size > 0.0 else 0.0)  # ||A||, from below
    blur = SAFE * eps * norm * u_norm
    return SAFE * eps * terms + _penalty(v + ridge * x, v, x, ridge, radius, blur)


def _penalty(slope: Vector, v: Vector, x: Vector, ridge: float, radius: float | None, blur: float) -> float:
    """max over y, ||y|| <= radius, of <v, x - y> + ridge/2 (||x||^2 - ||y||^2), for a v that may be off by blur."""
    far, size = float(np.linalg.norm(v)), float(np.linalg.norm(x))
    if ridge > 0.0 and (radius is None or far <= ridge * radius):
        return (float(np.linalg.norm(slope)) + blur) ** 2 / (2.0 * ridge)
    if radius is None:
        return math.inf
    inner = float(v @ x) + radius * far + blur * (size + radius)
    return inner + 0.5 * ridge * (size - radius) * (size + radius)
