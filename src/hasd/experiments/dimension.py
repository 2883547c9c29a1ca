"""The paper's headline as a picture: gradient evaluations to one accuracy, against the dimension.

softmax   alpha log sum_i (e^{x[i]/alpha} + e^{-x[i]/alpha}), alpha = 0.002, from random starts in [-1, 1]^d; x* = 0
graph     min over x of max over edges |x_i - x_j - b_ij|, smoothed with alpha = 0.01, on random graphs, from 0: the
          paper's footnote asks for such an affine map inside the softmax

`nemirovskii-nesterov` must be told the number T of its iterations, and R_p.  It gets the true R_p and the best T: the
smallest T, up to a fiftieth, with which it arrives within T iterations.  Only the evaluations of that run are counted.

Each with L declared and with L found.  A run ends at the first point whose gap is TARGET times that of x_0: a point
that the method evaluates, or its iterate x_t.  Where a method does not evaluate x_t, f(x_t) is computed for this
purpose alone and not counted.  Every call of the function counts as one, whether the method needs the value, the
gradient or both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.optimize

from .. import theory
from .._math.geometry import Lp, gain
from .._minimize import iterate
from .._run.problem import Method
from .._run.record import State
from ..methods import NemirovskiiNesterov
from ..objectives import SymmetricSoftmax
from .dimension_plot import draw, draw_exponents
from .dimension_report import report
from .experiment import Experiment, decades, exponent, size
from .families import network
from .gains import step_gains
from .potentials import Optimum, optimum
from .style import NORMED
from .tables import Row, Tables
from .workers import Workers

TARGET = 1e-2
"""The gap at which a run ends, relative to that of x_0."""
SOFTMAX_ALPHA, GRAPH_ALPHA = 0.002, 0.01
PEER = "L-BFGS-B"
PLANNED = "nemirovskii-nesterov"
DECLARED = ("hasd-paper", "hasd", "linear-coupling", "agd", "steepest-descent", PLANNED)
METHODS = {"declared": DECLARED, "found": (*DECLARED, PEER, "hasd-qn")}
"""The methods that are told L, and those that find it or do without."""
EXPONENTS = {"softmax": (math.inf, 4.0), "graph": (math.inf,)}
SECOND = 10_000
"""The largest d in another norm than the first, where runs are long and powers slow; with --p it has no limit."""


@dataclass(frozen=True)
class DimensionSizes:
    """How much to measure."""

    d: int = size(100_000, "the largest d of the softmax; the others are 10, 100, ... below it")
    n: int = size(100_000, "the largest number of nodes of a graph; the others are 100, 1000, ... below it")
    p: float | None = exponent(None, f"one exponent instead of inf and, for the softmax up to d = {SECOND}, 4")
    starts: int = size(5, "random starts of each softmax, and random graphs of each size")
    evaluations: int = size(3000, "the most evaluations of a run")
    seed: int = 0

    def dimensions(self, problem: str) -> tuple[int, ...]:
        """Every d, or every number of nodes."""
        return decades(10, self.d) if problem == "softmax" else decades(100, self.n)

    def exponents(self, problem: str) -> tuple[float, ...]:
        """Every p."""
        return EXPONENTS[problem] if self.p is None else (self.p,)


@dataclass(frozen=True)
class Instance:
    """A function, a start and what is known of the optimum."""

    f: SymmetricSoftmax
    x0: np.ndarray
    least: float  # f*, up to the error
    error: float
    x_star: np.ndarray

    def radius(self, p: float = 2.0) -> float:
        """||x_0 - x*||_p."""
        return Lp(p).norm(self.x0 - self.x_star)

    @property
    def first_gap(self) -> float:
        """f(x_0) - f*."""
        return self.f(self.x0) - self.least


def softmax(d: int, start: int, seed: int) -> Instance:
    """The softmax from a random start; its minimum is known."""
    x0 = np.random.default_rng([seed, start, d]).uniform(-1.0, 1.0, d)
    f = SymmetricSoftmax(b=np.zeros(d), alpha=SOFTMAX_ALPHA)
    return Instance(f, x0, SOFTMAX_ALPHA * math.log(2 * d), 0.0, np.zeros(d))


def graph_data(sizes: DimensionSizes, nodes: int, start: int) -> tuple[Any, np.ndarray]:
    """A and b of a random graph; no two seeds have one in common."""
    return network(nodes, sizes.seed * sizes.starts + start)


def graph(A: Any, b: np.ndarray, best: Optimum) -> Instance:
    """The smoothed potentials from 0, with their optimum."""
    return Instance(SymmetricSoftmax(A, b, alpha=GRAPH_ALPHA), np.zeros(A.shape[1]), best.fun, best.error, best.x)


class TargetReached(Exception):
    """A run need not go on: it has arrived, or spent its evaluations."""


class CountedFunction:
    """Value and gradient in one call, every call counted; every value is compared with the target."""

    def __init__(self, instance: Instance, most: int) -> None:
        """Nothing is evaluated yet."""
        self.f, self.most, self.calls, self.lowest = instance.f, most, 0, math.inf
        self.target = instance.least + TARGET * instance.first_gap

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """One evaluation."""
        if self.calls == self.most:
            raise TargetReached
        self.calls += 1
        value, g = self.f.value_and_grad(x)
        self.see(value)
        return value, g

    def see(self, value: float) -> None:
        """End the run where this is low enough."""
        self.lowest = min(self.lowest, value)
        if self.has_arrived:
            raise TargetReached

    def see_iterate(self, state: State) -> None:
        """The same for an iterate that its method has not evaluated.

        f is convex: where the tangent at the newest evaluation is above the target, so is f, and is not computed.
        """
        at = state.at
        if state.x is not at.x and at.f + float(at.g @ (state.x - at.x)) <= self.target:
            self.see(self.f(state.x))

    @property
    def has_arrived(self) -> bool:
        """Whether some point was low enough."""
        return self.lowest <= self.target


def follow(
    function: CountedFunction, x0: np.ndarray, method: str | Method, p: float, L: float | None, most: int | None = None
) -> list[float]:
    """Run one of our methods until it arrives, or has spent its evaluations; the gains of its newest gradients.

    With `most` it makes so many iterations at most.
    """
    gains: list[float] = []
    with suppress(TargetReached):
        for state in islice(
            iterate(function, x0, jac=True, method=method, p=p, L=L), None if most is None else most + 1
        ):
            gains.append(state.gain if gains else gain(Lp(p), state.at.g))
            function.see_iterate(state)
    return gains


def follow_best_plan(instance: Instance, most: int, p: float, L: float | None) -> CountedFunction:
    """The run of `nemirovskii-nesterov` with the smallest T that arrives within its T iterations, up to a fiftieth.

    T is doubled until a run arrives, and bisected then; every run starts afresh, and has its own evaluations.
    """

    def run(T: int) -> CountedFunction:
        function = CountedFunction(instance, most)
        follow(function, instance.x0, NemirovskiiNesterov(T=T, R=instance.radius(p)), p, L, T)
        return function

    low, high, best = 0, 1, run(1)
    while not best.has_arrived and high < most:
        low, high = high, min(2 * high, most)
        best = run(high)
    while best.has_arrived and high - low > max(1, high // 50):
        middle = (low + high) // 2
        tried = run(middle)
        low, high, best = (low, middle, tried) if tried.has_arrived else (middle, high, best)
    return best


def follow_peer(function: CountedFunction, x0: np.ndarray) -> None:
    """The same with SciPy's L-BFGS-B, which judges no convergence of its own."""
    options = {"maxfun": 10**9, "maxiter": 10**9, "ftol": 0.0, "gtol": 0.0}
    with suppress(TargetReached):
        scipy.optimize.minimize(function, x0, jac=True, method=PEER, options=options)


