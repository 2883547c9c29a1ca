"""The promises of a loss, each as one function that raises a ValueError where it is broken.

The inequalities for values, slopes and conjugates do not depend on how small a step is: for a convex loss with the
right slope each of them holds at every distance, but for rounding.  So none accuses a right loss for having been looked
at from too far away, and a wrong one is found at the distance that shows its fault best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._checks import show_value
from .._math.doubt import EPS, roundings
from .._math.geometry import Lp, norm2
from ._loss import has_curvature
from ._loss_probe import SAFE, Answer, Probe
from ._operators import Vector

LOOSE = 4.0
"""How much more than at the ends of a step the second derivative may change inside of it."""
SHARP = 1e-2
"""Rounding may be this part of what is compared."""
COLUMNS = 3
"""Of the random matrices for which the smoothness constant is tried."""
FAR = (1e3, 1e8, 1e150)
"""Sizes of extreme points."""
ENDLESS = 1e8
"""How far along a ray a loss that is bounded below has stopped falling."""
MOVES = (1e-9, 1e-6, 1e-3)
"""Errors of z, in units of the width of the loss, for which the declared rounding errors are tried."""


def check_arrays(probe: Probe) -> None:
    """Types, shapes, and that no array is written to or shared that should not be."""
    loss, z = probe.loss, probe.points[-1]
    before = z.copy()
    value, slope = loss.value_and_slope(z)
    answers = {"value_and_slope": (value, slope), "value": (loss.value(z), slope)}
    if has_curvature(loss):
        answers["expand"] = loss.expand(z)[:2]
    for name, (number, vector) in answers.items():
        if not isinstance(number, float):
            probe.refuse(f".{name} must give the value as a float", before, f"it is a {type(number).__name__}")
        if getattr(vector, "dtype", None) != np.float64 or vector.shape != z.shape:
            got = f"{getattr(vector, 'dtype', type(vector).__name__)} of shape {getattr(vector, 'shape', ())}"
            probe.refuse(f".{name} must give the slope as float64, an entry a row", before, f"it is {got}")
        if np.shares_memory(vector, z):
            probe.refuse(f".{name} must give the slope in an array of its own", before, "it shares z's memory")
        if not (z == before).all():
            probe.refuse(f".{name} must not write into z", before, f"z has become {z}")
        if abs(number - value) > probe.answer(before).value_off:
            probe.refuse(f".{name} must agree with value_and_slope", before, f"they give {number!r} and {value!r}")
        if norm2(vector - slope) > probe.answer(before).slope_off:
            probe.refuse(f".{name} must agree with value_and_slope", before, f"the slopes are {vector} and {slope}")
    kept = slope.copy()
    again = loss.value_and_slope(0.5 * z)[0], *loss.value_and_slope(z)
    if not (slope == kept).all():
        probe.refuse(".value_and_slope must give the slope in an array of its own", before, "a later call changed it")
    if again[1] != value or not (again[2] == kept).all():
        probe.refuse(" must give the same answer at the same z", before, f"it gave {value!r} and then {again[1]!r}")


def check_slope(probe: Probe) -> None:
    """phi(w) - phi(z) lies between <phi'(z), w - z> and <phi'(w), w - z>."""
    for z in probe.points:
        here = probe.answer(z)
        for d in probe.directions():
            for h in probe.steps(z):
                _check_slope_between(probe, here, probe.answer(z + h * d))


def _check_slope_between(probe: Probe, here: Answer, there: Answer) -> None:
    move = there.z - here.z  # not quite the step along a direction, by rounding
    change = there.value - here.value
    off = here.value_off + there.value_off + norm2(move) * (here.slope_off + there.slope_off)
    least, most = sorted((here.along(move), there.along(move)))
    if least - off <= change <= most + off:
        return
    # Where a loss is not convex, slopes between may be beyond those at the ends: that is no fault of the slope.
    slopes = [least, most, *(float(probe.ask(here.z + t * move)[1] @ move) for t in (0.25, 0.5, 0.75))]
    least, most = 2.0 * min(slopes) - max(slopes), 2.0 * max(slopes) - min(slopes)
    if not least - off <= change <= most + off:
        found = f"the value changes by {change:.9g} where z moves by {show_value(move)}, and by the slopes it"
        promise = ".value_and_slope must return the derivative of its value"
        probe.refuse(promise, here.z, f"{found} should by {least:.9g} to {most:.9g}")


def check_convexity(probe: Probe) -> None:
    """Slopes rise along every segment, and no value lies above the chord."""
    answers = [probe.answer(z) for z in probe.points]
    pairs = [(one, other) for i, one in enumerate(answers) for other in answers[:i]]
    pairs += [(one, probe.answer(one.z + h * d)) for one in answers for d in probe.directions() for h in (0.1, 1e-3)]
    for one, other in pairs:
        d = other.z - one.z
        rise, off = other.along(d) - one.along(d), norm2(d) * (one.slope_off + other.slope_off)
        if rise < -off:
            _refuse_not_convex(probe, one, other, f"the derivative along the segment falls by {-rise:.9g}")
        middle = probe.answer(0.5 * (one.z + other.z))
        above = middle.value - 0.5 * (one.value + other.value)
        if above > middle.value_off + 0.5 * (one.value_off + other.value_off):
            _refuse_not_convex(probe, one, other, f"the value in the middle is {above:.9g} above the chord")


def _refuse_not_convex(probe: Probe, one: Answer, other: Answer, found: str) -> None:
    probe.refuse(" must be convex", one.z, f"and {other.z} {found}")


def check_extremes(probe: Probe) -> None:
    """No NaN and no value of minus infinity far away, where values may overflow; slopes only where they are finite."""
    sign = probe.rng.choice((-1.0, 1.0), probe.rows)
    for size in FAR:
        for z in (np.full(probe.rows, size), np.full(probe.rows, -size), size * sign):
            value, slope = probe.ask(z)
            if math.isnan(value) or value == -math.inf:
                probe.refuse(" must have a value at every z, inf where it overflows", z, f"it is {value}")
            if math.isfinite(value) and np.isnan(slope).any():
                probe.refuse(" must have a slope wherever its value is finite", z, f"it is {slope}")


def check_curvature(probe: Probe) -> None:
    """phi'(w) - phi'(z) = phi''(z) (w - z), up to what phi'' (w - z) changes between, and no curvature is negative.

    A second derivative may jump, and be seen to change at no point that is looked at: so only one short step decides,
    the shortest for which rounding leaves something to compare.
    """
    for z in probe.points:
        here, size = probe.answer(z), _largest_curvature(probe, z)
        for d in probe.directions():
            bend = float(_times(probe.loss, z, d) @ d)
            if not bend >= -SAFE * EPS * size:
                probe.refuse(".expand must give a second derivative without negative curvature", z, f"it is {bend:.9g}")
            there = next((one for one in _answers_nearby(probe, z, d) if _is_sharp(here, one, size)), None)
            if there is not None:
                _check_curvature_between(probe, here, there)


def _answers_nearby(probe: Probe, z: Vector, d: Vector) -> Iterator[Answer]:
    """The answers along d after short steps, the shortest first."""
    return (probe.answer(z + h * d) for h in sorted(probe.steps(z))[:2])


def _is_sharp(here: Answer, there: Answer, size: float) -> bool:
    """Whether rounding is small beside what slopes change by for a curvature of that size."""
    return here.slope_off + there.slope_off <= SHARP * size * norm2(there.z - here.z)


def _check_curvature_between(probe: Probe, here: Answer, there: Answer) -> None:
    move = there.z - here.z
    change, told = there.slope - here.slope, _times(probe.loss, here.z, move)
    inside = max(norm2(_times(probe.loss, here.z + t * move, move) - told) for t in (0.25, 0.5, 0.75, 1.0))
    off = here.slope_off + there.slope_off + SAFE * EPS * _largest_curvature(probe, here.z) * norm2(move)
    if norm2(change - told) > LOOSE * inside + off:
        found = (
            f"the slope changes by {show_value(change)} where z moves by {show_value(move)}, and by the curvature it"
        )
        promise = ".expand must give the derivative of the slope"
        probe.refuse(promise, here.z, f"{found} should by {show_value(told)}")


def _largest_curvature(probe: Probe, z: Vector) -> float:
    """A size of phi''(z), from its parts and from slopes nearby."""
    parts = getattr(probe.loss.expand(z.copy()), "curvature", None)
    declared = 0.0 if parts is None else float(np.abs(parts.diagonal).max())
    return max(declared, probe.curvature(z, probe.ask(z)[1]))


def _times(loss: Any, z: Vector, d: Vector) -> Vector:
    """phi''(z) d."""
    expansion = loss.expand(z.copy())
    return np.asarray(getattr(expansion, "curvature", expansion).times(d))


def check_conjugate(probe: Probe) -> None:
    """phi(z) + phi*(u) >= <u, z>, with equality at u = phi'(z), and inf where phi* is not defined."""
    answers = [probe.answer(z) for z in probe.points]
    own = [_conjugate(probe, one.slope, one) for one in answers]
    for one, star in zip(answers, own, strict=True):
        product, off = one.along(one.z), _young_off(one, one.slope, star)
        if not abs(one.value + star - product) <= off:
            promise = ".conjugate must be <u, z> - phi(z) at u = phi'(z)"
            probe.refuse(promise, one.z, f"it is {star:.9g} and should be {product - one.value:.9g}")
    others = [probe.rng.standard_normal(probe.rows) * (1.0 + np.abs(one.slope)) for one in answers]
    duals = [(one.slope, star) for one, star in zip(answers, own, strict=True)]
    duals += [(u, _conjugate(probe, u, one)) for u, one in zip(others, answers, strict=True)]
    for one in answers:
        for u, star in duals:
            below = float(u @ one.z) - one.value - star
            if below > _young_off(one, u, star):
                promise = ".conjugate must be at least <u, z> - phi(z) for every z"
                probe.refuse(promise, one.z, f"it is {star:.9g} at u = {u}, which is {below:.9g} too little")


