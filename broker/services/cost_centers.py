"""Cost centers: who may book on them, and their budgets, which are granted by the month."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from sqlmodel import Session

from broker.context import Context, Principal
from broker.ids import Kind, new_id
from broker.store import answers, events, ledger, people
from broker.store.answers import Stored, Ticket
from broker.store.database import Duplicate
from broker.store.tables import CostCenterMemberRow, CostCenterRow, PersonRow
from broker.views import cost_center_view
from broker.wire.errors import AlreadyExists, NotFound
from broker.wire.people import KEEP_BUDGETS, BudgetIn, CostCenterView, Scope
from market.errors import InvalidAmount, InvalidInstant
from market.instants import Window, local_months, whole_second
from market.ledger import TransferReason
from market.money import MAX_MICROS

T = TypeVar("T")
MOST_GRANTED = 9 * MAX_MICROS
"""Of all budgets together: what the account that they are granted from can count."""


def add(context: Context, name: str, owner: str) -> CostCenterView:
    """A new cost center without a budget (`AlreadyExists`; `NotReady` before there is a currency)."""
    context.cache.facts(context.now())

    def unit(session: Session) -> None:
        organisation, person = people.organisation(session), people.person_named(session, owner)
        assert organisation is not None
        row = CostCenterRow(id=new_id(Kind.COST_CENTER), organisation_id=organisation.id, name=name, owner_id=person.id)
        session.add(row)
        if person.default_cost_center_id is None:
            person.default_cost_center_id = row.id
            session.add(person)

    try:
        context.database.write(unit)
    except Duplicate:
        raise AlreadyExists(f"there is a cost center called {name!r} already") from None
    return show(context, name)


def need_owner_or_office(context: Context, principal: Principal, name: str) -> None:
    """`Forbidden` unless the person owns the cost center or has the office to keep all of them; `NotFound` for one
    that they may not even use."""
    if principal.role in KEEP_BUDGETS:
        principal.need_role(*KEEP_BUDGETS)
    else:
        with context.database.read() as session:
            row = next((each for each in people.cost_centers_of(session, principal.id) if each.name == name), None)
        if row is None:
            raise NotFound(f"no cost center that you may use is called {name!r}")
        if row.owner_id != principal.id:
            principal.need_role(*KEEP_BUDGETS)
    principal.need_scope(Scope.BOOK)


def add_member(context: Context, cost_center_name: str, person: str) -> None:
    """Lets a person book on a cost center; a second time changes nothing."""

    def unit(session: Session) -> None:
        row, who = people.cost_center(session, cost_center_name), people.person_named(session, person)
        session.merge(CostCenterMemberRow(cost_center_id=row.id, person_id=who.id))

    with suppress(Duplicate):  # a twin was faster
        context.database.write(unit)


def grant(context: Context, name: str, amount: int, at: datetime | None) -> CostCenterView:
    """Adds `amount` micros to the budget of the month that contains an instant, by a transfer from the grants
    (`InvalidAmount` for more than can be counted)."""
    return _first_or_again(context, lambda session: _grant(context, session, name, amount, at))


def grant_once(context: Context, name: str, asked: BudgetIn, ticket: Ticket) -> Stored:
    """Adds to a budget; `ticket` makes a repeated request get the first one's answer."""

    def unit(session: Session) -> Stored:
        answered = answers.find(session, ticket, context.now())
        if answered is None:
            view = _grant(context, session, name, asked.amount, asked.period)
            answered = Stored(201, view.model_dump(mode="json"))
            answers.keep(session, ticket, answered, context.now())
        return answered

    return _first_or_again(context, unit)


def _first_or_again(context: Context, unit: Callable[[Session], T]) -> T:
    """A twin may open the same budget, or answer the same key, in the meantime; then it is there the second time."""
    try:
        return context.database.write(unit)
    except Duplicate:
        return context.database.write(unit)


def _grant(context: Context, session: Session, name: str, amount: int, at: datetime | None) -> CostCenterView:
    now = context.now()
    row, month = people.cost_center(session, name), _month(context, at or now)
    if month.end <= now:
        raise InvalidInstant(f"{month.start.astimezone(context.zone):%B %Y} is over; its budget stays as it was")
    accounts, grants = ledger.open_budget(session, row.id, month), ledger.grants_account(session)
    limit = accounts.budget.balance + accounts.held.balance + accounts.revenue.balance
    if amount <= 0:
        raise InvalidAmount("a budget is added to by more than nothing")
    if limit + amount > MAX_MICROS or amount - grants.balance > MOST_GRANTED:
        raise InvalidAmount(f"{amount} micros more would make budgets larger than the market can count")
    ledger.transfer(session, debit=grants, credit=accounts.budget, amount=amount, reason=TransferReason.GRANT, at=now)
    events.tell(session, "budget.granted", subject=name, at=now, person_id=row.owner_id, amount=amount)
    session.flush()
    session.expire_all()  # the database has moved the balances
    return _cost_center_view(context, session, people.cost_center(session, name), at or now)


def show(context: Context, name: str, at: datetime | None = None) -> CostCenterView:
    with context.database.read() as session:
        return _cost_center_view(context, session, people.cost_center(session, name), at or context.now())


def listed(context: Context, principal: Principal | None) -> list[CostCenterView]:
    """The cost centers that a person may use; all for those who see everybody, and for the host itself (None)."""
    with context.database.read() as session:
        if principal is None or principal.sees_everybody:
            rows = people.all_cost_centers(session)
        else:
            rows = people.cost_centers_of(session, principal.id)
        return [_cost_center_view(context, session, row, context.now()) for row in rows]


def _cost_center_view(context: Context, session: Session, row: CostCenterRow, at: datetime) -> CostCenterView:
    period = _month(context, at)
    owner = session.get(PersonRow, row.owner_id)
    assert owner is not None
    accounts = ledger.budget(session, row.id, period.start)
    return cost_center_view(row, owner.name, context.cache.facts(context.now()).currency, period, accounts)


def _month(context: Context, at: datetime) -> Window:
    second = whole_second(at)
    try:
        return local_months(Window(second, second + timedelta(seconds=1)), context.zone)[0]
    except OverflowError:
        raise InvalidInstant(f"{at.isoformat()} is outside the years 1 to 9999") from None
