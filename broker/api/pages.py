"""Pages: every list is cut, and its cursor says how to go on."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import Path, Query

from market.errors import InvalidInstant, InvalidRequest, NaiveInstant
from market.instants import require_utc

T = TypeVar("T")

Cursor = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]
ROW_ID = r"^[a-z0-9_]+$"
Limit = Annotated[int, Query(ge=1, le=200)]
Number = Annotated[int, Path(ge=1, le=2**62)]


class InvalidCursor(InvalidRequest):
    """This is no cursor that the broker gave."""

    code = "invalid_cursor"


def page(items: Sequence[T], limit: int, cursor: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Cuts a list that was read one longer than its limit, and names where to go on."""
    shown = list(items[:limit])
    return shown, cursor(shown[-1]) if len(items) > limit else None


def number_of(cursor: str | None) -> int | None:
    """The number that a cursor stands for."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidCursor
    return int(cursor)


def pack(at: datetime, row_id: str) -> str:
    """The cursor of a list in order of time and id."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {row_id}".encode()).decode()


def unpack(cursor: str | None) -> tuple[datetime, str] | None:
    """The time and id that a cursor stands for."""
    if cursor is None:
        return None
    try:
        at, row_id = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii").split(" ")
        instant = require_utc(datetime.fromisoformat(at))
    except (ValueError, binascii.Error, UnicodeError, NaiveInstant, InvalidInstant):
        raise InvalidCursor from None
    if re.fullmatch(ROW_ID, row_id) is None:
        raise InvalidCursor
    return instant, row_id
