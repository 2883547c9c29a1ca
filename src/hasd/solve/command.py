"""``hasd solve``: the options, and the run from the file to the exit code."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from .._checks import nearest_name
from .faults import FileProblem
from .files import read
from .folder import folder, make_folder
from .formats import READERS
from .problems import FileSolution, solve
from .settings import PROBLEMS, Settings
from .summary import row, summary
from .terminal import complain, say
from .write import write

SOLVED, FAILED, BAD_FILE, NOT_SOLVED = 0, 1, 3, 4
"""Exit codes; argparse itself ends with 2 on a wrong usage."""
EPILOG = """\
problems:
{problems}

formats, by extension (.gz and .bz2 around a text are undone) or --format:
  csv       a table; names in the first line or none; comma, semicolon, tab or blanks.  Without --decimal, commas in
            numbers are decimal commas where cells are between semicolons or tabs and no number has a point
  npz       arrays A or X and b, y or target; transport: C and, if not uniform, a and b; one array alone is a table
  npy       a table
  svmlight  .svm, .svmlight, .libsvm: sparse rows "target index:value ..."
  parquet   a table
  Transport takes a table as the cost matrix.  Any other extension: the file's first bytes and row decide.
  Columns count from 0, or from the end: -1 is the last and, without --target, the target.
  In a table true and false are 1 and 0, words become a column of 0 and 1 for each word (with --intercept for each
  but the first in the alphabet), dates are refused.  pip install 'hasd[cli]' brings what reads tables.

written to --out:
  solution.npz     the arrays
  solution.json    the coefficients by name, and all that is printed
  predictions.csv  row (from 0), target, prediction, residual = prediction - target; logistic: row, label, probability
                   of the label that became +1; transport: none, as the plan in solution.npz is the answer
  convergence.png  value and bound over time, and the residuals

exit codes:
  0  solved: the tolerance was met
  1  failed otherwise: nothing could be written, out of memory
  2  wrong usage
  3  the file cannot be used, or a library to read it is missing; one line on stderr says where and why
  4  not solved: a limit came first, or the problem has no minimum; what was found is still told and written
"""


def add_options(one: argparse.ArgumentParser) -> None:
    """The options of ``hasd solve``."""
    one.formatter_class = argparse.RawDescriptionHelpFormatter
    one.epilog = EPILOG.format(problems="\n".join(f"  {name:10}{text}" for name, text in PROBLEMS.items()))
    one.add_argument("file", metavar="FILE", help="the data")
    one.add_argument("--problem", type=problem, choices=list(PROBLEMS), required=True, help="what is to be solved")
    one.add_argument("--target", metavar="COLUMN", help="what b or y is: a column by name or index, or an array")
    one.add_argument("--columns", type=names, metavar="A,B,...", help="use these columns only, by name or index")
    one.add_argument("--drop", type=names, metavar="A,B,...", help="leave these columns out")
    one.add_argument(
        "--missing",
        choices=("refuse", "drop"),
        help="a row with an empty cell: refuse the file (default), or drop the row",
    )
    one.add_argument("--intercept", action=argparse.BooleanOptionalAction, help="add a column of ones (default: no)")
    for name, kind, metavar, text in NUMBERS:
        one.add_argument(name, type=kind, metavar=metavar, help=text)
    one.add_argument("--out", type=folder, metavar="DIR", help="write the answer there (see below)")
    one.add_argument("--format", choices=[name for name in READERS if name != "text"], help="not by the extension")
    one.add_argument(
        "--header", choices=("auto", "yes", "no"), default="auto", help="csv: does the first line hold names?"
    )
    one.add_argument("--decimal", choices=(".", ","), metavar="SIGN", help="csv: . or , (default: see below)")
    one.add_argument(
        "--max-memory",
        type=memory,
        default="4G",
        metavar="SIZE",
        help="refuse files whose numbers take more (default: 4G)",
    )
    one.set_defaults(usage=one.error)


def run(options: argparse.Namespace) -> int:
    """Read, solve, tell, write; the exit code."""
    names = [field.name for field in fields(Settings) if field.name != "progress"]
    settings = Settings(**{name: getattr(options, name) for name in names}, progress=sys.stderr.isatty())
    misplacement = settings.misplacement()
    if misplacement:
        options.usage(misplacement)
    try:
        data = read(options.file, settings, options.format)
    except FileProblem as problem:
        complain(f"error: {problem}")
        return BAD_FILE
    if options.out is not None:
        make_folder(options.out)
    try:
        solution = solve(data, settings)
    except Exception as error:  # one line, as for a file; python -X dev shows the traceback
        if sys.flags.dev_mode:
            raise
        what = "more memory than there is" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
        complain(f"error: {options.file}: solving failed: {what}")
        return FAILED
    told = say(summary(options.file, settings.problem, solution, options.out is not None))
    if options.out is not None:  # also where the summary could not be printed
        told = say(_write_files(solution, settings, options.file, options.out)) and told
    if not told:
        return FAILED
    return SOLVED if solution.solved else NOT_SOLVED


def _write_files(solution: FileSolution, settings: Settings, name: str, out: Path) -> str:
    """Write the files; the lines that say so."""
    try:
        paths, note = write(solution, settings, name, out)
    except OSError as error:
        raise OSError(f"{error.filename or out}: cannot be written: {error.strerror or error}") from None
    line = row("written", ", ".join(str(path) for path in paths))
    return f"{line}\n{row('note', note)}" if note else line


def problem(text: str) -> str:
    """A problem's name; where it is misspelt, the one that was probably meant.  argparse refuses all others."""
    if text not in PROBLEMS and (meant := nearest_name(text, PROBLEMS)) is not None:
        raise argparse.ArgumentTypeError(f"unknown problem {text!r}; did you mean {meant!r}?")
    return text


