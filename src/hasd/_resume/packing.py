"""A state as plain data and back: a tree of numbers, strings, lists and dicts beside a list of arrays.  No pickle.

Arrays that are one object in the state are one entry of the list and one object again afterwards: methods ask whether
the evaluated point *is* the iterate.  Only classes that the method's state is declared to be made of are ever made from
data: they are found by following the annotations of its fields.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any, NamedTuple

from .._math.arrays import Array
from .._run.capabilities import traits_of_method
from .._run.record import KEPT, State


class Packed(NamedTuple):
    """What `pack` makes of a value."""

    tree: Any  # JSON's types; {"array": i} stands for the i-th array
    arrays: list[Array]


def state_classes(method: Any) -> dict[str, type]:
    """The classes that states and pictures of a method are made of, by name.

    A method whose states have fields of their own names their class in ``state_classes``.
    """
    return parts_of((*KEPT, State, *traits_of_method(method).state_classes))


def parts_of(classes: Iterable[type]) -> dict[str, type]:
    """These classes and those of their fields, as far as they are data classes or named tuples."""
    found: dict[str, type] = {}
    waiting: list[Any] = list(classes)
    while waiting:
        part = waiting.pop()
        waiting += typing.get_args(part)  # where it is a hint such as tuple[X, ...] or X | None
        if _is_record(part) and _name(part) not in found:
            found[_name(part)] = part
            waiting += typing.get_type_hints(part).values()
    return found


def _is_record(cls: Any) -> bool:
    return isinstance(cls, type) and (dataclasses.is_dataclass(cls) or hasattr(cls, "_fields"))


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _parts(value: Any) -> dict[str, Any]:
    """The fields of a record; where it shares a buffer with later versions, those that `to_parts` gives."""
    if hasattr(value, "to_parts"):
        return value.to_parts()
    names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
    return {name: getattr(value, name) for name in names}


def pack(value: Any, classes: dict[str, type]) -> Packed:
    """The value as data.

    >>> import numpy as np
    >>> from hasd._math.estimate import Estimate
    >>> x, classes = np.ones(2), parts_of([Estimate])
    >>> packed = pack(Estimate(center=x, away=x, weight=2.0), classes)
    >>> len(packed.arrays), packed.tree["away"]
    (1, {'array': 0})
    >>> again = unpack(packed, classes)
    >>> again.weight, again.center is again.away
    (2.0, True)
    """
    arrays: list[Array] = []
    places: dict[int, int] = {}

    def node(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        name = _name(type(value))
        if name in classes:
            return {"is": name} | {key: node(part) for key, part in _parts(value).items()}
        if isinstance(value, tuple | list) and not _is_record(type(value)):
            return [node(part) for part in value]
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise TypeError("a state of this method cannot be saved: it holds a dict whose keys are not all text")
            return {"dict": {key: node(part) for key, part in value.items()}}
        if not hasattr(value, "dtype"):
            held = f"it holds a {type(value).__name__}, which the method's state_classes do not name"
            raise TypeError(f"a state of this method cannot be saved: {held}")
        if id(value) not in places:
            places[id(value)] = len(arrays)
            arrays.append(value)
        return {"array": places[id(value)]}

    return Packed(node(value), arrays)


def unpack(packed: Packed, classes: dict[str, type]) -> Any:
    """The value that was packed; lists come back as tuples, which is what states hold."""

    def value(node: Any) -> Any:
        if isinstance(node, list):
            return tuple(value(part) for part in node)
        if not isinstance(node, dict):
            return node
        if "is" in node:  # looked for first: a class may have fields of the other two names
            cls = classes[node["is"]]
            make = getattr(cls, "from_parts", cls)
            return make(**{key: value(part) for key, part in node.items() if key != "is"})
        if "dict" in node:
            return {key: value(part) for key, part in node["dict"].items()}
        return packed.arrays[node["array"]]

    return value(packed.tree)
