"""Files that are odd, damaged or wrong: read, or refused in one line that says what is wrong and where."""

from __future__ import annotations

import bz2
import gzip
import os
import random
import sys
import zipfile

import numpy as np
import pytest

from files import ROWS, A, Y, csv, header, npy, npz, parquet, put, refused, svm, zipped
from hasd.solve import Cost, FileProblem, Pair, Settings, read

# ---------------------------------------------------------------------------------------------------- good, if odd


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("plain.csv", csv()),
        ("no_names.csv", csv(names="")),
        ("semicolons.csv", csv(by=";")),
        ("tabs.tsv", csv(by="\t")),
        ("blanks.txt", csv(by=" ")),
        ("several_blanks.dat", csv(by="   ", names="")),
        ("odd_blanks.dat", csv(by=" \u00a0\u2003", names="")),
        ("spaces_after.csv", csv(by=", ")),
        ("crlf.csv", csv(end="\r\n")),
        ("old_mac.csv", csv(end="\r")),
        ("blank_lines.csv", csv(end="\n\n") + b"\n \n"),
        ("comments.csv", b"# made by hand\n" + csv()),
        ("no_last_newline.csv", csv().rstrip(b"\n")),
        ("mark.csv", b"\xef\xbb\xbf" + csv()),
        ("utf16.csv", csv().decode().encode("utf-16")),
        ("utf32.csv", csv().decode().encode("utf-32")),
        ("quotes.csv", csv(names='"a","b, c","c",y')),
        ("gzip.csv.gz", gzip.compress(csv())),
        ("bzip2.csv.bz2", bz2.compress(csv())),
        ("sparse.svm", svm()),
        ("sparse.txt", svm()),
        ("sparse.libsvm.bz2", bz2.compress(svm())),
        ("zero_based.svm", b"".join(b"%g 0:%g 1:%g 2:%g # x\n" % (y, *a) for y, a in zip(Y, A, strict=True))),
        ("queries.svm", svm().replace(b" 1:", b" qid:3 1:")),
        ("table.npy", npy(ROWS)),
        ("version2.npy", npy(ROWS, version=(2, 0))),
        ("version3.npy", npy(ROWS, version=(3, 0))),
        ("fortran.npy", npy(np.asfortranarray(ROWS))),
        ("big_endian.npy", npy(ROWS.astype(">f8"))),
        ("long.npy", npy(ROWS.astype(np.longdouble))),
        ("arrays.npz", npz(A=A, b=Y)),
        ("compressed.npz", npz(compressed=True, X=A, y=Y)),
        ("column.npz", npz(X=A, target=Y[:, None])),
        ("other_members.npz", npz(A=A, b=Y, names=np.array(["x", "y"]))),
        ("single.npz", npz(table=ROWS)),
        ("unknown.bin", npy(ROWS)),
        ("unknown2.bin", npz(A=A, b=Y)),
    ],
)
def test_every_format_is_read_into_the_same_float64_table(tmp_path, name, data):
    pair = read(put(tmp_path, name, data), Settings("minimax"))
    assert isinstance(pair, Pair)
    dense = pair.A if isinstance(pair.A, np.ndarray) else pair.A.toarray()
    assert dense.dtype == pair.b.dtype == np.float64 and dense.dtype.isnative
    np.testing.assert_array_equal(dense, A)
    np.testing.assert_array_equal(pair.b, Y)


def test_parquet_is_read(tmp_path):
    pair = read(put(tmp_path, "t.parquet", parquet()), Settings("minimax", target="a"))
    np.testing.assert_array_equal(pair.A, ROWS[:, 1:])
    np.testing.assert_array_equal(pair.b, A[:, 0])
    assert pair.columns == ("b", "c", "y")


def test_float32_and_integers_become_float64(tmp_path):
    for dtype in (np.float16, np.float32, np.int8, np.uint64, ">i4", bool):
        values = (ROWS > 0).astype(dtype)
        assert read(put(tmp_path, "x.npy", npy(values)), Settings("minimax")).A.dtype == np.float64


@pytest.mark.parametrize(("target", "column"), [("a", 0), ("0", 0), ("-1", 3), ("2", 2), (None, 3), ("y", 3)])
def test_the_target_is_found_by_name_and_by_index(tmp_path, target, column):
    pair = read(put(tmp_path, "t.csv", csv()), Settings("minimax", target=target))
    np.testing.assert_array_equal(pair.b, ROWS[:, column])
    np.testing.assert_array_equal(pair.A, np.delete(ROWS, column, axis=1))


