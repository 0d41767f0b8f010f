"""What a command needs to talk to the broker: the client, a person's zone and the present."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from broker.client.credentials import Credentials, load
from broker.client.errors import AmbiguousId, NotLoggedIn, UnknownId
from broker.client.http import Client
from broker.client.zones import personal_zone
from broker.wire.people import SEE_EVERYBODY
from broker.wire.quotes import BookingView
from market.errors import GputideError
from market.instants import zone_named


@dataclass(frozen=True)
class Session:
    """A person at their broker."""

    client: Client
    credentials: Credentials

    @cached_property
    def zone(self) -> ZoneInfo:
        """The person's zone; the broker's where their machine tells none."""
        return personal_zone(self.credentials.zone) or zone_named(self.client.me().zone)

    def booking(self, start_of_id: str) -> BookingView:
        """The booking with an id, or with the only id that starts so (what comes before `_` may be left out)."""
        if re.fullmatch(r"[a-z]{1,4}_[0-9a-f]{24}", start_of_id):
            return self.client.booking(start_of_id)
        sees_everybody = self.client.me().role in SEE_EVERYBODY
        every = self.client.every_booking(everybody=sees_everybody)
        found = [each for each in every if _starts(each.id, start_of_id)]
        if not found:
            raise UnknownId(f"no booking of yours has an id that starts with {start_of_id!r}; see: gputide bookings")
        if len(found) > 1:
            some = ", ".join(each.id for each in found[:3])
            raise AmbiguousId(f"{len(found)} bookings have an id that starts with {start_of_id!r}, as {some}")
        return found[0]


@contextmanager
def session() -> Generator[Session]:
    """A session at the broker that is known here (`NotLoggedIn` when none is)."""
    credentials = load()
    if credentials.url is None:
        raise NotLoggedIn
    with Client(credentials.url, credentials.token, ca_bundle=credentials.ca_bundle) as client:
        yield Session(client, credentials)


def zone_without_broker() -> ZoneInfo:
    """The person's zone where the broker is not to be asked: UTC when their machine tells none."""
    try:
        return personal_zone(load().zone) or ZoneInfo("UTC")
    except GputideError:
        return ZoneInfo("UTC")


def now() -> datetime:
    return datetime.now(UTC)


def _starts(booking_id: str, start: str) -> bool:
    return bool(start) and (booking_id.startswith(start) or booking_id.partition("_")[2].startswith(start))
