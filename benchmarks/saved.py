"""A run written to a folder and read back: every row as CSV, what else it found and its conditions as JSON."""

from __future__ import annotations

import csv
import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from benchmarks.insides import Growth, Split
from benchmarks.run import Row

ROWS, REST = "rows.csv", "run.json"


@dataclass(frozen=True)
class Saved:
    """What a run measured, and where."""

    rows: list[Row]
    commit: str
    threads: int
    conditions: list[str]
    split: Split | None = None
    growth: list[Growth] = field(default_factory=list)


def save(run: Saved, folder: Path) -> list[Path]:
    """Write it; the files."""
    with (folder / ROWS).open("w", newline="") as file:
        writer = csv.DictWriter(file, [column.name for column in dataclasses.fields(Row)])
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in run.rows)
    rest = {name: value for name, value in dataclasses.asdict(run).items() if name != "rows"}
    (folder / REST).write_text(json.dumps(rest, indent=1) + "\n")
    return [folder / ROWS, folder / REST]


def load(folder: Path) -> Saved:
    """Read it."""
    rest = json.loads((folder / REST).read_text())
    rest["split"] = Split(**rest["split"]) if rest["split"] else None
    rest["growth"] = [Growth(**one) for one in rest["growth"]]
    kinds = get_type_hints(Row)
    with (folder / ROWS).open(newline="") as file:
        rows = [Row(**{name: _parse(kinds[name], text) for name, text in one.items()}) for one in csv.DictReader(file)]
    return Saved(rows, **rest)


def _parse(kind: type, text: str) -> Any:
    return text == "True" if kind is bool else kind(text)
