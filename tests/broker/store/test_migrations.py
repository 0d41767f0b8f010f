"""Migrations: the schema that they make is the one that the tables say, and making it twice is harmless."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, Inspector, inspect, text

from broker.store import integrity, migrations
from broker.store.database import Database
from broker.store.tables import TABLES
from broker.wire.errors import NotReady
from tests.support import audit
from tests.support.brokers import Shop


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    yield made
    made.close()


def test_a_broker_does_not_start_on_an_empty_database(database: Database) -> None:
    with pytest.raises(NotReady, match="migrate"):
        migrations.assert_current(database)


def test_migrating_twice_is_harmless(database: Database) -> None:
    migrations.upgrade(database)
    with database.engine.connect() as connection:
        first = _schema(database), integrity.missing(connection)
    migrations.upgrade(database)
    migrations.assert_current(database)
    with database.engine.connect() as connection:
        assert (_schema(database), integrity.missing(connection)) == first
    assert first[1] == set()


def test_migrating_again_keeps_every_row(shop: Shop) -> None:
    shop.buy()
    database = shop.context.database
    before = audit.contents(database.engine)
    migrations.upgrade(database)
    assert audit.contents(database.engine) == before
    assert shop.buy().status == 201


def test_the_migrated_schema_is_that_of_the_tables(database: Database) -> None:
    migrations.upgrade(database)
    with database.engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, TABLES) == []


def test_every_check_of_the_tables_is_in_the_migrated_schema(database: Database) -> None:
    """Autogenerate compares no CHECK, so their names are compared here, and on SQLite their words."""
    migrations.upgrade(database)
    found = inspect(database.engine)
    for table in TABLES.tables.values():
        wanted = {(each.name, str(each.sqltext)) for each in table.constraints if isinstance(each, CheckConstraint)}
        there = {(each["name"], each["sqltext"]) for each in found.get_check_constraints(table.name)}
        if not database.is_sqlite:
            wanted, there = {name for name, _ in wanted}, {name for name, _ in there}
        assert there == wanted


def test_a_schema_of_another_revision_is_refused(database: Database) -> None:
    migrations.upgrade(database)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    with pytest.raises(NotReady, match="0000"):
        migrations.assert_current(database)


def _schema(database: Database) -> dict[str, str]:
    found = inspect(database.engine)
    return {
        table: repr((found.get_columns(table), _indexes(found, table), found.get_foreign_keys(table)))
        for table in found.get_table_names()
    }


def _indexes(found: Inspector, table: str) -> list[tuple[object, object, dict[str, str]]]:
    return [
        (
            each["name"],
            each["column_names"],
            {key: str(value) for key, value in each.get("dialect_options", {}).items()},
        )
        for each in found.get_indexes(table)
    ]
