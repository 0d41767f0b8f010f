"""Many at once: the last slice is sold once, gangs never dead-lock, a repeated request is one booking.

Threads share one broker and its board. Processes have a board of their own, read before anybody booked and so stale
on purpose. Fifty processes would do little but import on two cores: eight of them run six or seven threads each.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from broker.cache import MarketCache
from broker.services import cost_centers
from broker.services.cancel import cancel, give_back
from broker.services.publish import publish
from broker.store.answers import Stored
from market.catalog import Pool
from market.money import MICROS
from market.proposals import ProposalKind
from market.quoting import Snapshot
from tests.support import audit
from tests.support.brokers import NOON, Shop, open_shop, small_pool, ticket
from tests.support.crew import Crew, in_threads
from tests.support.rivals import Outcome, Report, gang_rival, gangs, impatient, late_rival, race, watched

ONE_CARD = small_pool(partitioned=0, whole=0, l4=1)
ONE_PROFILE = small_pool(partitioned=1, whole=0, l4=0)
SYLVESTER = NOON + timedelta(days=30)
"""From here on gangs run over New Year, so that they hold money in two months."""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    hired = Crew(8)
    yield hired
    hired.dismiss()


def sold_once(shop: Shop, outcomes: Sequence[Outcome], rivals: int, free_again: object) -> None:
    """One got it; every other was told when it is free again; the table holds one promise and the books are right."""
    assert len(outcomes) == rivals
    assert sum(each.booking is not None for each in outcomes) == 1
    refused = [each.nearest for each in outcomes if each.booking is None]
    assert refused == [(ProposalKind.OTHER_START, free_again)] * (rivals - 1)
    with shop.context.database.engine.connect() as connection:
        assert len(audit.live_places(connection)) == 1
        assert audit.faults(connection) == []


@pytest.mark.parametrize(
    ("pool", "need"), [(ONE_CARD, "1 x l4/full"), (ONE_CARD, "1 x l4/0.6"), (ONE_PROFILE, "1 x a100-40g/4g.20gb")]
)
@pytest.mark.parametrize("rivals", [2, 50])
def test_the_last_slice_is_sold_once_to_threads(database_url: str, pool: Pool, need: str, rivals: int) -> None:
    shop = open_shop(impatient(database_url), pool)
    waits = watched(shop.context.database)
    quotes = [shop.quote(need) for _ in range(rivals)]
    outcomes = race(shop, [each.id for each in quotes])
    sold_once(shop, outcomes, rivals, quotes[0].proposal.end)
    assert waits == []
    shop.context.database.close()


@pytest.mark.parametrize(("pool", "need"), [(ONE_CARD, "1 x l4/full"), (ONE_PROFILE, "1 x a100-40g/7g.40gb")])
@pytest.mark.parametrize(("processes", "rivals"), [(2, 2), (8, 50)])
def test_the_last_slice_is_sold_once_to_processes_with_a_stale_board(
    database_url: str, crew: Crew, pool: Pool, need: str, processes: int, rivals: int
) -> None:
    url = impatient(database_url)
    shop = open_shop(url, pool)
    quotes = [shop.quote(need) for _ in range(rivals)]
    ids = [each.id for each in quotes]
    reports = crew.run(late_rival, [(url, shop.secret, ids[place::processes]) for place in range(processes)])
    sold_once(shop, outcomes_of(reports), rivals, quotes[0].proposal.end)
    shop.context.database.close()


def test_gangs_that_want_all_cells_of_all_cards_are_sold_once(database_url: str, crew: Crew) -> None:
    """Many rows an insert, all rivals after the same: PostgreSQL dead-locks here unless devices are taken first."""
    url = impatient(database_url)
    shop = open_shop(url, small_pool(partitioned=4, whole=0, l4=0), budget=10**7)
    for need in ("8 x a100-40g/3g.20gb", "28 x a100-40g/1g.5gb", "12 x a100-40g/2g.10gb"):
        quotes = [shop.quote(need) for _ in range(24)]
        ids = [each.id for each in quotes]
        outcomes = outcomes_of(crew.run(late_rival, [(url, shop.secret, ids[place::8]) for place in range(8)]))
        assert sum(each.booking is not None for each in outcomes) == 1
        cancel_all(shop, outcomes)
    assert audit.faults(shop.context.database.engine) == []
    shop.context.database.close()


def cancel_all(shop: Shop, outcomes: Sequence[Outcome]) -> None:
    for each in outcomes:
        if each.booking:
            give_back(shop.context, shop.operator, each.booking, ticket(shop.operator, each.booking))


@pytest.fixture
def sylvester_shop(database_url: str) -> Iterator[Shop]:
    """A broker on New Year's eve that gives up waiting after two seconds. The accounts of the cost center `late` were
    opened for January first, so that account numbers and months run against each other."""
    shop = open_shop(
        impatient(database_url), small_pool(partitioned=2, whole=2, l4=2, nodes=2), budget=10**7, now=SYLVESTER
    )
    cost_centers.add(shop.context, "late", "ada")
    for month in (SYLVESTER + timedelta(days=31), SYLVESTER):
        cost_centers.grant(shop.context, "late", 10**7 * MICROS, month)
    yield shop
    shop.context.database.close()


def test_gangs_in_threads_neither_dead_lock_nor_overlap(sylvester_shop: Shop) -> None:
    shop = sylvester_shop
    waits = watched(shop.context.database)
    keeper = partial(_publish_often, shop)
    shoppers = partial(gangs, shop, range(8), 12)
    outcomes, _ = in_threads([shoppers, keeper])
    assert sum(each.booking is not None for each in outcomes) >= 20
    assert waits == []
    assert audit.faults(shop.context.database.engine) == []


def test_gangs_in_processes_neither_dead_lock_nor_overlap(sylvester_shop: Shop, database_url: str, crew: Crew) -> None:
    shop, url = sylvester_shop, impatient(database_url)
    reports = crew.run(gang_rival, [(url, shop.secret, SYLVESTER, (seed, seed + 100), 8) for seed in range(8)])
    outcomes = outcomes_of(reports)
    assert sum(each.booking is not None for each in outcomes) >= 20
    assert audit.faults(shop.context.database.engine) == []


def test_one_key_at_once_is_one_booking_and_one_answer(shop: Shop) -> None:
    made = shop.quote("2 x l4/full")
    answers = in_threads([partial(shop.book, made, key="same")] * 8)
    assert answers == answers[:1] * 8
    assert answers[0].status == 201
    assert audit.faults(shop.context.database.engine) == []


@pytest.mark.parametrize("leave", [cancel, give_back])
def test_leaving_at_once_with_one_key_is_one_answer(shop: Shop, leave: object) -> None:
    booked = shop.buy("2 x l4/full", start=(NOON + timedelta(hours=3)).isoformat()).body["id"]
    ask = partial(_leave, shop, leave, booked)
    answers = in_threads([ask] * 8)
    assert answers == answers[:1] * 8
    assert answers[0].body["state"] == "cancelled"
    assert audit.faults(shop.context.database.engine) == []


def test_price_books_that_are_published_at_once_have_numbers_of_their_own(shop: Shop) -> None:
    books = in_threads([partial(publish, shop.context)] * 6)
    assert sorted(book.number for book in books) == list(range(2, 8))


class InterruptedCache(MarketCache):
    """A board on which somebody acts right before the next one looks at it."""

    act: Callable[[], object] | None = None

    @contextmanager
    def open(self, now: datetime) -> Generator[Snapshot]:
        act, self.act = self.act, None
        if act:
            act()
        with super().open(now) as market:
            yield market


@pytest.mark.parametrize("need", ["2 x l4/full", "1 x l4/half"])
def test_a_request_whose_twin_is_faster_gets_the_twins_answer(shop: Shop, need: str) -> None:
    """The twin comes after the first look at the stored answers. What it took is missing then, or its quote is used:
    that is no refusal of a request which has been answered."""
    made, cache = shop.quote(need), InterruptedCache(shop.context.database)
    slow = replace(shop, context=replace(shop.context, cache=cache))
    twins: list[Stored] = []
    cache.act = lambda: twins.append(slow.book(made, key="same"))
    assert [slow.book(made, key="same")] == twins
    assert twins[0].status == 201
    assert audit.faults(shop.context.database.engine) == []


def outcomes_of(reports: Sequence[Report]) -> list[Outcome]:
    """What the processes were answered; that none of them waited too long is checked on the way."""
    assert [wait for report in reports for wait in report.waits] == []
    return [outcome for report in reports for outcome in report.outcomes]


def _publish_often(shop: Shop) -> tuple[Outcome, ...]:
    for _ in range(10):
        publish(shop.context)
    return ()


def _leave(shop: Shop, leave: object, booking_id: str) -> Stored:
    assert callable(leave)
    stored = leave(shop.context, shop.operator, booking_id, ticket(shop.operator, booking_id, "same"))
    assert isinstance(stored, Stored)
    return stored
