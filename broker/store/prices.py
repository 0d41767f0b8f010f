"""Queries for tariffs and price books."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func
from sqlmodel import Session, col, select

from broker.store.tables import PriceBookRow, TariffRow
from broker.wire.errors import NotFound


def tariff(session: Session, tariff_id: int) -> TariffRow:
    found = session.get(TariffRow, tariff_id)
    if found is None:
        raise NotFound(f"there is no tariff {tariff_id}")
    return found


def tariff_in_force(session: Session, now: datetime) -> TariffRow | None:
    """The approved tariff whose day has come last."""
    query = select(TariffRow).where(col(TariffRow.in_force_from) <= now)
    return session.exec(query.order_by(col(TariffRow.in_force_from).desc(), col(TariffRow.id).desc())).first()


def first_approved(session: Session) -> TariffRow | None:
    query = select(TariffRow).where(col(TariffRow.approved_by).is_not(None))
    return session.exec(query.order_by(col(TariffRow.id))).first()


def tariffs(session: Session, *, before: int | None, limit: int) -> list[TariffRow]:
    """Tariffs, newest first, older than an id."""
    query = select(TariffRow).order_by(col(TariffRow.id).desc()).limit(limit)
    return list(session.exec(query.where(col(TariffRow.id) < before) if before else query))


def latest_book_number(session: Session) -> int:
    """The number of the latest price book, 0 when there is none."""
    return session.exec(select(func.max(PriceBookRow.number))).one() or 0


def book(session: Session, number: int) -> PriceBookRow:
    return session.get_one(PriceBookRow, number)


def latest_basis(session: Session) -> tuple[int, int] | None:
    """(tariff id, pool revision) of the latest price book, without its loads: a large book takes a while to unpack."""
    query = select(PriceBookRow.tariff_id, PriceBookRow.pool_revision).order_by(col(PriceBookRow.number).desc())
    return session.exec(query.limit(1)).first()


def books(session: Session, *, before: int | None, limit: int) -> list[PriceBookRow]:
    """Price books, newest first, older than a number."""
    query = select(PriceBookRow).order_by(col(PriceBookRow.number).desc()).limit(limit)
    return list(session.exec(query.where(col(PriceBookRow.number) < before) if before else query))
