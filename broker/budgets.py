"""Who pays and whether it will do: what quoting and booking both ask of a cost center. Reads only."""

from __future__ import annotations

from sqlmodel import Session

from broker.context import Context, Principal
from broker.store import ledger, people
from broker.store.tables import CostCenterRow
from broker.wire.errors import NotFound
from market.instants import Window, local_months
from market.ledger import split_by_period


def usable_cost_center(session: Session, principal: Principal, name: str | None) -> CostCenterRow:
    """The named cost center, or the person's only or default one (`NotFound` when they may not book on it)."""
    usable = people.cost_centers_of(session, principal.id)
    if name is None:
        default = [row for row in usable if row.id == principal.person.default_cost_center_id]
        if found := default or (usable if len(usable) == 1 else []):
            return found[0]
        choices = ", ".join(row.name for row in usable) or "none: ask an operator for one"
        raise NotFound(f"say which cost center pays; yours are {choices}")
    for row in usable:
        if row.name == name:
            return row
    raise NotFound(f"no cost center that you may use is called {name!r}")


def tightest_month(
    context: Context, session: Session, cost_center: CostCenterRow, window: Window, total: int
) -> tuple[int, Window]:
    """What a booking would leave, in micros, of the month's budget that it leaves least of, and that month. Negative
    when it would not do."""
    periods = local_months(window, context.zone)
    left: list[tuple[int, Window]] = []
    for period, share in zip(periods, split_by_period(total, window, periods), strict=True):
        accounts = ledger.budget(session, cost_center.id, period.start)
        left.append(((accounts.budget.balance if accounts else 0) - share, period))
    return min(left, key=lambda each: each[0])


def budget_left_after(
    context: Context, session: Session, cost_center: CostCenterRow, window: Window, total: int
) -> int:
    """What is left of the tightest month, in micros; negative when it would not do."""
    return tightest_month(context, session, cost_center, window, total)[0]
