"""The keeper, a turn at a time: nothing waits here, both of its clocks are moved by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from broker.loops.keeper import Keeper
from broker.services import browse
from broker.services.cancel import cancel
from broker.store import prices
from broker.telemetry import Metrics
from market.catalog import Tier
from tests.support.brokers import NOON, Shop, join_shop, ticket


class Kept:
    """A shop with its keeper, which turns when it is told to."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.metrics, self.seconds, self.told = shop, Metrics(), 0.0, 0
        self.keeper = Keeper(shop.context, self.metrics, self._tell, lambda: self.seconds)

    def _tell(self) -> None:
        self.told += 1

    def turn(self, seconds: float = 1) -> None:
        self.seconds += seconds
        self.keeper.turn()

    @property
    def book(self) -> int:
        return self.shop.context.database.read_value(prices.latest_book_number)

    def faults(self, loop: str) -> float:
        return self.metrics.registry.get_sample_value("gputide_loop_faults_total", {"loop": loop}) or 0

    def free(self) -> int:
        offers = browse.offers(self.shop.context, None, Tier.STANDARD).offers
        return next(each.free_now for each in offers if each.sku == "l4/full")


@pytest.fixture
def kept(shop: Shop) -> Kept:
    made = Kept(shop)
    made.turn()
    return made


def test_a_turn_with_nothing_to_do_does_nothing(kept: Kept) -> None:
    book, told = kept.book, kept.told
    kept.turn()
    assert (kept.book, kept.told) == (book, told)


def test_load_that_moved_makes_a_price_book_and_many_bookings_make_one(kept: Kept) -> None:
    before = kept.book
    kept.shop.buy("1 x l4/full")
    kept.turn(0.5)
    kept.shop.buy("1 x l4/full")
    kept.turn(0.4)
    assert kept.book == before
    kept.turn(0.1)
    assert kept.book == before + 1
    kept.turn()
    assert kept.book == before + 1


def test_each_hour_has_a_price_book(kept: Kept) -> None:
    before = kept.book
    for hours in range(1, 4):
        kept.shop.clock.set(NOON + timedelta(hours=hours))
        kept.turn()
        assert kept.book == before + hours


def test_a_window_that_has_passed_expires(kept: Kept) -> None:
    booked = kept.shop.buy("1 x l4/full").body
    kept.shop.clock.move(timedelta(hours=1))
    kept.turn()
    with kept.shop.context.database.engine.connect() as connection:
        assert connection.execute(text("SELECT state FROM booking")).scalars().all() == ["expired"]
    assert booked["state"] == "confirmed"


def test_events_are_numbered_at_every_turn_and_told_of(kept: Kept) -> None:
    told = kept.told
    kept.shop.buy("1 x l4/full")
    kept.turn(0)
    assert kept.told == told + 1
    with kept.shop.context.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM event WHERE seq IS NULL")).scalar_one() == 0


def test_what_no_news_told_of_is_seen_after_an_hour(kept: Kept, database_url: str) -> None:
    """Another broker on the same database is not meant to be, and would not be noticed sooner."""
    other = join_shop(database_url, kept.shop.secret)
    booked = other.buy("1 x l4/full", start=(NOON + timedelta(hours=3)).isoformat()).body
    other.buy("1 x l4/full", 12)
    kept.turn()
    assert kept.free() == 2
    kept.shop.clock.set(NOON + timedelta(hours=1))
    kept.turn()
    assert kept.free() == 1
    cancel(other.context, other.operator, booked["id"], ticket(other.operator, "x"))
    other.context.database.close()


def test_a_ledger_that_does_not_balance_is_a_fault_that_is_counted(kept: Kept) -> None:
    with kept.shop.context.database.engine.begin() as connection:
        connection.execute(text("UPDATE account SET balance = balance + 1 WHERE kind = 'budget'"))
    kept.turn()
    assert kept.faults("tidy") == 0
    kept.shop.clock.set(NOON + timedelta(hours=1))
    kept.turn()
    assert kept.faults("tidy") == 1


def test_a_fault_of_one_task_does_not_keep_the_others(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise OSError("no more of it")

    monkeypatch.setattr("broker.loops.keeper.expire_due", lambda _: broken())
    before = kept.book
    kept.shop.clock.set(NOON + timedelta(hours=1))
    kept.turn()
    assert kept.faults("expire") == 1
    assert kept.book == before + 1


def test_a_quote_that_nobody_booked_goes_a_week_after_it_ran_out(kept: Kept) -> None:
    booked, left = kept.shop.quote(), kept.shop.quote()
    kept.shop.book(booked)

    def quotes() -> set[str]:
        with kept.shop.context.database.engine.connect() as connection:
            return set(connection.execute(text("SELECT id FROM quote")).scalars())

    kept.shop.clock.set(left.expires_at + timedelta(days=7))
    kept.turn()
    assert quotes() == {booked.id, left.id}
    kept.shop.clock.move(timedelta(hours=1))
    kept.turn()
    assert quotes() == {booked.id}
