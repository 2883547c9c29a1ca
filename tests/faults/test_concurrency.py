"""Threads, nested calls, many processes: what serial runs give, bit for bit; nothing of the caller's is touched."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, zip_longest
from multiprocessing import get_context

import numpy as np
import pytest

import hasd
import runs
from hasd import objectives
from hasd.objectives.base import Objective

METHODS = ("auto", *hasd.method_names())
SOLVERS = ("chebyshev", "lp_fit", "transport", "balance", "balance, sparse", "finite differences")


@contextmanager
def hurried() -> Iterator[None]:
    """Threads take turns every few instructions, so that a race is likely to show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(tasks: list[Callable[[], str]], threads: int = 4) -> list[str]:
    """What they return, all started at the same moment."""
    gate = threading.Barrier(threads)

    with hurried(), ThreadPoolExecutor(threads, initializer=gate.wait) as pool:
        return list(pool.map(lambda task: task(), tasks))


def test_different_runs_in_four_threads_do_not_disturb_each_other():
    """The whole catalogue at once: methods, objectives and solvers beside each other."""
    catalogue = runs.catalogue()
    got = in_threads([lambda run=run: runs.digest(run()) for run in catalogue.values()])
    assert dict(zip(catalogue, got, strict=True)) == runs.digests()


@pytest.mark.parametrize("name", ["log-sum-exp", "sparse", "quadratic", "transport", "black box"])
def test_one_objective_shared_by_four_threads_gives_the_serial_bits(name):
    """The same instance in every thread: the same bits, and each run counts its own products only."""
    f = runs.functions()[name]
    names = [method for method in METHODS if not isinstance(runs.minimized(f, method), str)]
    alone = [runs.digest(runs.minimized(f, method)) for method in names]
    tasks = [lambda method=method: runs.digest(runs.minimized(f, method)) for _ in range(3) for method in names]
    assert in_threads(tasks) == alone * 3


def test_mutation_a_shared_counter_is_noticed(monkeypatch):
    """Were the counter the objective's own, a second run would already differ from the first."""
    monkeypatch.setattr(Objective, "with_own_counter", lambda self: self)
    f = runs.functions()["log-sum-exp"]
    assert runs.digest(runs.minimized(f, "hasd")) != runs.digest(runs.minimized(f, "hasd"))


def envelope(x: np.ndarray, method: str) -> tuple[float, np.ndarray, str]:
    """The Moreau envelope of a softmax at x and its slope there, by a run of its own; and that run's digest."""
    f = objectives.SymmetricSoftmax(runs.matrix(5, (12, 4)), np.arange(12.0))

    def inner(y: np.ndarray) -> tuple[float, np.ndarray]:
        value, g = f.value_and_grad(y)
        return value + 0.5 * float((y - x) @ (y - x)), g + y - x

    res = hasd.minimize(inner, x, jac=True, mu=1.0, method=method, maxiter=40)
    return res.fun, x - res.x, runs.digest(res)


@pytest.mark.parametrize("method", ["hasd", "hasd-qn", "hasd-paper", "hasd-restart", "heavy-ball"])
def test_a_function_may_minimise_inside_a_run_and_changes_neither(method):
    """Nested runs: the inner ones give what they give by themselves, the outer one what it does with their values."""
    asked: list[tuple[np.ndarray, tuple[float, np.ndarray, str]]] = []

    def nested(x: np.ndarray) -> tuple[float, np.ndarray]:
        asked.append((x.copy(), envelope(x, method)))
        return asked[-1][1][:2]

    options = {"jac": True, "mu": 0.01, "method": method, "maxiter": 15}
    res = hasd.minimize(nested, np.ones(4), **options)
    assert len(asked) > 5
    alone = [envelope(x, method) for x, _ in asked]
    assert [digest for *_, digest in alone] == [digest for _, (*_, digest) in asked]
    replies = iter(alone)
    assert runs.digest(hasd.minimize(lambda x: next(replies)[:2], np.ones(4), **options)) == runs.digest(res)


def test_a_callback_may_minimise_inside_a_run_and_changes_neither():
    f, seen = runs.functions()["logistic"], []
    plain = runs.minimized(f, "hasd")
    res = runs.minimized(f, "hasd", callback=lambda x: seen.append(runs.digest(runs.minimized(f, "hasd"))))
    assert len(seen) == plain.nit and set(seen) == {runs.digest(plain)} == {runs.digest(res)}


