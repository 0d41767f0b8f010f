"""One broker per database: a file lock beside an SQLite file, an advisory lock on PostgreSQL. Held until closed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from broker.store.database import Database
from market.errors import GputideError

_ADVISORY_KEY = 0x6770_7574  # "gput"


class DatabaseInUse(GputideError):
    """Another broker serves this database; stop it first."""

    code = "database_in_use"


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that was taken. `is_held` asks the database, since PostgreSQL gives it up with the connection."""

    is_held: Callable[[], bool]
    give_back: Callable[[], None]


def take(database: Database) -> Held:
    """Takes the lock (`DatabaseInUse`)."""
    return _take_file(database) if database.is_sqlite else _take_advisory(database)


def _take_file(database: Database) -> Held:
    name = database.engine.url.database
    if not name or name == ":memory:":
        return Held(lambda: True, lambda: None)
    descriptor = os.open(Path(f"{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise DatabaseInUse from None
    return Held(lambda: True, lambda: os.close(descriptor))


def _take_advisory(database: Database) -> Held:
    connection = database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY_KEY}).scalar():
        connection.close()
        raise DatabaseInUse

    def is_held() -> bool:
        try:
            return connection.execute(text("SELECT 1")).scalar() == 1
        except SQLAlchemyError:
            return False

    def give_back() -> None:
        with suppress(SQLAlchemyError):  # it went with the connection
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_KEY})
        connection.close()

    return Held(is_held, give_back)
