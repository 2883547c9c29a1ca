"""Runs on disk: a state with its `Picture` in an npz file without pickle; a crash at any moment loses at most one file.

A file carries the format's and the package's version, the configuration of the run and a checksum over everything; what
does not fit is refused with the reason.  `atomic_write` puts a new file in the place of the last.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import device

from .._math.arrays import Array, is_foreign, namespace, to_host
from .._run.job import Job
from .._run.record import Run, State
from .._run.trace import COLUMNS
from .atomic_write import previous_path, replace, sweep
from .packing import Packed, pack, state_classes, unpack

FORMAT = 5
"""The version of the format; it goes up whenever a file of an older version could be misread."""
MEMBERS = ("about.npy", "checksum.npy", "a0.npy")
"""What every checkpoint holds; the first of them comes first in the file."""


class Unreadable(Exception):
    """A file that is no checkpoint, or a damaged one."""


@dataclass
class Saver:
    """Writes a run to disk every so many iterations; if writing fails, it warns once."""

    path: Path
    every: int  # iterations
    job: Job
    written: int = -1  # the newest iteration on disk
    whole: bool = False  # whether the present file is known to be good: only then is it kept
    failed: bool = False
    newest: State | None = None  # the run when it last was between two iterations, as a picture that its state carries

    def __post_init__(self) -> None:
        """Remove the half-written files of killed runs."""
        sweep(self.path)

    def take_picture(self, run: Run) -> None:
        """Take a picture of the run."""
        self.newest = self.job.take_picture(run)

    def write_if_due(self) -> None:
        """Write a checkpoint where one is due."""
        if self.newest is not None and self.newest.iteration % self.every == 0:
            self.write_now()

    def write_now(self) -> None:
        """Write the newest picture, if it is not on disk already."""
        if self.newest is None or self.newest.iteration == self.written:
            return
        try:
            write(self.path, self.newest, self.job.method, keep=self.whole or is_intact(self.path))
            self.written, self.whole = self.newest.iteration, True
        except OSError as error:
            if not self.failed:
                why = f"the checkpoint {self.path} could not be written ({error.strerror or error}); the run goes on"
                warnings.warn(why, RuntimeWarning, stacklevel=2)
            self.failed = True


def write(path: Path, state: State, method: Any, *, keep: bool) -> None:
    """Replace the checkpoint by a state with its picture; with `keep`, the old one stays as the previous version."""
    assert state.picture is not None
    trace, configuration = dict(state.picture.trace), state.picture.configuration
    rows = trace["table"][: trace.pop("length")]
    trace["table"] = np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS))
    picture = dataclasses.replace(state.picture, trace=trace, configuration={})
    tree, arrays = pack({"state": state.with_fields(picture=picture)}, state_classes(method))
    own = [i for i, array in enumerate(arrays) if not is_foreign(array)]
    columns: dict[str, Any] = {f"a{i}": np.ascontiguousarray(to_host(array)) for i, array in enumerate(arrays)}
    text = json.dumps({"format": FORMAT, "configuration": configuration, "numpy": own, "tree": tree})
    about = np.frombuffer(text.encode(), dtype=np.uint8)
    checksum = _checksum(about, columns)
    replace(path, lambda file: np.savez(file, about=about, checksum=checksum, **columns), keep=keep)


def _checksum(about: np.ndarray, columns: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.sha256(about.tobytes())
    for name in sorted(columns):
        digest.update(f"{name} {columns[name].dtype.str} {columns[name].shape}".encode())
        digest.update(columns[name].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def read(path: Path, job: Job) -> tuple[State, bool]:
    """The state in the newer readable one of the two files, if it belongs to this run; and whether it is the newest.

    Its arrays are in x0's library.
    """
    newest = True
    try:
        about, columns = _contents(path)
    except (Unreadable, FileNotFoundError) as damage:
        newest = False
        try:
            about, columns = _contents(previous_path(path))
        except FileNotFoundError:
            if isinstance(damage, Unreadable):
                raise ValueError(str(damage)) from None
            raise FileNotFoundError(f"no checkpoint at {path}") from None
        except Unreadable as other:
            raise ValueError(f"neither checkpoint can be read: {damage}; {other}") from None
        warnings.warn(f"{damage}; going on from {previous_path(path)}", RuntimeWarning, stacklevel=4)
    job.refuse_other(str(path), about["configuration"])
    own = set(about["numpy"])
    arrays = [columns[f"a{i}"] for i in range(len(columns))]
    given = [array if i in own else _to_library_of(job.x0, array) for i, array in enumerate(arrays)]
    return unpack(Packed(about["tree"], given), state_classes(job.method))["state"], newest


def _to_library_of(x0: Array, array: np.ndarray) -> Array:
    """An array of x0's library, in its own precision, on x0's device."""
    return namespace(x0).asarray(array, device=device(x0)) if is_foreign(x0) else array


def _contents(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file holds, its checksum verified."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        about, checksum = columns.pop("about"), columns.pop("checksum")
        fits = np.array_equal(checksum, _checksum(about, columns))
        contents = json.loads(about.tobytes()) if fits else {}
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged bytes may raise anything in zipfile, zlib and NumPy
        why = f" ({error.strerror or error})" if isinstance(error, OSError) else ""
        raise Unreadable(f"{path} is no checkpoint, or damaged{why}") from error
    if not fits:
        raise Unreadable(f"{path} is damaged: its checksum does not fit")
    if contents.get("format") != FORMAT:
        raise ValueError(f"{path} has format {contents.get('format')}, this version of hasd reads format {FORMAT}")
    return contents, columns


def is_intact(path: Path) -> bool:
    """Whether there is a checkpoint without damage, of whatever run and format."""
    try:
        _contents(path)
    except (Unreadable, FileNotFoundError):
        return False
    except ValueError:  # undamaged, but of another format
        pass
    return True


def is_checkpoint(path: Path) -> bool:
    """Whether the file is a checkpoint, or was one before it was damaged; an empty file counts as none."""
    if not path.is_file():
        return False
    try:
        with open(path, "rb") as raw:
            head = raw.read(100)
        with zipfile.ZipFile(path) as archive:
            return len(set(MEMBERS).intersection(archive.namelist())) >= 2
    except OSError:
        return False
    except Exception:  # not a zip archive, or one whose end, with the table of contents, is damaged
        return not head or MEMBERS[0].encode() in head
