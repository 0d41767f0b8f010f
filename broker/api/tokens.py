"""One's own tokens."""

from __future__ import annotations

from fastapi import APIRouter

from broker.api.deps import ContextDep, NamePath, PrincipalDep
from broker.api.pages import Cursor, Limit, page
from broker.services import tokens
from broker.store import people
from broker.views import token_view
from broker.wire.lists import TokenPage
from broker.wire.people import NewToken, TokenIn

router = APIRouter(tags=["tokens"])


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
    return tokens.issue_own(context, principal, body)


@router.delete("/tokens/{token_id}", status_code=204)
def revoke_token(context: ContextDep, principal: PrincipalDep, token_id: NamePath) -> None:
    """Revokes a token at once."""
    tokens.revoke(context, principal, token_id)
