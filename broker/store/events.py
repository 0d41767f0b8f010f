"""Queries for events: written with what they tell of, numbered after commit, read by number."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, or_, select

from broker.store.tables import EventRow


def tell(session: Session, kind: str, *, subject: str, at: datetime, person_id: str | None = None, **data: Any) -> None:
    """Records that something happened; to one person, or to all when none is named."""
    session.add(EventRow(kind=kind, subject=subject, person_id=person_id, data=data, at=at))


def number_new(session: Session) -> int:
    """Numbers what was committed since the last call, in order of ids; returns how many. One dispatcher calls it."""
    waiting = list(session.exec(select(EventRow).where(col(EventRow.seq).is_(None)).order_by(col(EventRow.id))))
    if waiting:
        last = last_number(session)
        for place, row in enumerate(waiting, start=1):
            row.seq = last + place
            session.add(row)
    return len(waiting)


def has_new(session: Session) -> bool:
    return session.exec(select(EventRow.id).where(col(EventRow.seq).is_(None)).limit(1)).first() is not None


def last_number(session: Session) -> int:
    return session.exec(select(func.max(EventRow.seq))).one() or 0


def after(session: Session, seq: int, *, person_id: str | None, limit: int = 200) -> list[EventRow]:
    """Numbered events after a number: those for all and for one person, or every one when no person is named."""
    query = select(EventRow).where(col(EventRow.seq) > seq).order_by(col(EventRow.seq)).limit(limit)
    if person_id is not None:
        query = query.where(or_(col(EventRow.person_id).is_(None), col(EventRow.person_id) == person_id))
    return list(session.exec(query))
