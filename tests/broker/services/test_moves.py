"""Every (state, event) pair of a booking, made on a real one: no move strands cells, a hold or a micro."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import count, product
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import Session

from broker.moves import apply
from broker.operator import put_tariff_in_force
from broker.services import cost_centers, expire
from broker.services.back_out import back_out
from broker.services.browse import waiting_of
from broker.services.cancel import cancel, give_back
from broker.services.expire import expire_due
from broker.services.publish import publish
from broker.store import bookings, ledger
from broker.store.tables import BookingRow
from broker.wire.errors import BackOutNotFree, NotFound, NotReady
from broker.wire.people import Role
from market.backing_out import BackOut
from market.errors import IllegalMove
from market.money import MICROS, charge
from market.states import MOVES, TERMINAL, BookingEvent, BookingState, HoldEffect
from tests.support import audit, postgres
from tests.support.brokers import NOON, TARIFF, Shop, open_shop, ticket
from tests.support.postgres import PostgresServer

PAIRS = list(product(BookingState, BookingEvent))
COST = BackOut(charged=300_000, fee=20_000)
PATHS: dict[BookingState, tuple[BookingEvent, ...]] = {
    BookingState.CONFIRMED: (),
    BookingState.ACTIVE: (BookingEvent.START,),
    BookingState.ENDED: (BookingEvent.START, BookingEvent.END),
    BookingState.CANCELLED: (BookingEvent.CANCEL,),
    BookingState.EXPIRED: (BookingEvent.EXPIRE,),
    BookingState.PREEMPTED: (BookingEvent.START, BookingEvent.PREEMPT),
    BookingState.FAILED: (BookingEvent.FAIL,),
}
"""How a booking, which is confirmed when it is made, gets into a state; `held` is set by hand."""


@pytest.fixture(scope="module")
def shops(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A shop on each database for all pairs, with a counter of hours: each booking has an hour of its own."""
    sqlite = f"sqlite:///{tmp_path_factory.mktemp('moves') / 'gputide.db'}"
    opened = {"sqlite": open_shop(sqlite), "postgres": open_shop(postgres.fresh_database(postgres_server))}
    yield {kind: (each, count(2)) for kind, each in opened.items()}
    for each in opened.values():
        each.context.database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def sold(request: pytest.FixtureRequest, shops: dict[str, Any]) -> tuple[Shop, str]:
    """A shop and a booking in it of two half cards for an hour, confirmed."""
    shop, hours = shops[request.param]
    start = NOON + timedelta(hours=next(hours))
    return shop, shop.buy("2 x l4/half", start=start.isoformat()).body["id"]


def happen(shop: Shop, booking_id: str, event: BookingEvent, cost: BackOut | None = None) -> None:
    def unit(session: Any) -> None:
        row = bookings.booking(session, booking_id, for_update=True)
        assert row is not None
        apply(session, row, event, shop.clock.now(), cost=cost)

    shop.context.database.write(unit)


def bring(shop: Shop, booking_id: str, state: BookingState) -> None:
    if state is BookingState.HELD:
        with shop.context.database.engine.begin() as connection:
            connection.execute(text("UPDATE booking SET state = 'held' WHERE id = :id"), {"id": booking_id})
        return
    for event in PATHS[state]:
        happen(shop, booking_id, event)


def state_of(shop: Shop, booking_id: str) -> tuple[str, int, int, int, list[tuple[int, int, int]]]:
    """State, charge, fee, places in force, and (authorised, captured, released) of each hold."""
    with shop.context.database.read() as session:
        row = bookings.booking(session, booking_id)
        assert row is not None
        places = bookings.live_allocations(session, 0).get(booking_id, ())
        holds = [(hold.authorised, hold.captured, hold.released) for hold in ledger.holds_of(session, booking_id)]
        return row.state, row.charged, row.fee, len(places), holds


