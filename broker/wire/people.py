"""People, roles, tokens, cost centers and budgets."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from broker.wire.base import Answer, Id, Instant, Message, Micros, Name


class Role(StrEnum):
    """What a person may do in an organisation."""

    MEMBER = "member"
    OWNER = "owner"
    FINANCE = "finance"
    OPERATOR = "operator"
    AUDITOR = "auditor"


SEE_EVERYBODY = (Role.OPERATOR, Role.FINANCE, Role.AUDITOR)
"""The roles that others' names and bookings are shown to."""
KEEP_BUDGETS = (Role.OPERATOR, Role.FINANCE)
"""The roles that make cost centers and give them budgets."""


class Scope(StrEnum):
    """What a token may be used for; it never allows more than its person's role does."""

    READ = "read"
    BOOK = "book"
    ADMIN = "admin"


class PersonIn(Message):
    """A new person of the organisation."""

    name: Name
    role: Role = Role.MEMBER


class PersonView(Answer):
    """A person as the organisation knows them."""

    name: str
    role: Role
    active: bool


class Me(Answer):
    """Who a token speaks for."""

    name: str
    role: Role
    scopes: list[Scope]
    organisation: str
    currency: str
    zone: str
    default_cost_center: str | None
    broker_version: str
    simulated: bool


class TokenIn(Message):
    """Asks for another token of the same person, with no more scopes than the one used to ask."""

    label: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)]
    days: Annotated[int, Field(ge=1, le=366)] = 90


class TokenView(Answer):
    """A token without its secret."""

    id: Id
    label: str
    scopes: list[Scope]
    created_at: Instant
    expires_at: Instant
    revoked: bool


class NewToken(TokenView):
    """A token with its secret, shown this once."""

    secret: str


class CostCenterIn(Message):
    """A new cost center, owned by a person."""

    name: Name
    owner: Name


class CostCenterView(Answer):
    """A cost center with the budget of the current period: limit = spent + held + left."""

    name: str
    owner: str
    currency: str
    period_start: Instant
    period_end: Instant
    limit: Micros
    spent: Micros
    held: Micros
    left: Micros


class BudgetIn(Message):
    """Adds to the budget of the month that contains `period` (the current one when none is said)."""

    amount: Annotated[int, Field(gt=0, le=10**18, description="micros")]
    period: Instant | None = None


class MemberIn(Message):
    """Lets a person book on a cost center."""

    person: Name
