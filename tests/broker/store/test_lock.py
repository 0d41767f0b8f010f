"""One broker per database: the second is refused, whoever holds it, and the lock dies with its holder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from broker.store import lock
from broker.store.database import Database
from broker.store.lock import DatabaseInUse
from tests.support import postgres
from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[3]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    yield made
    made.close()


def test_a_second_broker_is_refused_until_the_first_gives_the_lock_back(database: Database, database_url: str) -> None:
    second = Database(database_url)
    held = lock.take(database)
    assert held.is_held()
    for other in (second, database):
        with pytest.raises(DatabaseInUse):
            lock.take(other)
    held.give_back()
    held = lock.take(second)
    with pytest.raises(DatabaseInUse):
        lock.take(database)
    held.give_back()
    second.close()


def test_a_broker_that_is_killed_holds_its_lock_no_longer(database: Database, database_url: str) -> None:
    with holder(database_url) as process:
        with pytest.raises(DatabaseInUse):
            lock.take(database)
        process.kill()
        process.wait(60)
        until_the_server_has_noticed(database)
        lock.take(database).give_back()


def test_a_lock_goes_with_its_connection_and_that_is_seen(postgres_server: PostgresServer) -> None:
    database = Database(postgres.fresh_database(postgres_server))
    held = lock.take(database)
    postgres.end_lock_holders(database.engine)
    assert not held.is_held()
    held.give_back()
    lock.take(database).give_back()
    database.close()


def test_brokers_of_two_databases_do_not_see_each_other(tmp_path: Path, postgres_server: PostgresServer) -> None:
    sqlite = [Database(f"sqlite:///{tmp_path / name}") for name in ("one.db", "two.db")]
    server = [Database(postgres.fresh_database(postgres_server)) for _ in range(2)]
    for held in [lock.take(each) for each in (*sqlite, *server)]:
        held.give_back()
    for each in (*sqlite, *server):
        each.close()


@contextmanager
def holder(url: str) -> Generator[subprocess.Popen[str]]:
    """A process that holds the lock by now."""
    command = [sys.executable, "-m", "tests.support.lock_holder", url]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process
    finally:
        process.kill()
        process.wait(60)


def until_the_server_has_noticed(database: Database) -> None:
    """PostgreSQL frees the lock of a dead client when it reads from its socket; wait there, by asking for the lock."""
    if database.is_sqlite:
        return
    with database.engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '60s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock._ADVISORY_KEY})
