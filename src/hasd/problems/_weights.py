"""Weights of the rows of a fit, checked; rows of weight 0 left out of a minimax fit and put back into its result."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._checks import check_flags
from .._math.arrays import largest_size, to_host
from .._run.report import Result
from ..objectives._operators import Matrix, Vector, as_data, is_sparse

LEAST, MOST = 1e-50, 1e50
"""Weights of a minimax fit beyond these are refused, so that rows times weights keep away from over- and underflow."""
HUGE = 1e150
"""The squares of larger entries overflow."""


def as_weights(weights: npt.ArrayLike, length: int, name: str = "weights") -> Vector:
    """One finite weight a row, none below 0 and not all 0.

    >>> as_weights([1, 0, 2], 3)
    array([1., 0., 2.])
    """
    checked = as_data(to_host(weights), length, name)
    _refuse_where(checked < 0.0, checked, "at least 0", name)
    if not checked.any():
        raise ValueError(f"{name} must have an entry above 0")
    return checked


def _refuse_where(wrong: Vector, weights: Vector, wanted: str, name: str = "weights") -> None:
    """Name the first weight that is wrong."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} must be {wanted}, but {name}[{row}] is {weights[row]:g}")


def relative_weights(b: Vector, name: str = "b") -> Vector:
    """1/|b_i|, the weights of relative errors; a b_i = 0, of which no error is a part, is refused.

    >>> relative_weights(np.array([2.0, -4.0]))
    array([0.5 , 0.25])
    """
    size = np.abs(b)
    wrong = ~((size >= 1.0 / MOST) & (size <= 1.0 / LEAST))
    if wrong.any():
        row, count = int(np.argmax(wrong)), int(np.count_nonzero(wrong))
        if size[row] > 0.0:
            wanted = f"entries between {1.0 / MOST:g} and {1.0 / LEAST:g} in size for relative errors"
            raise ValueError(f"{name} must have {wanted}, but {name}[{row}] is {b[row]:g}")
        more = f", one of {count} such entries" if count > 1 else ""
        raise ValueError(
            f"{name} must not be 0 for relative errors, but {name}[{row}] is 0{more}; give weights, 0 in such rows"
        )
    return 1.0 / size


def row_weights(A: Matrix, b: Vector, weights: npt.ArrayLike | None, relative: bool) -> Vector | None:
    """The weights of the rows of a minimax fit, None where all are 1; numbers too large to compute with are refused."""
    check_flags(relative=relative)
    if relative and weights is not None:
        raise ValueError("give weights or relative=True, not both: relative errors have the weights 1/|b_i|")
    sizes = {"A": largest_size(A.data if is_sparse(A) else A), "b": largest_size(b)}
    for name, size in sizes.items():
        if size > HUGE:
            wanted = f"entries below {HUGE:g} in size, whose squares can be computed"
            raise ValueError(f"{name} must have {wanted}; rescale it")
    if weights is None and not relative:
        return None
    w = relative_weights(b) if weights is None else as_weights(weights, len(b))
    _refuse_where((w > 0.0) & ((w < LEAST) | (w > MOST)), w, f"0, or between {LEAST:g} and {MOST:g}")
    if float(w.max()) * max(sizes.values()) > HUGE:
        times = "the largest entry of A or b times the largest weight"
        raise ValueError(f"{times} must be below {HUGE:g}; rescale the data or the weights")
    return w


def counted_rows(A: Matrix, b: Vector, w: Vector | None) -> tuple[Matrix, Vector, Vector | None]:
    """The data without the rows of weight 0; the data themselves where there are none."""
    if w is None or w.all():
        return A, b, w
    counted = np.flatnonzero(w)
    return A[counted], b[counted], w[counted]


def with_all_rows(res: Result, A: Matrix, b: Vector, w: Vector | None) -> Result:
    """The result of the rows that count, with the residuals of the others, and rows counted as in A."""
    if w is not None and not w.all():
        counted = np.flatnonzero(w)
        residual = A.astype(np.float64, copy=False) @ res.x - b
        residual[counted] = res.residual
        res.update(active=counted[res.active], residual=residual)
    return res
