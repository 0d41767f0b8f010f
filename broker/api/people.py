"""Who one is, people, tokens, cost centers and budgets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from broker.api.deps import ContextDep, PrincipalDep, TicketDep, answer_once
from broker.api.pages import Cursor, Limit, page
from broker.services import people as service
from broker.store import people
from broker.version import VERSION
from broker.views import token_view
from broker.wire.errors import NotReady
from broker.wire.lists import CostCenterPage, PeoplePage, TokenPage
from broker.wire.people import (
    BudgetIn,
    CostCenterIn,
    CostCenterView,
    Me,
    MemberIn,
    NewToken,
    PersonIn,
    PersonView,
    Role,
    Scope,
    TokenIn,
)

router = APIRouter(tags=["people"])
NamePath = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9@._+-]+$")]


@router.get("/me")
def me(context: ContextDep, principal: PrincipalDep) -> Me:
    """Who this token speaks for."""
    with context.database.read() as session:
        organisation = people.organisation(session)
        usable = people.cost_centers_of(session, principal.id)
    facts = context.cache.facts(context.now())
    if organisation is None:
        raise NotReady
    default = next((row.name for row in usable if row.id == principal.person.default_cost_center_id), None)
    return Me(
        name=principal.person.name,
        role=principal.role,
        scopes=[Scope(each) for each in principal.token.scopes],
        organisation=organisation.name,
        currency=facts.currency,
        zone=organisation.zone,
        default_cost_center=default,
        broker_version=VERSION,
        simulated=facts.simulated,
    )


@router.get("/tokens")
def list_tokens(context: ContextDep, principal: PrincipalDep, cursor: Cursor = None, limit: Limit = 50) -> TokenPage:
    """One's own tokens, without their secrets."""
    with context.database.read() as session:
        rows = people.tokens_of(session, principal.id, after=cursor, limit=limit + 1)
    items, following = page([token_view(row) for row in rows], limit, lambda view: view.id)
    return TokenPage(items=items, next_cursor=following)


@router.post("/tokens", status_code=201)
def new_token(context: ContextDep, principal: PrincipalDep, body: TokenIn) -> NewToken:
    """Another token of one's own; its secret is shown this once."""
    return service.issue_own_token(context, principal, body)


@router.delete("/tokens/{token_id}", status_code=204)
def revoke_token(context: ContextDep, principal: PrincipalDep, token_id: NamePath) -> None:
    """Revokes a token at once."""
    service.revoke_token(context, principal, token_id)


@router.get("/people")
def list_people(context: ContextDep, principal: PrincipalDep, cursor: Cursor = None, limit: Limit = 50) -> PeoplePage:
    """The people of the organisation, for roles that may see them."""
    principal.need_role(Role.OPERATOR, Role.FINANCE, Role.AUDITOR)
    with context.database.read() as session:
        rows = people.people(session, after=cursor, limit=limit + 1)
    views = [PersonView(name=row.name, role=Role(row.role), active=row.active) for row in rows]
    items, following = page(views, limit, lambda view: view.name)
    return PeoplePage(items=items, next_cursor=following)


@router.post("/people", status_code=201)
def add_person(context: ContextDep, principal: PrincipalDep, body: PersonIn) -> PersonView:
    """A new person."""
    principal.need_role(Role.OPERATOR)
    return service.add_person(context, body.name, body.role)


@router.get("/cost-centers")
def list_cost_centers(context: ContextDep, principal: PrincipalDep) -> CostCenterPage:
    """The cost centers that one may use, with this month's budget."""
    return CostCenterPage(items=service.cost_centers(context, principal), next_cursor=None)


@router.post("/cost-centers", status_code=201)
def add_cost_center(context: ContextDep, principal: PrincipalDep, body: CostCenterIn) -> CostCenterView:
    """A new cost center; its budget comes with a grant."""
    principal.need_role(Role.OPERATOR, Role.FINANCE)
    return service.add_cost_center(context, body.name, body.owner)


@router.post("/cost-centers/{name}/budgets", status_code=201, response_model=CostCenterView)
def grant_budget(
    request: Request, context: ContextDep, principal: PrincipalDep, ticket: TicketDep, name: NamePath, body: BudgetIn
) -> Response:
    """Adds to the budget of a month."""
    principal.need_role(Role.OPERATOR, Role.FINANCE)
    asked = ticket(body.model_dump(mode="json"))
    return answer_once(request, asked, lambda given: service.grant_budget_once(context, name, body, given))


@router.post("/cost-centers/{name}/members", status_code=204)
def add_member(context: ContextDep, principal: PrincipalDep, name: NamePath, body: MemberIn) -> None:
    """Lets a person book on a cost center; its owner may do that, too."""
    service.need_keeper(context, principal, name)
    service.add_member(context, name, body.person)
