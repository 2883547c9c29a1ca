"""A dense normal matrix, ill-conditioned by its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Normal A whose columns shrink from 1 to 1/condition, b from a random model with noise, y its signs."""

    name = "gaussian"
    requirements = ["numpy"]
    parameters = {"n_samples, n_features": [(2000, 200)], "condition": [100]}
    test_config = {"n_samples": 60, "n_features": 8, "condition": 10}

    def get_data(self) -> dict[str, Any]:
        """The same for every repetition; `--seed` changes it."""
        rng = np.random.default_rng(self.get_seed(use_dataset=True))
        n, d = self.n_samples, self.n_features
        A = rng.standard_normal((n, d)) * np.geomspace(1.0, 1.0 / self.condition, d)
        b = A @ rng.standard_normal(d) + rng.standard_normal(n)
        return {"A": A, "b": b, "y": np.where(b > 0.0, 1.0, -1.0)}
