"""What must hold of every result on a convex function that is bounded below, every promise of the caller kept.

Each check returns what is wrong in a sentence, or nothing.  A float is compared with a Decimal exactly.  Reproducers
contain the source of `Truth` and of a check, so these use nothing but the names imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Truth:
    """What is known about the function of a run."""

    gap: Decimal  # f(x) - f* at the returned x
    evaluate: Callable[[Any], tuple[float, Any]]  # f(x) and its gradient in floats, as the run saw them
    minimum: Decimal  # f*, or a number above it by less than any float shows
    radius: float  # at least ||x0 - x*||_2
    needs_radius: bool  # whether the run knows neither a radius nor a strong convexity
    gap_tol: float  # what status 14 promises


def gap_below_the_true_one(res: Any, truth: Truth) -> str:
    """res.certificate.gap(radius) bounds f(x) - f*."""
    claimed = res.certificate.gap(truth.radius)
    return (
        ""
        if claimed >= truth.gap
        else f"res.certificate.gap({truth.radius!r}) is {claimed:.6g}, the true gap is {truth.gap:.6g}"
    )


def gap_without_radius_below_the_true_one(res: Any, truth: Truth) -> str:
    """So does res.gap, where the run knows a radius or a strong convexity."""
    if truth.needs_radius:
        return ""
    claimed = res.gap
    return "" if claimed >= truth.gap else f"res.gap is {claimed:.6g}, the true gap is {truth.gap:.6g}"


def success_with_a_larger_gap(res: Any, truth: Truth) -> str:
    """Status 14 says that the gap is within gap_tol."""
    if res.status != 14 or truth.gap <= truth.gap_tol:
        return ""
    return f"status 14 for gap_tol {truth.gap_tol:.6g}, the true gap is {truth.gap:.6g}"


def lower_above_the_minimum(res: Any, truth: Truth) -> str:
    """res.certificate.lower(radius) is a lower bound on f*."""
    lower = res.certificate.lower(truth.radius)
    if lower <= truth.minimum:
        return ""
    return f"res.certificate.lower({truth.radius!r}) is above the minimum by {Decimal(lower) - truth.minimum:.6g}"


def traced_lower_above_the_minimum(res: Any, truth: Truth) -> str:
    """So is every row of the trace."""
    rows = [float(lower) for lower in res.trace["lower"] if not math.isnan(lower)]
    lower = max(rows, default=-math.inf)
    if lower <= truth.minimum:
        return ""
    return f"trace['lower'] is above the minimum by {Decimal(lower) - truth.minimum:.6g}"


def convex_function_accused(res: Any, truth: Truth) -> str:
    """A convex function is not called anything else, nor unbounded, nor is its certificate withdrawn."""
    named = any(words in res.message for words in ("not convex", "is above a value", "nothing is certified"))
    withdrawn = math.isfinite(res.fun) and not math.isfinite(res.certificate.gap(truth.radius))
    if not (named or withdrawn or res.status in (13, 15)):
        return ""
    claimed = res.certificate.gap(truth.radius)
    return f"status {res.status}, res.certificate.gap({truth.radius!r}) is {claimed:.6g}: {res.message}"


def negative_gap(res: Any, truth: Truth) -> str:
    """No bound on f(x) - f* is negative."""
    claimed = [res.certificate.gap(truth.radius)] + ([] if truth.needs_radius else [res.gap])
    return "" if min(claimed) >= 0.0 else f"the certified gap is {min(claimed):.6g}"


def fields_of_different_points(res: Any, truth: Truth) -> str:
    """fun and jac are the function at x."""
    fun, jac = truth.evaluate(res.x.copy())
    same = np.array_equal(res.fun, fun, equal_nan=True)
    least = float(np.finfo(res.x.dtype).smallest_subnormal)  # what is not 0 stays so, however small it is
    if same and np.allclose(res.jac, jac.astype(res.x.dtype), rtol=0.0, atol=least, equal_nan=True):
        return ""
    return f"res.fun is {res.fun!r} and res.jac {res.jac!r}, but at res.x they are {fun!r} and {jac!r}"


Check = Callable[[Any, Truth], str]
CHECKS: tuple[Check, ...] = (
    gap_below_the_true_one,
    gap_without_radius_below_the_true_one,
    success_with_a_larger_gap,
    lower_above_the_minimum,
    traced_lower_above_the_minimum,
    convex_function_accused,
    negative_gap,
    fields_of_different_points,
)
