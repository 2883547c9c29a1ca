"""Print the oldest versions that pyproject.toml declares, one ``name==version`` a line, for `make test-oldest`."""

import re
import tomllib
from pathlib import Path

EXTRAS = ("plot", "progress", "sklearn", "cli")
"""What is tested at its oldest beside the core; PyTorch, JAX and Dask are tested as `make test-all` installs them."""


def pins() -> list[str]:
    """The lower bounds as pins; a dependency without one is an error."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    for one in declared:
        if not re.fullmatch(r"[\w-]+>=[\d.]+", one):
            raise ValueError(f"pyproject.toml must declare the oldest version of each dependency, got {one!r}")
    return [one.replace(">=", "==") for one in declared]


if __name__ == "__main__":
    print("\n".join(pins()))
