"""The one shape of every result: the same fields from every solver, printed on one screen, plotted, saved."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._math.arrays import to_host
from .._plots import draw_convergence

FIRST = ("message", "success", "status", "fun", "gap", "lower", "x", "method")
"""Printed first, in this order."""
LAST = ("nit", "nfev", "njev", "nprod", "nlp", "npass", "nrecord", "seconds")
"""Counts and the time, printed last."""
UNPRINTED = ("certificate", "jac", "state", "trace")
"""Not printed: long, or of use to programs only."""


class Result(OptimizeResult):
    """What every solver of the package returns: fields that mean the same whichever function returned them.

    ======================  =============================================================================
    ``x``, ``fun``          the point, and the value there
    ``gap``, ``lower``      fun is certainly within gap of the optimal value, which is certainly at least lower; inf
                            and -inf if nothing is certified
    ``success``,            whether the run reached what was asked for; why it ended, as a code of `hasd.Status`; the
    ``status``,             same in words
    ``message``
    ``method``              the method that solved the problem
    ``nit``                 iterations
    ``nfev``, ``nprod``     evaluations of the function, and products with the matrix or its transpose
    ``seconds``             time spent on the problem, ``callback`` not counted
    ``trace``               what was recorded on the way, as arrays of equal length by name; None with trace=False
    ======================  =============================================================================

    A result is a dictionary whose keys are attributes too, like SciPy's results.

    >>> res = Result(x=np.ones(2), fun=1.0, gap=math.inf, success=True, trace=None)
    >>> res.fun, res["fun"]
    (1.0, 1.0)
    >>> print(res)
    success: True
        fun: 1.0
        gap: inf
          x: [1. 1.]
    """

    def __repr__(self) -> str:
        """The fields on one screen: long arrays and unknown values are left out."""
        others = [name for name in self if name not in (*FIRST, *LAST, *UNPRINTED)]
        lines = {name: _short_text(self[name]) for name in (*FIRST, *others, *LAST) if name in self}
        if self.get("trace"):
            rows = len(next(iter(self["trace"].values())))
            lines["trace"] = f"{rows} rows of {', '.join(self['trace'])}"
        needs = getattr(self.get("certificate"), "needs_no_radius", True)
        if not needs:
            lines["gap"] += " (give radius or mu to get one)"
        shown = {name: text for name, text in lines.items() if text}
        width = max(map(len, shown), default=0)
        return "\n".join(f"{name:>{width}}: {text}" for name, text in shown.items())

    def __dir__(self) -> list[str]:
        """The fields and what can be done with them."""
        return sorted({*self, *object.__dir__(self)})  # SciPy's lists the fields alone

    def plot(self, ax: Any = None) -> Any:
        """Draw how far the values were above the final lower bound, or above the lowest where nothing is certified.

        ``ax`` are matplotlib's axes; None makes new ones.  They are returned.
        """
        if not self.get("trace") or len(self["trace"]["fun"]) == 0:
            raise ValueError("there is nothing to plot: the run recorded no trace")
        return draw_convergence(self["trace"], self.get("lower", -math.inf), self.get("method", ""), ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fields to a file whose name ends in .json, or in .npz, which is better for large arrays.

        ``numpy.load(path)`` reads an npz file without pickle; its entry "fields" has all that is no array, as JSON.
        In JSON, numbers that are not finite are null.  If x is a list of arrays, they are named "x.0", "x.1" and so on.
        A transport plan is not saved: it can be computed from x.
        """
        path = Path(path)
        if path.suffix not in (".json", ".npz"):
            raise ValueError(f"the name of a result's file must end in .json or .npz, got {str(path)!r}")
        fields = {name: self[name] for name in self if name not in ("certificate", "state")}
        arrays = {name: to_host(value) for name, value in fields.items() if hasattr(to_host(value), "dtype")}
        lists = {name: value for name, value in fields.items() if isinstance(value, list)}
        arrays |= {f"{name}.{k}": to_host(part) for name, parts in lists.items() for k, part in enumerate(parts)}
        for name, column in (fields.get("trace") or {}).items():
            arrays[f"trace.{name}"] = column
        plain = {name: value for name, value in fields.items() if isinstance(value, bool | int | float | str)}
        if path.suffix == ".json":
            numbers = {name: np.asarray(value).tolist() for name, value in arrays.items()}
            path.write_text(json.dumps(replace_nonfinite({**plain, **numbers}), indent=1, allow_nan=False))
        else:
            np.savez(path, fields=json.dumps(replace_nonfinite(plain), allow_nan=False), **arrays)


def replace_nonfinite(value: Any) -> Any:
    """The same with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: replace_nonfinite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short_text(value: Any) -> str:
    """A field on one line; empty for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.12g}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if math.prod(value.shape) > 10:
            return f"array of shape {tuple(value.shape)}, {value.dtype}"
        return " ".join(np.array2string(np.asarray(to_host(value)), precision=6).split())
    if isinstance(value, list):
        return f"[{', '.join(map(_short_text, value))}]"
    return " ".join(str(value).split())
