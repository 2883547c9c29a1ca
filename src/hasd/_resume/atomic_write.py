"""A file replaced by its next version so that a crash at any moment loses at most the newest one.

The new version is written beside its destination, under a name that no other writer has, synced, and renamed over it;
the one before is kept as ``<name>.previous``, by a link made first, so that the destination never is missing either.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

PREVIOUS = ".previous"
"""What the name of the last version but one ends in."""
STALE = 86400.0
"""Seconds after which a half-written file counts as abandoned, where nobody can tell whether its writer lives."""


def previous_path(path: Path) -> Path:
    """The path of the previous version."""
    return path.with_name(path.name + PREVIOUS)


def temporary_path(path: Path, kind: str = "tmp") -> Path:
    """A path in the same folder that no other thread uses, on this machine or on others that share the folder."""
    return path.with_name(f"{path.name}.{_machine()}-{os.getpid()}-{threading.get_ident()}.{kind}")


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def replace(path: Path, fill: Callable[[IO[bytes]], None], *, keep: bool) -> None:
    """Replace the file by what `fill` writes; the old one is kept as the previous version, or dropped."""
    new = temporary_path(path)
    try:
        with open(new, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        if keep:
            _keep_last(path)
        os.replace(new, path)
        _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            new.unlink()


def _keep_last(path: Path) -> None:
    """Give the present file its second name; by renaming where the file system knows no links."""
    link = temporary_path(path, "link")
    try:
        link.unlink(missing_ok=True)
        os.link(path, link)
        os.replace(link, previous_path(path))
        link.unlink(missing_ok=True)  # where another run has linked the same file already, the rename did nothing
    except FileNotFoundError:  # another run has replaced the file meanwhile, and kept one
        pass
    except OSError:
        with contextlib.suppress(FileNotFoundError):  # another run has just done so
            os.replace(path, previous_path(path))


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the rename survives a crash; some systems cannot open folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(path: Path) -> None:
    """Remove half-written versions of this file whose writers were killed, not those of writers that may live."""
    half = re.compile(re.escape(path.name) + r"\.([0-9a-f]{8})-(\d+)-\d+\.(?:tmp|link)")
    with contextlib.suppress(OSError):  # gone already, or not ours to remove
        for name in os.listdir(path.parent):
            found, leftover = half.fullmatch(name), path.with_name(name)
            if found is not None and (_is_dead(found[1], int(found[2])) or _age(leftover) > STALE):
                leftover.unlink()


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _is_dead(machine: str, process: int) -> bool:
    """Whether the writing process is known to have ended; only its own machine can tell, and not on Windows."""
    if machine != _machine() or os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # it lives, and belongs to another user
        return False
    return False
