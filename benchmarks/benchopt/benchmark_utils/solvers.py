"""What the solvers have in common: the set-up that is not timed, and two ways to be watched through a callback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchopt import BaseSolver
from scipy import optimize
from threadpoolctl import threadpool_limits

import hasd
from benchmark_utils.oracle import HessianProducts, objective

UNLIMITED = 10**9
"""Iterations and evaluations: the criterion of the benchmark ends a run, or the solver's own precision."""
SPACING = 1.3
"""From an evaluation to the next, in iterations."""

Callback = Callable[[], bool]


class FitSolver(BaseSolver):
    """A solver of the benchmark's problems, started at 0."""

    def set_objective(self, loss: str, A: Any, target: np.ndarray, alpha: float, ridge: float, threads: int) -> None:
        """Keep the problem; the function has a counter of its own."""
        self.loss, self.A, self.target, self.ridge, self.threads = loss, A, target, ridge, threads
        self.f = objective(loss, A, target, alpha, ridge)
        self.x = np.zeros(A.shape[1])

    def warm_up(self) -> None:
        """One iteration, so that the first solver does not pay for imports and pages that the others find ready."""
        self.run_once(1)

    def pre_run_hook(self, stop_val: Any) -> None:
        """The same number of BLAS and OpenMP threads for all, whatever the environment says; this is not timed."""
        threadpool_limits(limits=self.threads)
        self.x = np.zeros(self.A.shape[1])

    def get_result(self) -> dict[str, np.ndarray]:
        """The current iterate."""
        return {"x": self.x}


class WatchedSolver(FitSolver):
    """A solver that calls back after each iteration: one run makes the whole curve, benchopt's clock standing still."""

    sampling_strategy = "callback"

    def get_next(self, stop_val: int) -> int:
        """The next iteration to evaluate at.

        benchopt's own spacing widens for good whenever two values are equal, as they are for a method that waits, and
        limits are looked at in evaluations only: it would run far beyond them.
        """
        return max(stop_val + 1, int(SPACING * stop_val))

    def watch(self, callback: Callback) -> Callable[[np.ndarray], None]:
        """The callback in the form that SciPy and hasd know."""

        def after_iteration(x: np.ndarray) -> None:
            self.x = np.array(x)  # SciPy may go on writing into its own
            if not callback():
                raise StopIteration

        return after_iteration


class HasdSolver(WatchedSolver):
    """`hasd.minimize` as a user calls it, but for the tolerance, which is opened."""

    method = "auto"

    def settings(self) -> dict[str, Any]:
        """Further arguments of `hasd.minimize`."""
        return {}

    def run(self, callback: Callback) -> None:
        """Until the callback or machine precision ends it."""
        if callback():
            settings = {"tol": 0.0, "maxiter": UNLIMITED, "trace": False, **self.settings()}
            hasd.minimize(self.f, self.x, method=self.method, callback=self.watch(callback), **settings)


class ScipySolver(WatchedSolver):
    """One of SciPy's minimisers, its tolerances opened."""

    method = ""
    second_order = False

    def options(self) -> dict[str, Any]:
        """The options that open its tolerances."""
        return {}

    def run(self, callback: Callback) -> None:
        """Until the callback ends it, or the line search can do no more."""
        if not callback():
            return
        products = {"hessp": HessianProducts(self.f)} if self.second_order else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # at machine precision they complain of the line search
            optimize.minimize(
                self.f.value_and_grad,
                self.x,
                jac=True,
                method=self.method,
                callback=self.watch(callback),
                options={"maxiter": UNLIMITED, **self.options()},
                **products,
            )
