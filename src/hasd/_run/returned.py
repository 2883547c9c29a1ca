"""What a user gave or returned, as numbers: an array, one real number, a gradient like x."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._checks import show_value
from .._math.arrays import (
    Array,
    as_numpy,
    convert_like,
    copy_in_type,
    copy_of,
    detach,
    is_foreign,
    library,
    namespace,
    to_host,
)
from ..objectives._operators import is_real


def as_array(value: Any, name: str) -> Array:
    """What a user gave or returned as an array of its own library, without history, or of NumPy's."""
    return detach(value) if is_foreign(value) else as_numpy(value, name)


def as_scalar(value: Any, name: str = "fun") -> float:
    """What the user's function returned, as a float; anything but one real number is an error."""
    if type(value) is float or type(value) is np.float64:
        return float(value)
    if isinstance(value, tuple):
        hint = "; does fun return f and g? Give jac=True" if name == "fun" else ""
        raise TypeError(f"{name} must return one number, got a tuple of {len(value)}{hint}")
    array = as_array(value, f"what {name} returns")
    if math.prod(array.shape) != 1:
        raise TypeError(f"{name} must return one number, got an array of shape {tuple(array.shape)}")
    if not is_real(array):
        raise TypeError(f"{name} must return one real number, got {show_value(detach(value))}")
    return float(namespace(array).reshape(array, ()))


def as_gradient(value: Any, x: Array) -> Array:
    """What the user's jac returned, as a fresh vector shaped like x (callers may reuse their buffer)."""
    if type(value) is type(x) is np.ndarray and value.dtype == x.dtype and value.shape == x.shape:
        return value.copy()
    array = as_array(value, "what jac returns")
    if library(array) != library(x):
        array = to_host(array)
    if not is_real(array):
        raise TypeError(f"jac must return an array of real numbers, got dtype {array.dtype}")
    shape = tuple(array.shape) or (1,)  # SciPy takes a number for the gradient of one variable
    if shape != tuple(x.shape):
        raise ValueError(f"jac must return an array of shape {tuple(x.shape)}, as x0 has, got shape {shape}")
    if type(x) is np.ndarray:
        return copy_in_type(array, x.dtype).reshape(shape)
    return copy_of(namespace(x).reshape(convert_like(array, x), shape))
