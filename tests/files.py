"""Files as bytes, good and bad, and what reading them gives."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hasd.solve import FileProblem, Settings, read

RNG = np.random.default_rng(0)
A, Y = RNG.standard_normal((6, 3)).round(4), np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
ROWS = np.column_stack((A, Y))


def npy(array, **options) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **options)
    return out.getvalue()


def npz(compressed: bool = False, **arrays) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def header(descr: str, shape: str, data: bytes = b"", rest: str = "") -> bytes:
    """An npy file with the header one likes."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}{rest}}}".encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def csv(rows=ROWS, names="a,b,c,y", end="\n", by=",") -> bytes:
    lines = [by.join(f"{value:g}" for value in row) for row in rows]
    return (end.join(([names.replace(",", by)] if names else []) + lines) + end).encode()


def svm() -> bytes:
    rows = (" ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row)) for row in A)
    return "".join(f"{y:g} {row}\n" for y, row in zip(Y, rows, strict=True)).encode()


def parquet(**columns) -> bytes:
    pyarrow, out = pytest.importorskip("pyarrow"), io.BytesIO()
    from pyarrow.parquet import write_table

    write_table(pyarrow.table(columns or {"a": A[:, 0], "b": A[:, 1], "c": A[:, 2], "y": Y}), out)
    return out.getvalue()


def put(tmp_path: Path, name: str, data: bytes) -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def refused(path: str, request: Settings | None = None) -> str:
    with pytest.raises(FileProblem) as caught:
        read(path, request or Settings("minimax"))
    text = str(caught.value)
    assert text.isprintable() and len(text) < 600, text
    return text.removeprefix(f"{path}: ")
