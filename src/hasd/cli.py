"""The command line: ``hasd reproduce EXPERIMENT`` and ``hasd solve FILE``.  Parse, call, write."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import Field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from . import __version__
from .experiments import EXPERIMENTS, Experiment, Workers, collect, save
from .experiments.workers import cores
from .solve import command as solve
from .solve.faults import make_printable
from .solve.options import folder, number, whole_number
from .solve.output import complain, make_folder, say

FAILED, INTERRUPTED = 1, 130
"""Exit codes beside 0; argparse itself ends with 2 on a wrong usage."""
MOST = 10**9
"""The largest size an option takes: NumPy's errors about larger arrays are hard to understand."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    _replace_closed_streams()
    options = parser().parse_args(argv)
    try:
        return solve.run(options) if options.command == "solve" else _reproduce(options)
    except (ValueError, OSError, ImportError, MemoryError, BrokenProcessPool) as error:
        complain(f"error: {_error_text(error)}")
        return FAILED
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED


def _replace_closed_streams() -> None:
    """Open the null device where the shell closed stdout or stderr (`>&-`): Python's None there breaks libraries."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def _error_text(error: Exception) -> str:
    """An error as one line, without the number that the system gives it."""
    if isinstance(error, MemoryError):
        return "this takes more memory than there is"
    if isinstance(error, BrokenProcessPool):
        return "a worker process died; was it out of memory? Try --jobs 1"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _reproduce(options: argparse.Namespace) -> int:
    chosen = _all_possible() if options.experiment == "all" else [EXPERIMENTS[options.experiment]]
    make_folder(options.out)
    with Workers(min(options.jobs or cores(), cores())) as workers:  # the pool starts all of them, even idle ones
        written = save([(one, _sizes(one, options)) for one in chosen], workers, options.out, complain, say)
    written.append(collect(list(EXPERIMENTS), options.out))
    return 0 if say("\n".join(make_printable(str(path)) for path in written)) else FAILED


def _all_possible() -> list[Experiment]:
    """Every experiment whose library is installed; the others are named."""
    chosen = []
    for experiment in EXPERIMENTS.values():
        try:
            experiment.check_library()
        except ImportError as error:
            complain(f"left out: {error}")
        else:
            chosen.append(experiment)
    return chosen


def parser() -> argparse.ArgumentParser:
    """The options; those of an experiment are the fields of its sizes."""
    top = argparse.ArgumentParser(
        prog="hasd", description="Minimise smooth convex functions, and prove how good the answer is."
    )
    top.add_argument("--version", action="version", version=f"hasd {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments: tables, figures, report",
        description="Run the paper's experiments and write CSV tables, PNG and PDF figures and a Markdown report.",
    )
    experiments = reproduce.add_subparsers(dest="experiment", required=True, metavar="EXPERIMENT")
    common = _common_options()
    for experiment in EXPERIMENTS.values():
        one = experiments.add_parser(experiment.name, parents=[common], **_help(experiment.summary))
        for option in fields(experiment.sizes):
            if "help" in option.metadata and option.name != "seed":
                _add_option(one, option)
    experiments.add_parser("all", parents=[common], **_help("all of these, at their default sizes"))
    text = _help("solve a problem whose data is in a file, with a certificate")
    solve.add_options(commands.add_parser("solve", **text))
    return top


def _common_options() -> argparse.ArgumentParser:
    """The options that every experiment has."""
    common = argparse.ArgumentParser(add_help=False)
    where = "where files go (default: results)"
    common.add_argument("--out", type=folder, default=Path("results"), metavar="DIR", help=where)
    workers = "worker processes, at most and by default one a core; never changes a result"
    common.add_argument("--jobs", type=size, metavar="N", help=workers)
    common.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything works")
    seed = partial(whole_number, least=0)
    common.add_argument("--seed", type=seed, metavar="N", help="seed of the random data (default: 0)")
    return common


def _help(text: str) -> dict[str, Any]:
    """What a command does, in the list of commands and on its own page."""
    return {"help": text, "description": f"{text[0].upper()}{text[1:]}."}


def _add_option(one: argparse.ArgumentParser, option: Field[object]) -> None:
    text = option.metadata["help"]
    if isinstance(option.default, bool):
        one.add_argument(f"--{option.name}", action="store_true", default=None, help=text)
        return
    kind, metavar = (exponent, "P") if option.metadata.get("kind") == "exponent" else (size, "N")
    text = text if option.default is None else f"{text} (default: {option.default})"
    one.add_argument(f"--{option.name}", type=kind, metavar=metavar, help=text)


def _sizes(experiment: Experiment, options: argparse.Namespace) -> object:
    """The default or quick sizes, with what the command line says instead."""
    base = experiment.quick if options.quick else experiment.sizes
    given = {option.name: getattr(options, option.name, None) for option in fields(base)}
    return replace(base, **{name: value for name, value in given.items() if value is not None})


def size(text: str) -> int:
    """A whole number above 0, for argparse, that is not too large."""
    number = whole_number(text)
    if number > MOST:
        raise argparse.ArgumentTypeError(f"must be at most {MOST}, got {text!r}")
    return number


def exponent(text: str) -> float:
    """The exponent of a norm, for argparse: from 2 to inf."""
    return number(text, least=2.0, what='number of at least 2, or "inf"', finite=False)


if __name__ == "__main__":
    sys.exit(main())
