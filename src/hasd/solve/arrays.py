"""NumPy's own files, npy and npz.  Headers are read and measured before an array is; nothing is ever unpickled."""

from __future__ import annotations

import ast
import math
import os
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from .contents import Named, Request, Table
from .faults import Fault, listed, quoted, told, within

MAX_HEADER = 10_000
"""Bytes of an npy header, NumPy's own limit: a longer one could exhaust Python's parser."""
MAX_MEMBERS = 10_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 1
"""The bit of a member's flags."""
FORBIDDEN = ("/", "\\", "..", ":")
"""In a member's name: NumPy writes none, and a path has no business there."""


def read_npy(path: str, request: Request) -> Table:
    """The array of an npy file, as a table."""
    with open(path, "rb") as file:
        check_header(file, os.fstat(file.fileno()).st_size, "", request.limit)
        file.seek(0)
        values = _float64(npy.read_array(file, allow_pickle=False, max_header_size=MAX_HEADER))
    return as_table(values, "")


def as_table(values: np.ndarray, place: str) -> Table:
    """An array that stands alone."""
    if values.ndim != 2:
        raise Fault(place, f"{values.ndim}-D, shape {values.shape}; a table has two dimensions")
    return Table(values)


def read_npz(path: str, request: Request) -> Named | Table:
    """The arrays of an npz file that the request is after; a single array is a table."""
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        names = [name for name in request.wanted if name in members]
        if not names and len(members) == 1:
            names = list(members)
        if not names:
            either = f"no array {' or '.join(quoted(name) for name in request.wanted)}"
            raise Fault("", f"{either}; the arrays are {listed(members)}" if members else "no array in it")
        arrays = {name: _member(archive, members[name], name, request.limit) for name in dict.fromkeys(names)}
    if len(members) == 1 and not request.cost:
        return as_table(arrays[names[0]], _place(names[0]))
    if len(members) == 1:
        return Named({"C": arrays[names[0]]}, tuple(members))
    return Named(arrays, tuple(members))


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays by name.  What NumPy does not write is refused, members that are no arrays are left alone."""
    members: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > MAX_MEMBERS:
        raise Fault("", f"{len(archive.infolist())} members; at most {MAX_MEMBERS} are looked at")
    for info in archive.infolist():
        if any(part in info.filename for part in FORBIDDEN):
            raise Fault(f"member {quoted(info.filename)}", "a path for a name")
        _check_entry(archive, info)
        if not info.filename.endswith(".npy"):
            continue
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise Fault(_place(name), "there twice")
        members[name] = info
    return members


def _check_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Refuse damage by which another member would be left out: b, renamed in the directory or hidden in a comment."""
    if info.comment:
        raise Fault(f"member {quoted(info.filename)}", "damaged: a comment in the directory, where NumPy writes none")
    if info.compress_type not in METHODS or info.flag_bits & ENCRYPTED:
        return  # cannot be opened: said where it is wanted
    try:
        archive.open(info).close()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise Fault(f"member {quoted(info.filename)}", f"damaged: {told(error)}") from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, limit: float) -> np.ndarray:
    """One array, once its declared size and its header's agree and are within the limit."""
    place = _place(name)
    if info.compress_type not in METHODS:
        raise Fault(place, "compressed in a way that NumPy does not write")
    if info.flag_bits & ENCRYPTED:
        raise Fault(place, "encrypted")
    within(info.file_size, limit, place)
    try:
        with archive.open(info) as stream:
            check_header(stream, info.file_size, place, limit)
        with archive.open(info) as stream:
            values: np.ndarray = npy.read_array(stream, allow_pickle=False, max_header_size=MAX_HEADER)
            if stream.read(1):
                raise Fault(place, "more data than its header says")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise Fault(place, f"damaged: {told(error)}") from None
    return _float64(values)


def check_header(stream: IO[bytes], total: int, place: str, limit: float) -> None:
    """Refuse an npy header that is no header, holds no plain real numbers, or does not fit the bytes there are."""
    start = stream.read(8)
    if start[:6] != npy.MAGIC_PREFIX:
        raise Fault(place, "not an npy array: its first bytes are not NumPy's")
    if len(start) == 8 and (start[6] not in (1, 2, 3) or start[7] != 0):
        raise Fault(place, "an npy version that is not known")
    width = 2 if start[6:7] == b"\1" else 4
    size = stream.read(width)
    length = int.from_bytes(size, "little")
    if length > MAX_HEADER:
        raise Fault(place, f"an npy header of {length} bytes; at most {MAX_HEADER} are read")
    text = stream.read(length)
    if len(size) < width or len(text) < length:
        raise Fault(place, "cut off inside the npy header")
    dtype, shape = _described(text.decode("utf-8" if start[6] == 3 else "latin-1"), place)
    count = math.prod(shape)
    extent = math.prod(n or 1 for n in shape)  # an empty array's other dimensions must be within reach too
    within(max(8, dtype.itemsize) * extent, limit, f"{place}{', ' if place else ''}shape {_short(shape)}")
    missing = 8 + width + length + dtype.itemsize * count - total
    if missing > 0:
        raise Fault(place, f"cut off: {missing} bytes are missing")
    if missing < 0:
        raise Fault(place, f"{-missing} bytes more than the header says")


def _described(text: str, place: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and the shape in a header's text."""
    try:
        header = ast.literal_eval(text)
        if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
            raise ValueError
        descr, shape = header["descr"], header["shape"]
        whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        if not whole or type(header["fortran_order"]) is not bool:
            raise ValueError
        dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise Fault(place, "an npy header that cannot be read") from None
    if dtype is None or dtype.names is not None or dtype.subdtype is not None:
        raise Fault(place, "a structured array; a plain array of numbers is needed")
    if dtype.hasobject:
        raise Fault(place, "an object array: it holds pickled Python objects, which are never loaded")
    if dtype.kind not in "biuf":
        what = "complex numbers" if dtype.kind == "c" else "no numbers"
        raise Fault(place, f"{what} (dtype {dtype}); real numbers are needed")
    return dtype, shape


def _short(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(str(n) if n < 10**18 else "over 10^18" for n in shape[:4]) + ", ..." * (len(shape) > 4) + ")"


def _float64(values: np.ndarray) -> np.ndarray:
    """Native float64 in C order, whatever it was."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, dtype=np.float64) if values.ndim else values.astype(np.float64)


def _place(name: str) -> str:
    return f"array {quoted(name)}"
