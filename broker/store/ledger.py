"""Queries for accounts, transfers and holds. Balances move by a trigger when a transfer is inserted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func
from sqlmodel import Session, col, select

from broker.store.tables import AccountRow, HoldRow, TransferRow
from market.instants import Window
from market.ledger import AccountKind, TransferReason


@dataclass(frozen=True, slots=True)
class BudgetAccounts:
    """The three accounts of one budget period; limit = left + held + spent."""

    period: Window
    budget: AccountRow
    held: AccountRow
    revenue: AccountRow


def budget(session: Session, cost_center_id: str, period_start: datetime) -> BudgetAccounts | None:
    """The accounts of the budget period that starts then, if that period was ever given money."""
    query = select(AccountRow).where(
        col(AccountRow.cost_center_id) == cost_center_id, col(AccountRow.period_start) == period_start
    )
    by_kind = {AccountKind(row.kind): row for row in session.exec(query)}
    if not by_kind:
        return None
    row = by_kind[AccountKind.BUDGET]
    assert row.period_start is not None
    assert row.period_end is not None
    period = Window(row.period_start, row.period_end)
    return BudgetAccounts(period, row, by_kind[AccountKind.HELD], by_kind[AccountKind.REVENUE])


def open_budget(session: Session, cost_center_id: str, period: Window) -> BudgetAccounts:
    """The accounts of a budget period, made when they are not there."""
    found = budget(session, cost_center_id, period.start)
    if found:
        return found
    for kind in (AccountKind.BUDGET, AccountKind.HELD, AccountKind.REVENUE):
        session.add(
            AccountRow(kind=kind, cost_center_id=cost_center_id, period_start=period.start, period_end=period.end)
        )
    session.flush()
    made = budget(session, cost_center_id, period.start)
    assert made is not None
    return made


def grants_account(session: Session) -> AccountRow:
    """The one account that budgets are granted from, made when it is not there."""
    found = session.exec(select(AccountRow).where(col(AccountRow.kind) == AccountKind.GRANTS)).first()
    if found is None:
        found = AccountRow(kind=AccountKind.GRANTS)
        session.add(found)
        session.flush()
    return found


def transfer(
    session: Session, *, debit: AccountRow, credit: AccountRow, amount: int, reason: TransferReason, at: datetime,
    booking_id: str | None = None,
) -> None:  # fmt: skip
    """Moves an amount; a move of nothing leaves no row."""
    if amount == 0:
        return
    row = TransferRow(
        debit_id=_id(debit), credit_id=_id(credit), amount=amount, reason=reason, booking_id=booking_id, at=at
    )
    session.add(row)
    session.flush()


def holds_of(session: Session, booking_id: str) -> list[HoldRow]:
    """The holds of a booking, in order of their budget periods."""
    query = select(HoldRow).where(col(HoldRow.booking_id) == booking_id)
    return list(session.exec(query.order_by(col(HoldRow.period_start))))


def imbalances(session: Session) -> list[int]:
    """Accounts whose balance is not the sum of their transfers: none, ever. For checks and statements."""
    sums: dict[int, int] = {}
    for column, sign in ((TransferRow.debit_id, -1), (TransferRow.credit_id, 1)):
        for account, amount in session.exec(select(column, func.sum(TransferRow.amount)).group_by(col(column))):
            sums[account] = sums.get(account, 0) + sign * int(amount)
    rows: Iterable[AccountRow] = session.exec(select(AccountRow))
    return [_id(row) for row in rows if row.balance != sums.get(_id(row), 0)]


def _id(row: AccountRow) -> int:
    assert row.id is not None
    return row.id
