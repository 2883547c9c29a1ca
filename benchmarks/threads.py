"""The number of BLAS threads, which must be set before NumPy is imported: this module imports nothing that does."""

import argparse
import os

NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def fix_threads() -> None:
    """Take the number from ``--threads`` of the command line, 1 where it is not given."""
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--threads", type=int, default=1)
    os.environ.update(dict.fromkeys(NAMES, str(first.parse_known_args()[0].threads)))