def names(text: str) -> tuple[str, ...]:
    """Names between commas; one that has a comma in it is quoted.

    >>> names('age,"dose, mg"')
    ('age', 'dose, mg')
    """
    try:
        found = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    except csv.Error:
        found = ()
    if not found or not all(found):
        raise argparse.ArgumentTypeError(f"must be columns between commas, got {text!r}")
    return found


def number(least: float, what: str) -> Callable[[str], float]:
    """A type for argparse: numbers from ``least`` on, infinity where ``what``, their description, has it."""

    def parse(text: str) -> float:
        value = _float(text)
        if not least <= value or (value == math.inf and "inf" not in what):
            raise argparse.ArgumentTypeError(f"must be a {what}, got {text!r}")
        return value

    return parse


def whole_number(text: str) -> int:
    """A whole number above 0; a huge one is cut to a number that no run reaches."""
    if not (text.isascii() and text.isdecimal() and text.strip("0")):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text) if len(text) < 19 else 10**18


def memory(text: str) -> float:
    """Bytes, with K, M, G or T for the powers of 1024.

    >>> memory("500M") == 500 * 2**20
    True
    """
    plain = text.upper().removesuffix("B").removesuffix("I")
    unit = 1024.0 ** (" KMGT".find(plain[-1:]) if plain[-1:] in ("K", "M", "G", "T") else 0)
    value = _float(plain.rstrip("KMGT")) * unit
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a size such as 500M or 4G, got {text!r}")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


above_zero = number(math.nextafter(0.0, 1.0), "finite number above 0")
NUMBERS: tuple[tuple[str, Callable[[str], float], str, str], ...] = (
    ("--power", number(2.0, "finite number of at least 2"), "Q", "lp: the power of the loss (default: 4)"),
    ("--norm", number(2.0, "number from 2 to inf"), "P", "logistic, lse: the geometry (default: the method chooses)"),
    ("--reg", above_zero, "REG", "transport: the entropy's weight (default: 1%% of the costs' range)"),
    ("--alpha", above_zero, "ALPHA", "lse: the smoothing (default: 1)"),
    ("--ridge", number(0.0, "finite number of at least 0"), "RIDGE", "logistic, lse: weight of ||x||^2/2 (default: 0)"),
    ("--tol", above_zero, "TOL", "what to reach: the relative gap (minimax 1e-9, lp 1e-8), the gradient's norm over "
     "that at 0 (logistic, lse 1e-8), the error of the marginals (transport 1e-6)"),
    ("--time-limit", above_zero, "SECONDS", "of solving, reading aside"),
    ("--maxiter", whole_number, "N", "iterations at most; minimax: linear programs"),
)  # fmt: skip
