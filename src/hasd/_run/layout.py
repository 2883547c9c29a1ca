"""How a user's x is laid out: a vector, an array of some shape, or a list of arrays.  The methods see vectors only.

A geometry that knows its shape allows an x0 of that shape.  x0 and gradients are flattened where they come in, and x is
given its shape where it goes out: to the user's function, to callbacks, in results.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from .._checks import is_number
from .._math.arrays import Array, library, namespace, to_host
from .returned import as_array


class Layout(NamedTuple):
    """The arrays that x consists of."""

    shapes: tuple[tuple[int, ...], ...] = ()  # none: x is a vector
    is_list: bool = False  # whether x is the list of these arrays, or the only one

    def flatten(self, value: Any, name: str) -> Any:
        """One vector of a value of this layout; name: what to call it in messages.  Vectors are handed on as they are.

        >>> import numpy as np
        >>> Layout(((2,), (1, 2)), is_list=True).flatten([np.ones(2), np.zeros((1, 2))], "x0")
        array([1., 1., 0., 0.])
        """
        if not self.shapes:
            return value
        arrays = [as_array(part, name) for part in self._parts(value, name)]
        for k, (array, shape) in enumerate(zip(arrays, self.shapes, strict=True)):
            if tuple(array.shape) != shape:
                where = f" as array {k}" if self.is_list else ""
                raise ValueError(f"{name} must have shape {shape}{where}, got shape {tuple(array.shape)}")
        if len({library(array) for array in arrays}) > 1:
            arrays = [to_host(array) for array in arrays]
        xp = namespace(arrays[0])
        vectors = [xp.reshape(array, (-1,)) for array in arrays]
        return xp.concat(vectors) if self.is_list else vectors[0]

    def restore(self, x: Array) -> Any:
        """The vector x in this layout: views of it, where the library has them.

        >>> import numpy as np
        >>> Layout(((2, 2),)).restore(np.arange(4.0))
        array([[0., 1.],
               [2., 3.]])
        """
        if not self.shapes:
            return x
        reshape, ends = namespace(x).reshape, accumulate(map(math.prod, self.shapes), initial=0)
        arrays = [reshape(x[start:end], shape) for (start, end), shape in zip(pairwise(ends), self.shapes, strict=True)]
        return arrays if self.is_list else arrays[0]

    def index_of(self, place: int) -> str:
        """How the entry of that place in the vector is written.

        >>> Layout().index_of(3), Layout(((2, 2),)).index_of(3), Layout(((2,), (1, 2)), True).index_of(3)
        ('[3]', '[1, 1]', '[1][0, 1]')
        """
        if not self.shapes:
            return f"[{place}]"
        ends = list(accumulate(map(math.prod, self.shapes)))
        array = bisect_right(ends, place)
        shape, place = self.shapes[array], place - ends[array]  # negative: counted from the end of that array
        inside = ", ".join(str(place // math.prod(shape[i + 1 :]) % n) for i, n in enumerate(shape))
        return f"[{array}][{inside}]" if self.is_list else f"[{inside}]"

    def _parts(self, value: Any, name: str) -> list[Any]:
        """The arrays of a value, one for each shape."""
        if not self.is_list:
            return [value]
        if not isinstance(value, list | tuple) or len(value) != len(self.shapes):
            kind = f"{len(value)} of them" if isinstance(value, list | tuple) else type(value).__name__
            raise ValueError(f"{name} must be a list of {len(self.shapes)} arrays, got {kind}")
        return list(value)


VECTOR = Layout()


def layout_for(x0: Any, shape: Any) -> Layout:
    """How x0 is laid out, where the geometry has that shape: a tuple, a list of them, or None.

    A vector of all entries is always allowed, and stays one.

    >>> layout_for([[1.0, 2.0]], (1, 2)).shapes, layout_for([1.0, 2.0], (1, 2)).shapes
    (((1, 2),), ())
    """
    if shape is None:
        return VECTOR
    if isinstance(shape, list):
        is_list = isinstance(x0, list | tuple)
        is_vector = all(map(is_number, x0)) if is_list else getattr(x0, "ndim", 2) < 2
        return VECTOR if is_vector else Layout(tuple(map(tuple, shape)), is_list=True)
    return Layout((tuple(shape),)) if len(shape) > 1 and as_array(x0, "x0").ndim > 1 else VECTOR
