"""scikit-learn's digits, which come with the library: nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_digits


class Dataset(BaseDataset):
    """1797 x 64, grey levels in [0, 1]; one digit against the others is y, and b for the losses that fit a number."""

    name = "digits"
    requirements = ["numpy", "scikit-learn"]
    parameters = {"n_samples": [1797], "digit": [0]}
    test_config = {"n_samples": 60, "digit": 0}

    def get_data(self) -> dict[str, Any]:
        """The first rows."""
        A, label = load_digits(return_X_y=True)
        y = np.where(label == self.digit, 1.0, -1.0)[: self.n_samples]
        return {"A": A[: self.n_samples] / 16.0, "b": y, "y": y}
