"""Ten thousand mutated files, a thousand a format: each is read or refused in one line, and none shows a traceback.

Mutations go into the file as it is and, where it is packed, also into what is inside before it is packed again: a
flipped bit of a compressed file rarely gets further than the checksum.  How many got past their header is counted.
"""

from __future__ import annotations

import bz2
import gzip
import random
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files import ROWS, A, Y, csv, npy, npz, parquet, put, refused, svm, zipped
from hasd import cli
from hasd.solve import FileProblem, Pair, Settings, formats, read

FILES = 1000
"""Of a format; there are ten."""
SECONDS = 30.0
"""Of processor time that a format's files may take together; they take two or three."""
PROBLEMS = {name: Settings(name) for name in ("minimax", "lp", "logistic", "lse", "transport")}
JUNK = (b"nan", b"inf", b",", b";", b"\n", b"\r", b'"', b"1e999", b"-1:", b":", b"9" * 20, b"\xff" * 4, bytes(8), b"#")

Mutate = Callable[[bytes], bytes]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, flipped, cut out, doubled or made junk, or the end cut off; half keep their length."""
    out, kinds = bytearray(data), rng.choice((2, 6))
    for _ in range(rng.choice((1, 1, 2, 8))):
        i, kind = rng.randrange(len(out) + 1), rng.randrange(kinds)
        if kind < 2 and i < len(out):
            out[i] = rng.randrange(256) if kind else out[i] ^ 1 << rng.randrange(8)
        elif kind == 2:
            del out[i : i + rng.choice((1, 4, 100))]
        elif kind == 3:
            del out[i:]
        elif kind == 4:
            out[i:i] = out[: rng.choice((1, 8, 100))]
        else:
            out[i : i + 1] = rng.choice(JUNK)
    return bytes(out)


def packed(pack: Callable[[bytes], bytes], inside: bytes) -> Callable[[Mutate, random.Random], bytes]:
    """Of a packed file, mostly what is inside is mutated, now and then the file itself."""
    return lambda mutate, rng: pack(mutate(inside)) if rng.random() < 0.75 else mutate(pack(inside))


def rezipped(mutate: Mutate, rng: random.Random) -> bytes:
    """One array of two mutated and its checksum made anew, or the archive as a whole."""
    if rng.random() < 0.5:
        return mutate(npz(A=A, b=Y))
    return zipped(("A.npy", mutate(npy(A))), ("b.npy", npy(Y)))


def plain(data: bytes) -> Callable[[Mutate, random.Random], bytes]:
    return lambda mutate, rng: mutate(data)


WORDS = (
    b"a;kind;sold;y\n1,5;red;TRUE;1\n-2;blue;false;-1\n0,25;red;true;1\n3;blue;FALSE;-1\n-,5;red;false;1\n7;red;true;1"
)
"""A table of numbers with decimal commas, categories and booleans."""
PARQUETS = (parquet(), parquet(a=A[:, 0], kind=["red", "blue"] * 3, sold=A[:, 1] > 0, y=Y))

FORMATS: dict[str, Callable[[Mutate, random.Random], bytes]] = {
    "names.csv": plain(csv()),
    "plain.csv": plain(csv(names="")),
    "t.csv.gz": packed(gzip.compress, csv()),
    "t.csv.bz2": packed(bz2.compress, csv()),
    "t.svm": plain(svm()),
    "t.npy": plain(npy(ROWS)),
    "t.npz": rezipped,
    "c.npz": packed(lambda data: zipped(("C.npy", data), method=zipfile.ZIP_DEFLATED), npy(np.tile(A, (3, 1)))),
    "t.parquet": lambda mutate, rng: mutate(rng.choice(PARQUETS)),
    "unknown": lambda mutate, rng: mutate(rng.choice((csv(by=" "), WORDS))),
}
HEADERS: tuple[tuple[Any, str], ...] = (
    (np, "load"),  # of an npy, also inside an npz: called once the header is good
    (formats, "_find_names"),  # of a text
    (formats, "read_lines"),  # of svmlight, which has none: that it is text
    (formats, "_check_footer"),  # of a parquet
)
"""What looks at a header and returns where that is accepted."""


def count_headers(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts, for the file that is being read, how many of those checks it has passed."""
    passed: Counter[str] = Counter()

    def counted(check: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            out = check(*args, **options)
            passed["header"] += 1
            return out

        return run

    for owner, name in HEADERS:
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    return passed


def check_read(path: Path, request: Settings) -> bool:
    """Whether it is read: then what is read is finite and fits together; else one printable line says why not."""
    try:
        data = read(path, request)
    except FileProblem as problem:
        text = str(problem)
        assert text.isprintable() and len(text) < 600
        return False
    first, second = (data.A, data.b) if isinstance(data, Pair) else (data.C, data.a)
    assert first.shape[0] == len(second) > 0 and np.isfinite(second).all()
    assert np.isfinite(first if isinstance(first, np.ndarray) else first.data).all()
    return True


def check_command(path: Path, problem: str, target: list[str], was_read: bool, capsys: Any) -> None:
    """From file to exit code: 3 with one line on stderr and nothing else where it is refused, otherwise 0 or 4."""
    code = cli.main(["solve", str(path), "--problem", problem, *target, "--maxiter", "20", "--time-limit", "2"])
    out, err = capsys.readouterr()
    assert code in ((0, 4) if was_read else (3,)), (code, err, path.read_bytes())
    assert len(err.splitlines()) == (not was_read) and bool(out) == was_read, err
    assert was_read or err.startswith(f"hasd: error: {path}: ")
    assert "Traceback" not in err + out


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_thousand_mutated_files_are_read_or_refused_in_one_line(tmp_path, monkeypatch, capsys, name):
    """At least a fifth get past their header, some are refused only there; what is read, the command solves."""
    rng, path, made = random.Random(name), tmp_path / name, FORMATS[name]
    passed, seen, began = count_headers(monkeypatch), Counter[str](), time.process_time()
    for _ in range(FILES):
        path.write_bytes(made(lambda data: mutated(data, rng), rng))
        problem = rng.choice(list(PROBLEMS))
        target = ["--target", "a"] if problem != "transport" and rng.random() < 0.3 else []
        passed.clear()
        was_read = check_read(path, replace(PROBLEMS[problem], target="a" if target else None))
        seen["past the header"] += passed["header"] > 0
        seen["read"] += was_read
        seen["refused past the header"] += passed["header"] > 0 and not was_read
        if was_read or rng.random() < 0.1:  # the others are refused by the same call
            check_command(path, problem, target, was_read, capsys)
    assert seen["past the header"] >= FILES // 5, seen
    assert min(seen["read"], seen["refused past the header"], FILES - seen["read"]) >= FILES // 50, seen
    assert time.process_time() - began < SECONDS


def test_the_mutated_files_of_all_formats_are_ten_thousand():
    assert FILES * len(FORMATS) == 10_000


@pytest.mark.parametrize(
    ("name", "data"),
    [("t.npy", npy(ROWS)), ("t.npz", npz(A=A, b=Y)), ("t.parquet", parquet()), ("t.csv.gz", gzip.compress(csv()))],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wherever_it_is_cut_off_a_file_is_refused(tmp_path, name, data):
    """By a line that names what is missing, never by the name of an exception alone."""
    for length in range(len(data)):
        text = refused(put(tmp_path, name, data[:length]))
        assert any(word in text for word in ("cut off", "empty", "not an np", "version", "footer", "not utf-8")), text


@pytest.mark.slow
def test_whichever_bit_is_flipped_an_archive_is_refused_or_read_right(tmp_path):
    """The checksum sees to the numbers; what it does not cover (times, flags of the directory) changes nothing."""
    data, refusals = npz(A=A, b=Y), 0
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            pair = read(put(tmp_path, "t.npz", bytes(flipped)), Settings("minimax"))
        except FileProblem:
            refusals += 1
            continue
        np.testing.assert_array_equal(pair.A, A)
        np.testing.assert_array_equal(pair.b, Y)
    assert refusals > 4 * len(data)
