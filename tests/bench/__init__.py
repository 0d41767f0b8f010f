"""Figures: `python -m tests.bench NAME [--quick] [--json] [--check]`; each docstring keeps what was learnt."""