@pytest.mark.parametrize(
    ("words", "expected", "note"),
    [
        (("yes", "no"), (1, -1), "'no' became -1, 'yes' became +1"),
        (("0", "1"), (-1, 1), "'0' became -1, '1' became +1"),
        (("10", "9"), (1, -1), "'9' became -1, '10' became +1"),
        (("-1", "+1.0"), (-1, 1), ""),
    ],
)
@pytest.mark.parametrize("names", ["", "a,b,c,label\n"])
def test_two_labels_of_any_kind_become_minus_and_plus_one(tmp_path, words, expected, note, names):
    text = names + "".join(f"1,{i},2,{words[i % 2]}\n" for i in range(6))
    pair = read(put(tmp_path, "t.csv", text.encode()), Settings("logistic"))
    assert pair.b.tolist() == list(expected) * 3
    assert note in " ".join(pair.notes)


def test_words_in_parquet_and_numbers_in_npz_are_labels(tmp_path):
    words = parquet(x=A[:, 0], kind=["b", "a"] * 3)
    assert read(put(tmp_path, "t.parquet", words), Settings("logistic")).b.tolist() == [1, -1] * 3
    both = npz(X=A, y=np.array([7, 5] * 3), b=Y)
    assert read(put(tmp_path, "t.npz", both), Settings("logistic")).b.tolist() == [1, -1] * 3


def test_costs_are_read_and_missing_masses_are_uniform(tmp_path):
    request, C = Settings("transport"), np.arange(6.0).reshape(2, 3)
    for name, data in (("c.npy", npy(C)), ("c.csv", csv(C, names="")), ("c.npz", npz(C=C)), ("d.npz", npz(cost=C))):
        cost = read(put(tmp_path, name, data), request)
        assert isinstance(cost, Cost)
        np.testing.assert_array_equal(cost.C, C)
        np.testing.assert_allclose((cost.a.sum(), cost.b.sum()), 1.0)
    cost = read(put(tmp_path, "e.npz", npz(C=C, a=[1.0, 3.0])), request)
    assert cost.a.tolist() == [1.0, 3.0] and cost.b.sum() == pytest.approx(4.0) and "Uniform masses b" in cost.notes[0]


# --------------------------------------------------------------------------------------------- what tables may hold

WORDS = b"size,colour,sold,weight,price\n1,red,true,2.5,9\n2,blue,false,1.5,8\n3,red,TRUE,0.5,7\n4,green,False,3,5\n"


def as_csv(tmp_path, text=WORDS, **settings):
    return read(put(tmp_path, "t.csv", text), Settings("minimax", **settings))


@pytest.mark.parametrize("intercept", [True, False])
def test_words_become_categories_and_truth_0_and_1(tmp_path, intercept):
    """With an intercept the first level is left out: its column would be what the others leave of the ones."""
    pair = as_csv(tmp_path, intercept=intercept)
    expected = np.array(
        [[1, 0, 0, 1, 1, 2.5], [2, 1, 0, 0, 0, 1.5], [3, 0, 0, 1, 1, 0.5], [4, 0, 1, 0, 0, 3]], dtype=np.float64
    )
    names = ("size", "colour=blue", "colour=green", "colour=red", "sold", "weight")
    kept = [j for j in range(6) if j != 1 or not intercept]
    np.testing.assert_array_equal(pair.A, expected[:, kept])
    assert pair.columns == tuple(names[j] for j in kept) and pair.b.tolist() == [9, 8, 7, 5]
    assert f"The words in column 1 ('colour') became {2 if intercept else 3} columns of 0 and 1" in pair.notes[0]
    assert ("; the coefficients are relative to 'blue'." in pair.notes[0]) == intercept


