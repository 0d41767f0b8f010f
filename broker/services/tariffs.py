"""Propose and approve a tariff. Once approved it is dated and never changes."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from broker.context import Context, Principal
from broker.inputs.tariffs import parse_tariff
from broker.store import events, prices
from broker.store.tables import PersonRow, TariffRow
from broker.views import tariff_view
from broker.wire.market import TariffView
from broker.wire.people import Role
from market.errors import IllegalMove, InvalidTariff, WindowInPast
from market.instants import require_utc


def propose(context: Context, principal: Principal, document: str) -> TariffView:
    """Stores a tariff that is not in force yet (`InvalidTariff` when it could never be)."""
    principal.need_role(Role.OPERATOR)
    tariff, now = parse_tariff(document), context.now()
    row = TariffRow(name=tariff.name, document=document, proposed_at=now)

    def unit(session: Session) -> int:
        _keep_currency(session, row)
        kept = TariffRow(**row.model_dump(exclude={"id"}))
        session.add(kept)
        session.flush()
        assert kept.id is not None
        return kept.id

    row.id = context.database.write(unit)
    return tariff_view(row, None, None, now)


def approve(context: Context, principal: Principal, tariff_id: int, from_instant: datetime | None) -> TariffView:
    """Puts a proposed tariff in force from an instant on, now or later; accepted quotes keep their rate."""
    principal.need_role(Role.OPERATOR)
    now = context.now()
    if from_instant is not None and require_utc(from_instant) < now:
        raise WindowInPast("a tariff comes into force now or later, never in the past")

    def unit(session: Session) -> TariffView:
        row = prices.tariff(session, tariff_id)
        if row.approved_by is not None:
            raise IllegalMove(f"tariff {tariff_id} was approved already; propose another")
        _keep_currency(session, row)
        row.approved_by, row.in_force_from = principal.id, from_instant or now
        session.add(row)
        events.tell(session, "tariff.approved", subject=str(tariff_id), at=now)
        session.flush()
        in_force = prices.tariff_in_force(session, now)
        return tariff_view(row, in_force.id if in_force else None, principal.person.name, now)

    view = context.database.write(unit)
    context.wake()
    return view


def _keep_currency(session: Session, row: TariffRow) -> None:
    """Budgets and charges are in one currency, so the first approved tariff decides it for good."""
    first = prices.first_approved(session)
    if first is None:
        return
    kept, wanted = parse_tariff(first.document).currency, parse_tariff(row.document).currency
    if wanted != kept:
        raise InvalidTariff(f"this broker's budgets are in {kept}; a tariff in {wanted} cannot come into force")


def listed(context: Context, *, before: int | None, limit: int, names: bool) -> list[TariffView]:
    """Tariffs, newest first; with `names`, who approved them."""
    now = context.now()
    with context.database.read() as session:
        in_force = prices.tariff_in_force(session, now)
        views: list[TariffView] = []
        for row in prices.tariffs(session, before=before, limit=limit):
            approver = session.get(PersonRow, row.approved_by) if names and row.approved_by else None
            views.append(tariff_view(row, in_force.id if in_force else None, approver and approver.name, now))
    return views
