"""What every service is given: the store, the market as known here, and the time. Made in the composition root."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from broker.cache import MarketCache
from broker.ports import Clock
from broker.store.database import Database
from broker.store.tables import PersonRow, TokenRow
from broker.wire.errors import Forbidden
from broker.wire.people import SEE_EVERYBODY, Role, Scope
from market.instants import zone_named
from market.quoting import Snapshot


def _nobody_waits() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Context:
    """`wake` tells the loops that something was committed; a broker without loops tells nobody."""

    database: Database
    cache: MarketCache
    clock: Clock
    zone_name: str = "UTC"
    wake: Callable[[], None] = field(default=_nobody_waits)

    def now(self) -> datetime:
        return self.clock.now()

    @contextmanager
    def market(self) -> Generator[tuple[datetime, Snapshot]]:
        """The present and the market in it, locked while in use (`NotReady`). The clock is read under the lock: a
        price book that came just before begins at no later slot."""
        with self.cache.locked():
            now = self.now()
            with self.cache.open(now) as market:
                yield now, market

    @property
    def zone(self) -> ZoneInfo:
        """The organisation's zone: its budget months and its days begin there."""
        return zone_named(self.zone_name)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a person through a token."""

    person: PersonRow
    token: TokenRow

    @property
    def id(self) -> str:
        return self.person.id

    @property
    def role(self) -> Role:
        return Role(self.person.role)

    def need_scope(self, scope: Scope) -> None:
        """`Forbidden` unless the token may be used for that."""
        if scope not in self.token.scopes:
            raise Forbidden(f"this token lacks the scope {scope}")

    def need_role(self, *roles: Role) -> None:
        """`Forbidden` unless the person has one of the roles, and the token the scope to use it."""
        self.need_scope(Scope.ADMIN)
        if self.role not in roles:
            raise Forbidden(f"this needs the role {' or '.join(roles)}; yours is {self.role}")

    @property
    def sees_everybody(self) -> bool:
        """Whether others' names and bookings may be shown."""
        return self.role in SEE_EVERYBODY

    @property
    def is_operator(self) -> bool:
        """Whether the person is an operator, with a token that may be used for that."""
        return self.role is Role.OPERATOR and Scope.ADMIN in self.token.scopes
