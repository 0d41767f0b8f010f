"""Column types that keep what databases lose: UTC instants as integers, JSON as text.

`DateTime(timezone=True)` drops the offset on SQLite, so an instant is stored as microseconds since the epoch.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, LargeBinary, Text
from sqlalchemy.types import TypeDecorator

from market.instants import require_utc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UtcInstant(TypeDecorator[datetime]):
    """An aware instant; a naive one is refused (`NaiveInstant`)."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else (require_utc(value) - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class JsonText(TypeDecorator[Any]):
    """A JSON value as text, keys sorted: the same on both databases, and never turned into floats by a driver."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


class PackedJson(TypeDecorator[Any]):
    """A large JSON value, deflated: a load snapshot of a fortnight is mostly repetition."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        return None if value is None else zlib.compress(json.dumps(value, sort_keys=True).encode())

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(zlib.decompress(value))
