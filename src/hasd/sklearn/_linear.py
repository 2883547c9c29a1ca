"""What the linear models share: sparse data, and the weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight

from .._math.arrays import refuse_masked

Array = npt.NDArray[Any]


class SparseEstimator(BaseEstimator):
    """An estimator that takes sparse data."""

    def __sklearn_tags__(self) -> Any:
        """Sparse X is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_weights(sample_weight: Any, X: Any) -> Array:
    """The weights of the rows of X, none below 0 and not all of them 0."""
    refuse_masked(sample_weight, "sample_weight")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must have an entry above 0")
    return np.asarray(weights)
