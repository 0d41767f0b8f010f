"""The board of a broker is that of the table of allocations, whatever happened and in whatever order it was told."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import text

from broker.cache import BOARD_SLOTS, MarketCache
from broker.failpoints import Failpoint, Work
from broker.operator import put_tariff_in_force
from broker.services import browse
from broker.services.cancel import cancel, give_back
from broker.services.drain import set_drained
from broker.services.expire import expire_due
from broker.services.load_pool import load_pool
from broker.services.publish import publish
from broker.store import bookings, pools, prices
from market.board import Allocation, Board
from market.catalog import DeviceKind, Sku
from market.errors import InvalidPool, NoCapacity, OverBudget, PriceMissing, Refused, UnknownSku
from market.instants import Window, slot_of
from market.money import MICROS
from tests.support import audit, postgres
from tests.support.brokers import NOON, TARIFF, Shop, join_shop, open_shop, small_pool, ticket
from tests.support.crew import in_threads
from tests.support.postgres import PostgresServer

NEEDS = ("1 x l4/full", "2 x l4/half", "3 x l4/0.3", "1 x a100-40g/3g.20gb", "2 x a100-40g/1g.5gb", "1 x a100-40g/full")
POOL = small_pool(partitioned=1, whole=1, l4=2)


def allocation(place: audit.Place) -> Allocation:
    return Allocation(
        device_id=place.device,
        mask=sum(1 << cell for cell in range(place.first_cell, place.end_cell)),
        thousandths=place.thousandths,
        first_slot=place.first_slot,
        end_slot=place.end_slot,
    )


def is_true(cache: MarketCache, shop: Shop) -> bool:
    """Whether a board is the one that the rows of the table make, read without the store's queries."""
    now = shop.clock.now()
    with shop.context.database.engine.connect() as connection:
        promised = [allocation(place) for place in audit.live_places(connection)]
    with cache.locked_board(now) as board:
        return board.same_as(Board.of(board.pool, promised, first_slot=slot_of(now), slots=BOARD_SLOTS))


class Broker(RuleBasedStateMachine):
    """A broker to which anything may happen that its services offer, and another one on the same database."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        url = f"sqlite:///{Path(self.folder.name) / 'gputide.db'}"
        self.shop = open_shop(url, POOL)
        self.other = join_shop(url, self.shop.secret)
        self.booked: list[str] = []
        self.behind = False

    @rule(
        need=st.sampled_from(NEEDS),
        later=st.integers(0, 20),
        minutes=st.sampled_from([5, 15, 40, 120, 600]),
        by_the_other=st.booleans(),
    )
    def book(self, need: str, later: int, minutes: int, by_the_other: bool) -> None:
        start = self.shop.clock.now() + timedelta(minutes=15 * later)
        buyer = self.other if by_the_other else self.shop
        try:
            self.booked.append(buyer.buy(need, minutes / 60, start=start.isoformat()).body["id"])
        except NoCapacity:
            return
        self.behind = self.behind or by_the_other

    @precondition(lambda self: self.booked)
    @rule(place=st.integers(0, 99), how=st.sampled_from([cancel, give_back]), by_the_other=st.booleans())
    def leave(self, place: int, how: Callable[..., object], by_the_other: bool) -> None:
        booking_id = self.booked[place % len(self.booked)]
        shop = self.other if by_the_other else self.shop
        try:
            how(shop.context, shop.operator, booking_id, ticket(shop.operator, booking_id))
        except Refused:
            return
        self.booked.remove(booking_id)
        self.behind = self.behind or by_the_other

    @rule(minutes=st.sampled_from([1, 14, 15, 16, 60, 600]))
    def wait(self, minutes: int) -> None:
        """Time goes on and the hour's price book comes, as the keeper sees to."""
        for each in (self.shop, self.other):
            each.clock.move(timedelta(minutes=minutes))
        expire_due(self.shop.context)
        if self.shop.context.cache.book_is_due(self.shop.clock.now()):
            self.publish()

    @rule()
    def publish(self) -> None:
        publish(self.shop.context)
        self.other.context.cache.refresh(self.other.clock.now())

    @rule()
    def refresh(self) -> None:
        self.shop.context.cache.refresh(self.shop.clock.now())
        self.behind = False

    @invariant()
    def the_board_is_true(self) -> None:
        assert self.behind or is_true(self.shop.context.cache, self.shop)

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        assert audit.faults(self.shop.context.database.engine) == []

    def teardown(self) -> None:
        for each in (self.shop, self.other):
            each.context.database.close()
        self.folder.cleanup()


