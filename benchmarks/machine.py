"""What figures depend on beside the code: the commit, the machine, the versions, the load."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

import hasd


def describe(threads: int, packages: tuple[str, ...]) -> list[str]:
    """The commit, the machine and the versions, a line each."""
    found = [f"{name} {one}" for name in packages if (one := _version(name))]
    return [
        f"commit {commit()}",
        f"{cpu()}, {os.cpu_count()} cores, BLAS threads {threads}, kernels for {kernels()}",
        ", ".join([f"Python {platform.python_version()}", *found]),
    ]


def load() -> str:
    """The load averages of the last 1, 5 and 15 minutes."""
    return ", ".join(f"{one:.2f}" for one in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def cpu() -> str:
    """The model of the CPU as Linux names it, elsewhere what Python knows."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.split(":", 1)[1].split())
    return platform.processor() or platform.machine()


def kernels() -> str:
    """The CPU that the BLAS libraries take this one for, which a variable of the environment may have told them."""
    found = {one["architecture"] for one in threadpool_info() if "architecture" in one}
    return " and ".join(sorted(found)) or "unknown"


def commit() -> str:
    """The commit of the package that is measured, marked where files differ from it."""
    command = ["git", "-C", str(Path(hasd.__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"unknown, version {hasd.__version__}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
