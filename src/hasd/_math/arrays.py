"""One code for every array library: what the standard leaves out or NumPy does faster its own way.

Vectors stay in the caller's library, type and device throughout; scalars are Python floats; the few numbers of a
small problem inside a method (k x k) are NumPy's.  Nothing here writes into an array that it was given.
"""

from __future__ import annotations

import math
from typing import Any

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np
from array_api_compat import device, is_torch_array, to_device

Array = Any
"""An array of any library that follows the array API standard."""
RESOLUTION = {np.dtype(np.float64): 2.0**-52, np.dtype(np.float32): 2.0**-23}
"""Machine epsilons, without a look-up in NumPy."""
SHORT = 10_000
"""In an array of so many entries or fewer NumPy finds the place of the largest sooner than its value (measured)."""


def namespace(x: Array) -> Any:
    """The functions of x's library; NumPy's without a look-up."""
    return numpy_namespace if type(x) is np.ndarray else array_api_compat.array_namespace(x)


def is_foreign(x: Any) -> bool:
    """Whether x is an array that is worked on in its own library: of PyTorch, JAX, CuPy, not of NumPy.

    Lazy and sparse arrays do not count: they are converted to NumPy, as a list is.

    >>> is_foreign(np.zeros(2)), is_foreign([1.0])
    (False, False)
    """
    if isinstance(x, np.ndarray | np.generic) or not array_api_compat.is_array_api_obj(x):
        return False
    return not (array_api_compat.is_dask_array(x) or array_api_compat.is_pydata_sparse_array(x))


def library(x: Any) -> str:
    """What to call x's library in an error message.

    >>> library(np.zeros(2)), library([1.0])
    ('numpy', 'numpy')
    """
    return namespace(x).__name__.removeprefix("array_api_compat.") if is_foreign(x) else "numpy"


def as_numpy(x: Any, name: str) -> Any:
    """The user's argument of that name as a plain NumPy array; masked entries are refused."""
    if type(x) is np.ndarray:
        return x
    refuse_masked(x, name)
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from error


def refuse_masked(x: Any, name: str) -> None:
    """Refuse an array with masked entries; a masked array without any is an array like any other.

    >>> refuse_masked(np.ma.masked_array([1.0, 2.0], mask=[False, True]), "b")
    Traceback (most recent call last):
    ValueError: b must have no masked entries, but entry 1 is masked: drop or fill the masked entries
    """
    place = _masked_position(x)
    if place is not None:
        where = place[0] if len(place) == 1 else place or 0
        raise ValueError(
            f"{name} must have no masked entries, but entry {where} is masked: drop or fill the masked entries"
        )


def _masked_position(x: Any) -> tuple[int, ...] | None:
    """The index of the first masked entry, also within lists (NumPy would drop their masks); None without one."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        return tuple(int(i) for i in np.argwhere(x.mask)[0])
    if isinstance(x, list | tuple):
        for k, part in enumerate(x):
            if isinstance(part, list | tuple | np.ma.MaskedArray) and (place := _masked_position(part)) is not None:
                return (k, *place)
    return None


def detach(x: Any) -> Any:
    """x without the history that PyTorch may have attached to it."""
    return x.detach() if is_torch_array(x) else x


def copy_of(x: Array) -> Array:
    """A copy."""
    return x.copy() if type(x) is np.ndarray else namespace(x).asarray(x, copy=True)


def copy_in_type(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy in that type.  Nonzero entries stay nonzero: a gradient of 0 would say that its point is a minimiser.

    >>> copy_in_type(np.array([1e-60, 0.0]), np.dtype(np.float32)) > 0.0
    array([ True, False])
    """
    with np.errstate(all="ignore"):  # an entry too large for the type becomes inf, and the trial is rejected
        narrow = np.array(x, dtype=dtype)
    if x.dtype != dtype and (lost := (narrow == 0.0) & (x != 0.0)).any():
        narrow[lost] = np.copysign(np.finfo(dtype).smallest_subnormal, x[lost])
    return narrow


