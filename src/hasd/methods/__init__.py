"""The registry of methods: one line each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any

from .._checks import parameters, unknown_name_message
from .._run.capabilities import traits_of_objective
from .._run.problem import Method
from .agd import AGD
from .estimate_sequence import EstimateSequence
from .hasd import HASDMethod
from .hasd_cg import HASDCG
from .hasd_newton import HASDNewton
from .hasd_paper import HASDPaper
from .hasd_qn import HASDQN
from .hasd_restart import HASDRestart
from .hasd_subspace import HASDSubspace
from .heavy_ball import HeavyBall
from .linear_coupling import LinearCoupling
from .nemirovskii_nesterov import NemirovskiiNesterov
from .steepest_descent import SteepestDescent

REGISTRY: dict[str, Callable[..., Method]] = {
    "hasd": HASDMethod,
    "hasd-subspace": HASDSubspace,
    "hasd-qn": HASDQN,
    "hasd-cg": HASDCG,
    "hasd-newton": HASDNewton,
    "hasd-paper": HASDPaper,
    "hasd-restart": HASDRestart,
    "gradient-descent": partial(SteepestDescent, name="gradient-descent", default_p=2.0),
    "heavy-ball": HeavyBall,
    "agd": AGD,
    "steepest-descent": SteepestDescent,
    "linear-coupling": LinearCoupling,
    "estimate-sequence": EstimateSequence,
    "nemirovskii-nesterov": NemirovskiiNesterov,
}

DECLARATIONS = ("name", "default_p", "needs_mu", "needs_images", "needs_hessian")
"""What a method's class says of the method, and no user sets."""
NEWTON, NEWTON_RIDGE = 1000, 256
"""Columns up to which a Hessian is worth thinking of; the second for a smoothed maximum with a ridge."""
CHEAP_ROW = 48
"""With fewer entries a row than this, a product with A costs no more than a pass over the subspace's images."""


def choose(objective: Any) -> tuple[str, str]:
    """The method that "auto" stands for, by counted cost, and why.

    With few columns Hessians pay sooner or later, and `hasd-newton` finds out when.  A smoothed maximum without a ridge
    has more than d rows that count at its minimiser, so its curvature fills the space; with a ridge a few rows may be
    all that counts, and a subspace holds them.  With many columns, a step of the subspace method handles some dozens of
    vectors of length n beside its two products with A: it pays where a row of A has more entries than that.
    """
    traits = traits_of_objective(objective)
    if not traits.has_images and hasattr(objective, "loss"):
        return "hasd-qn", "the loss has no second derivative"
    if not traits.has_images:
        return "hasd-qn", "the function is a Python callable of unknown structure"
    images, d, cost = objective.images(), objective.dimension, objective.row_cost
    if traits.has_hessian and d <= _most_columns(objective, images):
        return "hasd-newton", f"the Hessian of a function of {d} variables costs little"
    if images.constant:
        return "hasd-cg", "the function is quadratic"
    if cost >= CHEAP_ROW:
        return "hasd-subspace", f"products with A are the main cost: {cost:.3g} entries a row"
    return "hasd-qn", f"products with A are cheap: {cost:.3g} entries a row"


def _most_columns(objective: Any, images: Any) -> int:
    """Columns up to which Newton's method is worth trying; 0 where a sharp maximum cannot be softened."""
    if math.isinf(getattr(getattr(objective, "loss", None), "width", math.inf)):
        return NEWTON
    if math.isinf(images.width):
        return 0
    return NEWTON_RIDGE if objective.ridge > 0.0 else NEWTON


def method_names() -> list[str]:
    """The names that ``minimize(method=...)`` knows.

    >>> "hasd" in method_names()
    True
    """
    return list(REGISTRY)


def options_of(name: str) -> list[str]:
    """The options a method takes beyond those of minimize."""
    return [option for option in parameters(REGISTRY[name]) if option not in DECLARATIONS]


def required_options(name: str) -> dict[str, str]:
    """The options that a method cannot do without, and what each is.

    >>> sorted(required_options("nemirovskii-nesterov")), required_options("hasd")
    (['R', 'T'], {})
    """
    factory: Any = REGISTRY[name]
    known = fields(factory) if is_dataclass(factory) else ()
    return {field.name: field.metadata["what"] for field in known if field.default is MISSING}


def make(name: str, options: dict[str, Any], caller: Callable[..., Any]) -> Method:
    """The method of that name with these options; errors list the names that are known."""
    if name not in REGISTRY:
        names = ("auto", *REGISTRY)
        raise ValueError(unknown_name_message("method", name, names, f"the methods are: {', '.join(names)}"))
    known = options_of(name) if options else []
    for option in options:
        if option not in known:
            some, none = f"the options of method {name!r} are: {', '.join(known)}", f"method {name!r} has no options"
            names = (*known, *parameters(caller))
            raise TypeError(unknown_name_message("option", option, names, some if known else none))
    missing = [f"{option}=, {what}" for option, what in required_options(name).items() if option not in options]
    if missing:
        raise TypeError(f"method {name!r} needs {', and '.join(missing)}")
    return REGISTRY[name](**options)
