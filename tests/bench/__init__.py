"""Figures: `python -m tests.bench NAME [--quick] [--json] [--check]`. What was learnt stands in each bench's docstring."""
