"""The readers of the formats.  Each measures what its file declares before it takes memory; none runs what is in it.

A text is read whole: about ten times its length, fifty with the shortest lines; ``--max-memory`` bounds the length.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import inspect
import io
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from .data import NUMERIC, Cost, Names, Pair, Table, column, is_number, make_labels, select, with_masses
from .faults import Fault, gist, name_list, quote, refuse_above_limit, refuse_bad_numbers, size
from .settings import Settings

MAX_LINE = 2**24
"""Characters of one line: its cells take about twenty times that while they are split."""
MAX_RATIO = 200
"""Text over compressed bytes, beyond the first MiB.  Tables reach 20; far more is an attack."""
MAX_HEADER = 10_000
"""Bytes of an npy header, NumPy's own limit: a longer one could exhaust Python's parser."""
MAX_FOOTER = 2**24
"""Bytes and entries of a parquet footer's strings and lists: a damaged one may ask for anything."""
MAX_MEMBERS = 10_000
VECTORS = 64
"""Dense vectors of the columns' length that a solver may hold: what the largest index of svmlight is measured by."""
COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
MARKS = {getattr(codecs, f"BOM_UTF{bits}_{end}E"): f"utf-{bits}" for bits in (32, 16) for end in "LB"}
"""Byte order marks of texts that are not UTF-8; UTF-32 comes first, as its mark begins with that of UTF-16."""
DELIMITERS = "\t;,"
"""Tried in this order: a comma beside semicolons or tabs is a decimal comma.  Without any, blanks delimit."""
CELL = r"(?:^|[;\t])[^\S\t]*+[-+]?\d*{}\d+(?:[eE][-+]?\d+)?[^\S\t]*+(?:$|[;\t])"
COMMA, POINT = re.compile(CELL.format(",")), re.compile(CELL.format(r"\."))
"""A cell, between semicolons or tabs, with such a decimal sign."""
FLAT = ("boolean", "integer", "floating", "decimal", "string", "large_string")
"""Types of parquet that are read."""
SPARSE = re.compile(r"\s*[^\s:]+(\s+qid:\d+)?\s+\d+:\S")
"""The beginning of a row of svmlight."""


class Lines(NamedTuple):
    """The lines of a text that are neither blank nor a comment (#), and their numbers from 1."""

    numbers: list[int]
    texts: list[str]


def read_lines(path: str, limit: float) -> Lines:
    """The lines of a file, plain, gzip or bzip2; UTF-8 or a Unicode with a byte order mark."""
    with open(path, "rb") as raw:
        head = raw.read(3)
    opener: Any = next((opener for mark, opener in COMPRESSED.items() if head.startswith(mark)), open)
    data, most = bytearray(), 2**20 + MAX_RATIO * os.path.getsize(path)
    with opener(path, "rb") as stream:
        while chunk := stream.read(2**20):
            data += chunk
            if len(data) > limit:
                raise Fault("", f"the text is longer than the limit of {size(limit)} (--max-memory)")
            if len(data) > most:
                raise Fault("", f"the text is over {MAX_RATIO} times as long as its compressed form")
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8-sig")
    try:
        text = data.decode(encoding)
    except UnicodeError as error:  # errors of UTF-16 and UTF-32 may lack `start`
        place = f"near line {data.count(10, 0, getattr(error, 'start', 0)) + 1}"
        raise Fault(place, f"not {encoding.removesuffix('-sig')} text; save it as UTF-8 ({gist(error)})") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines, count = Lines([], []), text.count("\n")
    refuse_above_limit(8.0 * count, limit, f"{count} lines")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE or "\0" in line:
            raise Fault(f"line {number}", "binary data, not text" if "\0" in line else f"longer than {size(MAX_LINE)}")
        if line.strip() and not line.lstrip().startswith("#"):
            lines.numbers.append(number)
            lines.texts.append(line)
    if not lines.texts:
        raise Fault("", "no rows: the file is empty but for blanks and comments")
    return lines


def read_text(path: str, settings: Settings) -> Table | Pair:
    """A text file whose extension says nothing: its first row decides between a table and svmlight."""
    lines = read_lines(path, settings.max_memory)
    return _parse_sparse(lines, settings) if SPARSE.match(lines.texts[0]) else _parse_table(lines, settings)


