"""BLAS limited to one thread while a pool of threads calls it: two pools on the same processors slow each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

_lock = Lock()
_inside = 0
_limit: Any = None


def can_limit_threads() -> bool:
    """Whether threadpoolctl is installed, which can limit the threads of BLAS."""
    return _controller() is not None


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS has one thread, in the whole process; the last one to leave restores the old limit."""
    global _inside, _limit
    controller = _controller()
    if controller is None:
        yield
        return
    with _lock:
        if _inside == 0:
            _limit = controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    """threadpoolctl's controller, made once: finding the libraries takes longer than a round."""
    try:
        return import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
