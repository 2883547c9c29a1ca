"""The gain of every step of a run, as the bounds of HASD count it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..theory import optimised_step


def step_gains(method: str, gains: Sequence[float]) -> np.ndarray:
    """The numbers whose mean is G, from the gains of the newest gradients of the states t = 0, 1, ...

    Algorithm 1 counts the gains at x_1, x_2, ...; the optimised form counts min(s, r^2/s) with r the gain at y_0,
    y_1, ... and s the gain before it.

    >>> step_gains("hasd", [2.0, 4.0, 2.0, 3.0]).tolist(), step_gains("hasd-paper", [2.0, 4.0, 2.0]).tolist()
    ([2.0, 2.0, 1.0], [4.0, 2.0])
    """
    if method == "hasd-paper":
        return np.array(gains[1:], dtype=float)
    before = [gains[0], *gains[:-1]]
    return np.array([optimised_step(s, r) for s, r in zip(before[:-1], gains[:-1], strict=True)])
