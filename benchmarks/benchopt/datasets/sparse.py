"""A sparse matrix in CSR form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Normal entries at random places, b from a sparse model with noise, y its signs."""

    name = "sparse"
    requirements = ["numpy", "scipy"]
    parameters = {"n_samples, n_features": [(20_000, 2_000)], "density": [0.005]}
    test_config = {"n_samples": 100, "n_features": 20, "density": 0.2}

    def get_data(self) -> dict[str, Any]:
        """The same for every repetition; `--seed` changes it."""
        rng = np.random.default_rng(self.get_seed(use_dataset=True))
        n, d = self.n_samples, self.n_features
        A = scipy.sparse.random(n, d, self.density, "csr", random_state=rng, data_rvs=rng.standard_normal)
        b = A @ (rng.standard_normal(d) * (rng.random(d) < 0.1)) + 0.5 * rng.standard_normal(n)
        return {"A": A, "b": b, "y": np.where(b > 0.0, 1.0, -1.0)}
