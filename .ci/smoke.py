"""Check an installed hasd as its first user would: run by .ci/try_dist.py in a new environment, in an empty folder."""

import doctest
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import hasd

PACKAGED = ("hasd/", "hasd-")
"""How the files of the wheel begin: the package and its metadata."""


def leaked(files: list[Path]) -> list[str]:
    """The installed files that are neither of the package, nor its metadata, nor its command."""
    scripts = [file for file in files if file.stem == "hasd" and file.parent.name in ("bin", "Scripts")]
    return [file.as_posix() for file in files if file not in scripts and not file.as_posix().startswith(PACKAGED)]


def run_readme(text: str) -> None:
    """Run the examples of the README that the package carries."""
    examples = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    assert examples.examples, "the README in the metadata has no examples"
    result = doctest.DocTestRunner().run(examples)
    assert result.failed == 0, f"{result.failed} examples of the README fail"


def print_of(*command: str) -> str:
    """What the installed command prints."""
    place = Path(sys.executable).parent / "hasd"
    return subprocess.run([str(place), *command], check=True, capture_output=True, text=True).stdout


def main(version: str) -> None:
    """Raise an AssertionError for the first thing that is wrong."""
    installed, package = distribution("hasd"), Path(hasd.__file__).parent
    assert package.is_relative_to(sys.prefix), f"hasd was imported from {package}, not from the new environment"
    assert hasd.__version__ == installed.version == version, (hasd.__version__, installed.version, version)
    assert (package / "py.typed").is_file(), "py.typed is missing, so type checkers ignore the package"
    assert not leaked(list(installed.files or [])), leaked(list(installed.files or []))
    run_readme(installed.metadata.get_payload() or installed.metadata["Description"])
    assert print_of("--version") == f"hasd {version}\n"
    for command in ((), ("solve",), ("reproduce",)):
        assert "usage: hasd" in print_of(*command, "--help")


if __name__ == "__main__":
    main(sys.argv[1])
