# `make test` is all that a fresh machine needs: Python 3.11 or later with venv, and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: test check format bench clean

test: check
	$(BIN)/python -m pytest

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_import_hygiene.py

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/ready
	$(BIN)/python -m tests.bench book

clean:
	rm -rf $(VENV)

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"  # the first pip that installs dependency groups
	$(BIN)/python -m pip install --quiet --editable ".[broker]" --group dev
	touch $@
