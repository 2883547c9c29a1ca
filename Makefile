# Everything installs into .venv; nothing but Python (>= 3.11), make and pip is needed.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
SCRIPTS := Scripts
else
PYTHON ?= python3
SCRIPTS := bin
endif
BIN := .venv/$(SCRIPTS)
OLDEST := .venv-oldest/$(SCRIPTS)
OUT ?= demo
MINUTES ?= 30

.PHONY: help demo test test-all test-kernels test-oldest coverage mutation bench soak docs lint dist test-dist clean

help:
	@echo "make demo      evaluations against the dimension, and the paper's figure, in $(OUT)/ (some minutes)"
	@echo "make test      the test suite"
	@echo "make test-oldest  the same, with the oldest versions that pyproject.toml declares, on Python 3.11 where it is there"
	@echo "make test-all  the test suite with every optional library (PyTorch, JAX, Dask, benchopt)"
	@echo "make coverage  the same, with the lines of src/hasd that no test runs (at most 5%; about half an hour)"
	@echo "make test-kernels  the tests of arithmetic under every BLAS kernel this CPU can run (about ten minutes)"
	@echo "make mutation  changes to geometry, estimate and search that no test notices (up to half an hour)"
	@echo "make bench     benchmarks against other solvers"
	@echo "make soak      random problems against exact references for MINUTES=30; what it finds becomes files in soak/"
	@echo "make docs      the documentation, its examples executed, in docs/_build/html"
	@echo "make lint      ruff and mypy"
	@echo "make dist      the sdist and the wheel of a release in dist/, checked (RELEASING.md says when)"
	@echo "make test-dist  what make dist leaves, installed and tried outside the repository"
	@echo "make clean     remove .venv, .venv-oldest and what was made"

# Test processes run side by side: with a thread of BLAS for every core each, they would wait for one another.
test test-all test-oldest test-kernels coverage soak: export OMP_NUM_THREADS := 1
test test-all test-oldest test-kernels coverage soak: export OPENBLAS_NUM_THREADS := 1
test test-all test-oldest test-kernels coverage soak: export MKL_NUM_THREADS := 1

.venv/pyvenv.cfg:
	$(PYTHON) -m venv .venv

.venv/.with-%: .venv/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: .venv/.with-demo
	$(BIN)/hasd reproduce dimension --p inf --d 10000 --n 10000 --out $(OUT)
	$(BIN)/hasd reproduce figure --out $(OUT)

test: .venv/.with-unit
	$(BIN)/python -m pytest -q -n auto --dist loadgroup

test-all: .venv/.with-test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -rs

# The oldest versions are installed from wheels, and those are there for the oldest Python.
.venv-oldest/.ready: pyproject.toml .ci/oldest.py
	rm -rf .venv-oldest
	$(or $(shell command -v python3.11),$(PYTHON)) -m venv .venv-oldest
	$(OLDEST)/python .ci/oldest.py > .venv-oldest/pins.txt
	$(OLDEST)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		--requirement .venv-oldest/pins.txt --editable ".[oldest]"
	@touch $@

test-oldest: .venv-oldest/.ready
	$(OLDEST)/python -m pytest -q -n auto --dist loadgroup

test-kernels: .venv/.with-unit
	$(BIN)/python tests/kernels.py

coverage: .venv/.with-test
	$(BIN)/python -m pytest -q -n auto --dist loadgroup --cov --cov-report=term

mutation: .venv/.with-mutation
	$(BIN)/mutmut run
	$(BIN)/mutmut results

bench: .venv/.with-bench
	$(BIN)/python -m benchmarks

soak: .venv/.with-unit
	$(BIN)/python -m benchmarks.rounding --minutes $(MINUTES)

docs: .venv/.with-test
	$(BIN)/python -m pytest -q --doctest-glob="*.md" -p no:cacheprovider README.md docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

lint: .venv/.with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What lies in dist/ is what will be published, so it is emptied first; TAG=v1.2.3 asserts that this is the version and
# that the changelog has its date.
dist: .venv/.with-release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	@test -z "$(TAG)" || test -f dist/hasd-$(TAG:v%=%).tar.gz || \
		{ echo "the tag $(TAG) is not the version in src/hasd/_version.py"; exit 1; }
	@test -z "$(TAG)" || grep -q '^## \[$(TAG:v%=%)\] - ' CHANGELOG.md || \
		{ echo "CHANGELOG.md has no dated entry for $(TAG)"; exit 1; }

test-dist: dist
	$(BIN)/python .ci/try_dist.py

clean:
	rm -rf .venv .venv-oldest $(OUT) soak build dist docs/_build docs/gallery mutants .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
