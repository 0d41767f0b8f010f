"""Cancel and give back: the two ways to leave a booking before it has started.

Cancelling is free or refused. Giving back accepts what leaving costs once the free back-out is over: the pool buys
the window back, less a fee. They differ in that one decision; what a move does is in `broker.moves`.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from broker.context import Context, Principal
from broker.failpoints import Work
from broker.moves import apply, back_out_now, own_booking
from broker.store import answers
from broker.store.answers import Stored, Ticket
from broker.store.database import Duplicate
from broker.views import booking_view
from broker.wire.errors import BackOutNotFree, Contention
from market.states import BookingEvent, BookingState, move


def cancel(context: Context, principal: Principal, booking_id: str, ticket: Ticket) -> Stored:
    """Leaves a booking while that is free (`BackOutNotFree` later, `IllegalMove` when it has started or ended)."""
    return _leave(context, principal, booking_id, ticket, Work.CANCEL)


def give_back(context: Context, principal: Principal, booking_id: str, ticket: Ticket) -> Stored:
    """Leaves a booking before its start at what that costs now."""
    return _leave(context, principal, booking_id, ticket, Work.GIVE_BACK)


def _leave(context: Context, principal: Principal, booking_id: str, ticket: Ticket, work: Work) -> Stored:
    now = context.now()
    with context.database.read() as session:
        answered = answers.find(session, ticket, now)
        if answered:
            return answered
        row = own_booking(session, principal, booking_id, to_leave=True)
    event = BookingEvent.CANCEL if work is Work.CANCEL else BookingEvent.GIVE_BACK
    move(BookingState(row.state), event)
    cost = back_out_now(context, row, now)
    if work is Work.CANCEL and not cost.free:
        raise BackOutNotFree
    facts = context.cache.facts(now)

    def unit(session: Session) -> Stored:
        row = own_booking(session, principal, booking_id, to_leave=True, for_update=True)
        answered = answers.find(session, ticket, now)  # a twin may have ended while the row was waited for
        if answered:
            return answered
        apply(session, row, event, now, cost=cost)
        view = booking_view(session, row, facts.currency, simulated=facts.simulated)
        stored = Stored(200, view.model_dump(mode="json"))
        answers.keep(session, ticket, stored, now)
        return stored

    try:
        stored = context.database.write(unit, work)
    except Duplicate:
        return _answered_meanwhile(context, ticket, now)
    if stored.status == 200:  # a twin's answer may also be a refusal
        context.cache.released(booking_id)
        context.wake()
    return stored


def _answered_meanwhile(context: Context, ticket: Ticket, now: datetime) -> Stored:
    """A twin of this request was faster: its answer."""
    with context.database.read() as session:
        answered = answers.find(session, ticket, now)
    if answered is None:
        raise Contention
    return answered