def test_words_of_parquet_are_the_same_categories(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    words = ["red", "blue", "red", "green"]
    for colour in (words, pyarrow.array(words).dictionary_encode(), pyarrow.array(words, pyarrow.large_string())):
        data = parquet(size=[1, 2, 3, 4], colour=colour, sold=[True, False, True, False], price=[9.0, 8, 7, 5])
        pair = read(put(tmp_path, "t.parquet", data), Settings("minimax"))
        assert pair.columns == ("size", "colour=blue", "colour=green", "colour=red", "sold")
        np.testing.assert_array_equal(pair.A, as_csv(tmp_path, drop=("weight",)).A)


@pytest.mark.parametrize(
    ("columns", "drop", "names"),
    [
        (("weight", "size"), None, ("weight", "size")),
        (("0", "-2"), None, ("size", "weight")),
        (None, ("colour", "sold"), ("size", "weight")),
        (("size", "weight", "price"), ("size",), ("weight",)),
    ],
)
def test_columns_are_chosen_and_left_out(tmp_path, columns, drop, names):
    pair = as_csv(tmp_path, columns=columns, drop=drop)
    where = {"size": [1, 2, 3, 4], "weight": [2.5, 1.5, 0.5, 3]}
    assert pair.columns == names
    np.testing.assert_array_equal(pair.A, np.column_stack([where[name] for name in names]))


def test_columns_that_are_left_out_may_hold_anything(tmp_path):
    data = parquet(day=np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), x=[1.0, 2.0], n=[[1], [2]], y=[1.0, 3.0])
    assert read(put(tmp_path, "t.parquet", data), Settings("lp", drop=("day", "n"))).A.tolist() == [[1], [2]]
    assert as_csv(tmp_path, b"day,x,y\n2020-01-01,1,2\n2020-01-02,2,\n", target="x", columns=("day", "y"),
                  drop=("day",), missing="drop").A.tolist() == [[2]]  # fmt: skip


def test_rows_with_missing_values_are_left_out_on_demand(tmp_path):
    text = b"x,kind,ok,y\n1,a,true,1\n,a,true,2\n3,,false,3\n4,b,NA,4\n5,b,false,nan\n6,b,true,6\n7,a,true,5\n"
    pair = as_csv(tmp_path, text, missing="drop")
    np.testing.assert_array_equal(pair.A, [[1, 1, 0, 1], [6, 0, 1, 1], [7, 1, 0, 1]])
    assert pair.b.tolist() == [1, 6, 5] and pair.rows.tolist() == [0, 5, 6]
    assert pair.notes[0] == "4 of 7 rows have missing values and were left out (--missing drop)."
    full = np.where(ROWS[1, 1] == ROWS, np.nan, ROWS)
    for name, data in (
        ("t.npy", npy(full)),
        ("t.npz", npz(A=full[:, :3], b=Y)),
        ("t.parquet", parquet(a=full[:, 1], y=Y)),
    ):
        pair = read(put(tmp_path, name, data), Settings("minimax", missing="drop"))
        assert pair.b.tolist() == np.delete(Y, 1).tolist() and pair.rows.tolist() == [0, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "decimal", "noted"),
    [
        (b"a;b;y\n1,5;2;3\n2;1e1;-,5\n", None, True),
        (b"a\tb\ty\n1,5\t2\t3\n2\t1e1\t-0,5\n", None, True),
        (b"a;b;y\n1,5;2;3\n2;1e1;-0,5\n", ",", False),
        (b"a b y\n1,5 2 3\n2 1e1 -0,5\n", ",", False),
        (b"a;b;y\n1.5;2;3\n2;1e1;-0.5\n", None, False),
        (b'a,b,y\n"1,5",2,3\n2,1e1,"-0,5"\n', ",", False),
        (b"a,b,y\n1.5,2,3\n2,1e1,-0.5\n", ".", False),
    ],
)
def test_the_decimal_sign_is_given_or_else_guessed_and_noted(tmp_path, text, decimal, noted):
    pair = as_csv(tmp_path, text, decimal=decimal)
    np.testing.assert_array_equal(pair.A, [[1.5, 2], [2, 10]])
    assert pair.b.tolist() == [3, -0.5] and bool(pair.notes) == noted


def test_integers_beyond_64_bits_and_parquet_decimals_become_floats(tmp_path):
    pair = as_csv(tmp_path, b"x,y\n-1,9223372036854775808\n99999999999999999999,-2\n")
    assert pair.A.tolist() == [[-1.0], [1e20]] and pair.b.tolist() == [2.0**63, -2.0]
    pyarrow = pytest.importorskip("pyarrow")
    data = parquet(x=pyarrow.array([1.5, 2.25, 1.5]).cast(pyarrow.decimal128(10, 2)), y=[1, 2, 3])
    assert read(put(tmp_path, "t.parquet", data), Settings("lp")).A.tolist() == [[1.5], [2.25], [1.5]]


