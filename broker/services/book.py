"""Book: makes a quote's promise a promise of a place and a hold on the budget, exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from broker.context import Context, Principal
from broker.failpoints import Work
from broker.ids import Kind, new_id
from broker.moves import authorise, budget_left_after, usable_cost_center
from broker.store import answers, bookings, events, pools
from broker.store.answers import Stored, Ticket
from broker.store.database import Duplicate, OverlapRefused
from broker.store.tables import BookingRow, QuoteRow
from broker.views import booking_view, proposal_of
from broker.wire.errors import Contention, NotFound, QuoteExpired, QuoteUsed
from broker.wire.quotes import QuoteRequest, QuoteView
from market.board import Allocation
from market.catalog import Sku
from market.errors import NoCapacity, OverBudget, Refused
from market.instants import Window, whole_second
from market.needs import parse_need
from market.placement import place
from market.proposals import Proposal
from market.quoting import Request, nearest
from market.states import BookingEvent, BookingState, move

PLACE_ATTEMPTS = 30


def book(context: Context, principal: Principal, quote_id: str, ticket: Ticket) -> Stored:
    """Books a quote; `ticket` makes a repeated request get the first one's answer.

    Raises `NotFound`, `QuoteExpired`, `QuoteUsed`, `OverBudget`, or `NoCapacity` with the nearest alternatives. A
    place that somebody else took in the meantime is refused by the database; then the board is read anew.
    """
    now = context.now()
    with context.database.read() as session:
        answered = answers.find(session, ticket, now)
        if answered:
            return answered
        quote = _bookable(session, principal, quote_id, now)
    offer = _Offer(quote, QuoteView.model_validate(quote.view), now)
    for _ in range(PLACE_ATTEMPTS):
        try:
            placed = _place(context, offer)
            try:
                return _commit(context, offer, placed, ticket)
            finally:
                context.cache.unreserve(placed.booking_id)
        except OverBudget as refusal:
            affordable = _within_budget(context, offer, principal)
            return _answered_meanwhile(context, ticket, now, OverBudget(refusal.detail, affordable))
        except OverlapRefused:
            context.cache.refresh(now)
        except Duplicate:
            return _answered_meanwhile(context, ticket, now, QuoteUsed())
        except Refused as refusal:
            return _answered_meanwhile(context, ticket, now, refusal)
    raise Contention


def _answered_meanwhile(context: Context, ticket: Ticket, now: datetime, refusal: Refused) -> Stored:
    """The answer of a twin of this request that was faster, and took what is refused here; else the refusal."""
    with context.database.read() as session:
        answered = answers.find(session, ticket, now)
    if answered is None:
        raise refusal
    return answered


@dataclass(frozen=True, slots=True)
class _Offer:
    """A quote that is being booked at `now`, and the window it comes to: a start that has passed moves to now."""

    row: QuoteRow
    view: QuoteView
    now: datetime

    @property
    def window(self) -> Window:
        start = max(self.view.proposal.start, whole_second(self.now))
        return Window(start, start + timedelta(seconds=self.view.proposal.seconds))

    @property
    def sku(self) -> Sku:
        return Sku.parse(self.view.proposal.sku)


def _bookable(session: Session, principal: Principal, quote_id: str, now: datetime) -> QuoteRow:
    quote = bookings.quote(session, quote_id)
    if quote is None or quote.person_id != principal.id:
        raise NotFound(f"no quote {quote_id} of yours")
    if bookings.booking_of_quote(session, quote_id):
        raise QuoteUsed
    view = QuoteView.model_validate(quote.view)
    ends = _Offer(quote, view, now).window.end
    if now >= quote.expires_at or (quote.finish_by is not None and ends > quote.finish_by):
        raise QuoteExpired
    return quote


def _within_budget(context: Context, offer: _Offer, principal: Principal) -> tuple[Proposal, ...]:
    """What the quote named beside its price, and the budget of its cost center covers."""
    with context.database.read() as session:
        cost_center = usable_cost_center(session, principal, offer.view.cost_center)
        named = [proposal_of(each) for each in offer.view.alternatives]
        return tuple(
            each for each in named if budget_left_after(context, session, cost_center, each.window, each.total) >= 0
        )


@dataclass(frozen=True, slots=True)
class _Placed:
    """Places on the board of one revision of the pool, reserved in this process for a booking that may come to be."""

    booking_id: str
    allocations: tuple[Allocation, ...]
    revision: int


def _place(context: Context, offer: _Offer) -> _Placed:
    """A place on the board as known here; a refusal is only believed of a board that was just read."""
    try:
        return _place_once(context, offer)
    except NoCapacity:
        context.cache.refresh(offer.now)
        return _place_once(context, offer)


def _place_once(context: Context, offer: _Offer) -> _Placed:
    with context.cache.open(offer.now) as market:
        taken = market.pool.footprint(offer.sku)
        count, slots = offer.view.proposal.count, offer.window.slots
        try:
            found = place(market.board, market.pool, model=offer.sku.model, taken=taken, count=count, slots=slots)
            placed = _Placed(new_id(Kind.BOOKING), found, context.cache.revision)
            context.cache.reserve(placed.booking_id, found)
            return placed
        except NoCapacity as refused:
            others = nearest(_request(offer), market, (offer.sku,), offer.window.start)
            raise NoCapacity(refused.detail, others) from None


def _request(offer: _Offer) -> Request:
    asked = QuoteRequest.model_validate(offer.row.request)
    return Request(need=parse_need(asked.need), seconds=asked.seconds, tier=asked.tier)


def _commit(context: Context, offer: _Offer, placed: _Placed, ticket: Ticket) -> Stored:
    row = _row(offer, placed.booking_id)

    def unit(session: Session) -> Stored:
        answered = answers.find(session, ticket, offer.now)
        if answered:
            return answered
        if bookings.booking_of_quote(session, row.quote_id):
            raise QuoteUsed
        session.add(BookingRow(**row.model_dump()))  # a copy: a unit of work may be run again
        session.flush()
        bookings.allocate(session, row.id, placed.allocations)
        if pools.revision(session) != placed.revision:
            raise OverlapRefused  # the devices are ours now, but were changed since the place was chosen
        authorise(context, session, row, offer.view.currency, offer.now)
        _tell(session, row, offer.now)
        view = booking_view(session, row, offer.view.currency, simulated=offer.view.simulated)
        stored = Stored(201, view.model_dump(mode="json"))
        answers.keep(session, ticket, stored, offer.now)
        return stored

    stored = context.database.write(unit, Work.BOOK)
    if stored.body.get("id") == row.id:  # a twin's answer may also be a refusal
        context.cache.promised(row.id, placed.allocations)
        context.wake()
    return stored


def _tell(session: Session, row: BookingRow, now: datetime) -> None:
    window = {"start": row.start_at.isoformat(), "end": row.end_at.isoformat()}
    events.tell(session, f"booking.{row.state}", subject=row.id, at=now, person_id=row.person_id, sku=row.sku, **window)


def _row(offer: _Offer, booking_id: str) -> BookingRow:
    """Held and confirmed in one unit of work: nothing in between needs anybody's yes yet."""
    proposal, window = offer.view.proposal, offer.window
    return BookingRow(
        id=booking_id,
        person_id=offer.row.person_id,
        cost_center_id=offer.row.cost_center_id,
        quote_id=offer.row.id,
        state=move(BookingState.HELD, BookingEvent.CONFIRM).to,
        need=offer.view.need,
        sku=proposal.sku,
        tier=proposal.tier,
        slices=proposal.count,
        start_at=window.start,
        end_at=window.end,
        rate=proposal.rate,
        total=proposal.total,
        isolation=offer.view.isolation,
        booked_at=offer.now,
    )
