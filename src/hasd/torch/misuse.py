"""Whether a closure is a convex function of the parameters: what `hasd.torch.HASD` certifies depends on it.

A point of the step before is evaluated again now and then: in the 2nd, 4th, 8th, 16th, ... step, and where cuts
contradict values.  So a batch that changes from step to step shows as well as one that changes from call to call.  It
is evaluated twice, because every other call may have the same batch.
"""

from __future__ import annotations

import math

from .._math.evaluation import Evaluation
from .._run.convexity import Convexity, Seen

NOISY = (
    "the closure returned {now:.6g} where it had returned {before:.6g} at the same parameters: the loss depends on "
    "more than the parameters (mini-batches, dropout).  Nothing is certified any more; hasd.torch.StochasticHASD is "
    "for such losses"
)


def is_due(step: int) -> bool:
    """Whether a point is evaluated again in this step: every power of two, so that it costs little in a long run.

    >>> [step for step in range(1, 20) if is_due(step)]
    [2, 4, 8, 16]
    """
    return step > 1 and step & (step - 1) == 0


def find_noise(before: Evaluation, now: float, eps: float) -> str:
    """What to say where a value differs from the one before at the same point; nothing where rounding may explain it.

    Sums that several threads add in changing order differ by rounding.  The root of eps, relative to the sizes of the
    values and of <g, x>, is far more than that.  The curvature that was seen is not asked, as noise makes it large.

    >>> import numpy as np
    >>> e = Evaluation(np.ones(2), 1.0, np.ones(2))
    >>> find_noise(e, 1.0 + 1e-12, eps=2.0**-52), find_noise(e, 1.5, 2.0**-52)[:25]
    ('', 'the closure returned 1.5 ')
    """
    if not math.isfinite(now):
        return ""
    sizes = abs(before.f) + abs(now) + before.norm2 * before.size
    allowed = math.sqrt(max(eps, before.eps)) * sizes
    return "" if abs(now - before.f) <= allowed else NOISY.format(now=now, before=before.f)


def find_nonconvexity(best: Evaluation | None, last: Evaluation, new: Evaluation, step: int, bend: float) -> str:
    """Where the newest evaluation contradicts the last one or the best; nothing where it fits a convex function."""
    if not new.finite:
        return ""
    lowest, before = Seen(best or last, step - 1), Seen(last, step - 1)
    return Convexity(lowest, lowest, before).with_evaluation(new, step, bend)[1]
