"""A solution into a folder: solution.npz, solution.json, predictions.csv, convergence.png."""

from __future__ import annotations

import json
import math
import platform
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from .._version import VERSION
from .plot import plot
from .problems import FileSolution
from .settings import Settings


def write(solution: FileSolution, settings: Settings, name: str, out: Path) -> tuple[list[Path], str]:
    """Write the files; their paths, and a note where the figure could not be drawn."""
    arrays = out / "solution.npz"
    np.savez(arrays, allow_pickle=False, **solution.arrays)
    scalars = out / "solution.json"
    text = json.dumps(_as_json(record(solution, settings, name)), indent=2, allow_nan=False)
    scalars.write_text(text + "\n", encoding="utf-8", newline="\n")
    paths = [arrays, scalars]
    if solution.predictions:
        import pandas as pd

        paths.append(out / "predictions.csv")
        pd.DataFrame(solution.predictions).to_csv(paths[-1], index=False, lineterminator="\n")
    figure = out / "convergence.png"
    try:
        plot(solution, settings.problem, figure)
    except ImportError:
        return paths, "convergence.png was not drawn: it needs matplotlib (pip install 'hasd[plot]')."
    return [*paths, figure], ""


def record(solution: FileSolution, settings: Settings, name: str) -> dict[str, Any]:
    """All that is said of the solution, but for the arrays; the coefficients by their columns' names."""
    arrays, fit = solution.arrays, {}
    if "coef" in arrays:
        named = dict(zip(arrays["columns"].tolist(), arrays["coef"].tolist(), strict=True))
        fit = {"coefficients": named, "intercept": float(arrays["intercept"])}
    return {
        "file": name,
        "problem": settings.problem,
        **{name: getattr(solution, name) for name in ("size", "solved", "fun", "lower", "gap")},
        "relative_gap": solution.gap / abs(solution.fun) if solution.fun else math.nan,
        **{name: getattr(solution, name) for name in ("method", "why")},
        "iterations": int(solution.res.nit),
        "products": solution.nprod,
        "seconds": solution.seconds,
        **solution.scalars,
        **fit,
        "notes": list(solution.notes),
        "settings": {key: value for key, value in vars(settings).items() if key != "progress"},
        "versions": {
            "hasd": VERSION,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
    }


def _as_json(value: Any) -> Any:
    """JSON has no NaN and no infinity: an infinite norm is the word, everything else that is not finite null."""
    if isinstance(value, dict):
        return {key: str(each) if key == "norm" and each == math.inf else _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
