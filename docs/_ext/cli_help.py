"""The directive ``cli-help``: what ``hasd COMMAND --help`` prints, taken from the parser itself."""

from __future__ import annotations

import argparse
import os
from typing import Any
from unittest import mock

from docutils import nodes
from docutils.parsers.rst import Directive

from hasd.cli import parser


def help_of(command: str) -> str:
    """The help text, at a width that fits a page."""
    top = parser()
    choices = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction)).choices
    with mock.patch.dict(os.environ, COLUMNS="88"):
        return str(choices[command].format_help())


class CliHelp(Directive):
    """A literal block with the help of one command."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The block."""
        text = help_of(self.arguments[0])
        block = nodes.literal_block(text, text)
        block["language"] = "text"
        return [block]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("cli-help", CliHelp)
    return {"parallel_read_safe": True}
