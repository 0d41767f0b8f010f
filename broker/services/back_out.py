"""What backing out of a booking would cost now. It changes nothing."""

from __future__ import annotations

from broker.context import Context, Principal
from broker.moves import back_out_now, own_booking
from broker.wire.quotes import BackOutView
from market.states import BookingEvent, BookingState, move


def back_out(context: Context, principal: Principal, booking_id: str) -> BackOutView:
    """The cost of leaving (`NotFound`, or `IllegalMove` when the booking has ended)."""
    now = context.now()
    with context.database.read() as session:
        row = own_booking(session, principal, booking_id)
    move(BookingState(row.state), BookingEvent.CANCEL)
    cost = back_out_now(context, row, now)
    return BackOutView(
        booking_id=row.id,
        free=cost.free,
        charged=cost.charged,
        fee=cost.fee,
        released=row.total - cost.charged,
        currency=context.cache.facts(now).currency,
    )
