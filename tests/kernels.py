"""Runs the tests marked `numerical` under every kernel that the BLAS of NumPy and SciPy has and this CPU can run.

    python tests/kernels.py [what pytest is to be told besides]

OpenBLAS chooses its kernel by the CPU, or by OPENBLAS_CORETYPE, and NumPy's own loops by NPY_DISABLE_CPU_FEATURES.
Every choice rounds differently: what holds under all of them does not ask for one machine's last bits.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
FILES = {
    "equivalence": "lockstep",
    "faults": "convexity extremes far_away noise nonfinite rounding_reported wrong_gradient",
    "theory": "area_convexity cg distance growth lp_hessian main_bound nemirovskii newton noisy norms "
    "optimised_form progress recurrence rivals sharpened strong_convexity subspace table "
    "without_convexity",
    "unit": "balance certificates chebyshev check_loss compare doubt dual estimate geometry layout linf losses lp_fit "
    "minimize multinomial objectives own_losses pairs search separable shaped_norms small_differences theory "
    "tolerances transport",
}
NUMERICAL = tuple(f"{folder}/test_{name}" for folder, names in FILES.items() for name in names.split())
"""How the paths of the tests begin that depend on arithmetic: they are marked `numerical`."""
KERNELS = {"SkylakeX": "none", "Haswell": "AVX512|X86_V4", "Sandybridge": ".", "Nehalem": ".", "Prescott": "."}
"""BLAS kernels, from AVX-512 down to SSE3, and the pattern of the CPU's features that NumPy's loops then do without."""
PYTEST = ("-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup", "-m", "numerical and not slow")
"""Those that take long are left to ``make test``: under four kernels the others take ten minutes on two processors."""
PROBE = """
import json
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
for kind in (float, np.float32):
    M = np.random.default_rng(0).standard_normal((300, 300)).astype(kind)
    M @ M, M @ M[0], M.T @ M[0], M[0] @ M[1], np.linalg.svd(M), scipy.linalg.qr(M), scipy.linalg.solve(M, M[0])
blas = {library["architecture"] for library in threadpool_info() if library["internal_api"] == "openblas"}
features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
print(json.dumps([" and ".join(sorted(blas)), features]))
"""
"""Products and factors large enough for every kind of kernel; a CPU without its instructions ends the process."""


def probe(environment):
    """The kernel that BLAS takes in this environment, and what NumPy's loops use; None where the CPU cannot run it."""
    both = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", PROBE], env=both, capture_output=True, text=True)
    if done.returncode == 1:  # an exception, which says nothing of the CPU
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout) if done.returncode == 0 else None


def choices():
    """This machine's own kernel and the others, each with the environment that chooses it; what is left out is said."""
    own, features = probe({})
    found = {own: {}}
    for name, without in KERNELS.items():
        disabled = " ".join(feature for feature in features if re.search(without, feature))
        environment = {"OPENBLAS_CORETYPE": name, "NPY_DISABLE_CPU_FEATURES": disabled}
        answer = probe(environment)
        if answer is None:
            print(f"kernel {name}: left out, this CPU cannot run it")
        elif answer[0] not in found:
            found[answer[0]] = environment
        elif answer[0] != name:
            print(f"kernel {name}: left out, BLAS has none of that name and takes {answer[0] or 'its own'}")
    return found


def main(arguments):
    """Run the tests under one kernel after another; 1 where any of them failed."""
    files = [str(path) for beginning in NUMERICAL for path in sorted(TESTS.glob(f"{beginning}*.py"))]
    command, failed = [sys.executable, *PYTEST, *files, *arguments], []
    for name, environment in choices().items():
        print(f"kernel {name or 'not known'}:", *(f"{key}={value!r}" for key, value in environment.items()), flush=True)
        if subprocess.run(command, env={**os.environ, **environment}).returncode != 0:
            failed.append(name)
    print(f"failed under {', '.join(failed)}" if failed else "passed under every kernel")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