def test_names_that_occur_twice_or_not_at_all_are_told_apart(tmp_path):
    pair = as_csv(tmp_path, b",a,a,y\n0,1,2,3\n1,5,6,7\n")
    assert pair.columns == ("column 0", "a (column 1)", "a (column 2)")
    assert pair.notes == ("Column 0 (from 0) has no name (a row number?) and was taken as data.",)


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (
            b"day,y\n2020-01-01,1\n2020-01-02,2\n",
            {},
            "column 0 ('day'): it holds dates ('2020-01-01'): convert them to numbers",
        ),
        (b"x,day\n1,31.12.2020 12:00\n2,1/2/20\n", {}, "column 1 ('day'): it holds dates ('1/2/20')"),
        (b"x,day\n1,2020-01-31T12:00:00Z\n2,2020-02-01T12:00:00Z\n", {}, "it holds dates ('2020-01-31T12:00:00Z')"),
        (b"x,day\n1,3 May 2020\n2,4-Jun-20\n", {}, "column 1 ('day'): it holds dates ('3 May 2020')"),
        (b"at,y\n12:30,1\n9:05,2\n", {}, "column 0 ('at'): it holds dates ('12:30')"),
        (b"k,y\na,1\na,2\na,3\n", {}, "column 0 ('k'): it has the same word ('a') in every row: leave it out"),
        (b"k,y\na,1\nb,2\nc,3\n", {}, "column 0 ('k'): 3 different words, a different one in every row"),
        (b"k,y\n" + b"".join(b"w%d,1\n" % (i % 101) for i in range(200)), {}, "101 different words, more than 100"),
        (b"k,y\na,1\n2,2\nb,3\na,1\n", {}, "line 2, column 0 ('k'): 'a' is not a number"),
        (b"k,y\n1,1\ntrue,2\n", {}, "line 3, column 0 ('k'): 'true' is not a number"),
        (b"k,y\n10%,1\n20%,2\n10%,3\n", {}, "line 2, column 0 ('k'): '10%' is not a number"),
        (
            b'k,y\n"1,000",1\n"2,000",2\n"1,000",2\n',
            {},
            "line 2, column 0 ('k'): '1,000' is not a number (in a csv --decimal",
        ),
        (
            b"k;y\n1.5;1\n2.5;2,5\n1.5;3\n",
            {"decimal": ","},
            "column 0 ('k'): '1.5' is not a number (in a csv --decimal . reads",
        ),
        (b"x,y\n1,a\n2,b\n3,a\n", {}, "line 2, column 1 ('y'): 'a' is not a number"),
        (b"x,y\n1,2\n", {"drop": ("y",)}, "--drop: column 1 ('y') is the target"),
        (b"x,y\n1,2\n", {"drop": ("x",)}, "--columns and --drop leave no column beside the target"),
        (b"x,y\n1,2\n", {"columns": ("z",)}, "--columns 'z' is not there: the columns are 'x', 'y'"),
        (b"x,y\n1,2\n", {"drop": ("7",)}, "--drop '7' is not there: the columns are 'x', 'y'"),
        (b"x,y\n1,\n,2\n", {"missing": "drop"}, "every row has a missing value; none is left"),
        (
            b"1,red,3\n2,blue,3\n",
            {},
            "line 1, column 1 (from 0): 'red' is not a number, though other cells hold numbers (names?",
        ),
    ],
)
def test_columns_that_are_neither_numbers_nor_categories_are_refused(tmp_path, text, settings, message):
    assert message in refused(put(tmp_path, "t.csv", text), Settings("minimax", **settings))


def test_categories_without_names_are_named_by_column_number(tmp_path):
    pair = as_csv(tmp_path, b"1,red,3\n2,blue,3\n3,red,4\n", header="no")
    assert pair.columns == ("column 0", "column 1=blue", "column 1=red")
    assert pair.notes[-1] == "Columns have no names here and are counted from 0."


def test_costs_have_no_words_and_no_gaps(tmp_path):
    for text, message in (
        (b"1,2\n3,x\n", "line 2, column 1 (from 0): 'x' is not a number"),
        (b"1,2\n,3\n", "the cell is empty"),
    ):
        assert message in refused(put(tmp_path, "t.csv", text), Settings("transport"))


def test_a_sparse_file_has_no_columns_to_choose(tmp_path):
    for settings in (Settings("lp", columns=("1",)), Settings("transport"), Settings("lp", target="0")):
        assert "a sparse file" in refused(put(tmp_path, "t.svm", svm()), settings)


