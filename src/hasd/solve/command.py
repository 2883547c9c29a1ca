"""``hasd solve``: the options, and the run from the file to the exit code."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from importlib.util import find_spec

from .._checks import nearest_name
from .faults import FileProblem
from .files import read
from .formats import READERS
from .options import folder
from .output import complain, make_folder, say, summary, write
from .settings import PROBLEMS, Settings
from .solvers import solve

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
  0  solved: what --tol names was reached, or the certified gap is within --tol times the value (logistic and lse: or
     the value at 0, if that is larger)
  1  failed otherwise: nothing could be written, out of memory
  2  wrong usage
  3  the file cannot be used, or a library to read it is missing; one line on stderr says where and why
  4  not solved: a limit came first, or the problem has no minimum; what was found is still printed and written
"""


def add_options(one: argparse.ArgumentParser) -> None:
    """The options of ``hasd solve``."""
    one.formatter_class = argparse.RawDescriptionHelpFormatter
    one.epilog = EPILOG.format(problems="\n".join(f"  {name:10}{text}" for name, text in PROBLEMS.items()))
    one.add_argument("file", metavar="FILE", help="the data")
    one.add_argument("--problem", type=problem, choices=list(PROBLEMS), required=True, help="what is to be solved")
    for setting in fields(Settings):
        if "argparse" in setting.metadata:
            one.add_argument(f"--{setting.name.replace('_', '-')}", **setting.metadata["argparse"])
    one.add_argument("--format", choices=[name for name in READERS if name != "text"], help="overrides the extension")
    one.add_argument("--out", type=folder, metavar="DIR", help="write the answer there (see below)")
    one.set_defaults(usage=one.error)


def run(options: argparse.Namespace) -> int:
    """Read, solve, tell, write; the exit code."""
    given = {one.name: getattr(options, one.name) for one in fields(Settings) if one.name != "progress"}
    settings = Settings(**given, progress=sys.stderr.isatty() and find_spec("tqdm") is not None)
    if misplacement := settings.misplacement():
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
        told = say(write(solution, settings, options.file, options.out)) and told
    if not told:
        return FAILED
    return SOLVED if solution.solved else NOT_SOLVED


def problem(text: str) -> str:
    """A problem's name; where it is misspelt, the one that was probably meant.  argparse refuses all others."""
    if text not in PROBLEMS and (meant := nearest_name(text, PROBLEMS)) is not None:
        raise argparse.ArgumentTypeError(f"unknown problem {text!r}; did you mean {meant!r}?")
    return text