def solve(instance: Instance, most: int, method: str, p: float, constant: str) -> Row:
    """One run: its evaluations, NaN where it did not arrive, and those that its bound promises."""
    function = CountedFunction(instance, most)
    L = float(instance.f.smoothness(p)) if constant == "declared" else None
    gains: list[float] = []
    if method == PEER:
        follow_peer(function, instance.x0)
    elif method == PLANNED:
        function = follow_best_plan(instance, most, p, L)
    else:
        gains = follow(function, instance.x0, method, p, L)
    counted = method in ("hasd-paper", "hasd") and len(gains) > 1
    G = float(step_gains(method, gains).mean()) if counted else math.nan
    first = instance.first_gap
    return {
        "evaluations": function.calls if function.has_arrived else math.nan,
        "spent": function.calls,
        "gap": (function.lowest - instance.least) / first,
        "error": instance.error / first,
        "gain": G,
        "bound": math.nan if L is None else promised_evaluations(instance, method, p, L, G),
    }


def promised_evaluations(instance: Instance, method: str, p: float, L: float, G: float) -> float:
    """The evaluations after which the method's bound, with the mean gain G of a run, is at the target.

    The bound of steepest descent needs the size of the level set of x_0.  For the softmax it is known: there
    ||x||_inf <= f(x) <= f(x_0).
    """
    R, d = instance.radius(), instance.x0.size
    q = theory.prox_exponent(p, d)
    reach = instance.radius(p) * float(d) ** (1.0 / q - 1.0 / p)
    around = instance.f(instance.x0) * float(d) ** (1.0 / p) if instance.f.A is None else math.nan
    bounds: dict[str, Callable[[int], float]] = {
        "hasd-paper": lambda T: theory.main_bound(L, R, G, T, constant=theory.MAIN_PAPER),
        "hasd": lambda T: theory.optimised_bound(L, R, p, G, T),
        "linear-coupling": lambda T: theory.linear_coupling_bound(L, R, T),
        "agd": lambda T: theory.accelerated_gradient_bound(L, R, T),
        "steepest-descent": lambda T: theory.steepest_descent_bound(L, around, T),
        PLANNED: lambda T: theory.nemirovskii_bound(L, reach, T, q),
    }
    needed = {"hasd-paper": G, "hasd": G, "steepest-descent": around}
    if math.isnan(needed.get(method, R)):
        return math.nan
    T = least_iterations(bounds[method], TARGET * instance.first_gap)
    return 2 * T if method == "hasd-paper" else T


