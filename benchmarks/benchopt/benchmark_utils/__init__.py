"""What objective, datasets and solvers of this benchmark share; benchopt makes it importable under this name."""
