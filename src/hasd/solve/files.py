"""The one way from a file to data: whatever is wrong with the file leaves here as a `FileProblem`."""

from __future__ import annotations

import errno
import os
import stat
import warnings
import zipfile
import zlib
from pathlib import Path

from .data import Cost, Pair, Table, make_cost, make_pair, refuse_zero_target
from .faults import Fault, FileProblem, gist, refuse_above_limit
from .formats import READERS
from .settings import Settings

EXTENSIONS = {"tsv": "csv", "svm": "svmlight", "libsvm": "svmlight", "pq": "parquet"} | {name: name for name in READERS}
UNREAD = ("xlsx", "xls", "ods", "json", "jsonl", "mat", "h5", "hdf5", "arff", "feather", "pkl", "pickle")
"""Formats of data that would be taken for something else by their bytes."""
MAGIC = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PAR1": "parquet"}
"""First bytes, for files whose extension says nothing."""


def read(path: str | os.PathLike[str], settings: Settings, format: str | None = None) -> Pair | Cost:
    """The data of a file; whatever goes wrong is raised as a `FileProblem`."""
    name = os.fspath(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other libraries' warnings: a file is either good or refused
            _check_file(name, settings.max_memory)
            contents = READERS[format or guess(name)](name, settings)
            if isinstance(contents, Table):
                make = make_cost if settings.problem == "transport" else make_pair
                contents = make(contents, settings)
            if settings.relative and isinstance(contents, Pair):
                refuse_zero_target(contents)
            return contents
    except Fault as fault:
        raise FileProblem(name, *fault.args) from None
    except (OSError, EOFError, zlib.error) as error:
        text = f"the compressed data is damaged or cut off: {gist(error)}"
        # EINVAL: a damaged archive points outside of the file.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            text = str(error.strerror)
        raise FileProblem(name, "", text) from None
    except MemoryError:
        raise FileProblem(name, "", "reading it takes more memory than there is") from None
    except ImportError as error:
        library = str(error.name).partition(".")[0]
        extra = "sklearn" if library == "sklearn" else "cli"
        raise FileProblem(name, "", f"reading it needs {library}: pip install 'hasd[{extra}]'") from None
    except zipfile.BadZipFile as error:
        raise FileProblem(name, "", f"not an npz archive, or damaged or cut off: {gist(error)}") from None
    except Exception as error:  # zlib and pyarrow may raise anything on damaged data
        raise FileProblem(name, "", f"cannot be read: {gist(error)}") from None


def _check_file(name: str, limit: float) -> None:
    """Refuse what is no file (a pipe would hang the reader, a device never end), is empty, or too large."""
    if name == "-":
        raise Fault("", "standard input is not read; save it as a file (for a file named - give ./-)")
    status = os.stat(name)
    if not stat.S_ISREG(status.st_mode):
        directory = stat.S_ISDIR(status.st_mode)
        raise Fault("", "is a directory" if directory else "pipes and devices are not read: save it as a file")
    if status.st_size == 0:
        raise Fault("", "the file is empty")
    refuse_above_limit(status.st_size, limit, "")


def guess(name: str) -> str:
    """The format by the extension, .gz and .bz2 left aside; by the first bytes where that is silent.

    >>> guess("data.CSV.gz"), guess("train.libsvm")
    ('csv', 'svmlight')
    """
    path = Path(name.lower())
    extension = (path.with_suffix("") if path.suffix in (".gz", ".bz2") else path).suffix.removeprefix(".")
    if extension in EXTENSIONS:
        return EXTENSIONS[extension]
    if extension in UNREAD:
        raise Fault("", f".{extension} files are not read; save it as csv, npz or parquet")
    with open(name, "rb") as file:
        start = file.read(6)
    return next((format for magic, format in MAGIC.items() if start.startswith(magic)), "text")