def _parse_table(lines: Lines, settings: Settings) -> Table:
    """Comma, semicolon, tab or blanks between the cells, with or without a line of names."""
    import pandas as pd

    samples = lines.texts[1::-1]  # the second line first, as names may hold anything
    free = settings.decimal != "," or any('"' in line for line in samples)  # a decimal comma is quoted between commas
    allowed = DELIMITERS if free else DELIMITERS.replace(",", "")
    delimiter = next((one for line in samples for one in allowed if one in line), " ")
    if delimiter == " ":
        lines = Lines(lines.numbers, [" ".join(line.split()) for line in lines.texts])
    comma, point = (delimiter in (";", "\t") and any(map(sign.search, lines.texts)) for sign in (COMMA, POINT))
    decimal = settings.decimal or ("," if comma and not point else ".")
    notes = ("Commas were read as decimal commas; --decimal . refuses them.",) * (decimal != (settings.decimal or "."))
    names, width = _find_names(lines, delimiter, decimal, settings)
    numbers, texts = lines if names is None else (lines.numbers[1:], lines.texts[1:])
    if not texts:
        raise Fault("", "no rows below the names")
    for number, line in zip(numbers, texts, strict=True):
        cells = len(_split(number, line, delimiter))
        if cells != width:  # pandas would fill short rows
            cut = "; is the file cut off there?" if cells < width and number == numbers[-1] else ""
            raise Fault(f"line {number}", f"{cells} cell{'s'[: cells != 1]} where the first line has {width}{cut}")
    refuse_above_limit(8.0 * width * len(texts), settings.max_memory, f"{len(texts)} rows, {width} columns")
    chosen, target, used = select(settings, names, width)
    exact = {"float_precision": "round_trip"} if "float_precision" in inspect.signature(pd.read_csv).parameters else {}
    form = {"sep": delimiter, "decimal": decimal, "header": None, "usecols": used, "skipinitialspace": True}
    frame = pd.read_csv(io.StringIO("\n".join(texts)), skip_blank_lines=False, low_memory=False, **form, **exact)
    if len(frame) != len(texts):
        raise Fault("", "quotes that cannot be read")
    return Table(frame, names, chosen, target, lambda i: f"line {numbers[i]}", decimal, notes)


