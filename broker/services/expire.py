"""Expire: ends bookings whose window has passed without a start. Nothing was run, so nothing is charged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlmodel import Session

from broker.context import Context
from broker.failpoints import Work
from broker.moves import apply
from broker.store import bookings
from market.states import MOVES, BookingEvent, BookingState

AT_ONCE = 100


def expire_due(context: Context) -> int:
    """Expires what is due, each booking in a unit of work of its own, and returns how many.

    One that fails does not keep the others: an `ExceptionGroup` of all that failed comes at the end.
    """
    now, count = context.now(), 0
    faults: list[Exception] = []
    for booking_id in _due(context, now):
        try:
            _expire(context, booking_id, now)
            count += 1
        except Exception as error:  # noqa: BLE001 - told to the caller below
            faults.append(error)
    if faults:
        raise ExceptionGroup("bookings could not be expired", faults)
    return count


def _due(context: Context, now: datetime) -> Iterator[str]:
    page = [""]
    while page:
        with context.database.read() as session:
            page = bookings.past_their_end(session, now, page[-1], AT_ONCE)
        yield from page


def _expire(context: Context, booking_id: str, now: datetime) -> None:
    def unit(session: Session) -> None:
        row = bookings.booking(session, booking_id, for_update=True)
        if row is not None and (BookingState(row.state), BookingEvent.EXPIRE) in MOVES:
            apply(session, row, BookingEvent.EXPIRE, now)

    context.database.write(unit, Work.EXPIRE)
    context.cache.released(booking_id)