TestBroker = Broker.TestCase
TestBroker.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


# --- news that comes late, twice, or in another order --------------------------------------------------------------

News = Callable[[MarketCache], None]


@dataclass(frozen=True)
class History:
    """What happened in a shop, as news, and boards that were read before any of it."""

    shop: Shop
    news: list[News]
    late: list[MarketCache]


@pytest.fixture
def history(shop: Shop) -> History:
    """Bookings that stay and bookings that were cancelled; of these, two have another one in their place by now."""
    late = [MarketCache(shop.context.database) for _ in range(400)]
    for cache in late:
        cache.refresh(NOON)
    news: list[News] = []
    for need, hours, stays in (
        ("1 x l4/0.3", 5, False),
        ("1 x a100-40g/7g.40gb", 2, False),
        ("2 x a100-40g/3g.20gb", 2, True),
        ("2 x l4/full", 2, False),
        ("3 x l4/half", 2, True),
        ("1 x l4/0.3", 8, True),
    ):
        booking_id = shop.buy(need, start=(NOON + timedelta(hours=hours)).isoformat()).body["id"]
        news.append(promised(shop, booking_id))
        if not stays:
            cancel(shop.context, shop.operator, booking_id, ticket(shop.operator, booking_id))
            news.append(released(booking_id))
    return History(shop, news, late)


def promised(shop: Shop, booking_id: str) -> News:
    with shop.context.database.read() as session:
        places = bookings.live_allocations(session, 0)[booking_id]
    return lambda cache: cache.promised(booking_id, places)


def released(booking_id: str) -> News:
    return lambda cache: cache.released(booking_id)


def refreshed(cache: MarketCache) -> None:
    cache.refresh(NOON)


@given(data=st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=[Phase.generate])
def test_news_in_any_order_any_number_of_times_leaves_the_board_true(history: History, data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from([*history.news, refreshed]), max_size=6))
    cache = history.late.pop()
    for each in data.draw(st.permutations([*history.news, *again])):
        each(cache)
    assert is_true(cache, history.shop)


def test_the_end_of_a_booking_may_be_heard_before_its_beginning(history: History) -> None:
    came, left, *rest = history.news
    cache = history.late.pop()
    for each in (left, came, *rest, came):
        each(cache)
    assert is_true(cache, history.shop)


def test_slices_of_one_booking_that_no_longer_fit_together_are_no_refusal(shop: Shop) -> None:
    """Of three bookings of the same card the middle one's end is not heard yet: each half fits, both do not."""
    cache = MarketCache(shop.context.database)
    cache.refresh(NOON)
    shop.buy("1 x l4/full")
    half = shop.buy("1 x l4/half").body["id"]
    promised(shop, half)(cache)
    cancel_now(shop, half)
    pair = shop.buy("2 x l4/half").body["id"]
    promised(shop, pair)(cache)
    released(half)(cache)
    assert is_true(cache, shop)


def cancel_now(shop: Shop, booking_id: str) -> None:
    """Gives a booking back, whatever that costs."""
    give_back(shop.context, shop.operator, booking_id, ticket(shop.operator, booking_id))


# --- places that are being booked -----------------------------------------------------------------------------------


def test_a_place_is_kept_from_others_while_it_is_being_booked(database_url: str) -> None:
    """Else eight who book at once choose one place, and seven are refused by the database and choose again."""
    free: list[tuple[int, int]] = []

    def look(failpoint: Failpoint) -> None:
        if failpoint is Work.BOOK.before_commit:
            with shop.context.cache.open(NOON) as market:
                l4, slots = Sku("l4", "full"), Window(NOON, NOON + timedelta(hours=1)).slots
                taken = market.pool.footprint(l4)
                alone = market.board.free_units("l4", taken, slots)
                with shop.context.cache.beside_reserved(market.board):
                    free.append((alone, market.board.free_units("l4", taken, slots)))

    shop = open_shop(database_url, trip=look)
    shop.buy("1 x l4/full")
    assert free == [(2, 1)]
    assert is_true(shop.context.cache, shop)
    shop.context.database.close()


def test_a_place_that_was_not_booked_is_free_again(database_url: str) -> None:
    shop = open_shop(database_url, budget=1)
    with pytest.raises(OverBudget):
        shop.buy("1 x a100-40g/full", 4)
    assert is_true(shop.context.cache, shop)
    shop.context.database.close()


