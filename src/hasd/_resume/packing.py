"""A state as plain data and back: a tree of numbers, strings, lists and dicts beside a list of arrays.  No pickle.

Arrays that are one object in the state are one entry of the list and one object again afterwards: methods ask whether
the evaluated point *is* the iterate.  Only the classes named here are ever made from data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from .._math.arrays import Array
from .._math.doubt import Doubt
from .._math.estimate import Certificate, Charge, Estimate
from .._math.evaluation import Bend, Evaluation
from .._run.certificate import Cut
from .._run.convexity import Convexity, Seen
from .._run.state import State
from ..methods._curvature_pairs import Pairs
from ..methods._span import Span
from ..methods.agd import AGDState
from ..methods.base import Standing
from ..methods.hasd_cg import CGState
from ..methods.hasd_qn import QNState
from ..methods.hasd_restart import RestartState
from ..methods.hasd_subspace import SubspaceState
from ..methods.heavy_ball import HeavyBallState
from ..objectives._images import Basis, Point
from ..objectives._loss import Expansion
from .snapshot import Memory, Snapshot


class Packed(NamedTuple):
    """What `pack` makes of a value."""

    tree: Any  # JSON's types; {"array": i} stands for the i-th array
    arrays: list[Array]


class Part(NamedTuple):
    """How a class is taken apart and put together."""

    make: Callable[..., Any]
    take: Callable[[Any], dict[str, Any]]


def _fields(cls: Any) -> Part:
    """A class that is the sum of its fields."""
    names = cls._fields if hasattr(cls, "_fields") else [field.name for field in dataclasses.fields(cls)]
    return Part(cls, lambda value: {name: getattr(value, name) for name in names})


PARTS: dict[str, Part] = {
    **{
        cls.__name__: _fields(cls)
        for cls in (
            *(State, AGDState, HeavyBallState, RestartState, QNState, CGState, SubspaceState),
            *(Evaluation, Doubt, Estimate, Charge, Certificate, Cut, Standing, Span, Point, Expansion),
            *(Bend, Convexity, Seen, Memory, Snapshot),
        )
    },
    # these share a buffer with their later versions, which is nobody else's business
    "Pairs": Part(Pairs, lambda pairs: {"rows": pairs.rows, "inner": pairs.inner, "unit": pairs.unit}),
    "Basis": Part(Basis.of, lambda basis: {"columns": basis.columns, "room": basis.store.room}),
}


def pack(value: Any) -> Packed:
    """The value as data.

    >>> import numpy as np
    >>> x = np.ones(2)
    >>> packed = pack(Estimate(center=x, away=x, weight=2.0))
    >>> len(packed.arrays), packed.tree["away"]
    (1, {'array': 0})
    >>> again = unpack(packed)
    >>> again.weight, again.center is again.away
    (2.0, True)
    """
    arrays: list[Array] = []
    places: dict[int, int] = {}

    def node(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        name = type(value).__name__
        if name in PARTS:
            return {"is": name} | {key: node(part) for key, part in PARTS[name].take(value).items()}
        if isinstance(value, tuple | list):
            return [node(part) for part in value]
        if not hasattr(value, "dtype"):
            raise TypeError(f"a state of this method cannot be saved: it holds a {name}")
        if id(value) not in places:
            places[id(value)] = len(arrays)
            arrays.append(value)
        return {"array": places[id(value)]}

    return Packed(node(value), arrays)


def unpack(packed: Packed) -> Any:
    """The value that was packed; lists come back as tuples, which is what states hold."""

    def value(node: Any) -> Any:
        if isinstance(node, list):
            return tuple(value(part) for part in node)
        if not isinstance(node, dict):
            return node
        if "array" in node:
            return packed.arrays[node["array"]]
        return PARTS[node["is"]].make(**{key: value(part) for key, part in node.items() if key != "is"})

    return value(packed.tree)
