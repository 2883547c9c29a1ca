"""How a run ended, and what it certifies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .geometry import Array, dot, norm2

if TYPE_CHECKING:
    from .estimate import Certificate
    from .oracle import Evaluation


class Status(Enum):
    """Why a run ended: a code and a sentence.  0, 1, 2, 3 and 99 mean what they mean in SciPy; ours start at 10.

    >>> Status.MAXITER.code, Status.MAXITER.success
    (1, False)
    """

    CONVERGED = (0, "Converged: the gradient's dual norm is within the tolerance.")
    MAXITER = (1, "Maximum number of iterations reached.")
    PRECISION = (2, "No further progress is possible at machine precision.")
    NONFINITE = (3, "Twenty trial points in a row gave a non-finite value or gradient.")
    MAXFUN = (10, "Maximum number of function evaluations reached.")
    TIME = (11, "Time limit reached.")
    NONFINITE_START = (12, "The value or the gradient at x0 is not finite.")
    UNBOUNDED = (13, "The function is unbounded below: it took the value -inf, or falls without end along a line.")
    GAP = (14, "Converged: the certified gap is within gap_tol.")
    NONCONVEX = (15, "No further progress is possible, and the function is not convex, or noisy.")
    INTERRUPTED = (16, "Interrupted by the user.")
    CALLBACK = (99, "`callback` raised `StopIteration`.")

    @property
    def code(self) -> int:
        """The number reported as ``res.status``."""
        return self.value[0]

    @property
    def message(self) -> str:
        """The sentence reported as ``res.message``."""
        return self.value[1]

    @property
    def success(self) -> bool:
        """True only where a tolerance was met."""
        return self in (Status.CONVERGED, Status.GAP)


class Stop(Exception):
    """Raised inside a step that cannot be completed; carries the status.  Never leaves the loop."""

    def __init__(self, status: Status):
        """Remember why."""
        super().__init__(status.message)
        self.status = status


class Cut(NamedTuple):
    """The scalars of the cut at one point that a lower bound needs."""

    f: float  # f(x)
    slope: float  # ||g||_2
    tilt: float  # <g, x_0 - x>
    away: float  # ||x - x_0||_2
    noise: float  # the relative error of f
    blur: float  # what g may be off by, in l_2

    def lower(self, radius: float | None, mu: float) -> float:
        """f* >= this; rounding is taken off.

        Within the radius f* >= f + tilt - R ||g||; with strong convexity f* >= f - ||g||^2/(2 mu).
        """
        slope, f = self.slope + self.blur, self.f - 8.0 * self.noise * abs(self.f)
        bounds = [-math.inf]
        if radius is not None:
            bounds.append(f + self.tilt - self.blur * self.away - radius * slope)
        if mu > 0.0:
            bounds.append(f - slope * (slope / (2.0 * mu)))
        return max(bounds)


def cut_at(e: Evaluation, origin: Array, blur: float) -> Cut:
    """The cut at an evaluated point."""
    away = origin - e.x
    return Cut(e.f, e.norm2, dot(e.g, away), norm2(away), e.eps, max(blur, 8.0 * e.eps * e.norm2))


@dataclass(frozen=True, repr=False)
class Gap:
    """A certified bound on f(x) - f* at the returned x: ``res.gap(radius)``.

    ``radius`` is an l_2 bound on ||x_0 - x*||, whatever p.  It may be left out where mu > 0.
    """

    cut: Cut  # at the returned x
    mu: float  # strong convexity w.r.t. l_2
    certificates: tuple[Certificate, ...]  # one per epoch, scalars only
    radius: float | None = None  # the one given to the run
    best: float = -math.inf  # the best lower bound met during the run, for that radius
    withdrawn: bool = False  # whether what was seen of f contradicts the assumptions

    def __repr__(self) -> str:
        known = self.radius is not None or self.mu > 0.0
        return f"<certified: {self():.3g}>" if known else "<certified for a radius: res.gap(radius)>"

    def lower(self, radius: float | None = None) -> float:
        """The best certified lower bound on f*; -inf where nothing is known yet."""
        radius = self.radius if radius is None else radius
        if radius is None and self.mu == 0.0:
            raise ValueError("gap() needs radius, an l_2 bound on the distance from x0 to a minimiser, because mu = 0")
        if radius is not None and not radius >= 0.0:
            raise ValueError(f"radius must be a non-negative number, got {radius!r}")
        if self.withdrawn:
            return -math.inf
        bounds = [certificate.lower(radius) for certificate in self.certificates]
        bounds.append(self.cut.lower(radius, self.mu))
        if self.radius is None or (radius is not None and radius <= self.radius):
            bounds.append(self.best)
        return max(bounds, default=-math.inf)

    def __call__(self, radius: float | None = None) -> float:
        """f(x) minus the best lower bound."""
        return self.cut.f - self.lower(radius)
