"""Printing to stdout and stderr that survives any encoding, a closed pipe and a full disk."""

from __future__ import annotations

import contextlib
import os
import sys

from .faults import make_printable


def say(text: str) -> bool:
    """Print, and return whether that succeeded.  A closed pipe, as after `| head`, is no failure."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python writes again at exit
        if not isinstance(error, BrokenPipeError):
            complain(f"error: the output cannot be printed: {error.strerror}")
            return False
    return True


def complain(text: str) -> None:
    """Print one line on stderr; if that fails, the exit code still tells."""
    with contextlib.suppress(OSError):
        print(f"hasd: {make_printable(text)}", file=sys.stderr, flush=True)