def _split(number: int, line: str, delimiter: str) -> list[str]:
    """The cells of a line."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
    except (csv.Error, StopIteration) as error:
        raise Fault(f"line {number}", f"quotes that cannot be read: {gist(error)}") from None


def _find_names(lines: Lines, delimiter: str, decimal: str, settings: Settings) -> tuple[Names, int]:
    """The names, where the first line holds them, and how many columns there are.

    A line of names has no number in it, a row has numbers only; a line with both is refused.
    """
    number = lines.numbers[0]
    cells = tuple(cell.strip() for cell in _split(number, lines.texts[0], delimiter))
    asked = {*cells} & {settings.target, *(settings.columns or ()), *(settings.drop or ())}
    if settings.header != "auto" or any(not is_number(name) for name in asked):
        return (None if settings.header == "no" else cells), len(cells)
    index = settings.target or "-1"
    label = int(index) % len(cells) if settings.problem == "logistic" and re.fullmatch(r"-?\d{1,9}", index) else None
    looked_at = [j for j, cell in enumerate(cells) if cell and (j != label or len(cells) == 1)]
    words = [j for j in looked_at if not is_number(cells[j], decimal)]
    if len(words) not in (0, len(looked_at)):
        what = "is not a number, though other cells hold numbers (names? then --header yes; data? then --header no)"
        raise Fault(f"line {number}, {column(words[0], None)}", f"{quote(cells[words[0]])} {what}")
    return (cells if words else None), len(cells)


def _parse_sparse(lines: Lines, settings: Settings) -> Pair:
    """Rows of svmlight as a CSR array, by scikit-learn.  Indices count from 1, or from 0 where a 0 occurs."""
    import pandas as pd
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    if settings.problem == "transport" or settings.target is not None or settings.columns or settings.drop:
        raise Fault("", "a sparse file: it is no cost matrix, and --target, --columns and --drop are for tables")
    unfit = "not a row of rising index:value pairs"
    for number, text in zip(*lines, strict=True):
        if "_" in text.partition("#")[0]:  # Python, and so scikit-learn, would take 1_000
            raise Fault(f"line {number}", f"{unfit}: an underscore, which no number has")
    stream = io.BytesIO("\n".join(lines.texts).encode())
    try:
        matrix, target = load_svmlight_file(stream, zero_based=True)
    except (ValueError, OverflowError) as error:  # the row is the last one that was taken from the stream
        row = stream.getvalue().count(b"\n", 0, stream.tell() - 1)
        raise Fault(f"line {lines.numbers[row]}", f"{unfit}: {gist(error)}") from None
    if not matrix.nnz:
        raise Fault("", "no index:value pair in any row; if it is a table, give --format csv")
    refuse_above_limit(8.0 * VECTORS * matrix.shape[1], settings.max_memory, f"index {matrix.shape[1] - 1}")
    refuse_bad_numbers(target, "the row's number is", lambda i: f"line {lines.numbers[i]}")
    ends = matrix.indptr[1:]
    refuse_bad_numbers(matrix.data, "a value is", lambda i: f"line {lines.numbers[np.searchsorted(ends, i, 'right')]}")
    base = min(1, int(matrix.indices.min()))
    name, classes, notes = "the number that begins a row", None, ["Indices count from 0 in this file."][base:]
    if settings.problem == "logistic":
        target, classes, said = make_labels(pd.Series(target), name)
        notes += said
    names = tuple(f"index {k}" for k in range(base, matrix.shape[1]))
    return Pair(csr_array(matrix[:, base:]), target, name, names, tuple(notes), classes)


def read_npy(path: str, settings: Settings) -> Table:
    """The array of an npy file, as a table."""
    with open(path, "rb") as file:
        return _make_table(read_array(file, os.path.getsize(path), "", settings.max_memory), "", settings)


def _make_table(values: np.ndarray, place: str, settings: Settings, called: str = "") -> Table:
    """A table from a single array; ``called`` is the target."""
    import pandas as pd

    if values.ndim != 2:
        raise Fault(place, f"the shape is {values.shape}; a table has two dimensions")
    chosen, target, used = select(settings, None, values.shape[1])
    return Table(pd.DataFrame(values, copy=False)[used], None, chosen, target, called=called)


def read_array(stream: IO[bytes], total: int, place: str, limit: float) -> np.ndarray:
    """An npy array of plain real numbers, once its header fits the bytes there are and the limit."""
    start = io.BytesIO(stream.read(MAX_HEADER))
    try:
        header = npy.read_array_header_1_0 if npy.read_magic(start) == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = header(start)  # versions 2.0 and 3.0 differ only in field names
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise Fault(place, f"not an npy array, or its header is damaged or cut off: {gist(error)}") from None
    if dtype.hasobject:
        raise Fault(place, "an object array: it holds pickled Python objects, which are never loaded")
    if dtype.kind not in NUMERIC or min(shape, default=0) < 0:
        raise Fault(place, f"no plain real numbers: {quote(str(dtype))}, shape {quote(str(shape))}")
    extent = math.prod(n or 1 for n in shape)  # an empty array's other dimensions must be within reach too
    refuse_above_limit(max(8, dtype.itemsize) * extent, limit, place)
    missing = start.tell() + dtype.itemsize * math.prod(shape) - total
    if missing:
        cut = f"cut off: {missing} bytes are missing"
        raise Fault(place, cut if missing > 0 else f"{-missing} bytes more than the header says")
    stream.seek(0)
    return np.asarray(np.load(stream, allow_pickle=False), dtype=np.float64, order="C")


def read_npz(path: str, settings: Settings) -> Table | Cost:
    """The arrays of an npz file that the problem needs; a single array is a table."""
    cost, target = settings.problem == "transport", settings.target
    likely = ("y", "b", "target") if settings.problem == "logistic" else ("b", "y", "target")
    usual = ("C",) if cost else ("A", "X")
    named = likely if target is None else (target,)
    vectors = ("a", "b") if cost else named
    with zipfile.ZipFile(path) as archive:
        members = _find_members(archive)
        wanted = members if len(members) == 1 else [name for name in members if name in usual + vectors]
        arrays = {name: _read_member(archive, members[name], settings.max_memory) for name in wanted}
    if len(members) == 1:
        return next(_make_table(values, f"array {quote(name)}", settings) for name, values in arrays.items())
    main, target = (next((name for name in names if name in arrays), None) for names in (usual, vectors))
    if main is None or (target is None and not cost and (settings.problem != "lse" or settings.target is not None)):
        either = " or ".join(map(quote, usual if main is None else vectors))
        raise Fault("", f"no array {either}; the arrays are {name_list(members)}")
    A = arrays[main]
    if A.ndim != 2 or 0 in A.shape:
        raise Fault(f"array {quote(main)}", f"the shape is {A.shape}; a matrix with rows and columns is needed")
    if cost:
        for name, values in arrays.items():
            refuse_bad_numbers(values, "", lambda *place, name=name: f"array '{name}', entry {[*place]} (from 0)")
        return with_masses(A, *(_find_vector(arrays, name, n) for name, n in zip("ab", A.shape, strict=True)))
    b = _find_vector(arrays, target, len(A))
    called = "none: zeros" if b is None else f"array {quote(str(target))}"
    joined = np.column_stack((A, np.zeros(len(A)) if b is None else b))
    return _make_table(joined, "", replace(settings, target=None), called)


def _find_vector(arrays: dict[str, np.ndarray], name: str | None, length: int) -> np.ndarray | None:
    """The vector of that name, which may be a matrix of one row or column; None where there is none."""
    if name is None or name not in arrays:
        return None
    values = arrays[name].ravel() if 1 in arrays[name].shape else arrays[name]
    if values.shape != (length,):
        raise Fault(f"array {quote(name)}", f"the shape is {values.shape}; a vector of length {length} is needed")
    return values


def _find_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays by name.  Damage by which one would be left out (b, renamed or hidden in a comment) is refused."""
    members: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > MAX_MEMBERS:
        raise Fault("", f"{len(archive.infolist())} members; at most {MAX_MEMBERS} are looked at")
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        try:
            if info.comment or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or name in members:
                raise ValueError("a comment, a name that is there twice, or an unknown compression")
            archive.open(info).close()
        except Exception as error:  # encrypted members raise a RuntimeError
            raise Fault(f"member {quote(info.filename)}", f"damaged, or not written by NumPy: {gist(error)}") from None
        if name != info.filename:
            members[name] = info
    return members


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: float) -> np.ndarray:
    """One array, within the size that the archive declares for it."""
    place = f"array {quote(info.filename.removesuffix('.npy'))}"
    refuse_above_limit(info.file_size, limit, place)
    try:
        with archive.open(info) as stream:
            return read_array(stream, info.file_size, place, limit)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise Fault(place, f"damaged: {gist(error)}") from None