def _conjugate(probe: Probe, u: Vector, one: Answer) -> float:
    """phi*(u), checked to be a number above minus infinity, and not to be written into u."""
    before = u.copy()
    star = probe.loss.conjugate(u)
    if not isinstance(star, float) or math.isnan(star) or star == -math.inf:
        probe.refuse(".conjugate must give a float, inf where it is not defined", one.z, f"it is {star!r} at u = {u}")
    if not (u == before).all():
        probe.refuse(".conjugate must not write into u", one.z, f"u = {before} has become {u}")
    return star


def _young_off(one: Answer, u: Vector, star: float) -> float:
    """What rounding may do to phi(z) + phi*(u) - <u, z>, u being off by as much as the slope at z."""
    sizes = abs(star) + float(np.abs(u) @ np.abs(one.z)) if math.isfinite(star) else 0.0
    return one.value_off + one.slope_off * (1.0 + norm2(one.z)) + SAFE * roundings(u.size) * EPS * (sizes + norm2(u))


def check_smoothness(probe: Probe) -> None:
    """||A^T (phi'(z') - phi'(z))||_{p*} <= L_p ||x' - x||_p for random A and z' = z + A(x' - x), many x'."""
    A = probe.rng.standard_normal((probe.rows, COLUMNS))
    pairs = [np.eye(probe.rows)[i] + np.eye(probe.rows)[j] for i in range(probe.rows) for j in range(i)]
    corners = [40.0 * probe.width * pair for pair in pairs]  # two rows far above the others
    for p in (2.0, 3.0, math.inf):
        L, norm = float(probe.loss.smoothness(A, p)), Lp(p)
        if math.isnan(L) or L < 0.0:
            probe.refuse(
                ".smoothness must be a number of at least 0, or inf", probe.points[0], f"it is {L} at p = {p:g}"
            )
        for z in [*probe.points, *corners] if math.isfinite(L) else []:
            here = probe.answer(z)
            for v in _longest_directions(probe, A, z, norm):
                for h in (0.3, 1e-3):
                    step = h * probe.width / max(norm2(A @ v), 1e-300) * v
                    there = probe.answer(z + A @ step)
                    turn = norm.dual_norm(A.T @ (there.slope - here.slope))
                    off = float(np.linalg.norm(A)) * (there.slope_off + here.slope_off) * COLUMNS
                    if turn > L * norm.norm(step) * (1.0 + 1e-9) + off:
                        least = turn / norm.norm(step)
                        found = f"slopes show at least {least:.9g} for A = {A.tolist()}"
                        probe.refuse(f".smoothness is too small, {L:.9g} at p = {p:g}", z, found)


