"""One broker per database: a file lock beside an SQLite file, an advisory lock on PostgreSQL. Held until closed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from broker.store.database import Database
from market.errors import GputideError

_ADVISORY_KEY = 0x6770_7574  # "gput"


class DatabaseInUse(GputideError):
    """Another broker serves this database; stop it first."""

    code = "database_in_use"


def take(database: Database) -> Callable[[], None]:
    """Takes the lock and returns the function that gives it back (`DatabaseInUse`)."""
    return _take_file(database) if database.is_sqlite else _take_advisory(database)


def _take_file(database: Database) -> Callable[[], None]:
    name = database.engine.url.database
    if not name or name == ":memory:":
        return lambda: None
    descriptor = os.open(Path(f"{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise DatabaseInUse from None
    return lambda: os.close(descriptor)


def _take_advisory(database: Database) -> Callable[[], None]:
    connection = database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY_KEY}).scalar():
        connection.close()
        raise DatabaseInUse

    def give_back() -> None:
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_KEY})
        connection.close()

    return give_back
