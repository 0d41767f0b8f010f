"""The one way in which a booking changes its state: by the table in `market.states`, with its cells and its hold.

What changes something runs inside the caller's unit of work. Rows are taken in one order everywhere (booking, devices
ascending, accounts ascending), so that no two writers wait for each other in a circle.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from broker.context import Context, Principal
from broker.store import bookings, events, ledger
from broker.store.tables import BookingRow, CostCenterRow, HoldRow
from broker.wire.errors import Contention, NotFound
from market.backing_out import BackOut, back_out, is_free
from market.catalog import Sku, Tier
from market.errors import InvalidShape, OverBudget, PriceMissing, UnknownModel, UnknownSku
from market.instants import Window, local_months
from market.ledger import Hold, TransferReason, settle_all, split_by_period
from market.money import format_money
from market.states import BookingEvent, BookingState, HoldEffect, move


def own_booking(
    session: Session, principal: Principal, booking_id: str, *, to_leave: bool = False, for_update: bool = False
) -> BookingRow:
    """A booking that this person may see, or leave; any other does not exist for them (`NotFound`).

    One may leave one's own, those on a cost center that one owns, and as an operator anybody's.
    """
    row = bookings.booking(session, booking_id, for_update=for_update)
    if row is None or not (_keeps(session, principal, row) or (principal.sees_everybody and not to_leave)):
        raise NotFound(f"no booking {booking_id} of yours")
    return row


def _keeps(session: Session, principal: Principal, row: BookingRow) -> bool:
    if row.person_id == principal.id or principal.is_operator:
        return True
    cost_center = session.get(CostCenterRow, row.cost_center_id)
    return cost_center is not None and cost_center.owner_id == principal.id


def authorise(context: Context, session: Session, row: BookingRow, currency: str, now: datetime) -> None:
    """Puts a booking's hold on its budgets, one a period that it touches (`OverBudget`)."""
    window = Window(row.start_at, row.end_at)
    periods = local_months(window, context.zone)
    shares = split_by_period(row.total, window, periods)
    moves: list[tuple[int, ledger.BudgetAccounts, int]] = []
    for period, amount in zip(periods, shares, strict=True):
        accounts = ledger.budget(session, row.cost_center_id, period.start)
        if amount and accounts is None:
            month = period.start.astimezone(context.zone)
            raise OverBudget(f"the cost center has no budget for {month:%B %Y}; ask finance or an operator for one")
        if amount and accounts:
            assert accounts.budget.id is not None
            moves.append((accounts.budget.id, accounts, amount))
    for _, accounts, amount in sorted(moves, key=lambda each: each[0]):
        if amount > accounts.budget.balance:
            left, wanted = (format_money(each, currency) for each in (accounts.budget.balance, amount))
            raise OverBudget(f"the budget has {left} left, and this takes {wanted}")
        session.add(_hold_row(row, accounts.period.start, amount))
        ledger.transfer(
            session,
            debit=accounts.budget,
            credit=accounts.held,
            amount=amount,
            reason=TransferReason.AUTHORISE,
            at=now,
            booking_id=row.id,
        )


def back_out_now(context: Context, row: BookingRow, now: datetime) -> BackOut:
    """What backing out of a booking costs now, under the latest price book. It is called outside a unit of work.

    What is no longer sold has no current rate: then the pool buys back at the locked one, without a fee.
    """
    window, sku, tier = Window(row.start_at, row.end_at), Sku.parse(row.sku), Tier(row.tier)
    if is_free(window, tier, now):
        return BackOut(0, 0)
    try:
        with context.cache.open(now) as market:
            fee = market.curves.book.tariff.back_out_fee_ppm
            current = market.curves.window_rate(sku.model, market.pool.footprint(sku).share, tier, window)
    except (PriceMissing, UnknownModel, UnknownSku, InvalidShape):
        fee, current = 0, row.rate
    return back_out(
        window=window,
        tier=tier,
        count=row.slices,
        locked_rate=row.rate,
        current_rate=current,
        fee_ppm=fee,
        now=now,
    )


def apply(
    session: Session, row: BookingRow, event: BookingEvent, now: datetime, *, cost: BackOut | None = None
) -> None:
    """Makes a move of the table: state, cells and hold in one (`IllegalMove` when the table has no such move)."""
    made = move(BookingState(row.state), event)
    charged, fee = (cost.charged, cost.fee) if cost and made.hold is HoldEffect.SETTLE else (0, 0)
    if not bookings.change_state(session, row, made.to, charged=charged, fee=fee):
        raise Contention
    if made.releases_cells:
        bookings.release(session, row.id, now)
    if made.hold is not HoldEffect.KEEP:
        _settle(session, row, charged, now)
    events.tell(
        session,
        f"booking.{made.to}",
        subject=row.id,
        at=now,
        person_id=row.person_id,
        sku=row.sku,
        start=row.start_at.isoformat(),
        end=row.end_at.isoformat(),
        charged=charged,
    )


def _settle(session: Session, row: BookingRow, charged: int, now: datetime) -> None:
    """Captures what is charged, the first period's hold first, and releases the rest.

    Accounts are taken in ascending order as in `authorise`, whatever the order of their periods; releases come before
    captures, since they take the lower accounts.
    """
    rows = ledger.holds_of(session, row.id)
    settled = settle_all([Hold(each.authorised, each.captured, each.released) for each in rows], charged)
    moves: list[tuple[int, ledger.BudgetAccounts, HoldRow, Hold]] = []
    for hold, after in zip(rows, settled, strict=True):
        accounts = ledger.budget(session, hold.cost_center_id, hold.period_start)
        assert accounts is not None
        assert accounts.budget.id is not None
        moves.append((accounts.budget.id, accounts, hold, after))
    for _, accounts, hold, after in sorted(moves, key=lambda each: each[0]):
        for credit, amount, reason in (
            (accounts.budget, after.released - hold.released, TransferReason.RELEASE),
            (accounts.revenue, after.captured - hold.captured, TransferReason.CAPTURE),
        ):
            ledger.transfer(
                session, debit=accounts.held, credit=credit, amount=amount, reason=reason, at=now, booking_id=row.id
            )
        hold.captured, hold.released = after.captured, after.released
        session.add(hold)


def _hold_row(row: BookingRow, period_start: datetime, amount: int) -> HoldRow:
    return HoldRow(booking_id=row.id, cost_center_id=row.cost_center_id, period_start=period_start, authorised=amount)
