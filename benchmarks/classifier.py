"""LogisticClassifier against the solvers of scikit-learn's LogisticRegression: seconds at the same accuracy.

python -m benchmarks.classifier [name ...]

Every solver is run at falling tolerances until its objective, C sum of losses + 1/2 ||w||^2, is within 1e-6 of the
best one that is known, relative to it.  The seconds are the least of some runs at that tolerance; they are those of the
processor, with one thread, so that other programs on the machine matter less.  LogisticClassifier is also timed where
it *certifies* 1e-6, which scikit-learn does not do.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from hasd.sklearn import LogisticClassifier

GOAL = 1e-6
LADDER = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
REPEATS = 15
CAP = 10.0
"""Seconds that one solver may take on one data set."""
DENSE = 1000
"""newton-cholesky writes out the Hessian: only up to so many variables."""


class Data(NamedTuple):
    """Rows and their classes."""

    X: Any
    y: Any

    @property
    def variables(self) -> int:
        """How many coefficients there are."""
        classes = len(np.unique(self.y))
        return int(self.X.shape[1] * (1 if classes == 2 else classes))

    def objective(self, model: Any) -> float:
        """C sum of losses + 1/2 ||w||^2 at C = 1."""
        scores = np.asarray(self.X @ model.coef_.T + model.intercept_)
        if scores.shape[1] == 1:
            scores = np.hstack((np.zeros_like(scores), scores))
        losses = -log_softmax(scores, axis=1)[np.arange(len(self.y)), self.y]
        return float(losses.sum() + 0.5 * np.sum(model.coef_**2))


def standardised(load: Callable[..., Any]) -> Data:
    """A data set of scikit-learn's, its columns of mean 0 and variance 1."""
    X, y = load(return_X_y=True)
    return Data(StandardScaler().fit_transform(X), y)


def synthetic(classes: int) -> Data:
    """5000 sparse rows of 2000 columns with 1% of entries, and classes with some noise."""
    rng = np.random.default_rng(0)
    X = sp.random_array((5000, 2000), density=0.01, random_state=rng, format="csr", data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal((2000, classes)) + 0.5 * rng.standard_normal((5000, classes))
    return Data(X, scores.argmax(axis=1))


DATA = {
    "digits": partial(standardised, load_digits),
    "breast-cancer": partial(standardised, load_breast_cancer),
    "sparse-2": partial(synthetic, 2),
    "sparse-5": partial(synthetic, 5),
}


def solvers(data: Data) -> Iterator[tuple[str, Callable[[float], Any]]]:
    """A model to fit for each tolerance."""
    yield "hasd", lambda tol: LogisticClassifier(gap_rtol=tol)
    for name in ("lbfgs", "newton-cg", "newton-cholesky", "saga"):
        if name != "newton-cholesky" or data.variables <= DENSE:
            yield name, lambda tol, name=name: LogisticRegression(solver=name, tol=tol, max_iter=100_000)  # type: ignore[misc]


def seconds_of(make: Callable[[], Any], data: Data) -> float:
    """The least of some runs."""
    taken = []
    while len(taken) < REPEATS and sum(taken) < CAP:
        began = time.process_time()
        make().fit(*data)
        taken.append(time.process_time() - began)
    return min(taken)


def loosest(make: Callable[[float], Any], data: Data, goal: float) -> tuple[float, float] | None:
    """The loosest tolerance of the ladder that reaches the goal, and its seconds; None where none does in time."""
    began = time.perf_counter()
    for tol in LADDER:
        if data.objective(make(tol).fit(*data)) <= goal:
            return tol, seconds_of(partial(make, tol), data)
        if time.perf_counter() - began > CAP:
            break
    return None


def compare(name: str) -> None:
    """Print the table of one data set."""
    data = DATA[name]()
    best = LogisticClassifier(gap_rtol=1e-12, max_iter=10_000).fit(*data)
    goal = data.objective(best) * (1.0 + GOAL)
    print(f"{name}: {data.X.shape[0]} x {data.X.shape[1]}, {len(np.unique(data.y))} classes")
    found = {solver: loosest(make, data, goal) for solver, make in solvers(data)}
    certified = seconds_of(partial(LogisticClassifier, gap_rtol=GOAL), data)
    rows = {
        solver: f"{run[1] * 1e3:9.1f} ms  at tol {run[0]:g}" if run else "  not reached"
        for solver, run in found.items()
    }
    for solver, text in {**rows, "hasd, certified": f"{certified * 1e3:9.1f} ms  at tol {GOAL:g}"}.items():
        print(f"  {solver:16s} {text}")
    rivals = {solver: run[1] for solver, run in found.items() if run and solver != "hasd"}
    first = min(rivals, key=rivals.__getitem__)
    own = found["hasd"][1] if found["hasd"] else np.nan
    print(f"  scikit-learn's best is {first}; hasd takes {own / rivals[first]:.2f} of its time,", end=" ")
    print(f"{certified / rivals[first]:.2f} with the certificate")


def main(argv: Sequence[str] | None = None) -> None:
    """The data sets that are named, or all."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.classifier", description=(__doc__ or "").split("\n")[0]
    )
    options.add_argument("data", nargs="*", help=f"of {', '.join(DATA)}; all where none is named")
    names = options.parse_args(argv).data or list(DATA)
    if unknown := set(names) - set(DATA):
        options.error(f"unknown data: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in names:
            compare(name)


if __name__ == "__main__":
    main()