@pytest.mark.parametrize(("state", "event"), [pair for pair in PAIRS if pair in MOVES])
def test_a_legal_move_strands_nothing(sold: tuple[Shop, str], state: BookingState, event: BookingEvent) -> None:
    shop, booking_id = sold
    bring(shop, booking_id, state)
    *_, before = state_of(shop, booking_id)
    happen(shop, booking_id, event, COST)
    made = MOVES[state, event]
    now, charged, fee, places, holds = state_of(shop, booking_id)
    total = sum(authorised for authorised, _, _ in before)
    assert now == made.to
    assert (charged, fee) == ((COST.charged, COST.fee) if made.hold is HoldEffect.SETTLE else (0, 0))
    if made.to in TERMINAL:
        assert places == 0
        assert holds == [(total, charged, total - charged)]
    else:
        assert places == 2
        assert holds == before == [(total, 0, 0)]
    with shop.context.database.read() as session:
        assert ledger.imbalances(session) == []
    assert audit.faults(shop.context.database.engine) == []


@pytest.mark.parametrize(("state", "event"), [pair for pair in PAIRS if pair not in MOVES])
def test_an_illegal_move_changes_nothing(sold: tuple[Shop, str], state: BookingState, event: BookingEvent) -> None:
    shop, booking_id = sold
    bring(shop, booking_id, state)
    before = audit.contents(shop.context.database.engine)
    with pytest.raises(IllegalMove):
        happen(shop, booking_id, event, COST)
    assert audit.contents(shop.context.database.engine) == before


def test_a_move_tells_of_itself(sold: tuple[Shop, str]) -> None:
    shop, booking_id = sold
    happen(shop, booking_id, BookingEvent.CANCEL)
    with shop.context.database.engine.connect() as connection:
        query = text("SELECT kind FROM event WHERE subject = :id ORDER BY id")
        told = list(connection.execute(query, {"id": booking_id}).scalars())
    assert told == ["booking.confirmed", "booking.cancelled"]


# --- leaving, through the services ---------------------------------------------------------------------------------


def priced(factor: str) -> str:
    """The tariff of the tests with other rates for the L4."""
    return TARIFF.replace("0.80", factor)


@pytest.mark.parametrize("l4_rate", ["0.80", "0.30", "1.90"])
def test_giving_back_late_costs_the_difference_and_the_fee(shop: Shop, l4_rate: str) -> None:
    """The rate that counts is the one at which the same window would be sold now, never above the locked one."""
    start = NOON + timedelta(hours=3)
    booked = shop.buy("1 x l4/half", 2, start=start.isoformat()).body
    put_tariff_in_force(shop.context, priced(l4_rate), "ada")
    publish(shop.context)
    shop.clock.set(start - timedelta(minutes=59))
    current = shop.quote("1 x l4/half", 2, start=start.isoformat()).proposal.rate
    assert (current < booked["rate"]) == (l4_rate == "0.30")
    bought = charge(rate=min(booked["rate"], current), seconds=7200, count=1)
    with shop.context.cache.open(shop.clock.now()) as market:
        fee = bought * market.curves.book.tariff.back_out_fee_ppm // 1_000_000
    shown = back_out(shop.context, shop.operator, booked["id"])
    with pytest.raises(BackOutNotFree):
        cancel(shop.context, shop.operator, booked["id"], ticket(shop.operator, "cancel"))
    given = give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "give back")).body
    charged = booked["total"] - bought + fee
    assert (given["charged"], given["fee"]) == (shown.charged, shown.fee) == (charged, fee)
    assert fee > 0
    assert shown.released == booked["total"] - charged
    assert state_of(shop, booked["id"])[4] == [(booked["total"], charged, booked["total"] - charged)]
    assert audit.faults(shop.context.database.engine) == []


def test_giving_back_early_is_free(shop: Shop) -> None:
    booked = shop.buy(start=(NOON + timedelta(hours=3)).isoformat()).body
    shop.clock.move(timedelta(hours=2))
    given = give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x")).body
    assert (given["state"], given["charged"], given["fee"]) == ("cancelled", 0, 0)
    assert audit.faults(shop.context.database.engine) == []


