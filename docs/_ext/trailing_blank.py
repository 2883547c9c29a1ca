"""Code in Markdown ends with a blank line, which doctest needs to tell output from the fence; on a page it is a gap."""

from __future__ import annotations

from typing import Any

from docutils import nodes


def strip(app: Any, doctree: nodes.document) -> None:
    """Sphinx's event: take blank lines off the end of every literal block that is plain text."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if block.rawsource == text and text != text.rstrip():
            block.rawsource = text.rstrip()
            block.children = []
            block += nodes.Text(block.rawsource)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-read", strip)
    return {"parallel_read_safe": True}
