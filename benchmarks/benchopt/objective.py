"""The benchmark's objective: f(x) = phi(Ax - b) + ridge/2 ||x||^2 for four losses phi."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchopt import BaseObjective

from benchmark_utils.fingerprint import fingerprint
from benchmark_utils.losses import LOSSES
from benchmark_utils.stopping import Settled


class Objective(BaseObjective):
    """f(x) = phi(Ax - b) + ridge/2 ||x||^2, from x = 0.

    * log-sum-exp: log sum_i exp(z_i), z = Ax - b.
    * minimax: alpha log sum_i 2 cosh(z_i/alpha), max|z| smoothed to `smoothing` times max|b|.
    * logistic: the mean of log(1 + exp(-y_i <a_i, x>)).
    * least-squares: 1/2 ||z||^2.
    """

    name = "smooth-fit"
    min_benchopt_version = "1.10"
    # hasd is not listed: the one to measure is this repository's, and the environment of `make bench` has it.
    requirements = ["numpy", "scipy", "threadpoolctl"]
    parameters = {
        "loss": ["log-sum-exp", "minimax", "logistic", "least-squares"],
        "ridge": [1e-3],
        "smoothing": [1e-2],  # of the minimax loss only
        "threads": [1],
        "code": [fingerprint()],  # not to be chosen: it makes the cache forget timings of other code
    }
    parameter_template = "loss={loss},ridge={ridge:g},smoothing={smoothing:g},threads={threads}"
    test_dataset_name = "gaussian"
    test_config = {"loss": "log-sum-exp"}

    sampling_strategy = "callback"
    stopping_criterion = Settled()  # not benchopt's default: see benchmark_utils/stopping.py

    def skip(self, A: Any, b: np.ndarray, y: np.ndarray | None) -> tuple[bool, str | None]:
        """What cannot be posed on the data."""
        if self.loss not in LOSSES:
            return True, f"unknown loss {self.loss}, the known ones are {', '.join(LOSSES)}"
        if self.loss == "logistic" and y is None:
            return True, "the data have no two classes"
        if self.loss == "log-sum-exp" and self.ridge == 0.0:
            return True, "log-sum-exp may be unbounded below without a ridge"
        return False, None

    def set_data(self, A: Any, b: np.ndarray, y: np.ndarray | None) -> None:
        """Keep the data, and choose what the loss compares with."""
        self.A = A
        self.target: Any = y if self.loss == "logistic" else b
        self.alpha = 1.0
        if self.loss == "minimax":
            # max|z| <= phi(z) <= max|z| + alpha log(2n)
            self.alpha = self.smoothing * float(np.abs(b).max()) / math.log(2 * len(b))

    def get_objective(self) -> dict[str, Any]:
        """What the solvers are told."""
        return {
            "loss": self.loss,
            "A": self.A,
            "target": self.target,
            "alpha": self.alpha,
            "ridge": self.ridge,
            "threads": self.threads,
        }

    def evaluate_result(self, x: np.ndarray) -> dict[str, float]:
        """f(x) and ||grad f(x)||_2, by code that shares nothing with the solvers'."""
        value, slope = LOSSES[self.loss](self.A @ x, self.target, self.alpha)
        gradient = self.A.T @ slope + self.ridge * x
        return {
            "value": value + 0.5 * self.ridge * float(x @ x),
            "grad_norm": float(np.linalg.norm(gradient)),
        }

    def get_one_result(self) -> dict[str, np.ndarray]:
        """The start."""
        return {"x": np.zeros(self.A.shape[1])}
