"""What rivals for the same slices do, in threads of one broker and in processes with a stale board of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext

from broker.services.cancel import give_back
from broker.store.database import Database
from market.errors import NoCapacity
from tests.support.brokers import NOON, Shop, join_shop, ticket
from tests.support.crew import in_threads

WAITED_TOO_LONG = {"40P01": "deadlock", "55P03": "lock timeout", "57014": "statement timeout"}
GANGS = (
    *("{} x a100-40g/1g.5gb", "{} x a100-40g/2g.10gb", "{} x a100-40g/3g.20gb", "{} x a100-40g/7g.40gb"),
    *("{} x a100-40g/full", "{} x l4/full", "{} x l4/half", "{} x l4/0.3", "{} x l4/0.7"),
)


@dataclass(frozen=True)
class Outcome:
    """A booking's id, or the refusal with its first alternative (kind and start)."""

    booking: str | None = None
    nearest: tuple[str, datetime] | None = None


@dataclass(frozen=True)
class Report:
    """What one rival's threads were answered, and what its database waited for too long."""

    outcomes: tuple[Outcome, ...]
    waits: tuple[str, ...]


def impatient(url: str) -> str:
    """The URL of a database that gives up any wait for a row after two seconds (SQLite's writers queue elsewhere)."""
    return url if url.startswith("sqlite") else f"{url}&options=-c%20lock_timeout%3D2000"


def watched(database: Database) -> list[str]:
    """The dead-locks and timeouts of a database from now on; the broker tries again after them, so nobody sees them."""
    waits: list[str] = []

    def note(context: ExceptionContext) -> None:
        state = getattr(context.original_exception, "sqlstate", None)
        if state in WAITED_TOO_LONG or "locked" in str(context.original_exception):
            waits.append(WAITED_TOO_LONG.get(state, str(context.original_exception)))

    event.listen(database.engine, "handle_error", note)
    return waits


def race(shop: Shop, quote_ids: Sequence[str]) -> tuple[Outcome, ...]:
    """Books these quotes at once, each in a thread."""
    return tuple(in_threads([partial(_attempt, shop, quote_id) for quote_id in quote_ids]))


def late_rival(url: str, secret: str, quote_ids: Sequence[str]) -> Callable[[], Report]:
    """A process's part of a race: its board is read now, before anybody has booked."""
    shop = join_shop(url, secret)
    shop.context.cache.refresh(NOON)
    waits = watched(shop.context.database)

    def run() -> Report:
        outcomes = race(shop, quote_ids)
        shop.context.database.close()
        return Report(outcomes, tuple(waits))

    return run


def gang_rival(url: str, secret: str, now: datetime, seeds: Sequence[int], requests: int) -> Callable[[], Report]:
    """A process that buys gangs at random, and gives some back."""
    shop = join_shop(url, secret, now)
    shop.context.cache.refresh(now)
    waits = watched(shop.context.database)

    def run() -> Report:
        outcomes = gangs(shop, seeds, requests)
        shop.context.database.close()
        return Report(outcomes, tuple(waits))

    return run


def gangs(shop: Shop, seeds: Sequence[int], requests: int) -> tuple[Outcome, ...]:
    """Each seed is a thread that buys gangs at random and gives some back; only `NoCapacity` is an answer too."""
    found = in_threads([partial(_shopper, shop, random.Random(seed), requests) for seed in seeds])
    return tuple(outcome for outcomes in found for outcome in outcomes)


def _attempt(shop: Shop, quote_id: str) -> Outcome:
    from broker.services.book import book

    try:
        return Outcome(booking=book(shop.context, shop.operator, quote_id, ticket(shop.operator, quote_id)).body["id"])
    except NoCapacity as refused:
        first = refused.alternatives[0]
        return Outcome(nearest=(first.kind, first.window.start))


def _shopper(shop: Shop, chance: random.Random, requests: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for _ in range(requests):
        kept = [each.booking for each in outcomes if each.booking]
        if kept and chance.random() < 0.3:
            _leave(shop, kept[-1])
        outcomes.append(_buy(shop, chance))
    return outcomes


def _buy(shop: Shop, chance: random.Random) -> Outcome:
    need = chance.choice(GANGS).format(chance.randint(1, 4))
    start = shop.clock.now() + timedelta(minutes=15 * chance.randint(0, 20))
    paid_by = chance.choice(("lab", "late"))
    try:
        made = shop.quote(need, chance.choice((0.5, 1.25, 3, 7)), start=start.isoformat(), cost_center=paid_by)
        return Outcome(booking=shop.book(made).body["id"])
    except NoCapacity:
        return Outcome()


def _leave(shop: Shop, booking_id: str) -> None:
    """Gives back with a key of the booking's own, so that a second time gets the first one's answer."""
    give_back(shop.context, shop.operator, booking_id, ticket(shop.operator, booking_id, booking_id))
