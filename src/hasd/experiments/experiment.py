"""What an experiment is: sizes -> tables -> plots and a report, pure functions all; and how it lands in a directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._plots import RC
from .tables import Tables, csv_text
from .workers import Workers

Plot = Callable[[Any, Tables], None]
"""Draws on an empty matplotlib figure."""


def size(default: Any, text: str) -> Any:
    """A field of an experiment's sizes, with the help text of its option."""
    return field(default=default, metadata={"help": text})


def seed() -> Any:
    """The field that every experiment has."""
    return size(0, "seed of the random data")


@dataclass(frozen=True)
class Experiment:
    """One subcommand of ``hasd reproduce``."""

    name: str
    summary: str  # one line for --help
    sizes: Any  # a frozen dataclass: the sizes at default
    quick: Any  # the same, tiny: for tests
    tables: Callable[[Any, Workers], Tables]
    plots: Mapping[str, tuple[tuple[float, float], Plot]]  # by file stem: inches and what draws
    report: Callable[[Tables, Any], str]  # Markdown


@dataclass(frozen=True)
class Drawing:
    """A figure to be drawn, by a worker."""

    target: Path  # without the suffix
    inches: tuple[float, float]
    draw: Plot
    tables: Tables


def save(chosen: Sequence[tuple[Experiment, Any]], workers: Workers, out: Path) -> list[Path]:
    """Run experiments with their sizes and write their files: CSV tables, sections of the report, then the figures."""
    _matplotlib()  # fail before hours of work, not after
    out.mkdir(parents=True, exist_ok=True)
    written, drawings = [], []
    for experiment, sizes in chosen:
        tables = experiment.tables(sizes, workers)
        written += [_text(out / f"{stem}.csv", csv_text(rows)) for stem, rows in tables.items()]
        written.append(_text(out / f"{experiment.name}.md", experiment.report(tables, sizes)))
        drawings += [Drawing(out / stem, *plot, tables) for stem, plot in experiment.plots.items()]
    for paths in workers.map(render, drawings, "figures"):
        written += paths
    return written


def render(drawing: Drawing) -> list[Path]:
    """Draw a figure and save it as PNG and PDF; nothing in the files depends on the time."""
    figure_class, rc_context = _matplotlib()
    paths = []
    with rc_context(RC):
        figure = figure_class(figsize=drawing.inches, layout="constrained")
        drawing.draw(figure, drawing.tables)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is found once, not once a file
        for suffix, metadata in ((".png", {}), (".pdf", {"CreationDate": None})):
            paths.append(drawing.target.with_name(drawing.target.name + suffix))
            figure.savefig(paths[-1], metadata=metadata)
    return paths


def collect(names: list[str], out: Path) -> Path:
    """report.md: the sections that the directory holds, in the order of the names."""
    sections = [path.read_text(encoding="utf-8") for name in names if (path := out / f"{name}.md").exists()]
    return _text(out / "report.md", "\n".join(["# Reproduction report\n", *sections]))


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _matplotlib() -> tuple[Any, Any]:
    """The figure class, drawn on through Agg and PDF canvases without pyplot, so that no backend is chosen."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("the experiments draw figures with matplotlib: pip install 'hasd[demo]'") from error
    return Figure, rc_context
