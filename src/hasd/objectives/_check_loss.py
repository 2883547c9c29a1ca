"""`check_loss`: whether a loss keeps the promises that the methods and certificates rely on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._checks import whole_number
from . import _loss_promises as promises
from ._loss import has_curvature, has_its_own, refuse_what_is_no_loss
from ._loss_probe import Probe
from ._operators import as_data, quiet

OPTIONAL = {
    "smoothness": "the smoothness constant",
    "expand": "the second derivative",
    "conjugate": "the conjugate",
    "doubt": "the rounding errors",
    "bounded_below": "the lower bound",
}
"""What a loss may leave out, and what is then not checked."""


class LossReport(NamedTuple):
    """What `check_loss` looked at.

    >>> print(LossReport(("the slope",), ("the conjugate",)))
    checked: the slope; not declared: the conjugate
    """

    checked: tuple[str, ...]
    not_declared: tuple[str, ...]

    def __str__(self) -> str:
        left = f"; not declared: {', '.join(self.not_declared)}" if self.not_declared else ""
        return f"checked: {', '.join(self.checked)}{left}"


@quiet
def check_loss(loss: Any, z: npt.ArrayLike | None = None, *, rows: int = 7, seed: int = 0) -> LossReport:
    """Check that a loss keeps its promises: try it on some vectors, and raise a ValueError that says what is wrong.

    What is compared: the slope with differences of values, the curvature with differences of slopes, values and slopes
    along segments with what convexity demands, the conjugate with the inequality of Fenchel and Young, the smoothness
    constant with slopes for a random A, the declared rounding errors with changes of the value, and all of it with what
    the methods expect of arrays.  Allowances are made for rounding, so that a difference within them is no fault.  A
    loss that passes may still be wrong elsewhere: these are tests, not a proof.

    Parameters
    ----------
    loss : Loss
        The loss, as `Affine` takes it.
    z : array_like, optional
        A point to check at, and near which to check.  Without it, vectors of several sizes around 0 are taken.
    rows : int
        The length of z where none is given; a loss that holds data, such as labels, needs as many as it has.
    seed : int
        For the random vectors.

    Returns
    -------
    LossReport
        ``checked``, what was looked at, and ``not_declared``, what the loss does not offer.

    Examples
    --------
    >>> from hasd.objectives.losses import LogSumExpLoss
    >>> print(check_loss(LogSumExpLoss()))  # doctest: +NORMALIZE_WHITESPACE
    checked: the arrays, the slope, convexity, extreme points, the smoothness constant, the second derivative,
    the conjugate, the rounding errors; not declared: the lower bound
    >>> from hasd.objectives import Loss
    >>> class Wrong(Loss):
    ...     def value_and_slope(self, z):
    ...         return float(z @ z), z.copy()
    >>> try:
    ...     check_loss(Wrong())
    ... except ValueError as error:
    ...     print(str(error).partition(":")[0])
    Wrong.value_and_slope must return the derivative of its value
    """
    refuse_what_is_no_loss(loss)
    size = int(whole_number("rows", rows, least=1, finite=True))
    given = None if z is None else as_data(z, None, "z")
    rng = np.random.default_rng(int(whole_number("seed", seed, least=0, finite=True)))
    probe = Probe(loss, rng, size if given is None else len(given), given)
    checks = {
        "the arrays": promises.check_arrays,
        "the slope": promises.check_slope,
        "convexity": promises.check_convexity,
        "extreme points": promises.check_extremes,
    }
    own = {
        "smoothness": promises.check_smoothness if has_its_own(loss, "smoothness") else None,
        "expand": promises.check_curvature if has_curvature(loss) else None,
        "conjugate": promises.check_conjugate if getattr(loss, "conjugate", None) else None,
        "doubt": promises.check_doubt if getattr(loss, "doubt", None) else None,
        "bounded_below": promises.check_lower_bound if getattr(loss, "bounded_below", False) else None,
    }
    _try_first(loss, probe)
    checks |= {OPTIONAL[name]: check for name, check in own.items() if check is not None}
    for check in checks.values():
        check(probe)
    return LossReport(tuple(checks), tuple(OPTIONAL[name] for name, check in own.items() if check is None))


def _try_first(loss: Any, probe: Probe) -> None:
    """Ask the loss once; where it raises an error, name the length of z, which may be the reason."""
    try:
        loss.value_and_slope(probe.points[0].copy())
    except (ValueError, IndexError) as error:
        hint = "a loss that holds data, such as labels, needs rows= as many as it has"
        raise ValueError(f"{type(loss).__name__} failed at a z of length {probe.rows} ({hint}): {error}") from error
