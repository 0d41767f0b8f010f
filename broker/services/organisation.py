"""The organisation of this broker: founded at its first start, at home in one zone for good."""

from __future__ import annotations

from dataclasses import replace

from sqlmodel import Session

from broker.context import Context
from broker.ids import Kind, new_id
from broker.settings import InvalidSettings
from broker.store import people
from broker.store.tables import OrganisationRow


def at_home(context: Context, name: str, zone: str | None) -> Context:
    """The context in the zone of the organisation, which is founded with this one (UTC if none) when there is none.

    Its budget months begin at local midnights, so the zone never changes: to ask for another is `InvalidSettings`.
    """

    def unit(session: Session) -> OrganisationRow:
        row = people.organisation(session)
        if row is None:
            row = OrganisationRow(id=new_id(Kind.ORGANISATION), name=name, zone=zone or "UTC")
            session.add(row)
        return row

    kept = context.database.write(unit).zone
    if zone is not None and zone != kept:
        raise InvalidSettings(f"organisation_zone: this organisation's budgets are in {kept} and stay there")
    return replace(context, zone_name=kept)
