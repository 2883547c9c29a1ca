"""Checks of options: one sentence each, naming the option and what is wanted."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj


def check_flags(**flags: Any) -> None:
    """Refuse what is neither True nor False: "no" would count as true."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False, got {value!r}")


def check_words(**words: tuple[Any, tuple[str, ...]]) -> None:
    """Refuse a value that is not one of the known words; each is given with these."""
    for name, (value, known) in words.items():
        if not (isinstance(value, str) and value in known):
            raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")


def check_betas(betas: Any) -> None:
    """Refuse what is not two shares of an old average."""
    if not (isinstance(betas, tuple | list) and len(betas) == 2):
        raise TypeError(f"betas must be two numbers, got {betas!r}")
    for name, beta in zip(("the first of betas", "the second of betas"), betas, strict=True):
        number(name, beta, least=0.0, below=1.0)


def check_stochastic(p: float, coupling: Any, norm: Any, scale: Any, betas: Any, geometry: Any) -> None:
    """Refuse settings of HASD for training that mean nothing."""
    words = {"norm": (norm, ("all", "tensor")), "scale": (scale, ("gradient", "unit"))}
    check_words(**words, geometry=(geometry, ("lp", "spectral")))
    if coupling is not None:
        number("coupling", coupling, least=0.0, below=1.0)
        if betas is not None:
            raise ValueError("betas and coupling are two kinds of momentum: with betas, give coupling=None")
    if geometry == "spectral" and p != math.inf:
        raise ValueError(f"geometry='spectral' has p = inf only, got p={p!r}")


STACEY_EPS = {"p": 1e-8, "2": 1e-4}
"""What STACEY's authors take for eps, by the geometry of z."""


def check_stacey(p: float, second: Any, betas: Any, alpha: Any, tau: Any, eps: Any = None) -> None:
    """Refuse settings of STACEY that mean nothing."""
    check_words(second=(second, tuple(STACEY_EPS)))
    check_betas(betas)
    if second == "p" and p == math.inf:
        raise ValueError("second='p' needs a finite p: |z|^(p-1) has no limit")
    number("alpha", alpha, least=0.0)
    if eps is not None:
        number("eps", eps, least=0.0, strict=True)
    if number("tau", tau, least=0.0) > 1.0:
        raise ValueError(f"tau must be at most 1, got {tau!r}")


def nearest_name(given: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None where none is alike.

    >>> nearest_name("max_iter", ["maxfun", "maxiter"]), nearest_name("moon", ["maxfun", "maxiter"])
    ('maxiter', None)
    """
    spelt = {name.lower(): name for name in known}
    alike = get_close_matches(given.lower(), spelt, n=1, cutoff=0.7)  # at 0.6 "interrupt" would pass for "inertia"
    return spelt[alike[0]] if alike else None


def unknown_name_message(what: str, given: str, known: Iterable[str], otherwise: str) -> str:
    """The message about an unknown name: which name was probably meant, and which are known.

    >>> unknown_name_message("option", "max_iter", ["maxiter"], "see the documentation")
    "unknown option 'max_iter'; did you mean 'maxiter'? See the documentation"
    >>> unknown_name_message("option", "moon", ["maxiter"], "see the documentation")
    "unknown option 'moon': see the documentation"
    """
    meant = nearest_name(given, known)
    if meant is None:
        return f"unknown {what} {given!r}: {otherwise}"
    return f"unknown {what} {given!r}; did you mean {meant!r}? {otherwise[0].upper()}{otherwise[1:]}"


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, without its ``**options``.

    >>> parameters(lambda x, *, tol, **options: None)
    ['x', 'tol']
    """
    given = inspect.signature(function).parameters.values()
    return [one.name for one in given if one.kind is not one.VAR_KEYWORD]


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse an option that is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_shape(name: str, value: Any) -> tuple[int, ...]:
    """The shape of an array that is not empty, as a tuple.

    >>> check_shape("shape", [2, 3])
    (2, 3)
    """
    sizes = tuple(value) if isinstance(value, tuple | list) else ()
    whole = all(isinstance(n, numbers.Integral) and not isinstance(n, bool) and int(n) > 0 for n in sizes)
    if not sizes or not whole:
        raise ValueError(f"{name} must be a tuple of whole numbers of at least 1, got {show_value(value)}")
    return tuple(int(n) for n in sizes)


def number(
    name: str, value: Any, *, least: float, strict: bool = False, finite: bool = True, below: float = math.inf
) -> float:
    """A real number not below `least` (above it where strict), and less than `below`, as a float.

    >>> number("reg", np.array(2), least=0.0, strict=True)
    2.0
    """
    if not is_number(value):
        raise TypeError(f"{name} must be a number, got {show_value(value)}")
    try:
        out = float(value.detach() if hasattr(value, "detach") else value)  # PyTorch warns of its history otherwise
    except OverflowError:  # a whole number; Python may refuse to print one of so many digits
        raise ValueError(f"{name} must be a number of at most 308 digits, got one of more") from None
    low = out <= least if strict else out < least
    if math.isnan(out) or low or (finite and math.isinf(out)) or out >= below < math.inf:
        bound = f"{'greater than' if strict else 'at least'} {least:g}"
        bound += f" and less than {below:g}" if below < math.inf else ""
        raise ValueError(f"{name} must be {'finite and ' if finite else ''}{bound}, got {show_value(value)}")
    return out


def count(name: str, value: Any, *, least: int) -> float:
    """A whole number not below `least`, or None for no limit."""
    return math.inf if value is None else whole_number(name, value, least=least)


def whole_number(name: str, value: Any, *, least: int, finite: bool = False) -> float:
    """A whole number not below `least`; infinity counts as one, unless it must be finite."""
    out = number(name, value, least=least, finite=finite)
    if out != math.inf and out != int(out):
        raise ValueError(f"{name} must be a whole number, got {show_value(value)}")
    return out


SHOWN = 80
"""How many characters of a user's value an error shows."""


def show_value(value: Any) -> str:
    """The value for an error message: its repr on one line, cut to `SHOWN` characters.

    >>> show_value("two"), show_value(np.zeros((2, 2)))
    ("'two'", 'array([[0., 0.], [0., 0.]])')
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def is_number(value: Any) -> bool:
    """Whether it is one real number, by itself or as a 0-d array of any library; neither a truth value nor a time is.

    >>> is_number(np.array(2)), is_number(True), is_number("2")
    (True, False, False)
    """
    if isinstance(value, np.ndarray):
        return value.shape == () and value.dtype.kind in "iuf" and not np.ma.is_masked(value)
    if not isinstance(value, np.generic) and is_array_api_obj(value):
        kinds = ("integral", "real floating")
        return value.shape == () and bool(array_namespace(value).isdtype(value.dtype, kinds))
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)
