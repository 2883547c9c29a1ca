"""Checks of what the user gave, before any evaluation: one clear sentence each."""

from __future__ import annotations

import errno
import math
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._checks import check_shape, count, is_number, number, show_value, whole_number
from ._math.arrays import Array, copy_of, library, namespace, resolution, to_float64
from ._math.geometry import WEIGHTS_SINGLE, Geometry, Lp, is_euclidean, label_of, least_gain
from ._resume.atomic_write import previous_path, temporary_path
from ._resume.checkpoint import is_checkpoint
from ._run.bounds import Bounds
from ._run.capabilities import MethodTraits, ObjectiveTraits
from ._run.convexity import Convexity
from ._run.layout import VECTOR, Layout, layout_for
from ._run.problem import Problem
from ._run.record import State
from ._run.returned import as_array
from ._run.sources import BlackBox, ObjectiveSource, Source
from .objectives._operators import refuse_other_library

UNLIMITED = (100_000.0, math.inf, math.inf)
"""The limits on iterations, evaluations and seconds where the caller sets none at all."""

DIFFERENTIATED = {
    "torch": "hasd.torch.minimize takes it from autograd",
    "jax.numpy": "give jac=jax.grad(fun), or use hasd.jax",
}
"""What to do instead of finite differences, for the libraries that differentiate by themselves."""


def seconds(time_limit: Any) -> float:
    """A limit in seconds, from 0 on; None for none."""
    return math.inf if time_limit is None else number("time_limit", time_limit, least=0.0, finite=False)


def limits(maxiter: Any, maxfun: Any, time_limit: Any) -> tuple[float, float, float]:
    """Iterations, evaluations and seconds; a limit on iterations where the caller sets none at all."""
    if maxiter is None and maxfun is None and time_limit is None:
        return UNLIMITED
    given = (count("maxiter", maxiter, least=0), count("maxfun", maxfun, least=1), seconds(time_limit))
    return given if min(given) < math.inf else UNLIMITED


def layout(x0: Any, p: Any) -> Layout:
    """How x0 is laid out: as the geometry's shape allows, where p is one that has a shape."""
    return layout_for(x0, _shape_of(p)) if _is_geometry(p) else VECTOR


def _shape_of(geometry: Any) -> tuple[int, ...] | list[tuple[int, ...]] | None:
    """The shape that a geometry has, checked: of an array, or a list of those of several arrays; None for none."""
    shape = getattr(geometry, "shape", None)
    if isinstance(shape, list):
        return [check_shape("each of the shapes of p", part) for part in shape]
    return None if shape is None else check_shape("the shape of p", shape)


def start(x0: Any, layout: Layout = VECTOR) -> Array:
    """A fresh 1-D floating-point copy of x0, in its own library."""
    if layout.is_list:  # numbers of different kinds are joined in float64
        parts = [_real_array(part) for part in x0] if isinstance(x0, list | tuple) else []
        if len({part.dtype for part in parts}) > 1:
            x0 = [to_float64(part) for part in parts]
    if type(x0) is np.ndarray and x0.dtype == np.float64 and x0.ndim == 1 and x0.size > 0 and np.isfinite(x0).all():
        return x0.copy()  # the common case, without further checks
    array = _real_array(layout.flatten(x0, "x0"))
    xp = namespace(array)
    if array.ndim > 1:
        shape = tuple(array.shape)
        raise ValueError(
            f"x0 must have one dimension, got shape {shape}: give x0.ravel(), or a norm that knows the shape, such as "
            f"p=hasd.Lp(2, shape={shape})"
        )
    if 0 in array.shape:
        raise ValueError("x0 must not be empty")
    if array.dtype not in (xp.float32, xp.float64):
        array = xp.astype(array, xp.float64)
    array = copy_of(xp.reshape(array, (-1,)))
    finite = xp.isfinite(array)
    if not bool(xp.all(finite)):
        place = int(xp.nonzero(~finite)[0][0])
        raise ValueError(f"x0 must be finite, but x0{layout.index_of(place)} is {float(array[place])}")
    return array


def _real_array(x0: Any) -> Array:
    """x0 as an array of real numbers."""
    array = as_array(x0, "x0")
    if type(array) is np.ndarray and array.dtype.kind not in "buifc":
        raise TypeError(f"x0 must be a vector of numbers, got dtype {array.dtype}")
    xp = namespace(array)
    if xp.isdtype(array.dtype, "complex floating"):
        raise TypeError("x0 must be real, got complex numbers")
    return array


def geometry(p: Any, default: float) -> Geometry:
    """The l_p norm for a number, a user's own geometry as it is."""
    if p is None:
        return Lp(default)
    if _is_geometry(p):
        return p
    if not is_number(p):
        raise TypeError(
            "p must be a number between 2 and inf, or an object with p, norm, dual_norm and steepest, "
            f"got {show_value(p)}; np.inf is the maximum norm"
        )
    return Lp(number("p", p, least=2.0, finite=False))


