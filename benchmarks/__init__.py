"""hasd against its peers, side by side in one run: ``python -m benchmarks`` from the root of the repository."""
