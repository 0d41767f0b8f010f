"""Queries for organisations, people, tokens and cost-center membership."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session, col, or_, select

from broker.store.tables import CostCenterMemberRow, CostCenterRow, OrganisationRow, PersonRow, TokenRow
from broker.wire.errors import NotFound


def organisation(session: Session) -> OrganisationRow | None:
    return session.exec(select(OrganisationRow)).first()


def by_token_digest(session: Session, digest: str, now: datetime) -> tuple[PersonRow, TokenRow] | None:
    """The active person of a live token."""
    query = (
        select(PersonRow, TokenRow)
        .where(col(TokenRow.person_id) == col(PersonRow.id), col(TokenRow.digest) == digest)
        .where(col(TokenRow.revoked_at).is_(None), col(TokenRow.expires_at) > now, col(PersonRow.active))
    )
    found = session.exec(query).first()
    return None if found is None else (found[0], found[1])


def person_named(session: Session, name: str) -> PersonRow:
    found = session.exec(select(PersonRow).where(col(PersonRow.name) == name)).first()
    if found is None:
        raise NotFound(f"no person is called {name!r}")
    return found


def people(session: Session, *, after: str | None, limit: int | None) -> list[PersonRow]:
    """People by name, after a name."""
    query = select(PersonRow).order_by(col(PersonRow.name)).limit(limit)
    return list(session.exec(query.where(col(PersonRow.name) > after) if after else query))


def tokens_of(session: Session, person_id: str, *, after: str | None, limit: int) -> list[TokenRow]:
    query = select(TokenRow).where(col(TokenRow.person_id) == person_id).order_by(col(TokenRow.id)).limit(limit)
    return list(session.exec(query.where(col(TokenRow.id) > after) if after else query))


def is_live(session: Session, token_id: str, now: datetime) -> bool:
    """Whether a token still counts. Its row is taken, so that it is not revoked before this unit of work ends."""
    query = select(TokenRow).where(col(TokenRow.id) == token_id, col(TokenRow.revoked_at).is_(None))
    return session.exec(query.where(col(TokenRow.expires_at) > now).with_for_update()).first() is not None


def revoke(session: Session, token_id: str, at: datetime) -> None:
    """Ends a token and every token that it asked for, directly or not; what has ended stays as it is."""
    ending = [token_id]
    while ending:
        rows = list(session.exec(select(TokenRow).where(col(TokenRow.id).in_(ending)).with_for_update()))
        for row in rows:
            row.revoked_at = row.revoked_at or at
            session.add(row)
        ending = list(session.exec(select(TokenRow.id).where(col(TokenRow.parent_id).in_(ending))))


def cost_center(session: Session, name: str) -> CostCenterRow:
    found = session.exec(select(CostCenterRow).where(col(CostCenterRow.name) == name)).first()
    if found is None:
        raise NotFound(f"no cost center that you may use is called {name!r}")
    return found


def cost_centers_of(session: Session, person_id: str) -> list[CostCenterRow]:
    """The cost centers that a person owns or may book on, by name."""
    member = select(CostCenterMemberRow.cost_center_id).where(col(CostCenterMemberRow.person_id) == person_id)
    query = select(CostCenterRow).where(
        or_(col(CostCenterRow.owner_id) == person_id, col(CostCenterRow.id).in_(member))
    )
    return list(session.exec(query.order_by(col(CostCenterRow.name))))


def all_cost_centers(session: Session) -> list[CostCenterRow]:
    return list(session.exec(select(CostCenterRow).order_by(col(CostCenterRow.name))))
