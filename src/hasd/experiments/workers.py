"""Tasks spread over the cores, with results that do not depend on how many there are.

Every task runs in a spawned process whose BLAS has one thread (also with one worker): the order of the sums inside a
product, and with it the last digit, is then the same whatever ``jobs`` is.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

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
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> Self:
        """Fix the threads in the environment the workers inherit: they start with the first task."""
        self._before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        self._pool = ProcessPoolExecutor(self.jobs, mp_context=multiprocessing.get_context("spawn"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool (at once after an error) and give the environment back."""
        self._pool.shutdown(cancel_futures=error is not None)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def map(self, function: Callable[[Task], Answer], tasks: Sequence[Task], label: str) -> list[Answer]:
        """function(task) for every task, in the order of the tasks."""
        return list(_bar(self._pool.map(function, tasks), len(tasks), label))


def _bar(answers: Iterable[Answer], total: int, label: str) -> Iterable[Answer]:
    """A progress bar on a terminal; nothing elsewhere, or where tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return answers
    bar: Any = tqdm(answers, total=total, desc=label, unit="task", disable=None)
    return bar
