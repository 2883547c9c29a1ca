"""A digest of everything that a timing depends on and that benchopt's cache does not see.

benchopt keeps every finished run under `__cache__`, keyed on the names and parameters of objective, dataset and solver,
on the digest of their three files, and on the options of the run.  Neither `hasd` nor `benchmark_utils` nor the
versions of the libraries are part of that key: after a change in any of them a plain `benchopt run` would report
yesterday's timings as today's.

The digest made here is a parameter of the objective, hence part of the key of every run, of ours and of the peers, who
evaluate the same functions; and it stands in every row of the results as `p_obj_code`.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import hasd

LIBRARIES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "benchopt")
ROOTS = (Path(hasd.__file__).parent, Path(__file__).parent)
"""The sources that are measured, and what the benchmark's files share."""


def fingerprint(roots: Iterable[Path] = ROOTS) -> str:
    """Twelve hexadecimal digits of the sources, the versions and the machine.

    >>> fingerprint() == fingerprint(), len(fingerprint())
    (True, 12)
    """
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    surroundings = [platform.node(), platform.machine(), platform.python_version(), *map(_version, LIBRARIES)]
    digest.update("\n".join(surroundings).encode())
    return digest.hexdigest()[:12]


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "absent"
