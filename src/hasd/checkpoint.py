"""Runs on disk: a `Snapshot` in an npz file without pickle, written so that a crash at any moment loses at most one.

A file is written beside its destination, synced, and renamed over it; the one before is kept as ``<name>.previous``, by
a link made first, so that the destination never is missing either.  It carries the format's and the package's version,
the configuration of the run and a checksum over everything; what does not fit is refused with the reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
import zipfile
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import device

from .arrays import Array, foreign, hosted, library, namespace
from .loop import Outcome
from .methods.base import Method, Problem
from .packing import Packed, pack, unpack
from .snapshot import Snapshot
from .trace import Recorder
from .version import VERSION

FORMAT = 1
"""Raised whenever a file of the last version could be misread."""
SAME = 1e-6
"""Relative difference of values that another machine's rounding may make."""
PREVIOUS = ".previous"
"""What the name of the last file but one ends in."""


class Unreadable(Exception):
    """A file that is no checkpoint, or a damaged one."""


@dataclass
class Saver:
    """Writes a run to disk every so many iterations; a disk that is full is warned of once."""

    path: Path
    every: int  # iterations
    configuration: dict[str, Any]
    problem: Problem
    recorder: Recorder
    written: int = -1  # the newest iteration on disk
    failed: bool = False

    def __call__(self, outcome: Outcome) -> None:
        """Write where one is due."""
        if outcome.state.iteration % self.every == 0:
            self.now(outcome)

    def now(self, outcome: Outcome) -> None:
        """Write, if that iteration is not on disk already."""
        if outcome.state.iteration == self.written:
            return
        try:
            write(self.path, Snapshot.of(self.problem, self.recorder, outcome), self.configuration)
            self.written = outcome.state.iteration
        except OSError as error:
            if not self.failed:
                self.failed = True
                warnings.warn(
                    f"the checkpoint {self.path} could not be written ({error.strerror or error}); the run goes on",
                    RuntimeWarning,
                    stacklevel=2,
                )


def configuration(problem: Problem, method: Method, x0: Array) -> dict[str, Any]:
    """What a run must have in common with the one that wrote a checkpoint."""
    return {
        "version": VERSION,
        "method": repr(method) if is_dataclass(method) else method.name,
        "p": repr(problem.geometry.p),
        "L": problem.L,
        "mu": problem.mu,
        "dimension": x0.shape[0],
        "dtype": str(x0.dtype),
        "library": library(x0),
    }


def write(path: Path, snapshot: Snapshot, configuration: dict[str, Any]) -> None:
    """One file in place of the last, which becomes the one before."""
    tree, arrays = pack(snapshot)
    own = [i for i, array in enumerate(arrays) if not foreign(array)]
    columns: dict[str, Any] = {f"a{i}": np.ascontiguousarray(hosted(array)) for i, array in enumerate(arrays)}
    text = json.dumps({"format": FORMAT, "configuration": configuration, "numpy": own, "tree": tree})
    about = np.frombuffer(text.encode(), dtype=np.uint8)
    temporary = path.with_name(f"{path.name}.tmp")  # one name, so that a killed run leaves one file at most
    try:
        with open(temporary, "wb") as file:
            np.savez(file, about=about, checksum=_checksum(about, columns), **columns)
            file.flush()
            os.fsync(file.fileno())
        _keep_last(path)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _keep_last(path: Path) -> None:
    """Give the present file its second name; by renaming where the file system knows no links."""
    if not path.exists():
        return
    previous, link = path.with_name(path.name + PREVIOUS), path.with_name(f"{path.name}.link")
    try:
        link.unlink(missing_ok=True)
        os.link(path, link)
        os.replace(link, previous)
    except OSError:
        os.replace(path, previous)


def _sync_folder(folder: Path) -> None:
    """Make the rename last; some systems cannot open folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _checksum(about: np.ndarray, columns: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.sha256(about.tobytes())
    for name in sorted(columns):
        digest.update(f"{name} {columns[name].dtype.str} {columns[name].shape}".encode())
        digest.update(columns[name].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def read(path: Path, configuration: dict[str, Any], x0: Array) -> Snapshot:
    """The newest readable one of the pair, if it belongs to this run; arrays as x0 is."""
    previous = path.with_name(path.name + PREVIOUS)
    try:
        about, columns = _contents(path)
    except (Unreadable, FileNotFoundError) as damage:
        try:
            about, columns = _contents(previous)
        except FileNotFoundError:
            raise _none(path, damage) from None
        except Unreadable as other:
            raise ValueError(f"neither checkpoint can be read: {damage}; {other}") from None
        warnings.warn(f"{damage}; going on from {previous}", RuntimeWarning, stacklevel=4)
    _refuse_other(path, about, configuration)
    own = set(about["numpy"])
    arrays = [columns[f"a{i}"] for i in range(len(columns))]
    given = [array if i in own else _as(x0, array) for i, array in enumerate(arrays)]
    snapshot: Snapshot = unpack(Packed(about["tree"], given))
    return snapshot


def _none(path: Path, damage: Exception) -> Exception:
    return ValueError(str(damage)) if isinstance(damage, Unreadable) else FileNotFoundError(f"no checkpoint at {path}")


def _as(x0: Array, array: np.ndarray) -> Array:
    """An array of x0's library, in its own precision, on x0's device."""
    return namespace(x0).asarray(array, device=device(x0)) if foreign(x0) else array


def _contents(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file holds, its checksum verified."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        about, checksum = columns.pop("about"), columns.pop("checksum")
        intact = np.array_equal(checksum, _checksum(about, columns))
        contents = json.loads(about.tobytes()) if intact else {}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise Unreadable(f"{path} is no checkpoint, or damaged ({error})") from error
    if not intact:
        raise Unreadable(f"{path} is damaged: its checksum does not fit")
    if contents.get("format") != FORMAT:
        raise ValueError(f"{path} has format {contents.get('format')}, this version of hasd reads format {FORMAT}")
    return contents, columns


def _refuse_other(path: Path, about: dict[str, Any], configuration: dict[str, Any]) -> None:
    """Name the first setting in which the run on disk differs from this one."""
    saved = about["configuration"]
    for name, value in configuration.items():
        if saved.get(name) != value:
            raise ValueError(f"{path} is of another run: its {name} is {saved.get(name)}, this one's is {value}")


def refuse_other_function(path: Path, saved: Snapshot, problem: Problem) -> None:
    """Compare f where the saved run last knew it: the same data, and the same function, give the same value."""
    e = saved.state.at
    now = problem.oracle.record(e.x)
    if not abs(now.f - e.f) <= SAME * max(abs(e.f), abs(now.f)):
        raise ValueError(f"{path} is of another function: at its point f was {e.f!r}, and is {now.f!r} now")
