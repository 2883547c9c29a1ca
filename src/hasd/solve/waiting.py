"""A sign of life on a terminal, for the solvers that have no progress bar of their own."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE, PERIOD = 1.0, 0.5
"""Seconds before the first sign, and between signs."""


@contextmanager
def show_waiting(wanted: bool, text: str, limit: float | None) -> Iterator[None]:
    """Rewrite one line on stderr with the seconds that have passed; leave nothing behind."""
    if not wanted:
        yield
        return
    done = threading.Event()
    watch = threading.Thread(target=_show, args=(done, text, limit), daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _show(done: threading.Event, text: str, limit: float | None) -> None:
    began, of = time.monotonic(), "" if limit is None else f" of {limit:g}"
    shown = ""
    delay = PATIENCE
    while not done.wait(delay):
        shown = f"{text}: {time.monotonic() - began:.0f}{of} s"
        print(f"\r{shown}", end="", file=sys.stderr, flush=True)
        delay = PERIOD
    if shown:
        print("\r" + " " * len(shown) + "\r", end="", file=sys.stderr, flush=True)
