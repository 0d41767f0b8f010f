"""Columns and labelled facts as plain lines of text, without a library that is slow to load."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

Fact = tuple[str, str]
"""A label and what it says."""


def table_lines(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """A header line and a line a row, two spaces between columns; the columns in `right` are flush right."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(headers), *map(line, rows)]


def fact_lines(facts: Sequence[Fact], width: int) -> list[str]:
    """A line a fact, labels flush left; what does not fit in `width` goes on under its own start."""
    indent = max((len(label) for label, _ in facts), default=0) + 2
    lines: list[str] = []
    for label, text in facts:
        wrapped = textwrap.wrap(text, max(20, width - indent), break_on_hyphens=False) or [""]
        lines.append(f"{label:<{indent}}{wrapped[0]}".rstrip())
        lines += [" " * indent + more for more in wrapped[1:]]
    return lines