# --- time and other brokers ----------------------------------------------------------------------------------------


def test_the_board_moves_on_with_the_clock(shop: Shop) -> None:
    """Quarter by quarter, then by more than the board is long."""
    shop.buy("1 x l4/full", 24 * 13, start=(NOON + timedelta(hours=20)).isoformat())
    shop.buy("2 x a100-40g/2g.10gb", 2)
    for step in (*[timedelta(minutes=15)] * 12, timedelta(minutes=59), timedelta(hours=30), timedelta(days=40)):
        shop.clock.move(step)
        assert is_true(shop.context.cache, shop)


def test_a_clock_that_is_set_back_brings_back_what_was_dropped_as_past(shop: Shop) -> None:
    shop.buy("1 x l4/full", 2)
    shop.clock.move(timedelta(hours=3))
    assert is_true(shop.context.cache, shop)
    shop.clock.set(NOON + timedelta(hours=1))
    assert is_true(shop.context.cache, shop)


def test_a_device_that_was_withdrawn_is_shown_until_nothing_is_promised_of_it(shop: Shop) -> None:
    booked = shop.buy("1 x a100-40g/full").body
    load_pool(shop.context, small_pool(partitioned=0, whole=0, l4=1), {})
    shown = browse.pool(shop.context, after=None, limit=10)
    assert [(each.model, each.healthy) for each in shown.nodes[0].devices] == [("l4", True), ("a100-40g", False)]
    give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x"))
    shop.context.cache.refresh(NOON)
    load_pool(shop.context, small_pool(partitioned=0, whole=0, l4=1), {})
    assert [each.model for each in browse.pool(shop.context, after=None, limit=10).nodes[0].devices] == ["l4"]
    load_pool(shop.context, small_pool(), {})
    assert browse.pool(shop.context, after=None, limit=10).device_count == len(small_pool().devices)


