"""Tasks spread over the cores, with results that do not depend on how many there are.

Every task runs in a spawned process whose BLAS has one thread (also with one worker): the order of the sums inside a
product, and with it the last digit, is then the same whatever ``jobs`` is.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Self, TypeVar

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS")
THREAD_VARIABLES = (*(f"{library}_NUM_THREADS" for library in LIBRARIES), "VECLIB_MAXIMUM_THREADS")

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


class Workers:
    """A pool to be used as a context: ``with Workers(2) as workers: workers.map(f, tasks, "label")``."""

    def __init__(self, jobs: int | None = None) -> None:
        """As many processes as given; None for one a core."""
        self.jobs = cores() if jobs is None else jobs

    def __enter__(self) -> Self:
        """Fix the threads in the environment the workers inherit: they start with the first task."""
        self._before = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        self._pool = ProcessPoolExecutor(self.jobs, mp_context=multiprocessing.get_context("spawn"))
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the pool (at once after an error) and give the environment back."""
        self._pool.shutdown(cancel_futures=error is not None)
        for name in THREAD_VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(self._before)

    def map(self, function: Callable[[Task], Answer], tasks: Sequence[Task], label: str) -> list[Answer]:
        """function(task) for every task, in the order of the tasks."""
        return list(_bar(self._pool.map(function, tasks), len(tasks), label))


def _bar(answers: Iterable[Answer], total: int, label: str) -> Iterable[Answer]:
    """A progress bar on a terminal; nothing elsewhere, or where tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return answers
    return tqdm(answers, total=total, desc=label, unit="task", disable=None)
