"""Try what lies in dist/ from outside the repository, for `make test-dist`; only Python and pip are needed.

The sdist must build the wheel that the repository builds, so nothing is missing in it.  The wheel is installed without
extras into a new environment, and .ci/smoke.py is run there in an empty folder.
"""

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
"""All that a wheel is made of.  It is copied, since setuptools packs what an earlier build left in build/, too."""


def only(folder: Path, pattern: str) -> Path:
    """The one file of this pattern."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder} must hold one {pattern}, got {[file.name for file in found]}")
    return found[0]


def pip(python: str, *arguments: str) -> None:
    """Call pip, which prints only what goes wrong."""
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def build_wheel(source: Path, place: Path) -> dict[str, int]:
    """Build a wheel of a folder or an sdist; give the checksums of its files."""
    pip(sys.executable, "wheel", "--no-deps", "--no-cache-dir", "--wheel-dir", str(place), str(source))
    return checksums(only(place, "*.whl"))


def checksums(wheel: Path) -> dict[str, int]:
    """The files of a wheel with their checksums."""
    with ZipFile(wheel) as archive:
        return {member.filename: member.CRC for member in archive.infolist()}


def copy_sources(place: Path) -> Path:
    """Copy what a wheel is made of."""
    place.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, place / name)
    return place


def main() -> None:
    """Build, compare, install, run."""
    wheel, sdist = only(ROOT / "dist", "*.whl"), only(ROOT / "dist", "*.tar.gz")
    version = sdist.name.removeprefix("hasd-").removesuffix(".tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected = build_wheel(copy_sources(place / "sources"), place / "from-sources")
        for name, built in (("the wheel", checksums(wheel)), ("the sdist", build_wheel(sdist, place / "from-sdist"))):
            if built != expected:
                wrong = sorted(str(file) for file, _ in built.items() ^ expected.items())
                raise SystemExit(f"{name} in dist/ differs from the repository in {', '.join(wrong)}")
        venv.create(place / "new", with_pip=True)
        python = str(place / "new" / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        pip(python, "install", str(wheel))
        empty = place / "empty"
        empty.mkdir()
        subprocess.run([python, "-W", "error", str(ROOT / ".ci" / "smoke.py"), version], cwd=empty, check=True)
    print(f"{wheel.name} and {sdist.name} hold the same, and work in an empty environment")


if __name__ == "__main__":
    main()
