"""What the caller hands in, normalised once: the matrix A, the vectors, the scalars; and the one product.

A product runs in A's own precision, float32 or float64: vectors are cast to it, because NumPy would otherwise
copy the whole of a float32 A to multiply it by a float64 vector.  Everything around the product is float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse
from array_api_compat import device
from scipy.sparse.linalg import LinearOperator

from .._math.arrays import as_numpy, detach, is_foreign, largest_size, library, namespace, refuse_masked, to_host

Matrix = Any
"""A dense array of any library, a SciPy sparse array or matrix, or a ``scipy.sparse.linalg.LinearOperator``."""

Vector = Any
"""A one-dimensional real array: of A's library, NumPy's where A is sparse or an operator."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


_OF_CALLER: ContextVar[dict[str, Any] | None] = ContextVar("hasd_settings_of_caller", default=None)
"""The caller's settings while our own are in force, otherwise None.  NumPy's are slow to ask for, and slower to set."""


def settings_of_caller() -> dict[str, Any]:
    """How NumPy treats overflow and the like in the caller's own code."""
    known = _OF_CALLER.get()
    return dict(np.geterr()) if known is None else known


class float_settings:
    """How NumPy treats overflow and the like inside a ``with``: silently, or as the caller of the library wants it."""

    __slots__ = ("_silent", "_state", "_token")

    def __init__(self, of_caller: dict[str, Any] | None = None):
        """The caller's settings, for code of the caller's own; None: ours, under which overflow gives inf silently."""
        self._silent = of_caller is None
        self._state = np.errstate(all="ignore") if of_caller is None else np.errstate(**of_caller)

    def __enter__(self) -> None:
        """Set them for this thread and context alone."""
        before = settings_of_caller() if self._silent else None
        self._state.__enter__()
        self._token = _OF_CALLER.set(before)

    def __exit__(self, *error: Any) -> None:
        """Put back what was there."""
        _OF_CALLER.reset(self._token)
        self._state.__exit__(*error)


