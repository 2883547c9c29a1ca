"""scikit-learn's LogisticRegression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmark_utils.solvers import FitSolver
from benchmark_utils.stopping import Settled


class Solver(FitSolver):
    """LogisticRegression(solver="lbfgs") with C = 1/(n ridge) and no intercept: our function times a constant."""

    name = "scikit-learn lbfgs"
    requirements = ["scikit-learn", "scipy", "threadpoolctl"]
    test_config = {"objective": {"loss": "logistic"}}

    # It takes no callback, so it is run anew from 0 for every point of its curve, and each run is timed alone.
    sampling_strategy = "iteration"
    # One of its own: benchopt writes the strategy into the criterion, which the others share for theirs.
    stopping_criterion = Settled()

    def skip(self, loss: str, ridge: float, **others: Any) -> tuple[bool, str | None]:
        """Where its objective is another one."""
        if loss != "logistic":
            return True, "scikit-learn's LogisticRegression minimises the logistic loss only"
        if ridge == 0.0:
            return True, "C = 1/(n ridge) needs a ridge"
        return False, None

    def run(self, n_iter: int) -> None:
        """So many iterations at most; none at all is the start, which it would not return."""
        if n_iter == 0:
            return
        model = LogisticRegression(
            C=1.0 / (len(self.target) * self.ridge), solver="lbfgs", tol=1e-14, max_iter=n_iter, fit_intercept=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns at every limit on iterations, and those are what is sampled
            model.fit(self.A, self.target)
        self.x = np.ravel(model.coef_)
