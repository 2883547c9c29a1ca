"""The folder for the results: made, or refused, before the work and not after."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def folder(text: str) -> Path:
    """A type for argparse that refuses '', which would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("must name a folder, got ''")
    return Path(text)


def make_folder(path: Path) -> None:
    """Make the folder and its parents; an OSError with a plain message where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        taken = next(one for one in (path, *path.parents) if os.path.lexists(one))
        raise NotADirectoryError(f"--out {path}: {'it' if taken == path else taken} is not a folder") from None
    except OSError as error:
        raise OSError(f"--out {path}: it cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"--out {path}: no files may be written there")
