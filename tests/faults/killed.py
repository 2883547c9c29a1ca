"""Run by test_killed.py in a process of its own: kill a run at random moments, again and again.

Every child goes on from the checkpoint that the last one left, and is killed with SIGKILL after a random time, be it in
the middle of a write.  Prints what was found as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import hasd
from hasd._resume import checkpoint

KILLS, D, LAST = 50, 20_000, 1_000_000
CURVATURE = np.geomspace(1e-6, 1.0, D)


def f(x):
    return float(0.5 * x @ (CURVATURE * x) - x.sum()), CURVATURE * x - 1.0


def run(path, maxiter):
    resume = path if path.exists() else None
    kept = {"checkpoint": path, "checkpoint_every": 1} if maxiter == LAST else {}
    return hasd.minimize(
        f, np.zeros(D), jac=True, method="agd", L=1.0, tol=0.0, maxiter=maxiter, trace=False, resume=resume, **kept
    )


def child(path):
    """Never returns."""
    try:
        run(path, LAST)
    finally:
        os._exit(1)


def iteration(path):
    """That of a checkpoint which must be readable."""
    return checkpoint._contents(path)[0]["tree"]["dict"]["state"]["iteration"]


def halves(path, pid):
    """What that process has begun to write."""
    return list(path.parent.glob(f"{path.name}.*-{pid}-*.tmp"))


def main(folder):
    path, chance = Path(folder) / "run.npz", random.Random(0)
    previous = Path(f"{path}.previous")
    in_write, reached, killed, known = 0, [], 0, -1
    while killed < KILLS:
        pid = os.fork()
        if pid == 0:
            child(path)
        while not path.exists() or path.stat().st_ino == known:  # until it has written once
            time.sleep(0.0005)
        if killed % 2:
            time.sleep(chance.uniform(0.0, 0.05))
        else:  # aim at a write
            while not halves(path, pid):
                pass
            time.sleep(chance.uniform(0.0, 0.002))
        os.kill(pid, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), "the run ended by itself"
        killed, known = killed + 1, path.stat().st_ino
        in_write += bool(halves(path, pid))
        assert len(os.listdir(folder)) <= 4, "what earlier kills left half-written is still there"
        reached.append(iteration(path))
        assert not previous.exists() or iteration(previous) <= reached[-1]
    last = reached[-1] + 5
    again = run(path, last)
    path.unlink()
    whole = run(path, last)
    print(
        json.dumps(
            {"killed": killed, "in_write": in_write, "reached": reached, "same": bool((again.x == whole.x).all())}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
