"""Queries for idempotency keys: the answer to a key is written in the same transaction as its effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete
from sqlmodel import Session, col

from broker.store.tables import IdempotencyRow
from broker.wire.errors import IdempotencyConflict

KEPT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Ticket:
    """One keyed request: whose it is, its key, and the fingerprint of what it asks."""

    person_id: str
    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer that a key was given."""

    status: int
    body: dict[str, Any]


def find(session: Session, ticket: Ticket, now: datetime) -> Stored | None:
    """The stored answer of this key, `IdempotencyConflict` if the key was used for another request."""
    row = session.get(IdempotencyRow, (ticket.person_id, ticket.key))
    if row is None or row.at + KEPT <= now:
        return None
    if row.fingerprint != ticket.fingerprint:
        raise IdempotencyConflict
    return Stored(row.status, row.body)


def keep(session: Session, ticket: Ticket, stored: Stored, now: datetime) -> None:
    """Stores an answer (`Duplicate` from the database when the same key was answered in the meantime)."""
    expired = delete(IdempotencyRow).where(
        col(IdempotencyRow.person_id) == ticket.person_id,
        col(IdempotencyRow.key) == ticket.key,
        col(IdempotencyRow.at) <= now - KEPT,
    )
    session.connection().execute(expired)
    session.add(
        IdempotencyRow(
            person_id=ticket.person_id,
            key=ticket.key,
            fingerprint=ticket.fingerprint,
            status=stored.status,
            body=stored.body,
            at=now,
        )
    )
    session.flush()


def forget_old(session: Session, now: datetime) -> None:
    """Drops answers past their seven days."""
    session.connection().execute(delete(IdempotencyRow).where(col(IdempotencyRow.at) <= now - KEPT))
