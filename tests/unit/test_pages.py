"""Markdown pages as one reads them without a build: links lead to files, formulas survive, directives are unseen."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".", "docs", "docs/api", "docs/methods")
PAGES = sorted(page.relative_to(ROOT).as_posix() for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def prose(page):
    """A page without its code."""
    return CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def anchors(page):
    """The names by which a forge lets one link to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_are_there(page):
    for path, anchor in LINK.findall(prose(page)):
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert target.exists() and target.is_relative_to(ROOT), path
        assert not anchor or anchor in anchors(target.relative_to(ROOT)), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_no_directive_of_sphinx_is_shown(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.search(r"^(```|:::)\{", text, re.MULTILINE) and not re.search(r"\{[\w-]+\}`", prose(page))


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_formulas_survive_markdown(page):
    r"""Markdown takes the backslash off signs, so that \| becomes |; formulas between dollars use words instead."""
    outside = prose(page)
    assert "$$" not in outside, "a formula on lines of its own is a fence: ```math"
    assert not re.search(r"\$[^$]*\\[^a-zA-Z$][^$]*\$", outside)


def test_pages_become_what_sphinx_reads(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    module = importlib.import_module("plain_markdown")
    failed, tried = doctest.testmod(module)
    assert tried > 0 and failed == 0
    drawn, kept = "![A gain](images/gain.png)", "![Not drawn by a script](images/dimension.png)"
    assert ".. plot:: figures/gain.py\n   :alt: A gain\n" in module.for_sphinx(drawn)
    assert module.for_sphinx(kept) == kept
