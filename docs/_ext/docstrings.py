"""Docstrings are plain text with formulas such as ||g||_{p*}^2 <= eps; here they become clean reStructuredText.

Outside of code and of roles, ``||`` becomes ‖, ``<=`` ≤, ``>=`` ≥, ``grad f`` ∇f, indices and exponents are lowered and
raised, and what is left of ``*``, ``|`` and trailing ``_`` is escaped, so that f* is not the start of an emphasis nor
|x| a substitution.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

CODE = re.compile(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`)")
SIGNS = {"||": "‖", "<=": "≤", ">=": "≥", "grad f": "∇f"}
BASE = r"(?<![\w.])(?:[A-Za-z]'?|sum|max|min|psi\*?|phi'?|lambda)|‖"
SCRIPTS = re.compile(
    r"(?P<kind>[_^])\{(?P<braced>[^{}]*)\}"  # x_{t+1}, d^{1/2 - 1/p}
    r"|\^(?P<power>-?\d+|[Tpq](?!\w))"  # R^2, A^T
    rf"|(?P<base>{BASE})_(?P<index>inf|ij|max|[a-zA-Z0-9])(?!\w)"  # A_t, ||x||_2, l_inf
)


def prose(text: str) -> str:
    """One line of plain text as reStructuredText.

    >>> print(prose("||g||_{p*} <= |x| in ``a || b``, see coef_."))
    ‖g‖\\ :sub:`p*`\\  ≤ \\|x\\| in ``a || b``, see coef\\_.
    >>> print(prose("A_t R^2."))
    A\\ :sub:`t`\\  R\\ :sup:`2`\\ .
    """
    for plain, sign in SIGNS.items():
        text = _outside_code(lambda part, plain=plain, sign=sign: part.replace(plain, sign), text)
    text = _outside_code(lambda part: SCRIPTS.sub(_script, part), text)
    return _outside_code(_escaped, text)


def _outside_code(change: Callable[[str], str], text: str) -> str:
    return "".join(part if CODE.fullmatch(part) else change(part) for part in CODE.split(text))


def _script(match: re.Match[str]) -> str:
    """An index or exponent as a role."""
    lowered = match["kind"] == "_" or match["index"] is not None
    content = match["braced"] or match["power"] or match["index"]
    if not content:
        return match[0]
    return rf"{match['base'] or ''}\ :{'sub' if lowered else 'sup'}:`{content}`\ "


def _escaped(text: str) -> str:
    text = re.sub(r"(?<=[\w}])\*", r"\\*", text)
    text = text.replace("|", r"\|")
    return re.sub(r"(?<=\w)_(?![\w{])", r"\\_", text)


def is_heading(lines: list[str], index: int) -> bool:
    """Whether the line is a numpydoc section's underline."""
    return index > 0 and re.fullmatch(r"-{3,}", lines[index].strip()) is not None


def cleaned(lines: list[str]) -> list[str]:
    """All lines; doctests and literal blocks are left alone."""
    out, doctest, literal = [], False, None
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and literal is not None and indent <= literal:
            literal = None
        doctest = bool(line.strip()) and (doctest or line.lstrip().startswith(">>>"))
        keep = doctest or literal is not None or is_heading(lines, index) or _is_parameter(line)
        out.append(line if keep else prose(line))
        if literal is None and line.rstrip().endswith("::"):
            literal = indent
    return out


def _is_parameter(line: str) -> bool:
    """Whether the line names parameters or attributes, which numpydoc escapes itself."""
    return re.match(r"(\*{1,2})?\w+(, \w+)*( :|$)", line) is not None


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's event, ahead of numpydoc's."""
    lines[:] = cleaned(lines)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}