def test_a_refresh_that_fails_half_way_has_changed_nothing(
    shop: Shop, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the board of the old pool passed for one of the new revision, and no later look would find it stale."""
    other, cache = join_shop(database_url, shop.secret), shop.context.cache
    load_pool(other.context, small_pool(l4=1), {})

    def lost(*_: object) -> object:
        raise OSError("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(bookings, "live_allocations", lost)
        with pytest.raises(OSError, match="lost"):
            cache.refresh(NOON)
    assert cache.is_behind(shop.context.database.read_value(pools.revision), 0)
    cache.refresh(NOON)
    assert is_true(cache, shop)
    other.context.database.close()


def test_a_model_does_not_change_under_its_bookings(shop: Shop) -> None:
    booked = shop.buy("1 x a100-40g/7g.40gb").body
    pool = small_pool()
    other = tuple(replace(each, memory_gb=each.memory_gb * 2) for each in pool.models)
    with pytest.raises(InvalidPool, match="a100-40g"):
        load_pool(shop.context, replace(pool, models=other), {})
    give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x"))
    load_pool(shop.context, replace(pool, models=other), {})


def test_pools_that_are_loaded_at_once_have_revisions_of_their_own(shop: Shop) -> None:
    before = shop.context.database.read_value(pools.revision)
    loaded = in_threads([partial(load_pool, shop.context, small_pool(l4=1 + number), {}) for number in range(4)])
    assert sorted(loaded) == [before + 1 + number for number in range(4)]


def test_a_booking_that_is_being_made_is_waited_for_before_a_device_is_cut_anew(
    postgres_server: PostgresServer,
) -> None:
    """Its rows are not to be seen yet when the pool is loaded; its devices are taken."""
    url, pool = postgres.fresh_database(postgres_server), small_pool(partitioned=0, whole=1, l4=0)
    anew = replace(pool.devices[0], kind=DeviceKind.MIG, shapes=("1g.5gb",))
    loading: list[Future[int]] = []

    def load(failpoint: Failpoint) -> None:
        if failpoint is Work.BOOK.before_commit:
            loading.append(executor.submit(load_pool, other.context, replace(pool, devices=(anew,)), {}))
            waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            with other.context.database.engine.connect() as connection:
                while not (connection.execute(waiting).scalar_one() or loading[0].done()):
                    connection.rollback()

    shop = open_shop(url, pool, trip=load)
    other = join_shop(url, shop.secret)
    with ThreadPoolExecutor(1) as executor:
        shop.buy("1 x a100-40g/full")
        with pytest.raises(InvalidPool, match="has bookings"):
            loading[0].result()
    assert audit.faults(shop.context.database.engine) == []
    for each in (shop, other):
        each.context.database.close()


def test_a_tariff_that_came_meanwhile_is_the_one_that_is_published(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, came = shop.context.cache, []
    locked_board = cache.locked_board

    def after_another_tariff(now: datetime) -> AbstractContextManager[Board]:
        if not came:
            came.append(put_tariff_in_force(shop.context, TARIFF.replace("0.80", "8.00"), "ada"))
        return locked_board(now)

    monkeypatch.setattr(cache, "locked_board", after_another_tariff)
    assert publish(shop.context).tariff.base["l4"] == 8 * MICROS


def test_what_costs_less_than_a_millionth_is_not_sold(database_url: str) -> None:
    shop = open_shop(database_url, tariff=TARIFF.replace("0.80", "0.000001"))
    with pytest.raises(PriceMissing, match="millionth"):
        shop.quote("1 x l4/full", 1 / 12)
    assert shop.quote("1 x l4/full", 24).proposal.total > 0
    shop.context.database.close()


def test_a_drained_device_keeps_its_booking_and_gets_no_other(shop: Shop) -> None:
    booked = shop.buy("1 x a100-40g/full").body
    set_drained(shop.context, "node-01", 1, drained=True)
    assert browse.stranded(shop.context) == [(booked["id"], "ada")]
    give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x"))
    assert browse.stranded(shop.context) == []
    with pytest.raises(UnknownSku):
        shop.buy("1 x a100-40g/full")
    set_drained(shop.context, "node-01", 1, drained=False)
    assert shop.buy("1 x a100-40g/full").status == 201
    assert is_true(shop.context.cache, shop)


def test_a_pool_that_another_process_loaded_is_seen_as_news_and_read(shop: Shop, database_url: str) -> None:
    other, cache = join_shop(database_url, shop.secret), shop.context.cache
    shop.buy("1 x l4/full")
    load_pool(other.context, small_pool(partitioned=2, whole=0, l4=2, nodes=2), {})
    with shop.context.database.read() as session:
        revision, number = pools.revision(session), prices.latest_book_number(session)
    assert cache.is_behind(revision, number)
    cache.refresh(NOON)
    assert not cache.is_behind(revision, number)
    assert is_true(cache, shop)
    other.context.database.close()


def test_a_device_that_another_process_cut_anew_is_not_booked_as_it_was(database_url: str) -> None:
    """The board here still shows two whole cards; the database knows that the one it proposes is partitioned now."""
    shop = open_shop(database_url, small_pool(partitioned=0, whole=2, l4=1))
    other = join_shop(database_url, shop.secret)
    made = [shop.quote("1 x a100-40g/full") for _ in range(2)]
    load_pool(other.context, small_pool(partitioned=1, whole=1, l4=1), {})
    booked = shop.book(made[0]).body
    assert [place["device"] for place in booked["places"]] == [1]
    with pytest.raises(NoCapacity):
        shop.book(made[1])
    assert is_true(shop.context.cache, shop)
    assert audit.faults(shop.context.database.engine) == []
    for each in (shop, other):
        each.context.database.close()


def test_one_reading_sees_one_state_of_the_database(shop: Shop) -> None:
    """A board made of the pool before a change and the bookings after it would be no board at all."""
    with shop.context.database.read() as session:
        before = bookings.live_allocations(session, 0)
        shop.buy("1 x l4/full")
        session.expire_all()
        assert bookings.live_allocations(session, 0) == before == {}
    with shop.context.database.read() as session:
        assert len(bookings.live_allocations(session, 0)) == 1


def test_who_looks_at_the_clock_just_before_a_price_book_comes_gets_a_price(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is read once nobody else moves the market: with the time from before, no book would cover it."""
    shop.clock.set(NOON + timedelta(minutes=14, seconds=59))
    cache = shop.context.cache
    locked = cache.locked

    @contextmanager
    def after_a_book() -> Iterator[None]:
        shop.clock.set(NOON + timedelta(minutes=15))
        publish(shop.context)
        with locked():
            yield

    monkeypatch.setattr(cache, "locked", after_a_book)
    assert shop.quote().proposal.start == NOON + timedelta(minutes=15)
