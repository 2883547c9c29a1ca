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
"""Below so many entries in all blocks, threads are used only where the caller asks for them:
``python -m benchmarks.dask_blocks`` prints what they gain around there."""


class Pool(Protocol):
    """What an objective asks of the place where its blocks are."""

    remakes: bool
    """Whether what is lost is made again from what it came from, which therefore should not be long."""

    def run_each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Call the function once a block, with that block's entry of every column; handles of the results."""
        ...

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """The results, in the order of the blocks."""
        ...

    def round(
        self, blocks: Sequence[Any], bundles: Sequence[Sequence[Any]], plan: BlockPlan
    ) -> tuple[list[Any], list[Any]]:
        """Carry out a plan on every block: handles of the values that stay, and the answers, in the blocks' order."""
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
        """This pool, or one without threads where the blocks are too small or BLAS's threads cannot be limited."""
        return self if entries >= WORTH and blas.can_limit_threads() else Threads(1)

    def run_each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """The results themselves, computed at once."""
        if self._executor is None:
            return list(map(function, *columns))
        with blas.one_thread():
            return list(self._executor.map(function, *columns))

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """The handles, which are the results."""
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
        """Work through a ``distributed.Client``."""
        self.client = client

    def pool_for(self, entries: float) -> Cluster:
        """This pool, whatever the size."""
        return self

    def run_each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Futures of the results."""
        return self._tasks(function, f"hasd-{function.__name__}", *columns)

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """The results, in the order of the futures."""
        return list(self.client.gather(handles))

    def round(
        self, blocks: Sequence[Any], bundles: Sequence[Sequence[Any]], plan: BlockPlan
    ) -> tuple[list[Any], list[Any]]:
        """One task a block where no value is kept, otherwise two: one makes the values, one answers.

        So a value depends only on what it is made from, not on all that the questions were about, and after a loss
        Dask makes it again from that alone.
        """
        name = f"hasd-{plan.tell[-1].name.replace(' ', '-')}"
        if not plan.keep:
            return [], self.fetch(self._tasks(partial(only_tell, plan=plan), name, blocks, *bundles))
        kept = self._tasks(partial(make, acts=plan.make), f"hasd-{plan.make[-1].name}", blocks, *bundles[: plan.reads])
        return kept, self.fetch(self._tasks(partial(tell, acts=plan.tell), name, blocks, *bundles, kept))

    def _tasks(self, function: Callable[..., Any], name: str, *columns: Sequence[Any]) -> list[Any]:
        """Submit one task a block.  Arguments that all tasks share are bound in the function: ``map`` would store large
        keyword arguments under a key that is the same in every round.
        """
        return list(self.client.map(function, *columns, pure=False, key=name))


def connect(client: Any) -> Any:
    """The client itself, or a new client of the scheduler at an address."""
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
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
