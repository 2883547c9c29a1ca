"""From what a file holds to what a problem needs: a matrix and a target, or a cost matrix and two masses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contents import MATRIX_NAMES, Contents, Named, Request, Sparse, Table, column, find_column
from .faults import Fault, bad, first_bad, listed, quoted

MASS_ERROR = 1e-9
"""What the sums of the masses may differ by, relative."""


@dataclass(frozen=True)
class Pair:
    """A matrix and a target."""

    A: Any  # float64, dense or CSR
    b: np.ndarray  # for labels: -1 and 1
    target: str  # what the target is called in the file
    columns: tuple[str, ...] | None = None  # of A
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """A cost matrix and the masses of its rows and columns, of equal sums."""

    C: np.ndarray
    a: np.ndarray
    b: np.ndarray
    notes: tuple[str, ...] = ()


Data = Pair | Cost


def arranged(contents: Contents, request: Request) -> Data:
    """The data that the request asks for, checked."""
    if request.cost:
        return _cost(contents)
    pair = _PAIRS[type(contents)](contents, request)
    return _labelled(pair, getattr(contents, "classes", None)) if request.labels else pair


def _cost(contents: Contents) -> Cost:
    if isinstance(contents, Sparse):
        raise Fault("", "a sparse file; transport needs every cost: csv, npy, npz or parquet")
    if isinstance(contents, Table):
        _refuse_bad(contents)
        return _with_masses(contents.values, None, None)
    if "C" not in contents.arrays:
        raise Fault("", f"no array 'C'; the arrays are {listed(contents.there)}")
    C = _matrix(contents, "C")
    a, b = (
        _vector(contents, name, n) if name in contents.arrays else None for name, n in zip("ab", C.shape, strict=True)
    )
    return _with_masses(C, a, b)


def _with_masses(C: np.ndarray, a: np.ndarray | None, b: np.ndarray | None) -> Cost:
    """Uniform, with the sum of the other, where a mass is absent."""
    if 0 in C.shape:
        raise Fault("", f"a cost matrix of shape {C.shape}")
    for name, mass in (("a", a), ("b", b)):
        if mass is not None and (mass.min() < 0.0 or not 0.0 < mass.sum() < math.inf):
            worst = f"entry {int(np.argmin(mass))} (from 0) is {mass.min():g}" if mass.min() < 0.0 else "no finite sum"
            raise Fault(f"array '{name}'", f"{worst}; masses are 0 or more, and not all 0")
    total = next((float(mass.sum()) for mass in (a, b) if mass is not None), 1.0)
    notes = tuple(f"Uniform masses {name}, as none are given." for name, mass in (("a", a), ("b", b)) if mass is None)
    a, b = (np.full(n, total / n) if mass is None else mass for mass, n in zip((a, b), C.shape, strict=True))
    if abs(a.sum() - b.sum()) > MASS_ERROR * a.sum():
        raise Fault("", f"a sums to {a.sum():.9g} and b to {b.sum():.9g}; equal sums are needed")
    return Cost(C, a, b, notes)


def _from_table(table: Table, request: Request) -> Pair:
    """The target's column, and the others."""
    width = table.values.shape[1]
    if width < 2:
        raise Fault("", f"{width} column; a target and at least one more are needed")
    if not len(table.values):
        raise Fault("", "no rows")
    _refuse_bad(table)
    j = find_column(request.target, table.names, width)
    others = [k for k in range(width) if k != j]
    columns = None if table.names is None else tuple(table.names[k] for k in others)
    unnamed = [k + 1 for k, name in enumerate(table.names or ()) if not name and k != j]
    notes = [f"Column {k} has no name (a row number?) and was taken as data." for k in unnamed[:3]]
    return Pair(table.values[:, others], table.values[:, j].copy(), column(j, table.names), columns, tuple(notes))


def _refuse_bad(table: Table) -> None:
    place = first_bad(table.values)
    if place is not None:
        raise Fault(table.place(*place), f"the cell is {bad(table.values[place])}")


def _from_named(named: Named, request: Request) -> Pair:
    """The matrix by its usual names, the target by its own or the usual ones."""
    there = f"the arrays are {listed(named.there)}"
    matrix = next((name for name in MATRIX_NAMES if name in named.arrays), None)
    if matrix is None:
        raise Fault("", f"no array 'A' or 'X'; {there}")
    A = _matrix(named, matrix)
    target = next((name for name in request.vector_names if name in named.arrays), None)
    if target is not None:
        return Pair(A, _vector(named, target, len(A), f"{matrix} has rows"), f"array {quoted(target)}")
    if request.target is not None:
        raise Fault("", f"--target {quoted(request.target)} is not there: {there}")
    if not request.optional:
        raise Fault("", f"no array {' or '.join(quoted(name) for name in request.vector_names)}; {there}")
    return Pair(A, np.zeros(len(A)), "none: zeros")


def _matrix(named: Named, name: str) -> np.ndarray:
    values = named.arrays[name]
    if values.ndim != 2 or 0 in values.shape:
        raise Fault(f"array {quoted(name)}", f"{values.ndim}-D, shape {values.shape}; a matrix with entries is needed")
    return _finite(values, name)


def _vector(named: Named, name: str, length: int, of: str = "the cost matrix needs") -> np.ndarray:
    values = named.arrays[name]
    if values.ndim == 2 and 1 in values.shape:  # a column
        values = values.ravel()
    if values.ndim != 1:
        raise Fault(f"array {quoted(name)}", f"{values.ndim}-D, shape {values.shape}; a vector is needed")
    if len(values) != length:
        raise Fault(f"array {quoted(name)}", f"{len(values)} entries where {of}: {length}")
    return _finite(values, name)


def _finite(values: np.ndarray, name: str) -> np.ndarray:
    place = first_bad(values)
    if place is not None:
        index = ", ".join(str(i) for i in place)
        raise Fault(f"array {quoted(name)}, entry [{index}] (from 0)", bad(values[place]))
    return values


def _from_sparse(sparse: Sparse, request: Request) -> Pair:
    if request.target is not None:
        raise Fault("", "--target: in this format the target is the number that begins a row")
    return Pair(sparse.matrix, sparse.target, "the number that begins a row", None, sparse.notes)


def _labelled(pair: Pair, classes: tuple[str, str] | None) -> Pair:
    """The target as -1 and 1, the smaller value -1; said where it was anything else."""
    values = np.unique(pair.b)
    if len(values) != 2:
        some = ", ".join(f"{value:g}" for value in values[:5]) + (", ..." if len(values) > 5 else "")
        different = "only one value" if len(values) == 1 else f"{len(values)} different values"
        raise Fault(pair.target, f"{different} ({some}); logistic needs two classes")
    names = classes or tuple(f"{value:g}" for value in values)
    b = np.where(pair.b == values[0], -1.0, 1.0)
    same = classes is None and np.array_equal(values, [-1.0, 1.0])
    note = () if same else (f"Labels: {quoted(names[0])} became -1, {quoted(names[1])} became +1.",)
    return Pair(pair.A, b, pair.target, pair.columns, pair.notes + note)


_PAIRS: dict[type, Any] = {Table: _from_table, Named: _from_named, Sparse: _from_sparse}
