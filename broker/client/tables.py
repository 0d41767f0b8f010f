"""Columns and labelled facts as plain lines of text, without a library that is slow to load."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

Fact = tuple[str, str]
"""A label and what it says."""


def table_lines(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    *,
    spare: Sequence[int] = (),
    width: int | None = None,
) -> list[str]:
    """A header line and a line a row, two spaces between columns; the columns in `right` are flush right.

    Where that is wider than `width`, columns of `spare` are left out, the first ones first, and a last line says so.
    """
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    shown, left_out = list(range(len(headers))), list[int]()
    for place in spare:
        if width is None or sum(widths[each] for each in shown) + 2 * (len(shown) - 1) <= width:
            break
        shown.remove(place)
        left_out.append(place)

    def line(cells: Sequence[str]) -> str:
        padded = [cells[at].rjust(widths[at]) if at in right else cells[at].ljust(widths[at]) for at in shown]
        return "  ".join(padded).rstrip()

    said = f"Left out for want of room: {', '.join(headers[place] for place in sorted(left_out))}"
    return [line(headers), *map(line, rows), *([said] if left_out else [])]


def fact_lines(facts: Sequence[Fact], width: int) -> list[str]:
    """A line a fact, labels flush left; what does not fit in `width` goes on under its own start."""
    indent = max((len(label) for label, _ in facts), default=0) + 2
    lines: list[str] = []
    for label, text in facts:
        wrapped = textwrap.wrap(text, max(20, width - indent), break_on_hyphens=False) or [""]
        lines.append(f"{label:<{indent}}{wrapped[0]}".rstrip())
        lines += [" " * indent + more for more in wrapped[1:]]
    return lines
