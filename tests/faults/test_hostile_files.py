"""Files made to hurt: pickles, bombs, endless lines, absurd shapes.  Refused before memory is taken for them."""

from __future__ import annotations

import bz2
import gzip
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from files import Y, header, npy, parquet, put, refused, zipped
from hasd.solve import Settings, read


class Trap:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_nothing_is_unpickled(tmp_path):
    """A pickle that would make a file, in every place where NumPy could keep one."""
    mark = tmp_path / "mark"
    trap = np.array([[Trap(mark)] * 4] * 6, dtype=object)
    data = npy(trap, allow_pickle=True)
    files = {"t.npy": data, "t.npz": zipped(("A.npy", data), ("b.npy", npy(Y))), "s.npz": zipped(("A.npy", data))}
    for name, content in files.items():
        assert "an object array: it holds pickled Python objects" in refused(put(tmp_path, name, content))
    for name in ("p.npy", "p.npz", "p.csv", "p.bin"):
        refused(put(tmp_path, name, pickle.dumps(Trap(mark))))
    assert not mark.exists()
    pickle.loads(pickle.dumps(Trap(mark))).close()
    assert mark.exists()  # the trap would have worked


def bomb(declared: int | None = None) -> bytes:
    """16 MiB of zeros, deflated, under a header of 2 GiB; or a member that declares another size than it has."""
    inside = header("'<f8'", "(16384, 16384)") + bytes(2**24)
    data = zipped(("A.npy", inside), method=zipfile.ZIP_DEFLATED)
    return data if declared is None else data.replace(struct.pack("<I", len(inside)), struct.pack("<I", declared))


CONSTANT = parquet(a=np.zeros(2**18), y=np.zeros(2**18))
"""A few hundred bytes that unfold to four MiB."""


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("bomb.npz", bomb(), "array 'A': needs 16 MiB of memory, above the limit of 1 MiB (--max-memory)"),
        ("liar.npz", bomb(declared=1000), "array 'A': damaged"),
        ("bomb.csv.gz", gzip.compress(b"1,2\n" * 2**18), "262144 lines: needs 2 MiB of memory"),
        ("bomb.csv.bz2", bz2.compress(b"#\n" * 2**20), "the text is longer than the limit of 1 MiB"),
        ("line.csv.gz", gzip.compress(b"1" * 2**20), "line 1: longer than 256 KiB"),
        ("line.csv", b"1" * 2**19, "line 1: longer than 256 KiB"),
        ("line.svm", b"1 1:2 " * 2**16, "line 1: longer than 256 KiB"),
        ("cells.csv", b"10," * 2**16 + b"0\n" + b"1", "line 2: 1 cell where the first line has 65537"),
        ("big.csv", b"1 " * 2**18 + b"\n" + b"1 " * 2**17, "longer than 256 KiB"),
        ("wide.svm", b"1 300000:1\n", "index 300000: needs 146 MiB of memory"),
        ("shape.npy", header("'<f8'", "(2000, 2000)"), "needs 30.5 MiB of memory"),
        ("endless.npy", header("'<f8'", f"({10**30}, {10**30})"), "needs over 2^60 bytes"),
        ("flat.npy", header("'<f8'", f"({2**62}, 0)"), "needs over 2^60 bytes"),
        ("rows.parquet", CONSTANT, "262144 rows, 2 columns: needs 4 MiB"),
        ("bytes.npy", header("'|b1'", "(500, 500)", bytes(250_000)), "needs 1.91 MiB"),
        ("digits.csv", b"9" * 10**5 + b",1\n", "line 1, column 0 (from 0): the cell is inf"),
        ("quotes.csv", b'"' * 10**5 + b"\n", "no rows below the names"),
        ("almost.csv", b"k,y\n" + (b"9" * 2**17 + b"x,1\n") * 2, "column 0 ('k'): it has the same word"),
        ("tabs.csv", b"1" + b"\t" * 2**17 + b"x\n", "line 1, column 131072 (from 0): 'x' is not a number"),
        ("size.csv", b"1,2\n" * 2**19, "needs 2 MiB of memory, above the limit of 1 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) and value[-4:].count(".") else "",
)
def test_memory_and_time_are_bounded(tmp_path, monkeypatch, name, data, message):
    monkeypatch.setattr("hasd.solve.formats.MAX_LINE", 2**18)
    path = put(tmp_path, name, data)
    tracemalloc.start()
    began = time.process_time()
    try:
        assert message in refused(path, Settings("minimax", max_memory=2**20))
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 30.0


def test_a_bomb_of_blank_lines_ends_soon(tmp_path):
    """However high the limit: so long a text from so few bytes is no data."""
    path = put(tmp_path, "t.csv.bz2", bz2.compress(b"\n" * 2**22))
    assert "the text is over 200 times as long as its compressed form" in refused(path)


def test_a_long_word_in_many_rows_is_held_once(tmp_path):
    """A parquet file of a few kilobytes whose words would take four GiB."""
    pyarrow = pytest.importorskip("pyarrow")
    words = pyarrow.DictionaryArray.from_arrays(np.arange(2**12, dtype=np.int32) % 2, ["a" * 2**20, "b" * 2**20])
    path = put(tmp_path, "t.parquet", parquet(word=words, y=np.arange(2.0**12)))
    tracemalloc.start()
    try:
        pair = read(path, Settings("minimax", max_memory=2**24))
        assert tracemalloc.get_traced_memory()[1] < 2**26 and pyarrow.total_allocated_bytes() < 2**26
    finally:
        tracemalloc.stop()
    assert pair.A.shape == (2**12, 2) and pair.A.sum() == 2**12


def test_categories_are_measured_before_they_are_made(tmp_path):
    text = b"k,y\n" + b"".join(b"w%d,1\n" % (i % 100) for i in range(2000))
    message = refused(put(tmp_path, "t.csv", text), Settings("minimax", max_memory=2**20))
    assert message.startswith("column 0 ('k') as categories: needs 1.53 MiB of memory, above the limit of 1 MiB")


def test_an_archive_of_over_ten_thousand_members_is_refused(tmp_path):
    data = zipped(*((f"{i}.npy", b"") for i in range(10_001)))
    assert refused(put(tmp_path, "t.npz", data)) == "10001 members; at most 10000 are looked at"


def test_an_error_is_one_line_in_a_pipe(tmp_path):
    path = put(tmp_path, "t\n.csv", b"1,2\n3,x\n")
    command = [sys.executable, "-m", "hasd.cli", "solve", path, "--problem", "minimax"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    name = path.replace("\n", "\\n")
    assert done.stderr == f"hasd: error: {name}: line 2, column 1 (from 0): 'x' is not a number\n"
