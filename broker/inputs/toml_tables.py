"""Reads TOML strictly: every key is known, every value of its type and in its range, every fault says where it stands.

A fault is an `InvalidPool` that begins with the path and the table, counted from 1 as a person does, and the key, as
in "campus.toml: nodes[2].devices[1].model: no model 'a100'; did you mean a100-40g?".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from market.errors import InvalidPool

MAX_COUNT = 100_000
_MAX_TEXT = 200


def read_toml(path: Path) -> TomlTable:
    """The root table of a file (`InvalidPool` for one that cannot be read or is not TOML in UTF-8)."""
    try:
        return TomlTable(str(path), "", tomllib.loads(path.read_bytes().decode("utf-8")))
    except OSError as fault:
        raise InvalidPool(f"{path} cannot be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError as fault:
        raise InvalidPool(f"{path} is not UTF-8: {fault.reason} at byte {fault.start}") from fault
    except (ValueError, RecursionError) as fault:
        raise InvalidPool(f"{path} is not TOML: {fault}") from fault


def nearest(word: str, valid: Iterable[str]) -> str:
    """A hint at the valid word that is meant, or at all of them."""
    words = sorted(valid)
    close = get_close_matches(word.lower(), words, n=1)
    return f"did you mean {close[0]}?" if close else f"use one of {', '.join(words)}"


def repeated(values: Iterable[str]) -> str | None:
    """The first value that was there before."""
    seen: set[str] = set()
    return next((value for value in values if value in seen or seen.add(value)), None)


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One table of a file; a reader without a default requires its key. Every fault is `InvalidPool`."""

    path: str
    name: str
    values: dict[str, object]

    def fault(self, key: str, words: str) -> InvalidPool:
        return InvalidPool(f"{self.path}: {self._place(key)}: {words}")

    def only(self, *keys: str) -> None:
        """Refuses a key that is not listed: an option that is accepted and ignored is a trap."""
        for key in self.values:
            if key not in keys:
                raise self.fault(key, f"unknown key; {nearest(key, keys)}")

    def text(self, key: str, default: str | None = None) -> str:
        """A line of text, not empty."""
        value = self._value(key, default)
        if not isinstance(value, str) or not value.strip() or len(value) > _MAX_TEXT or not value.isprintable():
            raise self.fault(key, f"must be a text of 1 to {_MAX_TEXT} printable characters")
        return value

    def identifier(self, key: str, pattern: str, example: str) -> str:
        """A text that matches the whole of a pattern."""
        value = self.text(key)
        if re.fullmatch(pattern, value) is None:
            raise self.fault(key, f"{value!r} is no name that can be typed; write one such as {example}")
        return value

    def word(self, key: str, valid: Iterable[str], default: str | None = None) -> str:
        """One of the valid words."""
        value, words = self.text(key, default), tuple(valid)
        if value not in words:
            raise self.fault(key, f"{value!r} is unknown; {nearest(value, words)}")
        return value

    def count(self, key: str, most: int = MAX_COUNT) -> int:
        """A whole number from 1."""
        value = self._value(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise self.fault(key, f"must be a whole number from 1 to {most}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.fault(key, "must be true or false")
        return value

    def texts(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        """Texts without a repetition, and at least one unless there is a default."""
        values = self._list(key, default)
        line = [TomlTable(self.path, self.name, {key: value}).text(key) for value in values]
        if not line and default is None:
            raise self.fault(key, "must list at least one")
        if (twice := repeated(line)) is not None:
            raise self.fault(key, f"{twice!r} is listed twice")
        return tuple(line)

    def labels(self, key: str) -> dict[str, str]:
        """A table of texts, by default empty."""
        values = self._value(key, {})
        if not isinstance(values, dict):
            raise self.fault(key, 'must be a table such as { rack = "b2" }')
        table = TomlTable(self.path, self._place(key), cast(dict[str, object], values))
        return {name: table.text(name) for name in table.values}

    def tables(self, key: str, default: list[object] | None = None) -> list[TomlTable]:
        """The tables of an array, `[[key]]`, and at least one unless there is a default."""
        values = self._list(key, default)
        if not values and default is None:
            raise self.fault(key, f"must have at least one [[{key}]]")
        return [self._table(f"{key}[{place}]", value) for place, value in enumerate(values, start=1)]

    def _table(self, key: str, value: object) -> TomlTable:
        if not isinstance(value, dict):
            raise self.fault(key, "must be a table")
        return TomlTable(self.path, self._place(key), cast(dict[str, object], value))

    def _list(self, key: str, default: object) -> list[object]:
        value = self._value(key, default)
        if not isinstance(value, list):
            raise self.fault(key, "must be a list in [ ]")
        return cast(list[object], value)

    def _value(self, key: str, default: object = None) -> object:
        value = self.values.get(key, default)
        if value is None:
            raise self.fault(key, "is missing")
        return value

    def _place(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key
