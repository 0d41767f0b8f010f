"""Rows and plans as the messages that clients get."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from broker.inputs.tariffs import parse_tariff
from broker.store import bookings
from broker.store.ledger import BudgetAccounts
from broker.store.prices import tariff as tariff_row
from broker.store.tables import BookingRow, CostCenterRow, PriceBookRow, TariffRow, TokenRow
from broker.wire.market import PriceBookView, TariffView
from broker.wire.people import CostCenterView, Scope, TokenView
from broker.wire.quotes import BookingView, ExplanationView, PlaceView, ProposalView
from market.backing_out import free_until
from market.catalog import Isolation, Sku, Tier
from market.explanation import Explanation
from market.instants import Window, slot_start, whole_second
from market.proposals import Proposal
from market.states import BookingState


def proposal_view(proposal: Proposal) -> ProposalView:
    return ProposalView(
        kind=proposal.kind,
        sku=str(proposal.sku),
        tier=proposal.tier,
        count=proposal.count,
        start=proposal.window.start,
        end=proposal.window.end,
        seconds=proposal.window.seconds,
        rate=proposal.rate,
        total=proposal.total,
    )


def proposal_of(view: ProposalView) -> Proposal:
    """The proposal that a view shows."""
    return Proposal(
        kind=view.kind,
        sku=Sku.parse(view.sku),
        tier=view.tier,
        count=view.count,
        window=Window(view.start, view.end),
        rate=view.rate,
        total=view.total,
    )


def explanation_view(text: str, explanation: Explanation) -> ExplanationView:
    return ExplanationView(
        text=text,
        base=explanation.base,
        band=explanation.band,
        scarcity=explanation.scarcity,
        factor=explanation.factor,
        tier_factor=explanation.tier_factor,
        load=explanation.load,
        promised=explanation.promised,
        still_to_come=explanation.still_to_come,
        limited=explanation.limited,
        price_book=explanation.price_book,
        forecast=explanation.forecast,
    )


def booking_view(session: Session, row: BookingRow, currency: str, *, simulated: bool) -> BookingView:
    person, cost_center = bookings.names(session, row)
    window = Window(row.start_at, row.end_at)
    return BookingView(
        id=row.id,
        state=BookingState(row.state),
        person=person,
        need=row.need,
        sku=row.sku,
        tier=Tier(row.tier),
        count=row.slices,
        start=window.start,
        end=window.end,
        seconds=window.seconds,
        rate=row.rate,
        total=row.total,
        charged=row.charged,
        fee=row.fee,
        currency=currency,
        cost_center=cost_center,
        quote_id=row.quote_id,
        isolation=Isolation(row.isolation),
        simulated=simulated,
        places=[PlaceView(node=node, device=place) for node, place in bookings.places(session, row.id)],
        free_cancel_until=_free_until(row, window),
        booked_at=row.booked_at,
    )


def _free_until(row: BookingRow, window: Window) -> datetime:
    """What starts as soon as it is booked is free to cancel until it runs."""
    on_demand = window.start <= whole_second(row.booked_at)
    return window.start if on_demand else free_until(Tier(row.tier), window.start)


def cost_center_view(
    row: CostCenterRow, owner: str, currency: str, period: Window, accounts: BudgetAccounts | None
) -> CostCenterView:
    """A cost center with the budget of a period; one that was never given money has none."""
    left, held, spent = (
        (accounts.budget.balance, accounts.held.balance, accounts.revenue.balance) if accounts else (0, 0, 0)
    )
    return CostCenterView(
        name=row.name,
        owner=owner,
        currency=currency,
        period_start=period.start,
        period_end=period.end,
        limit=left + held + spent,
        spent=spent,
        held=held,
        left=left,
    )


def tariff_view(row: TariffRow, in_force_id: int | None, approver: str | None, now: datetime) -> TariffView:
    assert row.id is not None
    tariff = parse_tariff(row.document)
    if row.in_force_from is None:
        status = "proposed"
    elif row.in_force_from > now:
        status = "approved"
    else:
        status = "in force" if row.id == in_force_id else "superseded"
    return TariffView(
        id=row.id,
        name=row.name,
        currency=tariff.currency,
        zone=tariff.zone,
        status=status,
        in_force_from=row.in_force_from,
        approved_by=approver,
    )


def price_book_view(session: Session, row: PriceBookRow) -> PriceBookView:
    assert row.number is not None
    priced = len(next(iter(row.loads.values()))["promised"])
    return PriceBookView(
        number=row.number,
        tariff=tariff_row(session, row.tariff_id).name,
        digest=row.digest,
        computed_at=row.computed_at,
        start=slot_start(row.first_slot),
        end=slot_start(row.first_slot + priced),
    )


def token_view(row: TokenRow) -> TokenView:
    return TokenView(
        id=row.id,
        label=row.label,
        scopes=[Scope(each) for each in row.scopes],
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked=row.revoked_at is not None,
    )
