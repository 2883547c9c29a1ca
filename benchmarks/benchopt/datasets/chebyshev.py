"""Polynomial approximation: the Chebyshev basis against |t|."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """T_0, T_1, ... at the Chebyshev nodes of [-1, 1] against |t| with a little noise; no classes."""

    name = "chebyshev"
    requirements = ["numpy"]
    parameters = {"n_samples, n_features": [(2000, 40)], "noise": [1e-3]}
    test_config = {"n_samples": 60, "n_features": 8, "noise": 1e-3}

    def get_data(self) -> dict[str, Any]:
        """The same for every repetition; `--seed` changes the noise."""
        rng = np.random.default_rng(self.get_seed(use_dataset=True))
        n, d = self.n_samples, self.n_features
        t = np.cos(math.pi * (np.arange(n) + 0.5) / n)
        A = np.polynomial.chebyshev.chebvander(t, d - 1)
        return {"A": A, "b": np.abs(t) + self.noise * rng.standard_normal(n), "y": None}
