"""Fix the threads of BLAS, which must be done before NumPy is imported, then hand over to `cli`."""

from benchmarks.threads import fix_threads

if __name__ == "__main__":
    fix_threads()

    from benchmarks.cli import main

    raise SystemExit(main())
