"""What the linear models share: sparse data, and the weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight

from .._math.arrays import refuse_masked
from .._math.doubt import EPS, roundings

Array = npt.NDArray[Any]


class SparseEstimator(BaseEstimator):
    """An estimator that takes sparse data."""

    def __sklearn_tags__(self) -> Any:
        """Sparse X is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def score_rounding(X: Array, coef: Array, centre: Array, intercept: Any) -> tuple[float, float]:
    """What rounding may move the scores of a model by that was fitted to X, the data less the centre of the columns.

    First what moves the scores of all rows together: coef @ centre is rounded, and subtracted from the intercepts.
    Then what moves each by itself: the entries of X were rounded.
    """
    unit = (roundings(centre.size) + 2.0) * EPS
    far = np.max(np.abs(coef) @ np.abs(centre) + np.abs(intercept))
    return unit * float(far), EPS * float(np.max(np.abs(coef) @ np.abs(X).max(axis=0)))


def check_weights(sample_weight: Any, X: Any) -> Array:
    """The weights of the rows of X, none below 0 and not all of them 0."""
    refuse_masked(sample_weight, "sample_weight")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must have an entry above 0")
    return np.asarray(weights)
