"""Who one is, and the people of the organisation."""

from __future__ import annotations

from fastapi import APIRouter

from broker.api.deps import ContextDep, PrincipalDep
from broker.api.pages import Cursor, Limit, page
from broker.services import people as service
from broker.store import people
from broker.version import VERSION
from broker.wire.errors import NotReady
from broker.wire.lists import PeoplePage
from broker.wire.people import SEE_EVERYBODY, Me, PersonIn, PersonView, Role, Scope

router = APIRouter(tags=["people"])


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


@router.get("/people")
def list_people(context: ContextDep, principal: PrincipalDep, cursor: Cursor = None, limit: Limit = 50) -> PeoplePage:
    """The people of the organisation, for roles that may see them."""
    principal.need_role(*SEE_EVERYBODY)
    with context.database.read() as session:
        rows = people.people(session, after=cursor, limit=limit + 1)
    views = [PersonView(name=row.name, role=Role(row.role), active=row.active) for row in rows]
    items, following = page(views, limit, lambda view: view.name)
    return PeoplePage(items=items, next_cursor=following)


@router.post("/people", status_code=201)
def add_person(context: ContextDep, principal: PrincipalDep, body: PersonIn) -> PersonView:
    """A new person."""
    principal.need_role(Role.OPERATOR)
    return service.add(context, body.name, body.role)
