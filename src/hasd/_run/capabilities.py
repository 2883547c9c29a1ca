"""What a method and an objective say of themselves, and what is taken where they are silent.

Both are known by what they offer, not by their classes: a user's method is any object with `name`, `default_p`, `init`
and `step`.  Everything else that it may declare is listed here, and read here alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._math.evaluation import Evaluation


def hand_back(problem: Any, e: Evaluation) -> Evaluation:
    """The evaluation as it is."""
    return e


def assume_nothing(geometry: Any) -> str:
    """What a method without such options makes the user vouch for."""
    return ""


class MethodTraits(NamedTuple):
    """What a method may declare, each as an attribute of that name."""

    needs_mu: bool = False  # it makes no sense without strong convexity
    needs_images: bool = False  # it works on images A x of an objective phi(Ax - b), and on nothing else
    needs_hessian: bool = False  # it writes out A^T phi'' A
    needs_lp: bool = False  # it works in l_p norms only, not in a geometry of the user's own
    keeps_images: bool = False  # it works on images where there are any, in float64, and measures its steps by them
    euclidean: bool = False  # it is made for l_2, and a norm of matrices, groups or weights means nothing to it
    state_classes: tuple[type, ...] = ()  # the classes of its states, for checkpoints
    assumes: Callable[[Any], str] = assume_nothing  # what its bounds assume of x*, in words, for the norm of the run
    finish: Callable[[Any, Evaluation], Evaluation] = hand_back  # (problem, e) -> e as it may be handed back


class ObjectiveTraits(NamedTuple):
    """What an objective may declare."""

    has_images: bool = False  # ``images()`` gives the space in which methods move images of A, with phi'' there
    has_hessian: bool = False  # and these can write out A^T phi'' A, as A is an array or a sparse matrix
    convex: bool = False  # it is convex by construction; so is what is made of a ``loss``
    bounded_below: bool = False  # it is known to have a lower bound, so that it can only seem to fall without end
    note: str = ""  # what the user should be told
    sharpen: Callable[..., Any] | None = None  # value, gradient and their doubt with less rounding
    settle: Callable[..., Any] | None = None  # x -> a point with the best values of some variables, f and g there


def traits_of_method(method: Any) -> MethodTraits:
    """What it declares.

    >>> traits_of_method(object()).needs_mu
    False
    """
    return MethodTraits(**{name: getattr(method, name) for name in MethodTraits._fields if hasattr(method, name)})


def traits_of_objective(objective: Any) -> ObjectiveTraits:
    """What it declares; a black box (None) declares nothing, and a class that is no objective yet neither."""
    if isinstance(objective, type):
        return ObjectiveTraits()
    known = {
        name: getattr(objective, name)
        for name in ("has_hessian", "convex", "bounded_below", "note", "sharpen", "settle")
        if hasattr(objective, name)
    }
    images = hasattr(objective, "images") and getattr(objective, "has_curvature", True)
    return ObjectiveTraits(**{"has_images": images, "convex": hasattr(objective, "loss"), **known})
