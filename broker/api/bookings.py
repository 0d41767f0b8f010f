"""Quotes and bookings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from broker.api.deps import BuyerDep, ContextDep, PrincipalDep, TicketDep, answer_once
from broker.api.pages import ROW_ID, Cursor, Limit, pack, page, unpack
from broker.moves import own_booking
from broker.services import back_out, book, cancel, quote
from broker.store import bookings
from broker.views import booking_view
from broker.wire.errors import BackOutNotFree, Forbidden, QuoteExpired
from broker.wire.lists import BookingPage
from broker.wire.quotes import BackOutView, BookingView, BookRequest, QuoteRequest, QuoteView
from market.errors import GputideError
from market.states import BookingState

router = APIRouter(tags=["bookings"])
RowId = Annotated[str, Path(max_length=64, pattern=ROW_ID)]


@router.post("/quotes", status_code=201)
def make_quote(context: ContextDep, principal: BuyerDep, body: QuoteRequest) -> QuoteView:
    """A priced promise for a need; it lasts fifteen minutes and reserves nothing."""
    return quote.quote(context, principal, body)


@router.get("/quotes/{quote_id}")
def get_quote(context: ContextDep, principal: PrincipalDep, quote_id: RowId) -> QuoteView:
    """A quote as it was made."""
    return quote.find(context, principal, quote_id)


@router.post("/bookings", status_code=201, response_model=BookingView)
def make_booking(
    request: Request, context: ContextDep, principal: BuyerDep, ticket: TicketDep, body: BookRequest
) -> Response:
    """Books a quote. An expired one is answered with 410 and a fresh quote."""

    def with_fresh_quote(error: GputideError) -> GputideError:
        if isinstance(error, QuoteExpired):
            error.quote = _fresh(error, body.quote_id)
        return error

    def _fresh(error: QuoteExpired, quote_id: str) -> dict[str, object] | None:
        try:
            return quote.renew(context, principal, quote_id).model_dump(mode="json")
        except GputideError as refused:
            error.detail = f"the quote has expired and cannot be renewed: {refused.detail}"
            return None

    return answer_once(
        request,
        ticket(body.model_dump(mode="json")),
        lambda given: book.book(context, principal, body.quote_id, given),
        with_fresh_quote,
    )


@router.get("/bookings")
def list_bookings(
    context: ContextDep,
    principal: PrincipalDep,
    state: BookingState | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
    everybody: bool = False,
) -> BookingPage:
    """Bookings, newest first: one's own, or everybody's for roles that may see them."""
    if everybody and not principal.sees_everybody:
        raise Forbidden("everybody's bookings are shown to operators, finance and auditors")
    person_id = None if everybody else principal.id
    facts = context.cache.facts(context.now())
    with context.database.read() as session:
        rows = bookings.bookings(session, person_id=person_id, state=state, before=unpack(cursor), limit=limit + 1)
        views = [booking_view(session, row, facts.currency, simulated=facts.simulated) for row in rows]
    items, following = page(views, limit, lambda view: pack(view.booked_at, view.id))
    return BookingPage(items=items, next_cursor=following)


@router.get("/bookings/{booking_id}")
def get_booking(context: ContextDep, principal: PrincipalDep, booking_id: RowId) -> BookingView:
    """One booking."""
    facts = context.cache.facts(context.now())
    with context.database.read() as session:
        row = own_booking(session, principal, booking_id)
        return booking_view(session, row, facts.currency, simulated=facts.simulated)


@router.get("/bookings/{booking_id}/back-out")
def get_back_out(context: ContextDep, principal: PrincipalDep, booking_id: RowId) -> BackOutView:
    """What leaving the booking costs now."""
    return back_out.back_out(context, principal, booking_id)


@router.post("/bookings/{booking_id}/cancel", response_model=BookingView)
def cancel_booking(
    request: Request, context: ContextDep, principal: BuyerDep, ticket: TicketDep, booking_id: RowId
) -> Response:
    """Leaves a booking while that is free; later it is refused with what giving back costs."""

    def with_cost(error: GputideError) -> GputideError:
        if isinstance(error, BackOutNotFree):
            error.back_out = back_out.back_out(context, principal, booking_id).model_dump(mode="json")
        return error

    return answer_once(
        request, ticket(None), lambda given: cancel.cancel(context, principal, booking_id, given), with_cost
    )


@router.post("/bookings/{booking_id}/give-back", response_model=BookingView)
def give_back_booking(
    request: Request, context: ContextDep, principal: BuyerDep, ticket: TicketDep, booking_id: RowId
) -> Response:
    """Leaves a booking before its start at what that costs now."""
    return answer_once(request, ticket(None), lambda given: cancel.give_back(context, principal, booking_id, given))