def test_what_a_month_left_open_is_captured_from_the_first_month_first(database_url: str) -> None:
    """A booking over New Year, given back late for nearly all of its price: December's hold goes first."""
    year_end = NOON + timedelta(days=30)
    shop = open_shop(database_url, now=year_end)
    booked = shop.buy("1 x l4/full", 2, start="2026-12-31T22:30:00Z").body
    put_tariff_in_force(shop.context, priced("0.10"), "ada")
    publish(shop.context)
    shop.clock.set(year_end + timedelta(hours=10))
    given = give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x")).body
    december, january = state_of(shop, booked["id"])[4]
    assert december == (december[0], december[0], 0)
    assert january == (january[0], given["charged"] - december[0], booked["total"] - given["charged"])
    assert 0 < january[1] < january[0]
    assert audit.faults(shop.context.database.engine) == []
    shop.context.database.close()


def test_an_expired_booking_costs_nothing(shop: Shop) -> None:
    booked = shop.buy().body
    shop.clock.move(timedelta(hours=1))
    assert expire_due(shop.context) == 1
    assert expire_due(shop.context) == 0
    assert state_of(shop, booked["id"])[:4] == ("expired", 0, 0, 0)
    assert audit.faults(shop.context.database.engine) == []


def test_a_booking_expires_although_its_device_was_cut_anew_after_its_window(shop: Shop) -> None:
    booked = shop.buy("1 x a100-40g/7g.40gb").body
    shop.clock.move(timedelta(hours=1))
    with shop.context.database.engine.begin() as connection:
        connection.execute(text("UPDATE device SET kind = 'shared' WHERE kind = 'mig'"))
    assert expire_due(shop.context) == 1
    assert state_of(shop, booked["id"])[0] == "expired"


def test_one_booking_that_cannot_expire_does_not_keep_the_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [shop.buy("1 x l4/half").body["id"] for _ in range(3)]
    monkeypatch.setattr(expire, "AT_ONCE", 1)
    shop.clock.move(timedelta(hours=1))
    broken, true_apply = sorted(made)[0], expire.apply

    def apply(session: Session, row: BookingRow, *rest: Any) -> None:
        if row.id == broken:
            raise ValueError("a fault of one booking")
        true_apply(session, row, *rest)

    monkeypatch.setattr(expire, "apply", apply)
    with pytest.raises(ExceptionGroup) as failed:
        expire_due(shop.context)
    assert len(failed.value.exceptions) == 1
    assert sorted(state_of(shop, each)[0] for each in made) == ["confirmed", "expired", "expired"]
    monkeypatch.undo()
    assert expire_due(shop.context) == 1


def test_a_moment_without_prices_makes_leaving_no_cheaper(shop: Shop) -> None:
    """The next hour's book is there, and the one who cancels has looked at the clock just before."""
    booked = shop.buy("1 x l4/half", 2, start=(NOON + timedelta(minutes=40)).isoformat()).body
    shop.clock.move(timedelta(minutes=15))
    publish(shop.context)
    shop.clock.move(-timedelta(seconds=1))
    with pytest.raises(NotReady):
        give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x"))
    shop.clock.move(timedelta(seconds=1))
    given = give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x")).body
    assert given["fee"] > 0


