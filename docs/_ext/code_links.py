"""Names in the text lead to the reference: ``hasd.chebyshev(A, b)`` and, on the page of bounds, ``main_bound``."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

import hasd
from hasd import objectives, theory

OWN_REFERENCE = ("api/", "gallery/")
"""Pages whose names are links already."""


def targets() -> dict[str, str]:
    """What may stand in the text, and the documented name it means."""
    known = {f"hasd.{name}": f"hasd.{name}" for name in hasd.__all__ if not name.startswith("_")}
    known.update({f"hasd.objectives.{name}": f"hasd.objectives.{name}" for name in objectives.__all__})
    for name in theory.__all__:
        if callable(getattr(theory, name)):
            known[name] = known[f"theory.{name}"] = f"hasd.theory.{name}"
    return known


def link(app: Any, doctree: nodes.document) -> None:
    """Sphinx's event: wrap the literals that are names."""
    page = app.env.docname
    if page.startswith(OWN_REFERENCE):
        return
    known = targets()
    for literal in list(doctree.findall(nodes.literal)):
        target = known.get(literal.astext().partition("(")[0])
        if target is None or isinstance(literal.parent, nodes.reference | nodes.title | pending_xref):
            continue
        reference = pending_xref("", refdomain="py", reftype="obj", reftarget=target, refdoc=page, refwarn=True)
        literal.replace_self(reference)
        reference += literal


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True}
