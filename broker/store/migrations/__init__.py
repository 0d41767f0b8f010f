"""Alembic migrations for both databases, run from code: `upgrade` brings any database to the newest schema."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from broker.store.database import Database
from broker.wire.errors import NotReady


def upgrade(database: Database) -> None:
    """Migrates to the newest schema and makes every rule of integrity anew, in one transaction."""
    with database.engine.connect() as connection, connection.begin():
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def assert_current(database: Database) -> None:
    """`NotReady` when the schema is not the newest: a broker never migrates behind its operator's back."""
    with database.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    wanted = ScriptDirectory.from_config(_config()).get_current_head()
    if found != wanted:
        raise NotReady(f"the database schema is {found or 'empty'}, {wanted} is needed; run: gputide-broker migrate")
    database.assert_ready()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
