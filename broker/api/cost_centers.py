"""Cost centers and their budgets."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from broker.api.deps import ContextDep, NamePath, PrincipalDep, TicketDep, answer_once
from broker.services import cost_centers
from broker.wire.lists import CostCenterPage
from broker.wire.people import KEEP_BUDGETS, BudgetIn, CostCenterIn, CostCenterView, MemberIn

router = APIRouter(tags=["cost centers"])


@router.get("/cost-centers")
def list_cost_centers(context: ContextDep, principal: PrincipalDep) -> CostCenterPage:
    """The cost centers that one may use, with this month's budget."""
    return CostCenterPage(items=cost_centers.listed(context, principal), next_cursor=None)


@router.post("/cost-centers", status_code=201)
def add_cost_center(context: ContextDep, principal: PrincipalDep, body: CostCenterIn) -> CostCenterView:
    """A new cost center; its budget comes with a grant."""
    principal.need_role(*KEEP_BUDGETS)
    return cost_centers.add(context, body.name, body.owner)


@router.post("/cost-centers/{name}/budgets", status_code=201, response_model=CostCenterView)
def grant_budget(
    request: Request, context: ContextDep, principal: PrincipalDep, ticket: TicketDep, name: NamePath, body: BudgetIn
) -> Response:
    """Adds to the budget of a month."""
    principal.need_role(*KEEP_BUDGETS)
    asked = ticket(body.model_dump(mode="json"))
    return answer_once(request, asked, lambda given: cost_centers.grant_once(context, name, body, given))


@router.post("/cost-centers/{name}/members", status_code=204)
def add_member(context: ContextDep, principal: PrincipalDep, name: NamePath, body: MemberIn) -> None:
    """Lets a person book on a cost center; its owner may do that, too."""
    cost_centers.need_owner_or_office(context, principal, name)
    cost_centers.add_member(context, name, body.person)