def least_iterations(bound: Callable[[int], float], eps: float) -> int:
    """The first T with bound(T) <= eps, for a bound that falls to 0.

    >>> least_iterations(lambda T: 1.0 / T, 0.01)
    100
    """
    low, high = 0, 1
    while bound(high) > eps:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > eps else (low, middle)
    return high


def heads(sizes: DimensionSizes) -> list[Row]:
    """What is run: a row each, without results."""
    return [
        {"problem": problem, "size": dimension, "constant": constant, "method": method, "p": p, "start": start}
        for problem in EXPONENTS
        for dimension in sizes.dimensions(problem)
        for constant, methods in METHODS.items()
        for method in methods
        for k, p in enumerate(sizes.exponents(problem) if method in NORMED else (2.0,))
        if k == 0 or dimension <= SECOND
        for start in range(sizes.starts)
    ]


def reference_of(sizes: DimensionSizes, place: tuple[str, int, int]) -> Optimum:
    """The optimum of a graph."""
    _, nodes, start = place
    return optimum(*graph_data(sizes, nodes, start), GRAPH_ALPHA)


def measure(sizes: DimensionSizes, task: tuple[Row, Optimum | None]) -> Row:
    """The run that a head asks for."""
    head, best = task
    if best is None:
        instance = softmax(head["size"], head["start"], sizes.seed)
    else:
        instance = graph(*graph_data(sizes, head["size"], head["start"]), best)
    return {**head, **solve(instance, sizes.evaluations, head["method"], head["p"], head["constant"])}


def tables(sizes: DimensionSizes, workers: Workers) -> Tables:
    """A row a run.  The longest begin first, so that no worker is left alone with one of them at the end."""
    places = [("graph", nodes, start) for nodes in sizes.dimensions("graph")[::-1] for start in range(sizes.starts)]
    found = workers.map(partial(reference_of, sizes), places, "dimension: reference optima")
    optima = dict(zip(places, found, strict=True))
    tasks = [(head, optima.get((head["problem"], head["size"], head["start"]))) for head in heads(sizes)]
    order = sorted(range(len(tasks)), key=lambda k: -tasks[k][0]["size"])
    rows = workers.map(partial(measure, sizes), [tasks[k] for k in order], "dimension: runs")
    return {"dimension": [row for _, row in sorted(zip(order, rows, strict=True), key=itemgetter(0))]}


EXPERIMENT = Experiment(
    name="dimension",
    summary="the paper's headline: evaluations to one accuracy against the dimension, on two problems",
    sizes=DimensionSizes(),
    quick=DimensionSizes(d=100, n=100, starts=2, evaluations=1000),
    tables=tables,
    plots={"dimension": ((9.0, 7.4), draw), "dimension-exponents": ((9.0, 4.4), draw_exponents)},
    report=report,
)
