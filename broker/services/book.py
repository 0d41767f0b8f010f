"""Book: makes a quote's promise a promise of a place and a hold on the budget, exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from broker.budgets import budget_left_after, tightest_month, usable_cost_center
from broker.context import Context, Principal
from broker.failpoints import Work
from broker.ids import Kind, new_id
from broker.moves import authorise
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
from market.money import format_money
from market.needs import parse_need
from market.placement import place
from market.quoting import Request, Snapshot, nearest
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
    sale = _Sale(quote, QuoteView.model_validate(quote.view), now)
    try:
        _assert_affordable(context, sale, principal)
        return _placed_and_committed(context, sale, ticket)
    except Duplicate:
        return _answered_meanwhile(context, ticket, now, QuoteUsed())
    except Refused as refusal:
        return _answered_meanwhile(context, ticket, now, refusal)


def _placed_and_committed(context: Context, sale: _Sale, ticket: Ticket) -> Stored:
    for _ in range(PLACE_ATTEMPTS):
        placed = _place(context, sale)
        try:
            return _commit(context, sale, placed, ticket)
        except OverlapRefused:
            context.cache.refresh(sale.now)
        finally:
            context.cache.unreserve(placed.booking_id)
    raise Contention


def _assert_affordable(context: Context, sale: _Sale, principal: Principal) -> None:
    """`OverBudget` before a place is looked for, with what the quote named beside its price and the budget covers."""
    view = sale.view
    with context.database.read() as session:
        cost_center = usable_cost_center(session, principal, view.cost_center)
        left, month = tightest_month(context, session, cost_center, sale.window, view.proposal.total)
        if left >= 0:
            return
        named = [proposal_of(each) for each in view.alternatives]
        affordable = tuple(
            each for each in named if budget_left_after(context, session, cost_center, each.window, each.total) >= 0
        )
        budget = f"the budget of cost center {view.cost_center} for {month.start.astimezone(context.zone):%B %Y}"
        raise OverBudget(f"{budget} lacks {format_money(-left, view.currency)} for this", affordable)


def _answered_meanwhile(context: Context, ticket: Ticket, now: datetime, refusal: Refused) -> Stored:
    """The answer of a twin of this request that was faster, and took what is refused here; else the refusal."""
    with context.database.read() as session:
        answered = answers.find(session, ticket, now)
    if answered is None:
        raise refusal
    return answered


@dataclass(frozen=True, slots=True)
class _Sale:
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
    ends = _Sale(quote, view, now).window.end
    if now >= quote.expires_at or (quote.finish_by is not None and ends > quote.finish_by):
        raise QuoteExpired
    return quote


@dataclass(frozen=True, slots=True)
class _Placed:
    """Places on the board of one revision of the pool, reserved in this process for a booking that may come to be."""

    booking_id: str
    allocations: tuple[Allocation, ...]
    revision: int


def _place(context: Context, sale: _Sale) -> _Placed:
    """A place on the board as known here, beside those that are being booked. A refusal is only believed of a board
    that was just read and has nothing on it that is not booked."""
    with context.cache.open(sale.now) as market:
        try:
            with context.cache.beside_reserved(market.board):
                return _place_on(context, sale, market)
        except NoCapacity:
            context.cache.refresh(sale.now)
            with context.cache.open(sale.now) as anew:
                return _place_on(context, sale, anew)


def _place_on(context: Context, sale: _Sale, market: Snapshot) -> _Placed:
    """Finds a place and reserves it; for a caller that holds the lock of the cache."""
    taken = market.pool.footprint(sale.sku)
    count, slots = sale.view.proposal.count, sale.window.slots
    try:
        found = place(market.board, market.pool, model=sale.sku.model, taken=taken, count=count, slots=slots)
    except NoCapacity as refused:
        others = nearest(_request(sale), market, (sale.sku,), sale.window.start)
        raise NoCapacity(refused.detail, others) from None
    placed = _Placed(new_id(Kind.BOOKING), found, context.cache.revision)
    context.cache.reserve(placed.booking_id, found)
    return placed


def _request(sale: _Sale) -> Request:
    asked = QuoteRequest.model_validate(sale.row.request)
    return Request(need=parse_need(asked.need), seconds=asked.seconds, tier=asked.tier)


def _commit(context: Context, sale: _Sale, placed: _Placed, ticket: Ticket) -> Stored:
    row = _row(sale, placed.booking_id)

    def unit(session: Session) -> Stored:
        answered = answers.find(session, ticket, sale.now)
        if answered:
            return answered
        if bookings.booking_of_quote(session, row.quote_id):
            raise QuoteUsed
        session.add(BookingRow(**row.model_dump()))  # a copy: a unit of work may be run again
        session.flush()
        bookings.allocate(session, row.id, placed.allocations)
        if pools.revision(session) != placed.revision:
            raise OverlapRefused  # the devices are ours now, but were changed since the place was chosen
        authorise(context, session, row, sale.view.currency, sale.now)
        _tell(session, row, sale.now)
        view = booking_view(session, row, sale.view.currency, simulated=sale.view.simulated)
        stored = Stored(201, view.model_dump(mode="json"))
        answers.keep(session, ticket, stored, sale.now)
        return stored

    stored = context.database.write(unit, Work.BOOK)
    if stored.body.get("id") == row.id:  # a twin's answer may also be a refusal
        context.cache.promised(row.id, placed.allocations)
        context.wake()
    return stored


def _tell(session: Session, row: BookingRow, now: datetime) -> None:
    window = {"start": row.start_at.isoformat(), "end": row.end_at.isoformat()}
    events.tell(session, f"booking.{row.state}", subject=row.id, at=now, person_id=row.person_id, sku=row.sku, **window)


def _row(sale: _Sale, booking_id: str) -> BookingRow:
    """Held and confirmed in one unit of work: nothing in between needs anybody's yes yet."""
    proposal, window = sale.view.proposal, sale.window
    return BookingRow(
        id=booking_id,
        person_id=sale.row.person_id,
        cost_center_id=sale.row.cost_center_id,
        quote_id=sale.row.id,
        state=move(BookingState.HELD, BookingEvent.CONFIRM).to,
        need=sale.view.need,
        sku=proposal.sku,
        tier=proposal.tier,
        slices=proposal.count,
        start_at=window.start,
        end_at=window.end,
        rate=proposal.rate,
        total=proposal.total,
        isolation=sale.view.isolation,
        booked_at=sale.now,
    )