def read_parquet(path: str, settings: Settings) -> Table:
    """The columns that are asked for, words as categories, so that a repeated word is held once."""
    from pyarrow.parquet import ParquetFile

    limits = {"thrift_string_size_limit": MAX_FOOTER, "thrift_container_size_limit": MAX_FOOTER}
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            raise Fault("", "not a parquet file, or cut off: it does not begin with PAR1")
    with ParquetFile(path, **limits) as source:
        names, rows = tuple(source.schema_arrow.names), source.metadata.num_rows
        chosen, target, used = _check_footer(source, names, settings)
    asked = [names[j] for j in used]
    with ParquetFile(path, read_dictionary=asked, **limits) as source:
        table = source.read(columns=asked, use_threads=False).select(asked)
    if table.num_rows != rows:
        raise Fault("", f"{table.num_rows} rows where the footer says {rows}")
    frame = table.to_pandas(ignore_metadata=True, use_threads=False)
    return Table(frame.set_axis(used, axis=1), names, chosen, target)


def _check_footer(source: Any, names: tuple[str, ...], settings: Settings) -> tuple[list[int], int | None, list[int]]:
    """The columns that are asked for, once the sizes and types that the file declares are good."""
    from pyarrow import types

    metadata = source.metadata
    if metadata.num_rows < 1 or not names or len({*names}) < len(names):
        found = f"{metadata.num_rows} rows, and {len(names)} columns with {len({*names})} different names"
        raise Fault("", f"the file has {found}; rows, and columns whose names differ, are needed")
    chosen, target, used = select(settings, names, len(names))
    extent = f"{metadata.num_rows} rows, {len(used)} columns"
    refuse_above_limit(8.0 * metadata.num_rows * len(used), settings.max_memory, extent)
    groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    refuse_above_limit(groups, settings.max_memory, "the row groups")
    for j in used:
        kind = source.schema_arrow.types[j]
        flat = kind.value_type if types.is_dictionary(kind) else kind
        if not any(getattr(types, f"is_{one}")(flat) for one in FLAT):
            raise Fault(column(j, names), f"it holds {kind} values: convert them to numbers, or --drop the column")
    return chosen, target, used


READERS: dict[str, Callable[[str, Settings], Table | Pair | Cost]] = {
    "csv": lambda path, settings: _parse_table(read_lines(path, settings.max_memory), settings),
    "npz": read_npz,
    "npy": read_npy,
    "svmlight": lambda path, settings: _parse_sparse(read_lines(path, settings.max_memory), settings),
    "parquet": read_parquet,
    "text": read_text,
}