@pytest.mark.parametrize(("name", "library"), [("t.csv", "pandas"), ("t.npy", "pandas"), ("t.svm", "sklearn")])
def test_a_library_that_is_missing_is_named_with_its_extra(tmp_path, monkeypatch, name, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    data = {"t.csv": csv(), "t.npy": npy(ROWS), "t.svm": svm()}[name]
    extra = "sklearn" if library == "sklearn" else "cli"
    assert refused(put(tmp_path, name, data)) == f"reading it needs {library}: pip install 'hasd[{extra}]'"


# ------------------------------------------------------------------------------------------------------------ bad

TABLES = [
    (b"", "the file is empty"),
    (b"\n\n# nothing\n", "no rows"),
    (b"a,b,y\n", "no rows below the names"),
    (b"1,2,3\n4,5\n6,7,8\n", "line 2: 2 cells where the first line has 3"),
    (b"1,2,3\n4,5,6\n6,7", "line 3: 2 cells where the first line has 3; is the file cut off there?"),
    (b"1,2,3\n4,5,6,7\n", "line 2: 4 cells"),
    (b"a,b,y\n1,2\n", "line 2: 2 cells"),
    (b"a,b,y\n1,2,3\n\n4,x,6\n", "line 4, column 1 ('b'): 'x' is not a number"),
    (b"a,b,y\n1,2,3\n4,,6\n", "line 3, column 1 ('b'): the cell is empty or nan"),
    (b"1,2,3\n1_0,2,3\n", "line 2, column 0 (from 0): '1_0' is not a number"),
    (b"1;2;3\n1,5;2;3.5\n", "line 2, column 0 (from 0): '1,5' is not a number (in a csv --decimal , reads it)"),
    (b'1,2,3\n"1,5",2,3\n', "line 2, column 0 (from 0): '1,5' is not a number (in a csv --decimal , reads it)"),
    (b"1,2,3\n4,nan,6\n", "line 2, column 1 (from 0): the cell is empty or nan (--missing drop leaves such rows out)"),
    (b"a,b,y\n1,2,3\n4,5,-inf\n", "line 3, column 2 ('y'): the cell is -inf"),
    (b"1,2,3\n1e999,2,3\n", "line 2, column 0 (from 0): the cell is inf"),
    (b"1,x,3\n4,5,6\n", "line 1, column 1 (from 0): 'x' is not a number, though other cells hold numbers (names?"),
    (b"1;2,5;3\n4.5;5;6\n", "line 1, column 1 (from 0): '2,5' is not a number, though other"),
    (b"1,2,3,\n4,5,6,\n", "line 1, column 3 (from 0): the cell is empty or nan, one of 2 such rows"),
    (b"1\n2\n3\n", "a target and at least one more column are needed"),
    (b"1,2\n\x00\x01\x02\n", "line 2: binary data, not text"),
    (bytes(range(128, 256)), "near line 1: not utf-8 text; save it as UTF-8"),
    (b'1,2,3\n"1,2,3\n', "line 2: quotes that cannot be read"),
    (b"\xff\xfe1", "near line 1: not"),
    (b"a,b\x1b[31m\n1,x\n", "line 2, column 1 ('b\\x1b[31m'): 'x' is not a number"),
    (gzip.compress(csv())[:-12], "the compressed data is damaged or cut off"),
    (b"\x1f\x8bnonsense", "the compressed data is damaged or cut off"),
    (b"BZh9nonsense", "the compressed data is damaged or cut off"),
    (npz(A=A), "not utf-8 text"),
    (random.Random(3).randbytes(4096), "not utf-8 text"),
    (b"1,2,3\n1", "line 2: 1 cell where the first line has 3; is the file cut off there?"),
]


@pytest.mark.parametrize(("data", "message"), TABLES)
def test_a_bad_table_is_refused_with_what_is_wrong(tmp_path, data, message):
    assert message in refused(put(tmp_path, "t.csv", data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1 1:2\n1 -3:4\n", "line 2: not a row of rising index:value pairs: ValueError: Invalid index -3"),
        (b"1 1:2 x:4\n", "line 1: not a row of rising index:value pairs"),
        (b"1 1:2 3:\n", "line 1: not a row of rising index:value pairs"),
        (b"1 1:2:3\n", "line 1: not a row of rising index:value pairs"),
        (b"1 1:2 7\n", "line 1: not a row of rising index:value pairs"),
        (b"1 1:3\n# x\n1 1:1_0 # _\n1 1:2 # _\n", "line 3: not a row of rising index:value pairs"),
        (b"1 1:2\n" * 99 + b"1 1:abc\n" + b"1 1:2\n" * 99, "line 100: not a row of rising index:value pairs"),
        (b"1 2:1 2:3\n", "line 1: not a row of rising index:value pairs"),
        (b"1 3:1 2:3\n", "line 1: not a row of rising index:value pairs"),
        (b"yes 1:2\n", "could not convert string to float: b'yes'"),
        (b"1,2 1:2\n", "could not convert string to float: b'1,2'"),
        (b"1:2 2:3\n", "could not convert string to float: b'1:2'"),
        (b"1 1:2\nnan 1:2\n", "line 2: the row's number is nan"),
        (b"# x\n1 1:2\n1 1:3 4:inf\n", "line 3: a value is inf"),
        (b"1 99999999999:1\n", "line 1: not a row of rising index:value pairs: OverflowError"),
        (b"1 " + b"9" * 5000 + b":1\n", "not a row of rising"),
        (
            b"1 2147483646:1\n",
            "index 2147483646: needs 1.02e+03 GiB of memory, above the limit of 4 GiB (--max-memory)",
        ),
        (b"1\n-1\n", "no index:value pair in any row"),
        (b"#\n", "no rows"),
        (b"1 1:2\n\x00", "line 2: binary data"),
    ],
)
def test_a_bad_svmlight_file_is_refused_with_what_is_wrong(tmp_path, data, message):
    assert message in refused(put(tmp_path, "t.svm", data))


HEADER = "not an npy array, or its header is damaged or cut off"
RECORD = np.zeros(4, dtype=[("x", "f8"), ("y", "i4")])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(ROWS)[:-5], "cut off: 5 bytes are missing"),
        (npy(ROWS)[:60], HEADER),
        (npy(ROWS)[:7], HEADER),
        (npy(ROWS) + b"xx", "2 bytes more than the header says"),
        (b"garbage that is long enough", "not an npy array"),
        (npy(ROWS[None]), "the shape is (1, 6, 4); a table has two dimensions"),
        (npy(Y), "the shape is (6,); a table"),
        (npy(np.array(3.0)), "the shape is (); a table"),
        (npy(ROWS[:0]), "no rows"),
        (npy(ROWS[:, :0]), "a target and at least one more column are needed"),
        (npy(ROWS + 1j), "no plain real numbers: 'complex128'"),
        (npy(RECORD), "no plain real numbers"),
        (npy(np.array([["a", "b"]])), "no plain real numbers: '<U1'"),
        (npy(np.zeros((2, 2), dtype="M8[s]")), "no plain real numbers"),
        (npy(np.where(ROWS > 1e9, ROWS, np.nan)), "row 0 (from 0), column 0 (from 0): the cell is empty or nan"),
        (header("'<f8'", "(1000000000, 1000000000)"), "needs over 2^60 bytes of memory"),
        (header("'<f8'", f"({10**30}, {10**4000})"), "needs over 2^60 bytes of memory, above the limit of 4 GiB"),
        (header("'<f8'", "(-1, 2)"), "no plain real numbers"),
        (header("'<f8'", "(True, 2)"), "cut off: 16 bytes are missing"),
        (header("'<f8'", "(2.0, 2)"), HEADER),
        (header("'<f8'", "[2, 2]"), HEADER),
        (header("'nonsense'", "(2, 2)"), HEADER),
        (header("'(2,)<f8'", "(2, 2)"), "no plain real numbers"),
        (header("'<f8,<i4'", "(2, 2)"), "no plain real numbers"),
        (header("'|O'", "(2, 2)"), "an object array"),
        (header("'<f8'", "(" * 3000 + ")" * 3000), HEADER),
        (header("__import__('os').getcwd()", "(2, 2)"), HEADER),
        (header("'<f8'", "(2, 2)", rest=", 'more': 1"), HEADER),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", HEADER),
        (b"\x93NUMPY\x09\x00" + b"\0" * 50, HEADER),
    ],
)
def test_a_bad_npy_file_is_refused_alone_and_inside_an_npz(tmp_path, data, message):
    assert message in refused(put(tmp_path, "t.npy", data))
    inside = refused(put(tmp_path, "t.npz", zipped(("A.npy", data), ("b.npy", npy(Y)))))
    assert inside.startswith(("array 'A'", "no rows", "row 0"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npz(A=A, b=Y)[:300], "not an npz archive, or damaged or cut off"),
        (b"PK\x03\x04" + b"x" * 100, "not an npz archive"),
        (npz(A=A, b=Y[:5]), "array 'b': the shape is (5,); a vector of length 6 is needed"),
        (npz(A=A, b=ROWS), "array 'b': the shape is (6, 4); a vector of length 6 is needed"),
        (npz(A=Y, b=Y), "array 'A': the shape is (6,); a matrix with rows and columns is needed"),
        (npz(A=A[:0], b=Y), "array 'A': the shape is (0, 3)"),
        (npz(M=A, v=Y), "no array 'A' or 'X'; the arrays are 'M', 'v'"),
        (npz(A=A, v=Y), "no array 'b' or 'y' or 'target'; the arrays are 'A', 'v'"),
        (npz(b=Y, v=Y), "no array 'A' or 'X'; the arrays are 'b', 'v'"),
        (npz(A=np.where(A[2, 1] == A, np.inf, A), b=Y), "row 2 (from 0), column 1 (from 0): the cell is inf"),
        (
            npz(A=A, b=np.where(Y > 0, Y, np.nan)),
            "row 1 (from 0), array 'b': the cell is empty or nan, one of 2 such rows",
        ),
        (zipped(("A.npy", npz(A=A)), ("b.npy", npy(Y))), "array 'A': not an npy array"),
        (zipped(("inner.npz", npz(A=A, b=Y)), ("readme.txt", b"")), "no array 'A' or 'X'; the arrays are none"),
        (zipped(("../A.npy", npy(A)), ("b.npy", npy(Y))), "no array 'A' or 'X'; the arrays are '../A', 'b'"),
        (zipped(("A.npy", npy(A)), method=zipfile.ZIP_LZMA), "member 'A.npy': damaged, or not written by NumPy"),
        (zipped(("A.npy", b"")), "array 'A': not an npy array"),
    ],
)
def test_a_bad_npz_file_is_refused_with_what_is_wrong(tmp_path, data, message):
    assert message in refused(put(tmp_path, "t.npz", data))


