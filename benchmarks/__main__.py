"""Fix the threads of BLAS, which must be done before NumPy is imported, then hand over to `cli`."""

import argparse
import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

if __name__ == "__main__":
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--threads", type=int, default=1)
    os.environ.update(dict.fromkeys(THREADS, str(first.parse_known_args()[0].threads)))

    from benchmarks.cli import main

    raise SystemExit(main())