def _is_geometry(p: Any) -> bool:
    """Whether it is a geometry and not the class of one."""
    return not (p is None or isinstance(p, float | int | type)) and isinstance(p, Geometry)


def check_geometry(geometry: Geometry, x0: Array, method: Any, traits: MethodTraits) -> None:
    """Refuse a norm for arrays of another size, weights beyond x0's precision, and a method made for l_2 alone."""
    _check_constants(geometry)
    shape = _shape_of(geometry)
    if shape is not None:
        size = sum(map(math.prod, shape)) if isinstance(shape, list) else math.prod(shape)
        if size != x0.shape[0]:
            entries = f"{x0.shape[0]} {'entry' if x0.shape[0] == 1 else 'entries'}"
            raise ValueError(f"x0 has {entries}, but the norm given as p is for {size}")
    is_lp = type(geometry) is Lp and geometry.weights is None
    if traits.needs_lp and not is_lp:
        raise TypeError(f"method {method.name!r} needs p to be a number, got {show_value(geometry)}")
    if traits.euclidean and not (is_lp or is_euclidean(geometry)):
        raise ValueError(
            f"method {method.name!r} is made for l_2 and takes no norm such as {label_of(geometry)}; hasd, hasd-paper, "
            "hasd-restart, linear-coupling, estimate-sequence and steepest-descent take any norm"
        )
    parts = getattr(geometry, "parts", (geometry,))
    weights = [part.weights for part in parts if isinstance(part, Lp) and part.weights is not None]
    if weights and resolution(x0) > 2.0**-52:
        top, least = max(float(w.max()) for w in weights), min(float(w.min()) for w in weights)
        if top > WEIGHTS_SINGLE or least * WEIGHTS_SINGLE < 1.0:
            raise ValueError("weights must be between 1e-18 and 1e18 where x0 is in float32; give x0 in float64")


def _check_constants(geometry: Geometry) -> None:
    """Refuse what cannot be the constants of a norm: along a ray, half the square is 1-strongly convex and no more."""
    least, sigma = getattr(geometry, "least_gain", None), getattr(geometry, "dual_convexity", None)
    if least is not None:
        number("the least_gain of p", least, least=0.0, strict=True)
    if sigma is not None and number("the dual_convexity of p", sigma, least=0.0) > 1.0:
        raise ValueError(f"the dual_convexity of p must be at most 1, got {sigma!r}")


def source(fun: Any, jac: Any, args: Any, x0: Array, mu: float = 0.0, layout: Layout = VECTOR) -> Source:
    """The function, from one of our objectives or from callables in SciPy's conventions."""
    if isinstance(fun, type) and hasattr(fun, "value_and_grad"):
        raise TypeError(f"fun must be an objective, got the class {fun.__name__} itself: give it the data first")
    if hasattr(fun, "value_and_grad") and hasattr(fun, "with_own_counter"):
        if jac is not None:
            raise TypeError("jac must not be given with an objective: it brings its own gradient")
        if not (args is None or (isinstance(args, tuple | list) and not args)):
            raise TypeError("args must not be given with an objective: it holds its own data")
        if fun.dimension is not None and fun.dimension != x0.shape[0]:
            raise ValueError(f"x0 has length {x0.shape[0]}, but the objective has {fun.dimension} variables")
        model = getattr(fun, "model", None)
        if model is not None:
            refuse_other_library(x0, model, "x0", "the objective's data")
        return ObjectiveSource(fun, mu=mu)
    jac = None if jac is False else jac  # SciPy's jac=False means that there is none
    if not callable(fun):
        raise TypeError(f"fun must be callable or an objective, got {type(fun).__name__}")
    if not (jac is None or jac is True or callable(jac)):
        raise TypeError(
            f"jac must be a callable, True (fun returns f and g) or None (finite differences), got {show_value(jac)}"
        )
    if jac is None and hasattr(fun, "value_and_grad"):
        jac, fun = True, fun.value_and_grad
    if jac is None and (better := DIFFERENTIATED.get(library(x0))) is not None:
        each = f"finite differences of {x0.shape[0] + 1} evaluations in {str(x0.dtype).removeprefix('torch.')}"
        warnings.warn(f"without jac, each gradient is taken by {each}: {better}", UserWarning, stacklevel=4)
    return BlackBox(fun, jac, args if isinstance(args, tuple) else (args,), layout)


def strong_convexity(mu: Any, fun: Any, L: float | None, geometry: Geometry) -> float:
    """mu as given, or the objective's ridge, or 0.

    f has mu ||u||_2^2 <= L ||u||^2 for every u, and ||u|| <= ||u||_2/r for the least gain r of the norm.
    """
    out = getattr(fun, "ridge", 0.0) if mu is None else number("mu", mu, least=0.0)
    least = least_gain(geometry)
    if L is not None and least is not None and out * least > L / least:
        scaled = "" if least == 1.0 else f" divided by the square of the least gain, {least:g}"
        raise ValueError(f"mu = {out:g} cannot exceed L = {L:g}{scaled}")
    return out


