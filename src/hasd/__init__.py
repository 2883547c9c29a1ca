"""hasd: accelerated steepest descent for smooth convex functions in any l_p norm, with certificates."""

from . import objectives, theory
from .compare import Comparison, compare
from .geometry import Geometry, Lp, convert_smoothness
from .methods import methods
from .methods.base import Method, Problem, State
from .minimize import iterate, minimize
from .problems import balance, chebyshev, lp_fit, transport
from .result import Status
from .version import VERSION as __version__

__all__ = [
    "Comparison",
    "Geometry",
    "Lp",
    "Method",
    "Problem",
    "State",
    "Status",
    "__version__",
    "balance",
    "chebyshev",
    "compare",
    "convert_smoothness",
    "iterate",
    "lp_fit",
    "methods",
    "minimize",
    "objectives",
    "theory",
    "transport",
]