@pytest.mark.parametrize("method", hasd.method_names())
def test_loops_that_take_turns_do_not_disturb_each_other(method):
    """Two iterators over one objective, a step of each in turn: the states of each are those of a loop of its own."""
    f = runs.functions()["least-squares"]

    def loop(value: float) -> Iterator[bytes]:
        return (state.x.tobytes() for state in islice(hasd.iterate(f, np.full(runs.D, value), method=method), 8))

    together = list(zip_longest(loop(0.0), loop(1.0)))  # one of them may end before the other
    assert [one for one, _ in together if one is not None] == list(loop(0.0))
    assert [two for _, two in together if two is not None] == list(loop(1.0))


@pytest.mark.slow
def test_three_spawned_processes_give_the_serial_bits():
    """Fresh interpreters, three at once: the bits of this one.  What is sent there can be pickled."""
    names = [*SOLVERS, *(f"{method}: logistic" for method in METHODS), *(f"{method}: sparse" for method in METHODS)]
    f = runs.functions()["power"]
    several = ("hasd", "hasd-subspace", "hasd-newton", "hasd-qn")
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(runs.digests, [names[k::3] for k in range(3)]))
        sent = [pool.submit(runs.minimized, f, method) for method in several]
        back = [runs.digest(future.result()) for future in sent]
    assert parts[0] | parts[1] | parts[2] == runs.digests(names)
    assert back == [runs.digest(runs.minimized(f, method)) for method in several]


# What belongs to the caller: floating-point errors, warnings, BLAS.

STRICT = {"divide": "raise", "over": "raise", "under": "raise", "invalid": "raise"}


def valued(x: np.ndarray) -> float:
    assert np.geterr() == STRICT
    return runs.bowl(x)[0]


def sloped(x: np.ndarray) -> np.ndarray:
    assert np.geterr() == STRICT
    return runs.bowl(x)[1]


@pytest.mark.parametrize("jac", [None, sloped, True], ids=["differences", "jac", "both"])
@pytest.mark.parametrize("method", ["auto", "hasd", "hasd-paper", "heavy-ball"])
def test_the_callers_floating_point_errors_hold_in_his_own_code(method, jac):
    """In fun, jac and callback, though ours ignores them; and they are as they were afterwards."""
    before, seen = np.geterr(), []
    fun = (lambda x: (valued(x), sloped(x))) if jac is True else valued
    with np.errstate(**STRICT):
        hasd.minimize(
            fun, np.zeros(4), jac=jac, method=method, maxiter=5, callback=lambda x: seen.append(np.geterr() == STRICT)
        )
        assert np.geterr() == STRICT
    assert np.geterr() == before
    assert seen and all(seen)


@pytest.mark.parametrize("solver", ["chebyshev", "lp_fit", "transport", "balance"])
def test_the_callers_floating_point_errors_hold_in_the_callback_of_a_solver(solver):
    A, seen = runs.matrix(3, (12, 4)), []

    def callback(*, intermediate_result: hasd.Result) -> None:
        seen.append(np.geterr() == STRICT)

    solve = {
        "chebyshev": lambda: hasd.chebyshev(A, np.arange(12.0), callback=callback),
        "lp_fit": lambda: hasd.lp_fit(A, np.arange(12.0), power=4, callback=callback),
        "transport": lambda: hasd.transport(abs(A), np.full(12, 1 / 12), np.full(4, 0.25), 0.1, callback=callback),
        "balance": lambda: hasd.balance(1.0 + abs(A), np.full(12, 1 / 12), np.full(4, 0.25), callback=callback),
    }[solver]
    with np.errstate(**STRICT):
        solve()
        assert np.geterr() == STRICT
    assert seen and all(seen)


def test_the_callers_floating_point_errors_hold_between_two_states():
    with np.errstate(**STRICT):
        for _ in islice(hasd.iterate(valued, np.zeros(4), jac=sloped, method="hasd"), 5):
            assert np.geterr() == STRICT
        assert np.geterr() == STRICT


def test_what_his_code_raises_reaches_him():
    """His overflow, raised as he asked for; afterwards his settings stand."""
    with np.errstate(**STRICT):
        with pytest.raises(FloatingPointError):
            hasd.minimize(lambda x: (float(np.exp(1e3 + x).sum()), x), np.ones(2), jac=True)
        assert np.geterr() == STRICT


