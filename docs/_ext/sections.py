"""Sections of docstrings in short form, written out as numpydoc wants them.

Here a parameter may be one line, ``tol : the relative gap to reach.``, and an example may follow without a heading;
numpydoc would take the sentence for a type and the example for a parameter.
"""

from __future__ import annotations

import re

LISTS = ("Parameters", "Attributes", "Returns")
ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:, \w+)*) : (?P<text>.+)")
LONGEST_TYPE = 60
"""Characters; a longer text is no type."""


def written_out(lines: list[str]) -> list[str]:
    """All lines, with the short forms replaced.

    >>> print(*written_out(["Parameters", "----------", "b : the data, n of them.", "", ">>> 1", "1"]), sep="|")
    Parameters|----------|b|    the data, n of them.||Examples|--------|>>> 1|1
    """
    out: list[str] = []
    section = ""
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}", following.strip()):
            section = line.strip()
        if section in LISTS and line.startswith(">>>"):
            section = "Examples"
            out += ["Examples", "--------"]
        out += _item(line, following) if section in LISTS else [line]
    return _returned(out)


def _item(line: str, following: str) -> list[str]:
    """A parameter; one whose type is a sentence, or goes on in the next line, becomes a name and a text."""
    match = ITEM.fullmatch(line)
    if match is None:
        return [line]
    text = match["text"]
    goes_on = following.startswith("  ") and len(text) > LONGEST_TYPE
    return [match["names"], f"    {text}"] if text.endswith(".") or goes_on else [line]


def _returned(lines: list[str]) -> list[str]:
    """What is returned, told in one paragraph: its first word is the type."""
    if "Returns" not in lines:
        return lines
    start = lines.index("Returns") + 2
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    told = lines[start:end]
    if len(told) < 2 or any(line.startswith(" ") for line in told):
        return lines
    kind, _, rest = told[0].partition(" ")
    return [*lines[:start], kind, *(f"    {line}" for line in (rest, *told[1:])), *lines[end:]]
