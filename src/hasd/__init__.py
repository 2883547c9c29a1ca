"""hasd: accelerated steepest descent for smooth convex functions in any l_p norm, with certificates."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import objectives, theory
from ._compare import Comparison, compare
from ._math.geometry import Geometry, Lp, convert_smoothness
from ._math.shaped_norms import Blocks, Schatten
from ._minimize import iterate, minimize
from ._run.certificate import Certificate
from ._run.problem import Method, Problem
from ._run.record import State
from ._run.report import Result
from ._run.status import Status
from ._version import VERSION as __version__
from .methods import method_names
from .problems import balance, chebyshev, lp_fit, transport

if TYPE_CHECKING:
    from . import dask as dask
    from . import jax as jax
    from . import sklearn as sklearn
    from . import torch as torch

__all__ = [
    "Blocks",
    "Certificate",
    "Comparison",
    "Geometry",
    "Lp",
    "Method",
    "Problem",
    "Result",
    "Schatten",
    "State",
    "Status",
    "__version__",
    "balance",
    "chebyshev",
    "compare",
    "convert_smoothness",
    "iterate",
    "lp_fit",
    "method_names",
    "minimize",
    "objectives",
    "theory",
    "transport",
]

_ADAPTERS = ("dask", "jax", "sklearn", "torch")
"""Modules for the libraries of the same names: loaded on first use, not with the package."""


def __dir__() -> list[str]:
    """The package's names, with the adapters whose libraries are installed."""
    return sorted({*globals(), *(name for name in _ADAPTERS if _is_installed(name))})


def _is_installed(name: str) -> bool:
    """Whether there is a library of that name; a loaded module without a spec, such as a test's stub, counts."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules


if not TYPE_CHECKING:  # a type checker would take every name for known

    def __getattr__(name: str) -> Any:
        """An adapter; where its library is missing, its ImportError says so."""
        if name in _ADAPTERS:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