def test_names_that_occur_twice_are_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("A.npy", npy(A)), ("A.npy", npy(A)), ("b.npy", npy(Y)))
    assert "member 'A.npy': damaged, or not written by NumPy" in refused(put(tmp_path, "t.npz", data))
    assert "names 2 columns" in refused(put(tmp_path, "t.csv", csv(names="a,a,b,y")), Settings("minimax", target="a"))


def test_a_flipped_bit_is_noticed(tmp_path):
    data = bytearray(npz(A=A, b=Y))
    data[200] ^= 1
    assert "array 'A': damaged: BadZipFile: Bad CRC-32" in refused(put(tmp_path, "t.npz", bytes(data)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x", "y"], "y": [1.0, 2.0]}, "column 0 ('a'): 2 different words, a different one in every row"),
        ({"a": [b"x", b"y"], "y": [1.0, 2.0]}, "column 0 ('a'): it holds binary values: convert them to numbers"),
        ({"a": [1.0, None], "y": [1.0, 2.0]}, "row 1 (from 0), column 0 ('a'): the cell is empty"),
        ({"a": [1.0, np.nan], "y": [1.0, 2.0]}, "row 1 (from 0), column 0 ('a'): the cell is empty or nan"),
        ({"a": [[1.0], [2.0]], "y": [1.0, 2.0]}, "column 0 ('a'): it holds list<"),
        ({"a": np.zeros(0), "y": np.zeros(0)}, "the file has 0 rows, and 2 columns with 2 different names; rows"),
    ],
)
def test_a_bad_parquet_file_is_refused_with_what_is_wrong(tmp_path, columns, message):
    assert message in refused(put(tmp_path, "t.parquet", parquet(**columns)))


