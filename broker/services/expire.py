"""Expire: ends bookings whose window has passed without a start. Nothing was run, so nothing is charged."""

from __future__ import annotations

from sqlmodel import Session

from broker.context import Context
from broker.failpoints import Work
from broker.moves import apply
from broker.store import bookings
from market.states import MOVES, BookingEvent, BookingState

AT_ONCE = 100


def expire_due(context: Context) -> int:
    """Expires up to `AT_ONCE` bookings and returns how many, each in a unit of work of its own."""
    now = context.now()
    with context.database.read() as session:
        due = bookings.past_their_end(session, now, AT_ONCE)
    for booking_id in due:

        def unit(session: Session, booking_id: str = booking_id) -> None:
            row = bookings.booking(session, booking_id, for_update=True)
            if row is not None and (BookingState(row.state), BookingEvent.EXPIRE) in MOVES:
                apply(session, row, BookingEvent.EXPIRE, now)

        context.database.write(unit, Work.EXPIRE)
        context.cache.released(booking_id)
    return len(due)
