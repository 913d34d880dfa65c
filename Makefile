# etgraph: `make demo` shows the main job, `make test` runs the tests; both set up what they need in .venv.

PYTHON ?= python3
VENV ?= .venv
# Asked for before executorch, which does not depend on it. A CPU build is enough.
TORCH ?= torch==2.13.0
# Tests spread over the cores; torch keeps to one thread in each process.
PYTEST_ARGS ?= -n auto

BIN := $(VENV)/bin
RUN := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: demo test test-all check bench bench-quick clean

demo: $(VENV)/.demo
	$(BIN)/etgraph demo

test: $(VENV)/.test
	$(RUN) $(PYTEST_ARGS) -m "not slow"

test-all: $(VENV)/.test
	$(RUN) $(PYTEST_ARGS)

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Wants a quiet machine for half an hour or more; JSON and plots go to benchmarks/results.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# On small networks, each way once: to see that all of it works.
bench-quick: $(VENV)/.bench
	$(BIN)/python -m benchmarks --quick

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install -qq --editable .
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/python -m pip install -qq --editable ".[test]"
	touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(BIN)/python -m pip install -qq --editable ".[bench]"
	touch $@