def to_numpy(x: Array) -> Array:
    """A few numbers of any library in NumPy: as they are where they are NumPy's, otherwise in float64."""
    return x if type(x) is np.ndarray else to_host(x).astype(np.float64, copy=False)


def convert_like(x: Array, y: Array) -> Array:
    """x in y's library, precision and device; not copied where it is there already.

    >>> convert_like(np.ones(2), np.zeros(3, dtype=np.float32)).dtype
    dtype('float32')
    """
    if type(y) is np.ndarray:
        return x.astype(y.dtype, copy=False)
    return namespace(y).asarray(x, dtype=y.dtype, device=device(y))


def to_host(x: Any) -> Any:
    """A foreign array in NumPy, in its own precision; anything else as it is."""
    if not is_foreign(x):
        return x
    if is_torch_array(x) or array_api_compat.is_cupy_array(x):  # the standard does not say how they do this
        return np.asarray(to_device(detach(x), "cpu"))
    try:
        return np.asarray(x)
    except RuntimeError:  # x is on another device
        return np.from_dlpack(x, device="cpu")


def to_float64(x: Array) -> Array:
    """x in float64; not copied where it is so already."""
    if type(x) is np.ndarray:
        return x.astype(np.float64, copy=False)
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def zeros(length: int, model: Array) -> Array:
    """A zero vector in float64, in the model's library and on its device."""
    xp = namespace(model)
    return xp.zeros(length, dtype=xp.float64, device=device(model))


def write_into(array: Array, where: Any, value: Array) -> Array:
    """The array with a part replaced, in place where the library's arrays can be written to, else in a new one."""
    if array_api_compat.is_writeable_array(array):
        array[where] = value
        return array
    return array.at[where].set(value)


def vanishes(x: Array) -> bool:
    """Whether every entry is 0."""
    return not x.any() if type(x) is np.ndarray else not bool(namespace(x).any(x != 0.0))


def apply_in_place(name: str, x: Array) -> Array:
    """The function of that name at x, computed in x's own memory where the library can: nobody else may hold x."""
    return getattr(np, name)(x, out=x) if type(x) is np.ndarray else getattr(namespace(x), name)(x)


def multiply(A: Array, B: Array) -> Array:
    """A B, of vectors and matrices; in NumPy by `dot`, which begins sooner than `@`."""
    return A.dot(B) if type(A) is type(B) is np.ndarray else A @ B


def total(x: Array) -> float:
    """The sum of the entries."""
    return float(np.add.reduce(x)) if type(x) is np.ndarray else float(namespace(x).sum(x))


def largest_entry(x: Array) -> float:
    """The largest entry; NaN where an entry is NaN."""
    if type(x) is np.ndarray:
        return float(x.item(x.argmax()) if x.size <= SHORT else x.max())
    return float(namespace(x).max(x))


def extreme_entries(x: Array) -> tuple[float, float]:
    """The least and the largest entry; NaN where an entry is NaN, and for an empty array."""
    if math.prod(x.shape) == 0:
        return math.nan, math.nan
    if type(x) is np.ndarray:
        if x.size <= SHORT:
            return float(x.item(x.argmin())), float(x.item(x.argmax()))
        return float(x.min()), float(x.max())
    xp = namespace(x)
    return float(xp.min(x)), float(xp.max(x))


def largest_size(x: Array) -> float:
    """max|x|, 0 for an empty array.

    >>> largest_size(np.array([1.0, -3.0])), largest_size(np.zeros(0))
    (3.0, 0.0)
    """
    bottom, top = extreme_entries(x)
    if math.isnan(top):
        return 0.0 if math.prod(x.shape) == 0 else math.nan
    return max(top, -bottom)


def resolution(x: Array) -> float:
    """The machine epsilon of x's numbers.

    >>> resolution(np.ones(2)) == 2.0**-52
    True
    """
    known = RESOLUTION.get(x.dtype) if type(x) is np.ndarray else None
    return float(namespace(x).finfo(x.dtype).eps) if known is None else known
