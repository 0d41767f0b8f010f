"""People, tokens, cost centers and budgets: what an operator sets up before anybody can book."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from sqlmodel import Session

from broker.context import Context, Principal
from broker.ids import Kind, digest, new_id, new_secret
from broker.store import answers, events, ledger, people
from broker.store.answers import Stored, Ticket
from broker.store.database import Duplicate
from broker.store.tables import CostCenterMemberRow, CostCenterRow, OrganisationRow, PersonRow, TokenRow
from broker.views import cost_center_view, token_view
from broker.wire.errors import AlreadyExists, Forbidden, NotAuthenticated, NotFound
from broker.wire.people import BudgetIn, CostCenterView, NewToken, PersonView, Role, Scope, TokenIn
from market.errors import InvalidAmount, InvalidInstant
from market.instants import Window, local_months, whole_second
from market.ledger import TransferReason
from market.money import MAX_MICROS

T = TypeVar("T")
MOST_GRANTED = 9 * MAX_MICROS
"""Of all budgets together: what the account that they are granted from can count."""


def authenticate(context: Context, secret: str) -> Principal:
    """Who a token speaks for (`NotAuthenticated` when it is wrong, expired or revoked)."""
    with context.database.read() as session:
        found = people.by_token_digest(session, digest(secret), context.now())
    if found is None:
        raise NotAuthenticated
    return Principal(*found)


def found_organisation(context: Context, name: str) -> OrganisationRow:
    """The organisation of this broker, made at its first start."""

    def unit(session: Session) -> OrganisationRow:
        row = people.organisation(session)
        if row is None:
            row = OrganisationRow(id=new_id(Kind.ORGANISATION), name=name, zone=context.zone_name)
            session.add(row)
        return row

    return context.database.write(unit)


def add_person(context: Context, name: str, role: Role) -> PersonView:
    """A new person (`AlreadyExists`)."""

    def unit(session: Session) -> PersonView:
        organisation = people.organisation(session)
        assert organisation is not None
        session.add(PersonRow(id=new_id(Kind.PERSON), organisation_id=organisation.id, name=name, role=role))
        return PersonView(name=name, role=role, active=True)

    try:
        return context.database.write(unit)
    except Duplicate:
        raise AlreadyExists(f"there is a person called {name!r} already") from None


def set_active(context: Context, name: str, *, active: bool) -> PersonView:
    """Closes or opens the door to a person: with `active` false no token of theirs is worth anything."""

    def unit(session: Session) -> PersonView:
        row = people.person_named(session, name)
        row.active = active
        session.add(row)
        return PersonView(name=row.name, role=Role(row.role), active=active)

    return context.database.write(unit)


def issue_token(context: Context, person_name: str, asked: TokenIn, *, parent: TokenRow | None = None) -> NewToken:
    """A new token of a person, outliving no `parent`; its secret is in this answer and nowhere else."""
    now, secret = context.now(), new_secret()
    wanted = now + timedelta(days=asked.days)
    expires_at = min(wanted, parent.expires_at) if parent else wanted

    def unit(session: Session) -> NewToken:
        row = TokenRow(
            id=new_id(Kind.TOKEN),
            person_id=people.person_named(session, person_name).id,
            parent_id=parent.id if parent else None,
            label=asked.label,
            digest=digest(secret),
            scopes=[str(each) for each in dict.fromkeys(asked.scopes)],
            created_at=now,
            expires_at=expires_at,
        )
        session.add(row)
        return NewToken(**token_view(row).model_dump(), secret=secret)

    return context.database.write(unit)


def issue_own_token(context: Context, principal: Principal, asked: TokenIn) -> NewToken:
    """Another token of the same person: never with more scopes than the one used to ask, and never outliving it."""
    principal.need_scope(Scope.BOOK)
    beyond = [scope for scope in asked.scopes if scope not in principal.token.scopes]
    if beyond:
        raise Forbidden(f"this token lacks the scope {beyond[0]!r} itself")
    return issue_token(context, principal.person.name, asked, parent=principal.token)


def revoke_token(context: Context, principal: Principal, token_id: str) -> None:
    """Revokes a token of this person, or anybody's for an operator, with those that it asked for.

    One that only reads can revoke but itself.
    """
    now = context.now()
    if token_id != principal.token.id:
        principal.need_scope(Scope.BOOK)

    def unit(session: Session) -> None:
        row = session.get(TokenRow, token_id)
        if row is None or not (row.person_id == principal.id or _is_operator(principal)):
            raise NotFound(f"no token {token_id} of yours")
        people.revoke(session, token_id, now)

    context.database.write(unit)


def add_cost_center(context: Context, name: str, owner: str) -> CostCenterView:
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
    return cost_center(context, name)


def need_keeper(context: Context, principal: Principal, cost_center_name: str) -> None:
    """`Forbidden` unless the person owns the cost center, or has the office to keep all of them."""
    with context.database.read() as session:
        owner_id = people.cost_center(session, cost_center_name).owner_id
    if owner_id != principal.id:
        principal.need_role(Role.OPERATOR, Role.FINANCE)
    principal.need_scope(Scope.BOOK)


def add_member(context: Context, cost_center_name: str, person: str) -> None:
    """Lets a person book on a cost center; a second time changes nothing."""

    def unit(session: Session) -> None:
        row, who = people.cost_center(session, cost_center_name), people.person_named(session, person)
        session.merge(CostCenterMemberRow(cost_center_id=row.id, person_id=who.id))

    context.database.write(unit)


def grant_budget(context: Context, name: str, amount: int, at: datetime | None) -> CostCenterView:
    """Adds `amount` micros to the budget of the month that contains an instant, by a transfer from the grants
    (`InvalidAmount` for more than can be counted)."""
    return _first_or_again(context, lambda session: _grant(context, session, name, amount, at))


def grant_budget_once(context: Context, name: str, asked: BudgetIn, ticket: Ticket) -> Stored:
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
    row = people.cost_center(session, name)
    accounts, grants = ledger.open_budget(session, row.id, _month(context, at or now)), ledger.grants_account(session)
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


def cost_center(context: Context, name: str, at: datetime | None = None) -> CostCenterView:
    with context.database.read() as session:
        return _cost_center_view(context, session, people.cost_center(session, name), at or context.now())


def cost_centers(context: Context, principal: Principal) -> list[CostCenterView]:
    """The cost centers that a person may use, or all for those who see everybody."""
    if principal.sees_everybody:
        return all_cost_centers(context)
    with context.database.read() as session:
        rows = people.cost_centers_of(session, principal.id)
        return [_cost_center_view(context, session, row, context.now()) for row in rows]


def all_cost_centers(context: Context) -> list[CostCenterView]:
    with context.database.read() as session:
        rows = people.all_cost_centers(session)
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


def _is_operator(principal: Principal) -> bool:
    return principal.role is Role.OPERATOR and Scope.ADMIN in principal.token.scopes
