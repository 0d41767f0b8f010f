"""One database, SQLite or PostgreSQL, and its units of work.

A unit of work is a function of a session. It is run whole, again when the database asks for it (deadlock,
serialization), and committed once. No network call and no slow decision is made inside one.
SQLite: WAL, every write begins with BEGIN IMMEDIATE, and writers of one process queue on a lock, since SQLite's own
waiting is polling and not fair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from sqlite3 import Connection as SqliteConnection
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlmodel import Session

from broker.failpoints import Trip, Work, never
from broker.store import integrity
from broker.wire.errors import Contention, NotReady
from market.errors import GputideError, OverBudget

T = TypeVar("T")
ATTEMPTS = 10
_RETRIED_SQLSTATES = frozenset({"40P01", "40001", "55P03"})
_PLACE_RULES = ("allocation_overlap", "allocation_no_overlap", "allocation_kind")


class OverlapRefused(GputideError):
    """The database refused an allocation: the place is promised to somebody else already, or cut otherwise now."""

    code = "overlap_refused"


class Duplicate(GputideError):
    """A row that must be unique is there already."""

    code = "duplicate"


class Database:
    """A database by URL (`sqlite:///path` or `postgresql+psycopg://...`). Threads may share it."""

    def __init__(self, url: str, trip: Trip = never) -> None:
        self.engine = _engine(url)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._trip = trip
        self._writers = threading.Lock()

    @contextmanager
    def read(self) -> Generator[Session]:
        """A session that only reads, one state of the database however many its queries (on SQLite as it comes).

        Closing it rolls back, and what was loaded stays readable.
        """
        with Session(self.engine, expire_on_commit=False) as session:
            if not self.is_sqlite:
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session

    def read_value(self, query: Callable[[Session], T]) -> T:
        """The answer of one query."""
        with self.read() as session:
            return query(session)

    def write(self, unit: Callable[[Session], T], work: Work | None = None) -> T:
        """Runs a unit of work and commits it.

        Raises what the unit raises (nothing is changed then), `OverlapRefused`, `OverBudget` or `Duplicate` when the
        database refuses a row, and `Contention` when it was too busy for `ATTEMPTS` tries.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(unit, work)
            except DBAPIError as error:
                if not _is_transient(error):
                    raise _as_refusal(error) from error
        raise Contention

    def assert_ready(self) -> None:
        """`NotReady` when a rule of integrity is missing: a broker must not sell on such a database."""
        with self.engine.connect() as connection:
            absent = integrity.missing(connection)
        if absent:
            raise NotReady(f"the database lacks {', '.join(sorted(absent))}; run: gputide-broker migrate")

    def assert_answers(self) -> None:
        """`NotReady` when the database cannot be read."""
        try:
            self.read_value(lambda session: session.connection().execute(text("SELECT number FROM price_book LIMIT 1")))
        except SQLAlchemyError:
            raise NotReady("the database does not answer") from None

    def close(self) -> None:
        self.engine.dispose()

    def _attempt(self, unit: Callable[[Session], T], work: Work | None) -> T:
        with self._exclusive(), Session(self.engine, expire_on_commit=False) as session:
            if self.is_sqlite:
                session.connection(execution_options={"gputide_immediate": True})
            result = unit(session)
            session.flush()
            if work:
                self._trip(work.before_commit)
            session.commit()
        if work:
            self._trip(work.after_commit)
        return result

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        if not self.is_sqlite:
            yield
            return
        with self._writers:
            yield


def _engine(url: str) -> Engine:
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_size=20, max_overflow=30, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": 30}, pool_size=20, max_overflow=30)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: SqliteConnection, _record: Any) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("gputide_immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _is_transient(error: DBAPIError) -> bool:
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state in _RETRIED_SQLSTATES or "database is locked" in str(error.orig)


def _as_refusal(error: DBAPIError) -> Exception:
    """The refusal that a violated rule stands for; anything else stays what it is: a fault of ours."""
    text = str(error.orig)
    if any(rule in text for rule in _PLACE_RULES):
        return OverlapRefused()
    if "account_balance" in text:
        return OverBudget()
    state: str | None = getattr(error.orig, "sqlstate", None)
    taken = state == "23505" or any(rule in text for rule in ("UNIQUE constraint", "price_book_append_only"))
    if isinstance(error, IntegrityError) and taken:
        return Duplicate("this is there already")
    return error