def test_formats_that_are_not_read_are_named(tmp_path):
    """Their bytes would be taken for an archive, or for text."""
    assert refused(put(tmp_path, "t.xlsx", npz(A=A, b=Y))) == ".xlsx files are not read; save it as csv, npz or parquet"
    assert ".json files are not read" in refused(put(tmp_path, "t.JSON.gz", gzip.compress(b'{"a": 1}')))
    assert "not a parquet file, or cut off: it does not begin with PAR1" in refused(put(tmp_path, "t.parquet", csv()))


def test_parquet_without_pyarrow_names_what_to_install(tmp_path, monkeypatch):
    path = put(tmp_path, "t.parquet", b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert refused(path) == "reading it needs pyarrow: pip install 'hasd[cli]'"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 1, 1], "column 1 (from 0): only one value ('1'); logistic needs two classes"),
        ([1, 2, 3], "column 1 (from 0): 3 different values ('1', '2', '3'); logistic needs two classes"),
        (["a", "b", "c"], "column 1 (from 0): 3 different values ('a', 'b', 'c')"),
        (["a", "a", "a"], "only one value"),
        (["1", "nan", "0"], "line 2, column 1 (from 0): the cell is empty or nan"),
        (["1", "", "0"], "line 2, column 1 (from 0): the cell is empty or nan"),
    ],
)
def test_labels_that_are_not_two_classes_are_refused(tmp_path, values, message):
    text = "".join(f"{i},{value}\n" for i, value in enumerate(values))
    assert message in refused(put(tmp_path, "t.csv", text.encode()), Settings("logistic"))