def test_leaving_twice_says_that_it_is_over(shop: Shop) -> None:
    booked = shop.buy().body
    cancel(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x"))
    with pytest.raises(IllegalMove, match="it is cancelled already"):
        cancel(shop.context, shop.operator, booked["id"], ticket(shop.operator, "y"))


def test_the_bookings_of_one_who_leaves_are_named(shop: Shop) -> None:
    bob, _ = shop.person("bob")
    booked = [shop.buy("1 x l4/half", who=bob).body["id"] for _ in range(2)]
    assert sorted(waiting_of(shop.context, "bob")) == sorted(booked)
    cancel(shop.context, shop.operator, booked[0], ticket(shop.operator, "x"))
    assert waiting_of(shop.context, "bob") == [booked[1]]


def test_what_is_no_longer_sold_can_be_left_without_a_fee(shop: Shop) -> None:
    """Its model has left the tariff, so no current rate stands against the locked one."""
    start = NOON + timedelta(hours=3)
    booked = shop.buy("1 x l4/half", 2, start=start.isoformat()).body
    put_tariff_in_force(shop.context, TARIFF.replace(", l4 = 0.80", ""), "ada")
    publish(shop.context)
    shop.clock.set(start - timedelta(minutes=1))
    given = give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x")).body
    assert (given["state"], given["charged"], given["fee"]) == ("cancelled", 0, 0)
    assert audit.faults(shop.context.database.engine) == []


def test_an_owner_and_an_operator_may_leave_somebody_elses_booking(shop: Shop) -> None:
    """Somebody leaves the house, and what they booked must not stay booked."""
    bob, _ = shop.person("bob")
    carol, _ = shop.person("carol", Role.OWNER, cost_center=None)
    cost_centers.add(shop.context, "physics", "carol")
    cost_centers.add_member(shop.context, "physics", "bob")
    cost_centers.grant(shop.context, "physics", 10 * MICROS, None)
    start = (NOON + timedelta(hours=3)).isoformat()
    first, second = (shop.buy("1 x l4/half", who=bob, cost_center="physics", start=start).body["id"] for _ in range(2))
    cancel(shop.context, carol, first, ticket(carol, "x"))
    cancel(shop.context, shop.operator, second, ticket(shop.operator, "y"))
    assert [state_of(shop, each)[0] for each in (first, second)] == ["cancelled", "cancelled"]
    mine = shop.buy("1 x l4/half", start=start).body["id"]
    for other in (bob, carol):
        with pytest.raises(NotFound):
            cancel(shop.context, other, mine, ticket(other, "z"))


# --- devices and accounts are taken in one order --------------------------------------------------------------------


def versions(shop: Shop) -> dict[int, int]:
    with shop.context.database.engine.connect() as connection:
        return {row.id: row.version for row in connection.execute(text("SELECT id, version FROM device"))}


@pytest.mark.parametrize(("need", "devices"), [("2 x a100-40g/3g.20gb", {1}), ("2 x l4/full", {3, 4})])
def test_a_writer_takes_the_devices_that_it_touches_and_no_others(shop: Shop, need: str, devices: set[int]) -> None:
    """Their versions rise, when places are promised and when they are given back: this is what writers queue on."""
    fresh = versions(shop)
    booked = shop.buy(need, start=(NOON + timedelta(hours=3)).isoformat()).body["id"]
    promised = versions(shop)
    cancel(shop.context, shop.operator, booked, ticket(shop.operator, "x"))
    for before, after in ((fresh, promised), (promised, versions(shop))):
        assert {number for number in after if after[number] > before[number]} == devices


def test_accounts_are_taken_in_ascending_order_whatever_the_order_of_their_months(database_url: str) -> None:
    """January's accounts were opened before December's. Two bookings over New Year, one coming and one leaving, must
    not take them in opposite orders: PostgreSQL would have to break the dead-lock."""
    year_end = NOON + timedelta(days=30)
    shop = open_shop(database_url, now=year_end)
    cost_centers.add(shop.context, "late", "ada")
    for month in (year_end + timedelta(days=31), year_end):
        cost_centers.grant(shop.context, "late", 1000 * MICROS, month)
    booked = shop.buy("1 x l4/full", 2, start="2026-12-31T22:30:00Z", cost_center="late").body
    shop.clock.set(year_end + timedelta(hours=10))
    give_back(shop.context, shop.operator, booked["id"], ticket(shop.operator, "x"))
    with shop.context.database.engine.connect() as connection:
        query = text("SELECT debit_id, credit_id, reason FROM transfer WHERE booking_id = :id ORDER BY id")
        rows = [tuple(row) for row in connection.execute(query, {"id": booked["id"]})]
    coming = [row[:2] for row in rows if row[2] == "authorise"]
    leaving = [row[:2] for row in rows if row[2] != "authorise"]
    assert (len(coming), len(leaving)) == (2, 3)
    assert in_order(coming)
    assert in_order(leaving)
    shop.context.database.close()


def in_order(transfers: Sequence[Any]) -> bool:
    """Whether accounts are taken for the first time in ascending order; a transfer takes its lower account first."""
    taken = list(dict.fromkeys(account for pair in transfers for account in sorted(pair)))
    return taken == sorted(taken)
