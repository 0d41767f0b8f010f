"""Quote: turns a need as people state it into a priced promise that lasts fifteen minutes."""

from __future__ import annotations

from datetime import datetime, timedelta

from broker.budgets import budget_left_after, usable_cost_center
from broker.context import Context, Principal
from broker.failpoints import Work
from broker.ids import Kind, new_id
from broker.store import bookings
from broker.store.tables import CostCenterRow, QuoteRow
from broker.views import explanation_view, proposal_view
from broker.wire.errors import NotFound
from broker.wire.quotes import QuoteRequest, QuoteView
from market.catalog import Isolation
from market.explanation import explain, in_one_line
from market.needs import parse_need
from market.quoting import Plan, Request, Urgency, plan

QUOTE_LASTS = timedelta(minutes=15)


def quote(context: Context, principal: Principal, asked: QuoteRequest) -> QuoteView:
    """A quote for a request; nothing is promised of the pool or the budget yet."""
    request = _request(asked)
    with context.database.read() as session:
        cost_center = usable_cost_center(session, principal, asked.cost_center)
    with context.market() as (now, market):
        planned = plan(request, market, now)
        explained = explain(planned, market.curves)
        tariff, simulated = market.curves.book.tariff, market.pool.simulated
    text = in_one_line(planned, explained, zone=asked.zone or tariff.zone, now=now)
    with context.database.read() as session:
        left = budget_left_after(context, session, cost_center, planned.proposal.window, planned.proposal.total)
    view = QuoteView(
        id=new_id(Kind.QUOTE),
        need=str(request.need),
        proposal=proposal_view(planned.proposal),
        isolation=Isolation(planned.taken.isolation),
        memory_gb=planned.taken.memory_gb,
        currency=tariff.currency,
        cost_center=cost_center.name,
        budget_left_after=left,
        starts_when_booked=_starts_when_booked(request, planned, now),
        simulated=simulated,
        explanation=explanation_view(text, explained),
        alternatives=[proposal_view(each) for each in planned.alternatives],
        made_at=now,
        expires_at=now + QUOTE_LASTS,
    )
    row = _row(view, principal, cost_center, asked)
    context.database.write(lambda session: session.add(row), Work.QUOTE)
    return view


def find(context: Context, principal: Principal, quote_id: str) -> QuoteView:
    """A quote of this person, as it was shown."""
    with context.database.read() as session:
        row = bookings.quote(session, quote_id)
    if row is None or row.person_id != principal.id:
        raise NotFound(f"no quote {quote_id} of yours")
    return QuoteView.model_validate(row.view)


def renew(context: Context, principal: Principal, quote_id: str) -> QuoteView:
    """A fresh quote for what an earlier one asked for. A start that has passed meanwhile becomes now."""
    with context.database.read() as session:
        row = bookings.quote(session, quote_id)
    if row is None or row.person_id != principal.id:
        raise NotFound(f"no quote {quote_id} of yours")
    asked = QuoteRequest.model_validate(row.request)
    if asked.start is not None and asked.start < context.now():
        asked = asked.model_copy(update={"start": None})
    return quote(context, principal, asked)


def _request(asked: QuoteRequest) -> Request:
    return Request(
        need=parse_need(asked.need),
        seconds=asked.seconds,
        tier=asked.tier,
        start=asked.start,
        finish_by=asked.finish_by,
        urgency=Urgency(asked.urgency),
    )


def _starts_when_booked(request: Request, planned: Plan, now: datetime) -> bool:
    return request.start is None and planned.proposal.window.start <= now


def _row(view: QuoteView, principal: Principal, cost_center: CostCenterRow, asked: QuoteRequest) -> QuoteRow:
    return QuoteRow(
        id=view.id,
        person_id=principal.id,
        cost_center_id=cost_center.id,
        request=asked.model_dump(mode="json"),
        view=view.model_dump(mode="json"),
        finish_by=asked.finish_by,
        made_at=view.made_at,
        expires_at=view.expires_at,
    )
