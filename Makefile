# Everything installs into .venv; nothing but Python (>= 3.11), make and pip is needed.
PYTHON ?= python3
BIN := .venv/bin
OUT ?= demo

.PHONY: help demo test test-all test-kernels coverage mutation bench docs lint clean

help:
	@echo "make demo      the paper's comparison: figure, rows and report in $(OUT)/ (under two minutes)"
	@echo "make test      the test suite"
	@echo "make test-all  the test suite with every optional library (PyTorch, JAX, Dask, benchopt)"
	@echo "make coverage  the same, with the lines of src/hasd that no test runs (at most 5%; about half an hour)"
	@echo "make test-kernels  the tests of arithmetic tests under every BLAS kernel this CPU can run (about ten minutes)"
	@echo "make mutation  changes to geometry, estimate and search that no test notices (up to half an hour)"
	@echo "make bench     benchmarks against other solvers"
	@echo "make docs      the documentation, its examples executed, in docs/_build/html"
	@echo "make lint      ruff and mypy"
	@echo "make clean     remove .venv and what was made"

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/.with-%: .venv/bin/pip pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: .venv/.with-demo
	$(BIN)/hasd reproduce figure --out $(OUT)

test: .venv/.with-unit
	$(BIN)/python -m pytest -q -n auto --dist loadgroup

test-all: .venv/.with-test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -rs

test-kernels: .venv/.with-unit
	$(BIN)/python tests/kernels.py

coverage: .venv/.with-test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup --cov --cov-report=term

mutation: .venv/.with-mutation
	$(BIN)/mutmut run
	$(BIN)/mutmut results

bench: .venv/.with-bench
	$(BIN)/python -m benchmarks

docs: .venv/.with-test
	$(BIN)/python -m pytest -q --doctest-glob="*.md" -p no:cacheprovider README.md docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

lint: .venv/.with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv $(OUT) build dist docs/_build docs/gallery mutants .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
