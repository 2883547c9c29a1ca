"""What becomes of a solution: text for people, printed; solution.npz, solution.json and predictions.csv in a folder.

Printing survives any encoding, a closed pipe and a full disk.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from .._run.report import replace_nonfinite
from .._version import VERSION
from .faults import make_printable
from .plot import plot
from .settings import PROBLEMS, Settings
from .solvers import FileSolution

WIDTH, INDENT = 100, 13
SHOWN, ROWS = 50, 10
"""Coefficients that are shown, and active rows."""


def say(text: str) -> bool:
    """Print, and return whether that succeeded.  A closed pipe, as after `| head`, is no failure."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python writes the rest again at exit
        if not isinstance(error, BrokenPipeError):
            complain(f"error: the output cannot be printed: {error.strerror}")
            return False
    return True


def complain(text: str) -> None:
    """Print one line on stderr; if that fails, the exit code still tells."""
    with contextlib.suppress(OSError):
        print(f"hasd: {make_printable(text)}", file=sys.stderr, flush=True)


def summary(name: str, problem: str, solution: FileSolution, written: bool = False) -> str:
    """The lines of the summary, ASCII but for the file's own names; ``written``: files with the rest will follow."""
    res, lower, gap = solution.res, "none: no certificate was found at this point", "unknown"
    if math.isfinite(res.lower):
        lower = f"{res.lower:.12g} ({solution.proves})"
    if math.isfinite(res.gap):
        exact = res.lower == 0.0 and solution.solved  # the value is rounding: a gap relative to it means nothing
        relative = "" if exact or not res.fun else f", {res.gap / abs(res.fun):.1e} of the value"
        gap = f"{res.gap:.3g}{relative}: the value is that close to the best possible, or closer"
    rows = [
        ("problem", f"{problem}: {PROBLEMS[problem]}{' / |b_i|' if solution.scalars.get('relative') else ''}"),
        ("data", f"{name}: {solution.size}"),
        ("status", f"{'solved' if solution.solved else 'NOT SOLVED'}. {res.message}"),
        ("value", f"{res.fun:.12g}"),
        ("lower bound", lower),
        ("gap", gap),
        ("method", f"{res.method}: {res.reason}"),
        ("work", f"iterations {int(res.nit)}, products {round(res.nprod)}, seconds {res.seconds:.3g}"),
        *_extra_rows(solution, written),
        *(("note", note) for note in solution.notes),
    ]
    return "\n".join(row(title, text) for title, text in rows)


def row(title: str, text: str) -> str:
    """A title and its text, wrapped beside it."""
    lines = textwrap.wrap(make_printable(text), WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
    return f"{title:{INDENT}}" + f"\n{'':{INDENT}}".join(lines)


def _extra_rows(solution: FileSolution, written: bool) -> list[tuple[str, str]]:
    """The rows that only some problems have: coefficients, active rows, the cost of a plan."""
    arrays, scalars, rows = solution.arrays, solution.scalars, []
    if "active" in arrays and arrays["active"].size:
        active = arrays["rows"][arrays["active"]] if "rows" in arrays else arrays["active"]
        first = ", ".join(map(str, active[:ROWS])) + ", ..." * (active.size > ROWS)
        proof = "1 row proves" if active.size == 1 else f"{active.size} rows prove"
        rows.append(("active rows", f"{proof} the bound: {first} (from 0)"))
    if "cost" in scalars:
        error = f"marginals to {scalars['marginal_error']:.1e}"
        rows.append(("cost", f"{scalars['cost']:.12g} without the entropy; {error}"))
    if "coef" in arrays:
        names, values = arrays["columns"], arrays["coef"] + 0.0
        few = values.size <= SHOWN
        shown = range(values.size) if few else np.argsort(-np.abs(values), kind="stable")[:SHOWN]
        where = "solution.json has all" if written else "--out DIR writes all of them"
        rest = "" if few else f" (the {SHOWN} largest of {values.size}; {where})"
        rows.append(("coefficients", ", ".join(f"{names[k]} {values[k]:.6g}" for k in shown) + rest))
    if "intercept" in arrays and arrays["intercept"] != 0.0:
        rows.append(("intercept", f"{float(arrays['intercept']):.6g}"))
    return rows


def make_folder(path: Path) -> None:
    """Make the folder and its parents, before the work; an OSError with a plain message where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        taken = next(one for one in (path, *path.parents) if os.path.lexists(one))
        raise NotADirectoryError(f"--out {path}: {'it' if taken == path else taken} is not a folder") from None
    except OSError as error:
        raise OSError(f"--out {path}: it cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"--out {path}: no files may be written there")


def write(solution: FileSolution, settings: Settings, name: str, out: Path) -> str:
    """Write the files and the figure; the lines that say so."""
    paths, note = [out / "solution.npz", out / "solution.json"], ""
    try:
        named: dict[str, Any] = solution.arrays  # NumPy's types know one name that is no array's
        np.savez(paths[0], **named)
        text = json.dumps(replace_nonfinite(record(solution, settings, name)), indent=2, allow_nan=False)
        paths[1].write_text(text + "\n", encoding="utf-8", newline="\n")
        if solution.predictions:
            import pandas as pd

            paths.append(out / "predictions.csv")
            pd.DataFrame(solution.predictions).to_csv(paths[-1], index=False, lineterminator="\n")
        plot(solution, settings.problem, out / "convergence.png")
        paths.append(out / "convergence.png")
    except ImportError:
        note = "\n" + row("note", "convergence.png was not drawn: it needs matplotlib (pip install 'hasd[plot]').")
    except OSError as error:
        raise OSError(f"{error.filename or out}: cannot be written: {error.strerror or error}") from None
    return row("written", ", ".join(map(str, paths))) + note


def record(solution: FileSolution, settings: Settings, name: str) -> dict[str, Any]:
    """All that is said of the solution, but for the arrays; the coefficients by their columns' names."""
    res, arrays, fit = solution.res, solution.arrays, {}
    if "coef" in arrays:
        named = dict(zip(arrays["columns"].tolist(), arrays["coef"].tolist(), strict=True))
        fit = {"coefficients": named, "intercept": float(arrays["intercept"])}
    return {
        "file": name,
        "problem": settings.problem,
        "size": solution.size,
        "solved": solution.solved,
        **{field: res[field] for field in ("fun", "lower", "gap")},
        "relative_gap": res.gap / abs(res.fun) if res.fun else math.nan,
        "method": res.method,
        "why": res.reason,
        "iterations": int(res.nit),
        "products": round(res.nprod),
        "seconds": res.seconds,
        **solution.scalars,
        **fit,
        "notes": list(solution.notes),
        "settings": {key: value for key, value in vars(settings).items() if key != "progress"}
        | {"norm": "inf" if settings.norm == math.inf else settings.norm},
        "versions": {"hasd": VERSION, "python": platform.python_version()}
        | {library.__name__: library.__version__ for library in (np, scipy)},
    }
