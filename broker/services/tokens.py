"""Tokens: whom one speaks for, what it may do, how it ends."""

from __future__ import annotations

from datetime import timedelta

from sqlmodel import Session

from broker.context import Context, Principal
from broker.ids import Kind, digest, new_id, new_secret
from broker.store import people
from broker.store.tables import TokenRow
from broker.views import token_view
from broker.wire.errors import Forbidden, NotAuthenticated, NotFound
from broker.wire.people import NewToken, Scope, TokenIn


def authenticate(context: Context, secret: str) -> Principal:
    """Who a token speaks for (`NotAuthenticated` when it is wrong, expired or revoked)."""
    with context.database.read() as session:
        found = people.by_token_digest(session, digest(secret), context.now())
    if found is None:
        raise NotAuthenticated
    return Principal(*found)


def issue(context: Context, person_name: str, asked: TokenIn, *, parent: TokenRow | None = None) -> NewToken:
    """A new token of a person, outliving no `parent`; its secret is in this answer and nowhere else."""
    now, secret = context.now(), new_secret()
    wanted = now + timedelta(days=asked.days)
    expires_at = min(wanted, parent.expires_at) if parent else wanted

    def unit(session: Session) -> NewToken:
        if parent is not None and not people.is_live(session, parent.id, now):
            raise NotAuthenticated  # revoked since it was shown
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


def issue_own(context: Context, principal: Principal, asked: TokenIn) -> NewToken:
    """Another token of the same person: never with more scopes than the one used to ask, and never outliving it."""
    principal.need_scope(Scope.BOOK)
    beyond = [scope for scope in asked.scopes if scope not in principal.token.scopes]
    if beyond:
        raise Forbidden(f"this token lacks the scope {beyond[0]} itself")
    return issue(context, principal.person.name, asked, parent=principal.token)


def revoke(context: Context, principal: Principal, token_id: str) -> None:
    """Revokes a token of this person, or anybody's for an operator, with those that it asked for.

    One that only reads can revoke but itself.
    """
    now = context.now()
    if token_id != principal.token.id:
        principal.need_scope(Scope.BOOK)

    def unit(session: Session) -> None:
        row = session.get(TokenRow, token_id)
        if row is None or not (row.person_id == principal.id or principal.is_operator):
            raise NotFound(f"no token {token_id} of yours")
        people.revoke(session, token_id, now)

    context.database.write(unit)
