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
from ._costs import Costs
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
NEWTON = 1000
"""Columns up to which a Hessian is thought of: it takes memory for four square matrices of that size."""
SAVED, SAVED_SOFT = 64.0, 4.0
"""Steps of limited memory that a Hessian is taken to save; the second for a smoothed maximum with a ridge."""
SHORTER, SHORTER_SOFT = 1.05, 3.0
"""How many times fewer iterations the subspace method takes than `hasd-qn`; the second as above."""


def choose(objective: Any) -> tuple[str, str]:
    """The method that "auto" stands for, by counted cost, and why.

    With few columns Hessians pay sooner or later, and `hasd-newton` finds out when.  With many, `hasd-subspace` takes
    fewer iterations than `hasd-qn`, and each costs more, by Newton steps in the coordinates of its span.  What either
    saves depends on f.  A smoothed maximum with a ridge may be ruled by a few rows: a subspace holds those, and their
    curvature changes from one iterate to the next.  Without a ridge more than d rows count at its minimiser.
    """
    traits = traits_of_objective(objective)
    if not traits.has_images and hasattr(objective, "loss"):
        return "hasd-qn", "the loss has no second derivative"
    if traits.settle is not None:
        return "hasd-qn", "some of its variables have known best values for given others"
    if not traits.has_images:
        return "hasd-qn", "the function is a Python callable of unknown structure"
    images, d = objective.images(), objective.dimension
    costs = None if d is None else Costs.of(objective)
    if costs is not None and traits.has_hessian and d <= NEWTON and _is_hessian_cheap(objective, images, costs):
        return "hasd-newton", f"the Hessian of a function of {d} variables costs little"
    if images.constant:
        return "hasd-cg", "the function is quadratic"
    entries = f"{round(objective.row_cost)} entries a row"
    if costs is not None and _is_span_cheap(objective, costs):
        return "hasd-subspace", f"products with A are the main cost: {entries}"
    return "hasd-qn", f"products with A are cheap, or no subspace would save many: {entries}"


def _is_maximum(objective: Any) -> bool:
    """Whether the loss is a smoothed maximum."""
    return math.isfinite(getattr(getattr(objective, "loss", None), "width", math.inf))


def _is_hessian_cheap(objective: Any, images: Any, costs: Costs) -> bool:
    """Whether a Hessian costs no more than the steps that it saves; not where a sharp maximum cannot be softened."""
    if _is_maximum(objective) and math.isinf(images.width):
        return False
    saved = SAVED_SOFT if _is_maximum(objective) and objective.ridge > 0.0 else SAVED
    return costs.hessian() <= saved * costs.step(0)


def _is_span_cheap(objective: Any, costs: Costs) -> bool:
    """Whether an iteration in a span, half full, with two looks for its Newton step, costs no more than it saves."""
    k = HASDSubspace().capacity(costs.columns) // 2
    shorter = SHORTER_SOFT if _is_maximum(objective) and objective.ridge > 0.0 else SHORTER
    return costs.step(k) + costs.span_step(k, looks=2) <= shorter * costs.step(2 * HASDQN().capacity(costs.columns))


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

    >>> required_options("hasd")
    {}
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
            some = f"besides what every method takes, {name!r} takes: {', '.join(known)}"
            none = f"method {name!r} has no options of its own"
            names = (*known, *parameters(caller))
            raise TypeError(unknown_name_message("option", option, names, some if known else none))
    missing = [f"{option}=, {what}" for option, what in required_options(name).items() if option not in options]
    if missing:
        raise TypeError(f"method {name!r} needs {', and '.join(missing)}")
    return REGISTRY[name](**options)
