"""What is said to people on stdout and stderr, whatever letters these know, and where they are full, too."""

from __future__ import annotations

import contextlib
import os
import sys

from .faults import make_printable


def say(text: str) -> bool:
    """Print; whether it could be done.  A reader that has gone away, as `| head` does, has seen enough."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again at its end
        if not isinstance(error, BrokenPipeError):
            complain(f"error: the output cannot be printed: {error.strerror}")
            return False
    return True


def complain(text: str) -> None:
    """One line on stderr; where that is full there is still the exit code."""
    with contextlib.suppress(OSError):
        print(f"hasd: {make_printable(text)}", file=sys.stderr, flush=True)
