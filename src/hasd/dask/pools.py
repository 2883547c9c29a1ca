"""Where the blocks are: on threads of this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from . import blas
from .blocks import BlockPlan, make, make_and_tell, only_tell, tell

WORTH = 1 << 20
"""Entries of all blocks below which threads are not used unasked: ``python -m benchmarks.dask_blocks`` prints what they
gain around there."""


class Pool(Protocol):
    """What an objective asks of the place where its blocks are."""

    remakes: bool
    """Whether what is lost is made again from what it came from, which therefore should not be long."""

    def run_each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """The function on every block's row of the columns: handles of the results, made where they are wanted."""
        ...

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """The results, in the order of the blocks."""
        ...

    def round(
        self, blocks: Sequence[Any], bundles: Sequence[Sequence[Any]], plan: BlockPlan
    ) -> tuple[list[Any], list[Any]]:
        """A plan on every block: handles of what stays, and what was told, in the order of the blocks."""
        ...


class Threads:
    """Blocks in this process: BLAS, NumPy and SciPy's sparse products let other threads run.

    More than one thread, and BLAS has only one in each (where threadpoolctl is installed; else it keeps its own).
    """

    remakes = False

    def __init__(self, threads: int):
        """As many threads; with one, no other thread is started."""
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, "hasd") if threads > 1 else None

    def __reduce__(self) -> Any:
        """A copy in another process starts threads of its own."""
        return Threads, (self.threads,)

    def pool_for(self, entries: float) -> Threads:
        """Itself, or one without threads where the blocks are too small or BLAS would get in the way."""
        return self if entries >= WORTH and blas.can_limit_threads() else Threads(1)

    def run_each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Results, at once."""
        if self._executor is None:
            return list(map(function, *columns))
        with blas.one_thread():
            return list(self._executor.map(function, *columns))

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """They are here."""
        return list(handles)

    def round(
        self, blocks: Sequence[Any], bundles: Sequence[Sequence[Any]], plan: BlockPlan
    ) -> tuple[list[Any], list[Any]]:
        """One call a block."""
        kept, told = zip(*self.run_each(partial(make_and_tell, plan=plan), blocks, *bundles), strict=True)
        return list(kept), list(told)


class Cluster:
    """Blocks on the workers of a Dask cluster, as results of tasks: nothing is pinned, scattered or kept in actors."""

    remakes = True

    def __init__(self, client: Any):
        """By a ``distributed.Client``."""
        self.client = client

    def pool_for(self, entries: float) -> Cluster:
        """Whatever the size."""
        return self

    def run_each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Futures."""
        return self._tasks(function, f"hasd-{function.__name__}", *columns)

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """Their results, whichever was first."""
        return list(self.client.gather(handles))

    def round(
        self, blocks: Sequence[Any], bundles: Sequence[Sequence[Any]], plan: BlockPlan
    ) -> tuple[list[Any], list[Any]]:
        """One task a block where nothing stays.

        Otherwise two, so that what stays is made, and after a loss remade, from what it needs and not from all that
        the question was about: no basis depends on the points of the past.
        """
        name = f"hasd-{plan.tell[-1].name.replace(' ', '-')}"
        if not plan.keep:
            return [], self.fetch(self._tasks(partial(only_tell, plan=plan), name, blocks, *bundles))
        kept = self._tasks(partial(make, acts=plan.make), f"hasd-{plan.make[-1].name}", blocks, *bundles[: plan.reads])
        return kept, self.fetch(self._tasks(partial(tell, acts=plan.tell), name, blocks, *bundles, kept))

    def _tasks(self, function: Callable[..., Any], name: str, *columns: Sequence[Any]) -> list[Any]:
        """One a block.  What all have in common is in the function: of large keyword arguments ``map`` makes data of
        their own, under a key that is the keyword, the same for every round.
        """
        return list(self.client.map(function, *columns, pure=False, key=name))


def connect(client: Any) -> Any:
    """The client itself, or one of the scheduler at an address."""
    if not isinstance(client, str):
        if not (hasattr(client, "map") and hasattr(client, "gather")):
            raise TypeError(f"client must be a distributed.Client, its address or None, got {client!r}")
        if getattr(client, "asynchronous", False):
            raise TypeError("client must not be asynchronous: a run waits for its answers")
        return client
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('a Dask cluster needs Dask: pip install "hasd[dask]"') from error
    return Client(client, set_as_default=False)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
