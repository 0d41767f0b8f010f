"""Small brokers for tests: a pool made by hand, a tariff with round numbers, a person who may book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from broker.cache import MarketCache
from broker.clock import ManualClock
from broker.context import Context, Principal
from broker.failpoints import Trip, never
from broker.operator import put_tariff_in_force
from broker.services import cost_centers, people, publish, tokens
from broker.services.book import book
from broker.services.load_pool import load_pool
from broker.services.organisation import at_home
from broker.services.quote import quote
from broker.store import migrations
from broker.store.answers import Stored, Ticket
from broker.store.database import Database
from broker.wire.people import Role, Scope, TokenIn
from broker.wire.quotes import QuoteRequest, QuoteView
from market.catalog import Device, DeviceKind, DeviceModel, Node, Pool
from market.money import MICROS

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
A100 = DeviceModel(name="a100-40g", title="NVIDIA A100 40 GB", memory_gb=40, mig_board="A100-40GB")
L4 = DeviceModel(name="l4", title="NVIDIA L4", memory_gb=24)
TARIFF = """
name = "round"
currency = "EUR"
zone = "Europe/Berlin"
base = { a100-40g = 2.00, l4 = 0.80 }
"""
PROFILES = ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")


def small_pool(*, partitioned: int = 1, whole: int = 1, l4: int = 2, nodes: int = 1) -> Pool:
    """A pool of `nodes` equal nodes, each with that many partitioned and whole A100 and shareable L4."""
    kinds = [
        *[(A100.name, DeviceKind.MIG, PROFILES)] * partitioned,
        *[(A100.name, DeviceKind.SHARED, ("full",))] * whole,
        *[(L4.name, DeviceKind.SHARED, ("full", "half", "quarter"))] * l4,
    ]
    names = [f"node-{number:02}" for number in range(1, nodes + 1)]
    devices = [
        Device(id=0, node=name, index=index, model=model, kind=kind, shapes=shapes)
        for name in names
        for index, (model, kind, shapes) in enumerate(kinds)
    ]
    return Pool(
        name="small",
        simulated=True,
        models=(A100, L4),
        nodes=tuple(
            Node(name=name, site="here", topology=("spine", "leaf"), cpu_milli=64_000, memory_mib=262_144)
            for name in names
        ),
        devices=tuple(
            Device(id=number, node=d.node, index=d.index, model=d.model, kind=d.kind, shapes=d.shapes)
            for number, d in enumerate(devices, start=1)
        ),
    )


@dataclass(frozen=True, slots=True)
class Shop:
    """A broker without server and loops, its movable clock, and a person with all scopes."""

    context: Context
    clock: ManualClock
    operator: Principal
    secret: str

    def person(self, name: str, role: Role = Role.MEMBER, cost_center: str | None = "lab") -> tuple[Principal, str]:
        """Another person, who may book on the cost center, with a token."""
        people.add(self.context, name, role)
        if cost_center:
            cost_centers.add_member(self.context, cost_center, name)
        scopes = [Scope.READ, Scope.BOOK] if role is Role.MEMBER else [*Scope]
        token = tokens.issue(self.context, name, TokenIn(label="test", scopes=scopes))
        return tokens.authenticate(self.context, token.secret), token.secret

    def quote(
        self, need: str = "1 x l4/full", hours: float = 1, who: Principal | None = None, **more: object
    ) -> QuoteView:
        asked = QuoteRequest.model_validate({"need": need, "seconds": int(hours * 3600), **more})
        return quote(self.context, who or self.operator, asked)

    def book(self, made: QuoteView, who: Principal | None = None, key: str | None = None) -> Stored:
        person = who or self.operator
        return book(self.context, person, made.id, ticket(person, made.id, key))

    def buy(self, need: str = "1 x l4/full", hours: float = 1, who: Principal | None = None, **more: object) -> Stored:
        """Quotes and books in one step."""
        return self.book(self.quote(need, hours, who, **more), who)


def ticket(who: Principal, fingerprint: str, key: str | None = None) -> Ticket:
    return Ticket(who.id, key or uuid4().hex, fingerprint)


def open_shop(
    url: str,
    pool: Pool | None = None,
    *,
    budget: int = 1_000_000,
    forecast: Mapping[str, Sequence[int]] | None = None,
    trip: Trip = never,
    now: datetime = NOON,
    tariff: str = TARIFF,
) -> Shop:
    """A migrated database with a pool, a tariff in force, price book 1, and the cost center `lab` with a budget (EUR)
    for this month and the next, owned by the operator `ada`."""
    database, clock = Database(url, trip), ManualClock(now)
    migrations.upgrade(database)
    context = Context(database=database, cache=MarketCache(database), clock=clock, zone_name="Europe/Berlin")
    context = at_home(context, "test", "Europe/Berlin")
    people.add(context, "ada", Role.OPERATOR)
    load_pool(context, pool or small_pool(), forecast or {})
    put_tariff_in_force(context, tariff, "ada")
    publish.publish(context)
    cost_centers.add(context, "lab", "ada")
    for month in (now, now + timedelta(days=31)):
        cost_centers.grant(context, "lab", budget * MICROS, month)
    token = tokens.issue(context, "ada", TokenIn(label="test", scopes=[*Scope]))
    return Shop(context, clock, tokens.authenticate(context, token.secret), token.secret)


def join_shop(url: str, shop_secret: str, now: datetime = NOON) -> Shop:
    """Another process's view of a shop that is open already: a cache of its own on the same database."""
    database, clock = Database(url), ManualClock(now)
    context = Context(database=database, cache=MarketCache(database), clock=clock, zone_name="Europe/Berlin")
    return Shop(context, clock, tokens.authenticate(context, shop_secret), shop_secret)
