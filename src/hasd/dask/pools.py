"""Where the blocks are: on threads of this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from . import blas
from .blocks import BlockPlan, make, make_and_tell, tell

WORTH = 1 << 20
"""Below so many entries in all blocks, threads are used only where the caller asks for them:
``python -m benchmarks.dask_blocks`` prints what they gain around there."""


Handles = Sequence[Any]
"""For each block what it holds, or a future of it."""


class Threads:
    """Blocks in this process: BLAS, NumPy and SciPy's sparse products let other threads run.

    More than one thread, and BLAS has only one in each (where threadpoolctl is installed; else it keeps its own).
    """

    remakes = False
    """Whether what is lost is made again from what it came from, which therefore should not be long."""

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

    def run_each(self, function: Callable[..., Any], *columns: Handles) -> list[Any]:
        """Call the function once a block, with that block's entry of every column; the results themselves."""
        if self._executor is None:
            return list(map(function, *columns))
        with blas.one_thread():
            return list(self._executor.map(function, *columns))

    def fetch(self, handles: Handles) -> list[Any]:
        """The handles, which are the results."""
        return list(handles)

    def compute(self, parts: Sequence[Any]) -> list[Any]:
        """The results of Dask's delayed values."""
        from dask import compute

        return list(compute(*parts))

    def round(self, blocks: Handles, bundles: Sequence[Handles], plan: BlockPlan) -> tuple[list[Any], list[Any]]:
        """Carry out a plan on every block: the values that stay, and the answers, in the blocks' order."""
        kept, told = zip(*self.run_each(partial(make_and_tell, plan=plan), blocks, *bundles), strict=True)
        return list(kept), list(told)


class Cluster:
    """Blocks on the workers of a Dask cluster, as results of tasks: nothing is pinned, scattered or kept in actors."""

    remakes = True

    def __init__(self, client: Any):
        """Work through a ``distributed.Client``."""
        self.client = client

    def run_each(self, function: Callable[..., Any], *columns: Handles, name: str = "") -> list[Any]:
        """The same by tasks, one a block: futures of the results.

        Arguments that all tasks share are bound in the function: ``map`` would store large keyword arguments under a
        key that is the same in every round.
        """
        return list(self.client.map(function, *columns, pure=False, key=f"hasd-{name or function.__name__}"))

    def fetch(self, handles: Handles) -> list[Any]:
        """The results, in the order of the futures."""
        return list(self.client.gather(handles))

    def compute(self, parts: Sequence[Any]) -> list[Any]:
        """Futures of Dask's delayed values."""
        return self.client.compute(parts)

    def round(self, blocks: Handles, bundles: Sequence[Handles], plan: BlockPlan) -> tuple[list[Any], list[Any]]:
        """The same, with one task a block where no value is kept, otherwise two: one makes the values, one answers.

        So a value depends only on what it is made from, not on all that the questions were about, and after a loss
        Dask makes it again from that alone.
        """
        name = plan.tell[-1].name.replace(" ", "-")
        if not plan.keep:
            done = self.fetch(self.run_each(partial(make_and_tell, plan=plan), blocks, *bundles, name=name))
            return [], [told for _, told in done]
        making = partial(make, acts=plan.make)
        kept = self.run_each(making, blocks, *bundles[: plan.reads], name=plan.make[-1].name)
        return kept, self.fetch(self.run_each(partial(tell, acts=plan.tell), blocks, *bundles, kept, name=name))


Pool = Threads | Cluster
"""Where the blocks of an objective are."""


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