def test_an_array_of_more_than_two_labels_is_refused(tmp_path):
    path = put(tmp_path, "t.npz", npz(X=A, y=np.arange(6)))
    message = "array 'y': 6 different values ('0', '1', '2', '3', '4', '5'); logistic needs two classes"
    assert message in refused(path, Settings("logistic"))


@pytest.mark.parametrize("target", ["z", "4", "-5", "1.5", "", "9" * 5000])
def test_a_target_that_is_not_there_is_refused_with_what_is_there(tmp_path, target):
    assert "the columns are 'a', 'b', 'c', 'y'" in refused(
        put(tmp_path, "t.csv", csv()), Settings("minimax", target=target)
    )
    assert "4 columns and no names" in refused(
        put(tmp_path, "n.csv", csv(names="")), Settings("minimax", target=target)
    )
    assert "the arrays are 'A', 'b'" in refused(
        put(tmp_path, "t.npz", npz(A=A, b=Y)), Settings("minimax", target=target)
    )


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"C": A, "a": -np.ones(6)}, "array 'a': entry 0 (from 0) is -1; masses are 0 or more"),
        ({"C": A, "a": np.zeros(6)}, "array 'a': no finite sum"),
        ({"C": A, "a": np.ones(5)}, "array 'a': the shape is (5,); a vector of length 6 is needed"),
        ({"C": A, "a": np.ones(6), "b": np.ones(3)}, "a sums to 6 and b to 3"),
        ({"D": A, "a": np.ones(6)}, "no array 'C'; the arrays are 'D', 'a'"),
        ({"C": Y, "a": np.ones(6)}, "array 'C': the shape is (6,)"),
    ],
)
def test_bad_costs_and_masses_are_refused_naming_the_array(tmp_path, arrays, message):
    assert message in refused(put(tmp_path, "t.npz", npz(**arrays)), Settings("transport"))


def test_costs_with_rows_but_no_columns_are_refused(tmp_path):
    for name, data in (("t.npy", npy(A[:, :0])), ("t.npz", npz(C=A[:, :0]))):
        assert refused(put(tmp_path, name, data), Settings("transport")) == "the cost matrix has no columns"


def test_a_path_that_leads_to_no_file_is_refused(tmp_path):
    assert "No such file" in refused(str(tmp_path / "none.csv"))
    assert refused(str(tmp_path)) == "is a directory"
    assert "cannot be read" in refused(f"{tmp_path}/\0.csv")
    assert "standard input is not read" in refused("-")
    with pytest.raises(FileProblem, match=r"^'': No such file"):
        read("", Settings("minimax"))
    put(tmp_path, "file.csv", csv())
    assert "Not a directory" in refused(str(tmp_path / "file.csv" / "x.csv"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert refused(str(tmp_path / "pipe.csv")) == "pipes and devices are not read: save it as a file"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_refused(tmp_path):
    path = put(tmp_path, "t.csv", csv())
    os.chmod(path, 0)
    assert refused(path) == "Permission denied"


def test_a_file_whose_opening_is_denied_is_refused(tmp_path, monkeypatch):
    def deny(*args, **options):
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path, "t.csv", csv())
    monkeypatch.setattr("builtins.open", deny)
    with pytest.raises(FileProblem, match="Permission denied"):
        read(path, Settings("minimax"))