def rows(trace: Any) -> float:
    """How many rows a trace keeps: all for True, none for False, about as many as the number given."""
    if isinstance(trace, bool | np.bool_):
        return math.inf if trace else 0.0
    if trace is None:
        raise TypeError("trace must be True, False or a number of rows, got None")
    return count("trace", trace, least=0)


def state_to_resume(state: Any, method: Any, x0: Array) -> State:
    """The state to go on from, checked against the method and x0."""
    if not isinstance(state, State):
        raise TypeError(
            f"resume must be a checkpoint's path or the state of an earlier result, got {show_value(state)}"
        )
    state = state.for_method()
    if state.x.shape != x0.shape:
        raise ValueError(f"resume holds a state of length {state.x.shape[0]}, but x0 has length {x0.shape[0]}")
    if library(state.x) != library(x0):
        raise ValueError(f"resume holds arrays of {library(state.x)}, but x0 is one of {library(x0)}")
    if state.method not in ("", method.name):
        raise ValueError(f"resume holds a state of method {state.method!r}, not of {method.name!r}")
    return state


def path(name: str, given: Any) -> Path:
    """The path given; links are followed, so that the file itself is replaced and not the link."""
    text = os.fspath(given)
    place = Path(text) if isinstance(text, str) else Path()
    if not place.name or "\0" in str(place):
        raise ValueError(f"{name} must name a file, got {text!r}")
    _refuse_too_long(name, previous_path(place))
    return Path(os.path.realpath(place)) if place.is_symlink() else place


def _refuse_too_long(name: str, place: Path) -> None:
    """Refuse a name that the file system finds too long, by asking it."""
    try:
        os.lstat(place)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(f"{name} must name a file, got a name that is too long: {place.name[:40]!r}...") from None


def checkpoint(given: Any, every: Any) -> tuple[Path, int]:
    """Where to write the run, and every how many iterations.  The folder must exist; no other file is overwritten."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path, got {show_value(given)}")
    place = path("checkpoint", given)
    if place.is_dir():
        raise ValueError(f"checkpoint must name a file, got the folder {str(place)!r}")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"checkpoint: there is no folder {str(place.parent)!r}")
    _refuse_too_long("checkpoint", temporary_path(place))
    for file in (place, previous_path(place)):
        if file.exists() and not is_checkpoint(file):
            raise FileExistsError(f"checkpoint: {str(file)!r} is no checkpoint, and will not be overwritten")
    return place, int(min(whole_number("checkpoint_every", every, least=1), sys.maxsize))


def check_requirements(method: Any, traits: MethodTraits, objective: ObjectiveTraits, fun: Any, mu: float) -> None:
    """Refuse a problem that lacks what the method declares that it needs."""
    if traits.needs_mu and mu == 0.0:
        raise ValueError(f"method {method.name!r} needs mu > 0: give mu=, or an objective with a ridge")
    if traits.needs_images and not objective.has_images and hasattr(fun, "loss"):
        raise TypeError(
            f"method {method.name!r} needs the second derivative of the loss, and {type(fun.loss).__name__} has no "
            "expand(z); hasd-qn and hasd do without"
        )
    if traits.needs_images and not objective.has_images:
        raise TypeError(
            f"method {method.name!r} needs an objective f(x) = phi(Ax - b) from hasd.objectives, "
            f"got {type(fun).__name__}; hasd-qn takes any function"
        )
    if traits.needs_hessian and not objective.has_hessian:
        raise TypeError(
            f"method {method.name!r} needs the matrix of the objective as an array or a sparse matrix, "
            "and not as a LinearOperator or as the identity; hasd-subspace takes these"
        )


def bounds(gap_tol: Any, radius: Any, problem: Problem, images: bool, assumed: str = "") -> Bounds:
    """The certified gap to stop at, with what it rests on; images: whether the method works on cached images.

    Affine objectives are convex by construction; differences in place of a gradient, and gradients on cached images,
    are too coarse to tell.
    """
    reach = None if radius is None else number("radius", radius, least=0.0)
    small = -math.inf if gap_tol is None else number("gap_tol", gap_tol, least=0.0)
    if gap_tol is not None and reach is None and problem.mu == 0.0 and not assumed:
        raise ValueError("gap_tol needs radius, an l_2 bound on the distance from x0 to a minimiser, because mu = 0")
    fine = not problem.traits.convex and not images and getattr(problem.oracle.source, "jac", True) is not None
    watch = Convexity() if fine else None
    return Bounds(reach, problem.mu, small, convexity=watch, oracle=problem.oracle, assumed=assumed)


def callback(given: Any) -> Callable[..., Any]:
    """A callable."""
    if not callable(given):
        raise TypeError(f"callback must be callable, got {show_value(given)}")
    return given
