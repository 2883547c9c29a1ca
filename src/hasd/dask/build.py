"""What the caller hands in as blocks, made and checked where they will live."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .._checks import number
from ..objectives._operators import Vector, as_data, is_sparse
from ..objectives.losses import LogisticLoss
from .blocks import block, call_maker, facts, length
from .mixture import mixes
from .objective import BlockAffine
from .pools import Cluster, Pool, Threads, connect, processors


def affine(
    loss: Any,
    blocks: Any,
    b: Any = None,
    *,
    ridge: float = 0.0,
    client: Any = None,
    threads: int | None = None,
) -> BlockAffine:
    """The objective f(x) = phi(Ax - b) + ridge/2 ||x||_2^2, with the rows of A in blocks on workers or threads.

    Parameters
    ----------
    loss : object
        One of ``hasd.objectives.losses``.  ``LogisticLoss(y)`` holds the labels of all rows; give the class
        ``LogisticLoss`` itself if the labels come with the blocks.  A loss of your own can be used if it is a sum over
        rows and has the attribute ``separable = True``.
    blocks : sequence, Dask array or matrix
        A sequence of matrices, or of functions without arguments that return one.  A function is called on the worker
        that will hold the block, and again if a worker is lost, so it must return the same block every time.  A member
        or return value may also be a pair (A, b), or (A, y) with the class ``LogisticLoss``, with the right-hand side
        or the labels of the block.  ``blocks`` may also be a Dask array, whose row chunks are the blocks, or one
        matrix, which is cut into as many blocks as there are threads.
    b : array or Dask array, optional
        The right-hand side of all rows; the labels of all rows with the class ``LogisticLoss``.
    ridge : float
        The factor of the term ridge/2 ||x||_2^2.
    client : distributed.Client or str, optional
        A client or the address of a scheduler; with None, the threads of this process are used.
    threads : int, optional
        The number of threads with ``client=None``.  None takes one for each processor if A has at least a million
        entries and threadpoolctl is installed, so that BLAS can be limited to one thread meanwhile; otherwise it takes
        one thread.

    Returns
    -------
    BlockAffine
        An objective for `hasd.minimize`.

    Examples
    --------
    >>> f = affine(LogisticLoss, [(np.eye(2), [1, -1]), (np.ones((1, 2)), [1])])
    >>> f.rows, round(f([0.0, 0.0]), 6)
    (3, 0.693147)
    """
    if not mixes(loss):
        raise TypeError(
            "loss must be one of hasd.objectives.losses, the class LogisticLoss, or an object with value, expand, ... "
            f"and separable = True, got {loss!r}"
        )
    if getattr(loss, "weights", None) is not None:
        raise ValueError("loss must have no weights: blocks share the mean by their numbers of rows")
    ridge = number("ridge", ridge, least=0.0)
    count = processors() if threads is None else int(threads)
    if count < 1:
        raise ValueError(f"threads must be at least 1, got {threads!r}")
    pool: Pool = Cluster(connect(client)) if client is not None else Threads(count)
    raw, rhs = _make_blocks(blocks, b, pool, count)
    losses, labelled = [loss] * len(raw), isinstance(loss, LogisticLoss)
    if labelled or isinstance(rhs, np.ndarray):  # vectors over all rows are cut into the blocks' parts
        lengths = pool.fetch(pool.run_each(length, raw))
        if labelled:
            losses = [LogisticLoss(y) for y in _cut(loss.y, "y", lengths)]
        if isinstance(rhs, np.ndarray):
            rhs = _cut(rhs, "b", lengths)
    checked = pool.run_each(block, losses, raw, rhs or [None] * len(raw), list(range(len(raw))))
    known = pool.fetch(pool.run_each(facts, checked))
    widths = [fact.columns for fact in known]
    if len(set(widths)) > 1:
        other = next(i for i, width in enumerate(widths) if width != widths[0])
        raise ValueError(f"blocks must be equally wide: block 0 has {widths[0]} columns, block {other} {widths[other]}")
    if threads is None and isinstance(pool, Threads):
        pool = pool.pool_for(sum(fact.entries for fact in known))
    return BlockAffine(loss, checked, known, pool, ridge)


def _cut(vector: Vector, name: str, lengths: Sequence[int]) -> list[Vector]:
    """The parts of a vector over all rows."""
    total = sum(lengths)
    if len(vector) != total:
        raise ValueError(f"{name} must be 1-D of length {total}, the rows of all blocks, got shape {vector.shape}")
    return np.split(vector, np.cumsum(lengths)[:-1])


def _make_blocks(blocks: Any, b: Any, pool: Pool, count: int) -> tuple[list[Any], Any]:
    """Handles of the blocks, and of their right-hand sides (or one array for all rows, or None)."""
    if _is_dask(blocks):
        return _from_dask(blocks, b, pool)
    rhs = None if b is None else as_data(b, None, "b")
    if isinstance(blocks, np.ndarray) or is_sparse(blocks):
        if len(blocks.shape) != 2 or 0 in blocks.shape:
            raise ValueError(f"blocks must be 2-D with at least one row and column, got shape {blocks.shape}")
        rows = blocks.tocsr() if is_sparse(blocks) else blocks
        ends = np.linspace(0, rows.shape[0], min(count, rows.shape[0]) + 1).astype(int)
        blocks = [rows[i:j] for i, j in pairwise(ends)]
    if isinstance(blocks, str) or not isinstance(blocks, Sequence):
        raise TypeError(f"blocks must be a sequence of matrices or functions, or a Dask array, got {blocks!r}")
    if not len(blocks):
        raise ValueError("blocks must not be empty")
    # What has a shape is a block itself, also where it is callable, as a LinearOperator is.
    makers = [partial(_return_given, it) if hasattr(it, "shape") or not callable(it) else it for it in blocks]
    return pool.run_each(call_maker, makers, range(len(makers))), rhs


def _return_given(made: Any) -> Any:
    return made


def _is_dask(value: Any) -> bool:
    """Whether it is a Dask array, without importing Dask."""
    return all(hasattr(value, name) for name in ("to_delayed", "rechunk", "chunks", "dask"))


def _from_dask(array: Any, b: Any, pool: Pool) -> tuple[list[Any], Any]:
    """One block for every chunk of rows; chunks of columns are joined."""
    if array.ndim != 2:
        raise ValueError(f"blocks must be a 2-D Dask array, got {array.ndim} dimensions")
    array = array.rechunk({1: -1})
    if _is_dask(b):
        b = pool.compute(_rechunk_like(b, array).to_delayed().tolist())
    elif b is not None:
        b = as_data(b, None, "b")
    return pool.compute(array.to_delayed()[:, 0].tolist()), b


def _rechunk_like(b: Any, array: Any) -> Any:
    """A Dask vector in the row chunks of an array; where their sizes are not known, it must have as many chunks."""
    if b.ndim == 1 and np.isnan(array.shape[0] + b.shape[0]):
        if b.numblocks[0] == array.numblocks[0]:
            return b  # every block checks its own lengths
        raise ValueError(
            f"b must have as many chunks as A, whose chunk sizes are unknown: {array.numblocks[0]}, "
            f"got {b.numblocks[0]}; compute_chunk_sizes() makes them known"
        )
    if b.ndim != 1 or b.shape != array.shape[:1]:
        raise ValueError(f"b must be 1-D of length {array.shape[0]}, got shape {b.shape}")
    return b.rechunk((array.chunks[0],))