def test_our_objectives_are_quiet_inside_his_code():
    """His function has his settings again, and what it calls of ours ignores them again."""
    huge = objectives.Power(1e200 * np.eye(2), np.ones(2), q=6.0)

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        assert huge.value_and_grad(np.ones(2))[0] == np.inf
        assert np.geterr() == STRICT
        return runs.bowl(x)

    with np.errstate(**STRICT):
        assert hasd.minimize(fun, np.zeros(4), jac=True, maxiter=5).nit > 0


def test_each_thread_keeps_its_own_floating_point_errors():
    def task(kind: str) -> str:
        with np.errstate(all=kind):
            hasd.minimize(runs.bowl, np.zeros(4), jac=True, maxiter=20)
            return np.geterr()["over"]

    kinds = ["raise", "warn", "ignore", "print"] * 3
    assert in_threads([lambda kind=kind: task(kind) for kind in kinds]) == kinds


def test_our_own_code_neither_warns_nor_raises():
    """All of the catalogue with every floating-point error raised and every warning an error: the same bits."""
    quiet = runs.digests()
    with warnings.catch_warnings(), np.errstate(**STRICT):
        warnings.simplefilter("error")
        catalogue = runs.catalogue()
        catalogue.pop("finite differences")  # squares of the steps of a black box: that is the caller's own code
        assert {name: runs.digest(run()) for name, run in catalogue.items()} == {
            name: quiet[name] for name in catalogue
        }


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e300])
@pytest.mark.parametrize("method", METHODS)
def test_our_own_code_is_quiet_at_the_ends_of_the_numbers(method, scale):
    """Data near overflow and underflow: an answer or a status, never a warning."""
    A = scale * np.eye(3)
    with np.errstate(all="warn"):
        runs.minimized(objectives.LeastSquares(A, np.full(3, scale), ridge=1.0), method)
        runs.minimized(objectives.Power(A, np.ones(3), q=6.0, ridge=scale), method)


def test_filters_of_warnings_are_left_alone():
    """The list itself, what shows them and the settings are the caller's: no run puts others there, even for a time."""
    before = warnings.filters, list(warnings.filters), warnings.showwarning, np.geterr(), np.geterrcall()
    during = []

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        during.append((warnings.filters, list(warnings.filters), warnings.showwarning))
        return runs.bowl(x)

    for method in METHODS:
        runs.minimized(fun, method, jac=True, mu=2.0)
    runs.digests(SOLVERS)
    assert during and all(was == before[:3] and was[0] is before[0] for was in during)
    assert (warnings.filters, list(warnings.filters), warnings.showwarning, np.geterr(), np.geterrcall()) == before


def test_a_warning_of_his_own_code_reaches_the_caller():
    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        warnings.warn("mine", UserWarning, stacklevel=2)
        return runs.bowl(x)

    with pytest.warns(UserWarning, match="mine"):
        hasd.minimize(fun, np.zeros(3), jac=True, maxiter=3)


def blas_threads() -> list[tuple[str, int]]:
    from threadpoolctl import threadpool_info

    return sorted((info["filepath"], info["num_threads"]) for info in threadpool_info())


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_keep_the_serial_bits_and_the_number_of_blas_threads(threads):
    """Whatever their number: it stays as the caller set it, and runs in threads give what serial ones give."""
    limits = pytest.importorskip("threadpoolctl").threadpool_limits
    names = [f"{method}: {name}" for method in METHODS for name in ("log-sum-exp", "least-squares")] + list(SOLVERS)
    catalogue = runs.catalogue()
    with limits(threads, user_api="blas"):
        before = blas_threads()
        alone = [runs.digest(catalogue[name]()) for name in names]
        assert in_threads([lambda name=name: runs.digest(catalogue[name]()) for name in names]) == alone
        assert blas_threads() == before


def test_the_number_of_blas_threads_changes_rounding_only():
    limits = pytest.importorskip("threadpoolctl").threadpool_limits
    f = runs.functions()["log-sum-exp"]
    found = []
    for threads in (1, 2):
        with limits(threads, user_api="blas"):
            found.append(hasd.minimize(f, np.zeros(runs.D), tol=1e-10))
    assert all(res.success for res in found)
    np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-6)
