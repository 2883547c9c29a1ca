"""The version is one number wherever it is written, and a release has its entry in the changelog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hasd
from hasd._version import VERSION

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def entries(changelog):
    """Each heading of a changelog with its date and the lines below it."""
    parts = HEADING.split(changelog)
    each = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return [(name, date, re.findall(r"^- ", body, re.MULTILINE)) for name, date, body in each]


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def fits(version, changelog):
    """Whether a changelog has this version as its newest release, or prepares it under "Unreleased"."""
    (first, _, changes), *releases = entries(changelog)
    if first != "Unreleased" or not all(date for _, date, _ in releases):
        return False
    newest = releases[0][0] if releases else "0.0.0"
    return version == newest or (numbers(version) > numbers(newest) and bool(changes))


def test_the_version_is_the_same_in_the_package_and_in_the_citation():
    [cited] = re.findall(r'^version: "?([\d.]+)"?$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert VERSION == hasd.__version__ == cited


def test_the_version_is_the_newest_of_the_changelog_or_prepared_there():
    assert fits(VERSION, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("changelog", "right"),
    [
        ("## [Unreleased]\n\n## [0.1.0] - 2025-01-31\n- All of it.\n", True),
        ("## [Unreleased]\n- All of it.\n", True),
        ("## [Unreleased]\n- More.\n\n## [0.2.0] - 2025-01-31\n- All of it.\n", False),
        ("## [Unreleased]\n\n## [0.0.9] - 2025-01-31\n- Too old.\n", False),
        ("## [Unreleased]\n\n## [0.1.0]\n- Without a date.\n", False),
        ("## [0.1.0] - 2025-01-31\n- No place for what comes next.\n", False),
    ],
)
def test_a_changelog_that_does_not_fit_the_version_is_noticed(changelog, right):
    assert fits("0.1.0", changelog) == right