def quiet(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let overflow give inf without a warning, whatever ``np.seterr`` says; safe across threads."""

    @wraps(function)
    def silent(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if _OF_CALLER.get() is not None:
            return function(*args, **kwargs)
        with float_settings():
            return function(*args, **kwargs)

    return silent


def is_sparse(A: Matrix) -> bool:
    """Whether A is a SciPy sparse array or matrix (a plain bool: the stubs' type guard knows no ``data``)."""
    return bool(scipy.sparse.issparse(A))


@quiet
def as_matrix(A: Matrix, name: str) -> Matrix:
    """A checked: 2-D, real, finite, not empty; float32 and float64 are kept, other numbers become float64.

    CSR and CSC stay as they are, other sparse formats become CSR.  Nothing is copied unless it is converted,
    and the entries of a LinearOperator cannot be looked at.  An array of another library stays there.
    """
    sparse = is_sparse(A)
    if is_foreign(A):
        A = detach(A)
        if str(getattr(A, "layout", "torch.strided")) != "torch.strided":
            raise TypeError(f"{name} must be dense where it is a tensor, got layout {A.layout}")
    elif not (sparse or isinstance(A, LinearOperator)):
        A = as_numpy(A, name)
    if not is_real(A):
        raise TypeError(f"{name} must be a real ndarray, sparse matrix or LinearOperator, got dtype {A.dtype}")
    if len(A.shape) != 2 or 0 in A.shape:
        raise ValueError(f"{name} must be 2-D with at least one row and one column, got shape {tuple(A.shape)}")
    if isinstance(A, LinearOperator):
        return A
    if sparse:
        A = A if A.format in ("csr", "csc") else A.tocsr()
        refuse_masked(A.data, name)
    A = namespace(A).astype(A, precision(A), copy=False) if is_foreign(A) else A.astype(precision(A), copy=False)
    if not math.isfinite(largest_size(A.data if sparse else A)):  # this makes no large temporary
        raise ValueError(f"{name} must be finite, got NaN or infinity among its entries")
    return A


def is_real(A: Any) -> bool:
    """Whether the numbers of an array, sparse matrix or operator are real."""
    if is_foreign(A):
        return bool(namespace(A).isdtype(A.dtype, ("bool", "integral", "real floating")))
    return np.dtype(A.dtype).kind in "biuf"


def row_blocks(shape: tuple[int, int], most: int) -> Iterator[slice]:
    """Blocks of the rows of a matrix of that shape, each of at most so many entries or of one row.

    >>> list(row_blocks((5, 10), 20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows, entries = shape
    step = max(most // entries, 1)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def precision(A: Matrix) -> Any:
    """The type of products with A, of its own library: float32 where A is, float64 everywhere else."""
    xp = namespace(A) if is_foreign(A) else np
    return xp.float32 if A.dtype == xp.float32 else xp.float64


def is_single(A: Matrix) -> bool:
    """Whether products with A are in float32."""
    return bool(A.dtype == (namespace(A) if is_foreign(A) else np).float32)


def refuse_other_library(x: Any, y: Any, name: str, other: str) -> None:
    """Refuse arrays of different libraries or devices: we never move a caller's array."""
    if library(x) != library(y):
        raise TypeError(f"{name} is an array of {library(x)}, but {other} is one of {library(y)}: convert one of them")
    if is_foreign(x) and device(x) != device(y):
        raise ValueError(f"{name} is on device {device(x)}, but {other} on {device(y)}: move one of them")


@quiet
def apply(A: Matrix, v: Vector) -> Vector:
    """A v, computed in A's precision, as a float64 vector that nobody else holds.

    >>> apply(np.eye(2, dtype=np.float32), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    if type(A) is np.ndarray and type(v) is np.ndarray and A.dtype == v.dtype == np.float64:
        # The common case, without looking further.  `dot` begins sooner than `@`, but copies a matrix with gaps.
        return A.dot(v) if A.flags.forc else A @ v
    if is_foreign(A):
        xp = namespace(A)
        return xp.astype(A @ xp.astype(v, A.dtype, copy=False), xp.float64, copy=False)
    image = A @ v.astype(precision(A), copy=False)
    # An operator may return its own buffer, or v itself: copy its answer.
    return image.astype(np.float64, copy=isinstance(A, LinearOperator))


def apply_to_columns(A: LinearOperator, X: Vector) -> Vector:
    """A X by one product for each column, each copied: an operator may return the same buffer every time."""
    return np.ascontiguousarray(np.reshape([apply(A, column) for column in X.T], (-1, A.shape[0])).T)


def as_point(x: npt.ArrayLike, length: int | None, name: str, model: Any = None) -> Vector:
    """x as a real 1-D array of the given length (None: any), in the model's library.  Entries are not checked, and x is
    copied only where it comes from another library.
    """
    if not is_foreign(model):
        v = as_numpy(to_host(x), name)
    elif is_foreign(x):
        refuse_other_library(x, model, name, "the data")
        v = detach(x)
    else:
        v = namespace(model).asarray(as_numpy(x, name), device=device(model))
    if not is_real(v):
        raise TypeError(f"{name} must be a real vector, got dtype {v.dtype}")
    if v.ndim != 1 or v.shape[0] == 0 or (length is not None and v.shape[0] != length):
        wanted = "1-D and not empty" if length is None else f"1-D of length {length}"
        raise ValueError(f"{name} must be {wanted}, got shape {tuple(v.shape)}")
    return v


@quiet
def as_data(b: npt.ArrayLike, length: int | None, name: str, model: Any = None, owner: str = "") -> Vector:
    """b as a finite float64 vector, copied so that later changes by the caller do not matter.

    With an owner, the name of the model, an array of another library than the model's is refused.
    """
    if owner and is_foreign(b):
        refuse_other_library(b, model, name, owner)
    point = as_point(b, length, name, model)
    v = namespace(point).astype(point, namespace(point).float64)
    if not math.isfinite(largest_size(v)):
        raise ValueError(f"{name} must be finite, got NaN or infinity among its entries")
    return v
