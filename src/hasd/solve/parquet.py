"""Parquet through pyarrow.  The footer is measured before a column is read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .contents import Request, Table, column, find_column
from .faults import Fault, quoted, within

MAX_FOOTER = 2**24
"""Bytes and entries of the footer's strings and lists: a damaged one may ask for anything."""


def read_parquet(path: str, request: Request) -> Table:
    """The columns as numbers; the target may be two words where the request says labels."""
    parquet: Any = import_module("pyarrow.parquet")  # only here: no other format needs it
    limits = {"thrift_string_size_limit": MAX_FOOTER, "thrift_container_size_limit": MAX_FOOTER}
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            raise Fault("", "not a parquet file, or cut off: it does not begin with PAR1")
    with open(path, "rb") as file, parquet.ParquetFile(file, **limits) as source:
        _check_footer(source, request)
        table = source.read(use_threads=False)
        if table.num_rows != source.metadata.num_rows:
            raise Fault("", f"{table.num_rows} rows where the footer says {source.metadata.num_rows}")
    names = tuple(table.column_names)
    values = np.empty((table.num_rows, len(names)))
    classes = None
    for j, data in enumerate(table.columns):
        if data.null_count:
            row = int(np.argmax(data.is_null().to_numpy()))
            raise Fault(f"row {row} (from 0), {column(j, names)}", "the cell is empty")
        if _is_word(data.type):
            values[:, j], classes = _two_words(data, column(j, names))
        else:
            values[:, j] = data.to_numpy()
    return Table(values, names, classes)


def _check_footer(source: Any, request: Request) -> None:
    """The sizes and the types that the file declares."""
    names, metadata = tuple(source.schema_arrow.names), source.metadata
    rows, width = metadata.num_rows, len(names)
    if not names or rows < 1:
        raise Fault("", f"{rows} rows and {width} columns")
    within(8.0 * rows * width, request.limit, f"{rows} rows, {width} columns")
    bytes_there = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    within(bytes_there, request.limit, "the row groups")
    label = find_column(request.target, names, width) if request.labels else None
    for j, kind in enumerate(source.schema_arrow.types):
        if not (_is_number(kind) or (j == label and _is_word(kind))):
            raise Fault(column(j, names), f"{kind} values; numbers are needed")


def _is_number(kind: Any) -> bool:
    types: Any = import_module("pyarrow.types")
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind))


def _is_word(kind: Any) -> bool:
    types: Any = import_module("pyarrow.types")
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _two_words(data: Any, place: str) -> tuple[np.ndarray, tuple[str, str]]:
    """0 and 1 for two words in the order of the alphabet."""
    words = sorted(data.unique().to_pylist())
    if len(words) != 2:
        some = ", ".join(quoted(word) for word in words[:4])
        raise Fault(place, f"{len(words)} different labels ({some}); logistic needs two classes")
    return np.array([word == words[1] for word in data.to_pylist()], dtype=np.float64), (words[0], words[1])
