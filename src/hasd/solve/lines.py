"""The lines of a text file, one at a time: plain, gzip or bzip2; UTF-8 or a Unicode with a byte order mark.

Hostile files are met here: a decompression bomb ends at the limit, an endless line at `MAX_LINE`, binary data at its
first zero byte.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from .faults import Fault, size, told

MAX_LINE = 2**24
"""Characters of one line: its cells take about twenty times that while they are split."""

MAX_RATIO = 200
"""Text over compressed bytes, beyond the first MiB.  Tables reach 20: what reaches more was made to take our time."""

COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

Line = tuple[int, str]
"""A line's number, from 1, and its text."""


def lines(path: str, limit: float) -> Iterator[Line]:
    """The lines that are neither blank nor a comment (#), stripped of their ends."""
    number = 0
    try:
        with open_text(path) as text:
            for number, line in _bounded(text, limit, 2**20 + MAX_RATIO * os.path.getsize(path)):
                if line and not line.isspace() and not line.lstrip().startswith("#"):
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        what = f"not {error.encoding} text (byte 0x{error.object[error.start]:02x}); save it as UTF-8"
        raise Fault(f"near line {number + 1}", what) from None
    except UnicodeError as error:  # UTF-16 and UTF-32 raise their own
        raise Fault(f"near line {number + 1}", f"not text: {told(error)}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Fault(f"near line {number + 1}", f"the compressed data is damaged or cut off: {told(error)}") from None


def _bounded(text: IO[str], limit: float, expected: int) -> Iterator[Line]:
    number, total = 0, 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        total += len(line)
        if len(line) > MAX_LINE:
            raise Fault(f"line {number}", f"longer than {size(MAX_LINE)}")
        if total > limit:
            raise Fault(f"line {number}", f"the text is longer than the limit of {size(limit)} (--max-memory)")
        if total > expected:
            raise Fault(f"line {number}", f"the text is over {MAX_RATIO} times as long as its compressed form")
        if "\0" in line:
            raise Fault(f"line {number}", "binary data, not text")
        yield number, line


def open_text(path: str) -> IO[str]:
    """The file as text, decompressed and decoded by what its first bytes say."""
    with open(path, "rb") as raw:
        opener = COMPRESSED.get(raw.read(2))
    data = cast(Any, opener)(path, "rb") if opener is not None else open(path, "rb")  # noqa: SIM115
    try:
        head = data.peek(4)[:4]
    except BaseException:
        data.close()
        raise
    encoding = next((name for mark, name in MARKS if head.startswith(mark)), "utf-8")
    return io.TextIOWrapper(data, encoding=encoding, errors="strict", newline=None)


def is_number(cell: str) -> bool:
    """Whether a cell is a number as files write them: no digit groups, which Python would take.

    >>> is_number(" -1.5e3"), is_number("1_000"), is_number("")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
