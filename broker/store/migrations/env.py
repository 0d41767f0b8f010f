"""Alembic's entry: runs on the connection that `upgrade` opened, then makes triggers and exclusion constraints."""

from __future__ import annotations

from alembic import context

from broker.store import integrity
from broker.store.tables import TABLES

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=TABLES, render_as_batch=connection.dialect.name == "sqlite")
with context.begin_transaction():
    context.run_migrations()
    integrity.ensure(connection)
