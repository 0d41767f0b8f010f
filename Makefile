PYTHON ?= python3
VENV ?= .venv

.PHONY: test
test: $(VENV)/ready
	$(VENV)/bin/python -m pytest -q

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q -e . "pytest>=8" "hypothesis>=6"
	touch $@
