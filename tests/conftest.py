"""Fixtures that all tests share: a database of each kind, and a small broker on it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import postgres
from tests.support.brokers import Shop, open_shop
from tests.support.postgres import PostgresServer

# A deadline would be a timed assertion; what a test takes on a shared machine says nothing.
settings.register_profile("gputide", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gputide")


# A shell's background job ignores SIGINT, and so does all that it starts: ctrl-C could not be tested from there.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One PostgreSQL for the run. It must be there: a missing one fails, with the remedy in pip's own words."""
    server = postgres.start(tmp_path_factory.mktemp("postgres"))
    yield server
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gputide.db'}"
    return postgres.fresh_database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'gputide.db'}"


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    """A small broker on each database."""
    opened = open_shop(database_url)
    yield opened
    opened.context.database.close()