def _longest_directions(probe: Probe, A: Vector, z: Vector, norm: Lp) -> list[Vector]:
    """Directions along which the slope is likely to turn most: random signs, and where it turns most in l_2."""
    slope = probe.ask(z)[1]
    columns = [probe.ask(z + 1e-4 * probe.width * a)[1] - slope for a in A.T]
    top = np.linalg.svd(A.T @ np.array(columns).T)[2][0]
    return [top, np.sign(top), norm.steepest(top), *np.sign(probe.rng.standard_normal((2, COLUMNS)))]


def check_lower_bound(probe: Probe) -> None:
    """Along no ray does the value fall without end: far away, the slope along it is 0 to rounding, or above."""
    for d in [*probe.directions(), *(-d for d in probe.directions()), np.ones(probe.rows), -np.ones(probe.rows)]:
        value, slope = probe.ask(ENDLESS * probe.width * d)
        near = norm2(probe.ask(probe.width * d)[1])
        fall = float(slope @ d)
        if math.isfinite(value) and fall < -1e-3 * (near + norm2(slope)):
            where = f"the value still falls, with slope {fall:.9g}"
            probe.refuse(" says that it is bounded below", ENDLESS * probe.width * d, f"and along d = {d} {where}")


def check_doubt(probe: Probe) -> None:
    """The declared errors cover what moving z changes, and the slope; the value in longer numbers, where it has one."""
    loss, n = probe.loss, probe.rows
    for z in probe.points:
        here, longer = probe.answer(z), _value_in_longer_numbers(loss, z)
        for dz in (0.0, *(move * probe.width for move in MOVES)):
            change, pull, turn = (float(v) for v in loss.doubt(here.value, n, dz))
            if not min(change, pull, turn) >= 0.0:
                promise = ".doubt must give three numbers of at least 0"
                probe.refuse(promise, z, f"it gives {change}, {pull}, {turn} for dz = {dz:g}")
            there = probe.answer(z + dz * probe.rng.choice((-1.0, 1.0), n))
            off, slope_off = here.value_off + there.value_off, math.sqrt(n) * (here.slope_off + there.slope_off)
            moved, turned = abs(there.value - here.value), float(np.abs(there.slope - here.slope).sum())
            size = float(np.abs(here.slope).sum())
            for what, seen, told, extra in (
                ("value changes", moved, change, off),
                ("slopes sum, in size,", size, pull, slope_off),
                ("slopes change in sum", turned, turn, slope_off),
            ):
                if seen > 2.0 * told + extra:
                    at = f"where z is off by {dz:g} its {what} by {seen:.9g}, and the doubt says {told:.9g}"
                    probe.refuse(".doubt is too small", z, at)
            if dz == 0.0 and abs(longer - here.value) > change + EPS * abs(longer):
                found = f"rounding takes {abs(longer - here.value):.3g} off the value, and the doubt says {change:.3g}"
                probe.refuse(".doubt is too small", z, found)


def _value_in_longer_numbers(loss: Any, z: Vector) -> float:
    """phi(z) computed in longer numbers, where the loss takes these; otherwise NaN, which no comparison accuses."""
    if np.finfo(np.longdouble).eps >= EPS:
        return math.nan
    try:
        return float(loss.value(z.astype(np.longdouble)))
    except Exception:  # a loss need not take them
        return math.nan
