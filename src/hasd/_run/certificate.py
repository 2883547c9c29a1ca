"""What a run certifies: the cut at the returned point, and the gap that it and the estimates prove."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

from .._checks import number
from .._math.doubt import CERTAIN, EPS, Doubt, roundings, smallest_number
from .._math.estimate import EstimateBound
from .._math.evaluation import Evaluation
from .._math.geometry import Array, dot, norm2

TINY = sys.float_info.min
"""Smaller numbers have lost digits, so a contradiction that is no larger than this proves nothing."""


class Cut(NamedTuple):
    """The scalars of the cut at one point that a lower bound needs."""

    f: float  # f(x)
    slope: float  # ||g||_2
    tilt: float  # <g, x_0 - x>
    away: float  # ||x - x_0||_2
    mu: float = 0.0  # strong convexity w.r.t. l_2
    doubt: Doubt = CERTAIN  # of f and g
    unit: float = 0.0  # the relative error of slope, tilt and away
    lost: float = 0.0  # what tilt may have lost to underflow

    @property
    def exact(self) -> Cut:
        """The same cut without what rounding may have done to it."""
        return self._replace(doubt=CERTAIN, unit=0.0)

    def value_doubt(self, bend: float = 0.0) -> float:
        """What f may be off by, for the curvature that the run has seen."""
        return self.doubt.value + bend * self.doubt.value_bend

    def _slope_doubt(self, bend: float) -> float:
        """The part of what the slope may be off by that depends on the curvature."""
        return bend * self.doubt.slope_bend + math.sqrt(bend) * self.doubt.slope_root

    def gap(self, radius: float | None, bend: float = 0.0) -> float:
        """f(x) - f* <= this, by the slope at x alone: what f may be off by does not matter.

        Within the radius f(x) - f* <= R ||g|| - tilt, with strong convexity f(x) - f* <= ||g||^2/(2 mu).  It is
        negative where no minimiser can be within the radius.
        """
        best, by_curvature, doubt = math.inf, self._slope_doubt(bend), self.doubt
        for blur, shift in ((doubt.true, 0.0), (doubt.slope, doubt.shift)):
            blur += by_curvature
            slope = self.slope * (1.0 + self.unit) + blur
            if radius is not None:
                unsure = (self.unit * self.slope + blur) * self.away + self.lost + shift
                best = min(best, radius * slope - self.tilt + unsure)  # a NaN leaves it as it is
            if self.mu > 0.0:
                best = min(best, slope * (slope / (2.0 * self.mu)) + shift)
        return best + 4.0 * EPS * abs(best)

    def lower(self, radius: float | None, bend: float = 0.0) -> float:
        """f* >= this; rounding is taken off.

        Within the radius f* >= f + tilt - R ||g||; with strong convexity f* >= f - ||g||^2/(2 mu).
        """
        blur = self.doubt.slope + self._slope_doubt(bend) + self.unit * self.slope
        slope, f = self.slope + blur, self.f - self.value_doubt(bend)
        best = -math.inf
        if radius is not None:
            unsure = (blur + self.unit * self.slope) * self.away
            best = max(best, f + self.tilt - unsure - radius * slope - self.lost)  # a NaN leaves it as it is
        if self.mu > 0.0:
            best = max(best, f - slope * (slope / (2.0 * self.mu)) * (1.0 + 4.0 * EPS))
        return best - 4.0 * EPS * abs(best) if math.isfinite(best) else -math.inf


def cut_at(e: Evaluation, origin: Array | None, mu: float = 0.0) -> Cut:
    """The cut at an evaluated point; without an origin, it says nothing about any radius."""
    d, tilt, away = e.x.shape[0], -math.inf, 0.0
    if origin is not None:
        back = origin - e.x
        tilt, away = dot(e.g, back), norm2(back)
    return Cut(e.f, e.norm2, tilt, away, mu, e.doubt, e.eps * roundings(d), 2.0 * d * smallest_number(e.eps))


@dataclass(frozen=True, repr=False)
class Certificate:
    """What a run proves about f(x) - f* at the returned x, and under which assumptions: ``res.certificate``.

    ``gap(radius)`` bounds f(x) - f* from above and ``lower(radius)`` bounds f* from below.  ``radius`` is any l_2 bound
    on ||x_0 - x*||, also for p other than 2; it may be left out if mu > 0, or if the run was given a radius.  Both
    bounds assume that f is convex, and mu-strongly convex if mu > 0; ``assumes`` lists the assumptions in words.  Both
    allow for rounding: ``charge(radius)`` says how much of the gap is due to that.

    >>> import numpy as np, hasd
    >>> res = hasd.minimize(lambda x: (0.5 * float(x @ x), x), [3.0, 4.0], jac=True, maxiter=1, method="agd", L=2)
    >>> res.certificate.gap(radius=5.0) >= res.fun >= res.certificate.lower(radius=5.0)
    True
    >>> res.certificate.assumes
    'f is convex; the radius given to gap() or lower()'
    """

    cut: Cut  # at the returned x
    proofs: tuple[EstimateBound | Cut, ...]  # of the epochs of the run and at its other points, scalars only
    radius: float | None = None  # the one given to the run
    withdrawn: bool = False  # whether what was seen of f contradicts the assumptions
    bend: float = 0.0  # the largest curvature seen between evaluated points, where rounding is judged by it
    convex: bool = False  # whether f is convex by construction; otherwise that is an assumption, and is watched
    L: float = math.nan  # the smoothness constant that the method relied on last; no bound rests on it
    assumed: str = ""  # what the estimates of the method assume beside that, in words; they then need no radius

    def __repr__(self) -> str:
        if self.withdrawn:
            return "<nothing is certified>"
        return f"<certified: {self.gap():.3g}>" if self.needs_no_radius else "<certified for a radius: gap(radius)>"

    @property
    def mu(self) -> float:
        """The strong convexity w.r.t. l_2."""
        return self.cut.mu

    @property
    def needs_no_radius(self) -> bool:
        """Whether a gap is certified without a further radius."""
        return self.radius is not None or self.mu > 0.0 or self.assumed != ""

    @property
    def assumes(self) -> str:
        """The assumptions of the certificate, in words."""
        parts = [] if self.convex else ["f is convex"]
        parts += [f"mu = {self.mu:g}"] if self.mu > 0.0 else []
        parts += [f"radius = {self.radius:g}"] if self.radius is not None else []
        parts += [self.assumed] if self.assumed else []
        return "; ".join(parts + ([] if self.needs_no_radius else ["the radius given to gap() or lower()"]))

    def lower(self, radius: float | None = None) -> float:
        """The best certified lower bound on f*; -inf if nothing is known yet.

        If the run contradicts the radius, this raises a ValueError that names the smallest radius that it allows.
        """
        radius = self._radius(radius)
        if self.withdrawn:
            return -math.inf
        if radius is not None and self.contradicts(radius):
            raise ValueError(
                f"radius = {radius:.6g} is contradicted by the run: no minimiser is within that distance of x0. "
                f"The smallest radius that the run allows is {self._smallest_radius(radius):.6g}."
            )
        return self.proved_lower(radius)

    @property
    def upper(self) -> float:
        """An upper bound on the true f(x): the value with what it may be off by."""
        return self.cut.f + self.cut.value_doubt(self.bend)

    def _radius(self, radius: float | None) -> float | None:
        radius = self.radius if radius is None else radius
        if radius is None and not self.needs_no_radius:
            raise ValueError(
                "a certified gap needs radius, an l_2 bound on the distance from x0 to a minimiser, because mu = 0"
            )
        return None if radius is None else number("radius", radius, least=0.0, finite=False)

    def proved_lower(self, radius: float | None) -> float:
        """The best lower bound that the run proves for this radius, contradicted or not."""
        return max(proof.lower(radius, self.bend) for proof in (self.cut, *self.proofs))

    def contradicts(self, radius: float | None) -> bool:
        """Whether the run proves that no minimiser is so near to x0; without a radius, that mu is too large."""
        return self.proved_lower(radius) - self.upper > TINY or self.cut.gap(radius, self.bend) < -TINY

    def _smallest_radius(self, low: float) -> float:
        """The smallest radius above `low` that the run does not contradict, by bisection: the bounds fall with it."""
        high = max(2.0 * low, self.cut.away, math.ulp(0.0))
        while self.contradicts(high) and math.isfinite(high):
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.contradicts(middle) else (low, middle)
        return high

    def gap(self, radius: float | None = None) -> float:
        """A certified upper bound on f(x) - f*; inf if nothing is certified.  Raises a ValueError as `lower` does."""
        lower = self.lower(radius)
        if self.withdrawn or math.isnan(self.cut.f):
            return math.inf
        if radius is None and self.radius is None and self.contradicts(None):
            return math.inf
        gap = min(self.cut.gap(self._radius(radius), self.bend), self.upper - lower)
        if math.isnan(gap):
            return math.inf
        return gap if gap >= 0.0 else TINY

    def charge(self, radius: float | None = None) -> float:
        """The part of ``gap(radius)`` that allows for rounding: it would be missing in exact arithmetic."""
        radius, gap = self._radius(radius), self.gap(radius)
        if self.withdrawn:
            return math.inf
        exact = [self._exact_lower(proof, radius) for proof in (self.cut, *self.proofs)]
        return min(max(gap - min(self.cut.f - max(exact), self.cut.exact.gap(radius)), 0.0), gap)

    def _exact_lower(self, proof: EstimateBound | Cut, radius: float | None) -> float:
        """The lower bound that it would prove in exact arithmetic."""
        if isinstance(proof, Cut):
            return proof.exact.lower(radius)
        return proof.lower(radius, self.bend) + proof.rounding_charge(radius, self.bend)
