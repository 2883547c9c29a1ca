"""The same machine and the same number of threads give the same bits, whatever the process and its hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import runs

RUNS = Path(runs.__file__)
SEEN = "import sys, runpy; print(hash('x')); runpy.run_path(sys.argv[1], run_name='__main__')"
"""What a process prints: first something that depends on its hash seed, then its digests."""


def start(seed: str, threads: str) -> subprocess.Popen[str]:
    """A process of its own, with that hash seed and that many threads for BLAS."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    environment = os.environ | limits | {"PYTHONHASHSEED": seed, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", SEEN, str(RUNS)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=RUNS.parent
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, list[str]]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and err == "", err
    first, *lines = out.splitlines()
    return first, lines


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_two_processes_give_the_same_bits(threads):
    """Every method on every objective and the four solvers: x, value, gradient, counts, certificate, trace."""
    (one, first), (two, second) = map(ended, [start("0", threads), start("12345", threads)])
    assert one != two  # the seeds did differ
    assert len(first) == len(runs.catalogue()) > 130
    assert first == second


def test_a_second_run_in_the_same_process_gives_the_same_bits():
    """Nothing is left over from the first: no warm cache, no counter, no used-up generator."""
    assert runs.digests() == runs.digests()


def test_nearly_every_run_is_a_run():
    """A method that misses something in an objective says so in a sentence; those pairs are few and known."""
    refused = {name: text for name, run in runs.catalogue().items() if isinstance(text := run(), str)}
    assert all("is for Quadratic" in text or "needs" in text for text in refused.values())
    assert len(refused) == 13
    assert {name.split(":")[0] for name in refused} == {"hasd-cg", "hasd-newton", "hasd-subspace", "hasd-restart"}


@pytest.mark.parametrize(
    "change",
    [
        lambda res: res.x.__setitem__(0, np.nextafter(res.x[0], 9.0)),
        lambda res: res.trace["grad_norm"].__setitem__(3, np.nextafter(res.trace["grad_norm"][3], 9.0)),
        lambda res: res.update(nprod=res.nprod + 1),
        lambda res: res.update(fun=np.nextafter(res.fun, 9.0)),
        lambda res: res.update(gap=lambda radius: 0.0),
        lambda res: res.update(message=res.message + "."),
    ],
)
def test_mutation_one_bit_changes_the_digest(change):
    result = runs.catalogue()["hasd: logistic"]()
    before = runs.digest(result)
    result.trace["seconds"][1] += 1.0
    assert runs.digest(result) == before
    change(result)
    assert runs.digest(result) != before


def test_mutation_an_order_of_a_set_is_noticed():
    """A sum in the order of a set of names: hash seeds tell it from a sum in a fixed order."""
    code = "print(sum(0.1 ** int(name) for name in {str(i) for i in range(9)}).hex())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(5)
    }
    assert len(outputs) > 1
