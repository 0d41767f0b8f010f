"""What is for sale: offers, curves, price books, tariffs, the pool."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from broker.api.deps import ContextDep, PrincipalDep
from broker.api.pages import Cursor, Limit, Number, number_of, page
from broker.services import browse, tariffs
from broker.store import prices
from broker.views import price_book_view
from broker.wire.lists import PriceBookPage, TariffPage
from broker.wire.market import CurveView, OffersView, PoolView, TariffApproval, TariffIn, TariffView
from market.catalog import Sku, Tier

router = APIRouter(tags=["market"])


@router.get("/offers")
def offers(
    context: ContextDep,
    _principal: PrincipalDep,
    need: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    tier: Tier = Tier.STANDARD,
) -> OffersView:
    """What could be had in the next hour: advice, no promise."""
    return browse.offers(context, need, tier)


@router.get("/curves/{model}/{shape}")
def curve(
    context: ContextDep,
    _principal: PrincipalDep,
    model: str,
    shape: str,
    tier: Tier = Tier.STANDARD,
    hours: Annotated[int, Query(ge=1, le=336)] = 24,
) -> CurveView:
    """The rate of a SKU for each slot of the coming hours."""
    return browse.curve(context, Sku(model.lower(), shape.lower()), tier, hours)


@router.get("/pool")
def pool(context: ContextDep, _principal: PrincipalDep, cursor: Cursor = None, limit: Limit = 50) -> PoolView:
    """The nodes and devices of the pool."""
    return browse.pool(context, after=cursor, limit=limit)


@router.get("/price-books")
def price_books(
    context: ContextDep, _principal: PrincipalDep, cursor: Cursor = None, limit: Limit = 50
) -> PriceBookPage:
    """Published price books, newest first."""
    with context.database.read() as session:
        rows = prices.books(session, before=number_of(cursor), limit=limit + 1)
        views = [price_book_view(session, row) for row in rows]
    items, following = page(views, limit, lambda view: str(view.number))
    return PriceBookPage(items=items, next_cursor=following)


@router.get("/tariffs")
def list_tariffs(context: ContextDep, principal: PrincipalDep, cursor: Cursor = None, limit: Limit = 50) -> TariffPage:
    """Tariffs, newest first."""
    views = tariffs.listed(context, before=number_of(cursor), limit=limit + 1, names=principal.sees_everybody)
    items, following = page(views, limit, lambda view: str(view.id))
    return TariffPage(items=items, next_cursor=following)


@router.post("/tariffs", status_code=201)
def propose_tariff(context: ContextDep, principal: PrincipalDep, body: TariffIn) -> TariffView:
    """Stores a tariff for approval."""
    return tariffs.propose(context, principal, body.document)


@router.post("/tariffs/{tariff_id}/approve")
def approve_tariff(context: ContextDep, principal: PrincipalDep, tariff_id: Number, body: TariffApproval) -> TariffView:
    """Puts a proposed tariff in force."""
    return tariffs.approve(context, principal, tariff_id, body.in_force_from)
