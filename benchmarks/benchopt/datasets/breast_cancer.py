"""scikit-learn's breast cancer data, which come with the library: nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_breast_cancer


class Dataset(BaseDataset):
    """569 x 30, standardised; the two classes are y, and b for the losses that fit a number."""

    name = "breast-cancer"
    requirements = ["numpy", "scikit-learn"]
    parameters = {"n_samples": [569]}
    test_config = {"n_samples": 60}

    def get_data(self) -> dict[str, Any]:
        """The first rows."""
        A, label = load_breast_cancer(return_X_y=True)
        A = ((A - A.mean(axis=0)) / A.std(axis=0))[: self.n_samples]
        y = np.where(label == 1, 1.0, -1.0)[: self.n_samples]
        return {"A": A, "b": y, "y": y}
