"""Queries for quotes, bookings and allocations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CursorResult, delete, insert, update
from sqlalchemy import select as sa_select
from sqlmodel import Session, and_, col, or_, select

from broker.store import pools
from broker.store.tables import TABLES, AllocationRow, BookingRow, CostCenterRow, DeviceRow, PersonRow, QuoteRow
from market.board import Allocation
from market.states import BookingState

QUOTES_KEPT = timedelta(days=7)


def quote(session: Session, quote_id: str) -> QuoteRow | None:
    return session.get(QuoteRow, quote_id)


def forget_quotes(session: Session, now: datetime) -> None:
    """Deletes quotes that ran out a while ago and that nobody booked."""
    booked = select(BookingRow.quote_id)
    old = delete(QuoteRow).where(col(QuoteRow.expires_at) < now - QUOTES_KEPT, col(QuoteRow.id).not_in(booked))
    session.connection().execute(old)


def booking_of_quote(session: Session, quote_id: str) -> BookingRow | None:
    return session.exec(select(BookingRow).where(col(BookingRow.quote_id) == quote_id)).first()


def booking(session: Session, booking_id: str, *, for_update: bool = False) -> BookingRow | None:
    """A booking; `for_update` takes its row, so that two moves of one booking happen one after the other."""
    query = select(BookingRow).where(col(BookingRow.id) == booking_id)
    if for_update:
        query = query.with_for_update().execution_options(populate_existing=True)
    return session.exec(query).first()


def bookings(
    session: Session, *, person_id: str | None, state: str | None, before: tuple[datetime, str] | None, limit: int
) -> list[BookingRow]:
    """Bookings, newest first: of one person or of all, in one state or any, older than a (booked_at, id)."""
    query = select(BookingRow)
    if person_id is not None:
        query = query.where(col(BookingRow.person_id) == person_id)
    if state is not None:
        query = query.where(col(BookingRow.state) == state)
    if before is not None:
        at, last = before
        older = and_(col(BookingRow.booked_at) == at, col(BookingRow.id) < last)
        query = query.where(or_(col(BookingRow.booked_at) < at, older))
    return list(session.exec(query.order_by(col(BookingRow.booked_at).desc(), col(BookingRow.id).desc()).limit(limit)))


def past_their_end(session: Session, now: datetime, after: str, limit: int) -> list[str]:
    """Bookings that still wait for a start although their window is over, by id, after an id."""
    waiting = (BookingState.HELD, BookingState.CONFIRMED)
    query = select(BookingRow.id).where(col(BookingRow.state).in_(waiting), col(BookingRow.end_at) <= now)
    return list(session.exec(query.where(col(BookingRow.id) > after).order_by(col(BookingRow.id)).limit(limit)))


def names(session: Session, row: BookingRow) -> tuple[str, str]:
    """The names of a booking's person and cost center."""
    person, cost_center = session.get_one(PersonRow, row.person_id), session.get_one(CostCenterRow, row.cost_center_id)
    return person.name, cost_center.name


def places(session: Session, booking_id: str) -> list[tuple[str, int]]:
    """(node, place on the node) of each slice of a booking."""
    query = select(DeviceRow.node, DeviceRow.place).join(
        AllocationRow, col(AllocationRow.device_id) == col(DeviceRow.id)
    )
    found = session.exec(query.where(col(AllocationRow.booking_id) == booking_id).order_by(col(AllocationRow.id)))
    return [(node, place) for node, place in found]


def live_allocations(session: Session, from_slot: int) -> dict[str, tuple[Allocation, ...]]:
    """Every promise of a place that is in force and reaches past a slot, by booking id."""
    of = TABLES.tables["allocation"].c
    columns = (of.booking_id, of.device_id, of.first_cell, of.end_cell, of.thousandths, of.first_slot, of.end_slot)
    query = sa_select(*columns).where(of.released_at.is_(None), of.end_slot > from_slot)
    found: dict[str, list[Allocation]] = {}
    for booking_id, *place in session.connection().execute(query):  # no objects of rows: they come by the thousand
        found.setdefault(booking_id, []).append(_value(*place))
    return {booking_id: tuple(each) for booking_id, each in found.items()}


def allocate(session: Session, booking_id: str, allocations: Iterable[Allocation]) -> None:
    """Inserts the promises of a booking; takes the devices first. The database refuses an overlap."""
    rows: list[dict[str, Any]] = [_row(booking_id, each) for each in allocations]
    pools.bump(session, [row["device_id"] for row in rows])
    session.connection().execute(insert(AllocationRow), rows)


def release(session: Session, booking_id: str, at: datetime) -> None:
    """Gives the places of a booking back."""
    query = select(AllocationRow).where(
        col(AllocationRow.booking_id) == booking_id, col(AllocationRow.released_at).is_(None)
    )
    rows = list(session.exec(query))
    pools.bump(session, [row.device_id for row in rows])
    for row in rows:
        row.released_at = at
        session.add(row)
    session.flush()


def change_state(session: Session, row: BookingRow, to: BookingState, *, charged: int = 0, fee: int = 0) -> bool:
    """Moves a booking on if it is still in the state that was read; False when it is not."""
    statement = update(BookingRow).where(col(BookingRow.id) == row.id, col(BookingRow.state) == row.state)
    done: CursorResult[Any] = session.connection().execute(statement.values(state=to, charged=charged, fee=fee))
    session.refresh(row)
    return done.rowcount == 1


def _row(booking_id: str, each: Allocation) -> dict[str, Any]:
    first = (each.mask & -each.mask).bit_length() - 1 if each.mask else 0
    return {
        "booking_id": booking_id,
        "device_id": each.device_id,
        "first_cell": first,
        "end_cell": each.mask.bit_length(),
        "thousandths": each.thousandths,
        "first_slot": each.first_slot,
        "end_slot": each.end_slot,
    }


def _value(
    device_id: int, first_cell: int, end_cell: int, thousandths: int, first_slot: int, end_slot: int
) -> Allocation:
    mask = ((1 << end_cell) - 1) & ~((1 << first_cell) - 1)
    return Allocation(device_id=device_id, mask=mask, thousandths=thousandths, first_slot=first_slot, end_slot=end_slot)
