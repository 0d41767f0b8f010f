"""People of the organisation: what an operator sets up before anybody can book."""

from __future__ import annotations

from sqlmodel import Session

from broker.context import Context
from broker.ids import Kind, new_id
from broker.store import people
from broker.store.database import Duplicate
from broker.store.tables import PersonRow
from broker.wire.errors import AlreadyExists
from broker.wire.people import PersonView, Role


def add(context: Context, name: str, role: Role) -> PersonView:
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
