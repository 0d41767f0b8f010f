"""Booking through the services: what is promised, what is held, and what refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlmodel import Session

from broker.services.load_pool import load_pool
from broker.store import bookings, ledger, people
from broker.wire.errors import QuoteExpired, QuoteUsed
from market.catalog import Tier
from market.errors import NoCapacity, OverBudget
from market.instants import Window, local_months
from market.ledger import TransferReason
from market.money import MICROS, charge
from market.proposals import ProposalKind
from tests.support.brokers import NOON, Shop, join_shop, open_shop, small_pool

HOUR = timedelta(hours=1)


def test_a_booking_costs_its_quote_to_the_micro(shop: Shop) -> None:
    made = shop.quote("2 x l4/half", 1.5)
    booked = shop.book(made).body
    assert booked["total"] == made.proposal.total
    assert made.proposal.total == charge(rate=made.proposal.rate, seconds=5400, count=2)


def test_the_hold_appears_on_the_budget_and_the_ledger_balances(shop: Shop) -> None:
    booked = shop.buy().body
    with shop.context.database.read() as session:
        holds = ledger.holds_of(session, booked["id"])
        assert [hold.authorised for hold in holds] == [booked["total"]]
        assert ledger.imbalances(session) == []


def test_a_booking_over_new_year_holds_money_in_both_months(database_url: str) -> None:
    shop = open_shop(database_url, now=NOON + timedelta(days=30))
    booked = shop.buy(hours=2, start="2026-12-31T22:30:00Z").body
    with shop.context.database.read() as session:
        holds = [hold.authorised for hold in ledger.holds_of(session, booked["id"])]
    assert len(holds) == 2
    assert sum(holds) == booked["total"]
    shop.context.database.close()


def test_a_full_pool_refuses_and_names_the_next_free_start(shop: Shop) -> None:
    first, second = (shop.quote("1 x l4/full", 1) for _ in range(2))
    late = shop.quote("1 x l4/full", 1)
    shop.book(first)
    shop.book(second)
    with pytest.raises(NoCapacity) as refused:
        shop.book(late)
    soonest, *others = refused.value.alternatives
    assert (soonest.kind, soonest.window.start) == (ProposalKind.OTHER_START, first.proposal.end)
    assert [str(each.sku) for each in others] == ["a100-40g/7g.40gb", "a100-40g/full"]


def test_an_expired_quote_is_refused_and_changes_nothing(shop: Shop) -> None:
    made = shop.quote()
    shop.clock.move(timedelta(minutes=15))
    with pytest.raises(QuoteExpired):
        shop.book(made)
    with shop.context.database.read() as session:
        assert bookings.live_allocations(session, 0) == {}


def test_a_quote_is_booked_once(shop: Shop) -> None:
    made = shop.quote()
    first = shop.book(made, key="one")
    assert shop.book(made, key="one") == first
    with pytest.raises(QuoteUsed):
        shop.book(made, key="two")


def test_a_deadline_is_what_economy_needs_so_it_is_named_beside_the_price(shop: Shop) -> None:
    made = shop.quote("1 x l4/full", finish_by=(NOON + timedelta(hours=20)).isoformat())
    (economy,) = (each for each in made.alternatives if each.tier is Tier.ECONOMY)
    assert economy.total < made.proposal.total
    assert economy.end <= NOON + timedelta(hours=20)


def test_what_starts_as_soon_as_it_is_booked_is_free_to_cancel_until_then(shop: Shop) -> None:
    shop.clock.move(timedelta(milliseconds=300))
    now, later = shop.buy().body, shop.buy(start=(NOON + timedelta(minutes=30)).isoformat()).body
    assert now["free_cancel_until"] == now["start"]
    assert later["free_cancel_until"] == "2026-12-01T11:30:00Z"


def spend(shop: Shop, *, keep: int) -> None:
    """Takes from this month's budget of `lab` all but some micros."""

    def unit(session: Session) -> None:
        row = people.cost_center(session, "lab")
        accounts = ledger.budget(session, row.id, local_months(Window(NOON, NOON + HOUR), shop.context.zone)[0].start)
        assert accounts
        amount, grants = accounts.budget.balance - keep, ledger.grants_account(session)
        ledger.transfer(
            session, debit=accounts.budget, credit=grants, amount=amount, reason=TransferReason.GRANT, at=NOON
        )

    shop.context.database.write(unit)


def test_over_budget_names_what_the_budget_covers(shop: Shop) -> None:
    """The quote knew cheaper ways; once most of the budget is gone, only those that still fit are named."""
    made = shop.quote("1 x at least 20 GB", 4)
    named = {each.total for each in made.alternatives}
    assert min(named) < made.proposal.total
    spend(shop, keep=made.proposal.total - 1)
    with pytest.raises(OverBudget) as refused:
        shop.book(made)
    assert {each.total for each in refused.value.alternatives} == {each for each in named if each < made.proposal.total}
    with shop.context.database.read() as session:
        assert bookings.live_allocations(session, 0) == {}


def test_a_quote_to_the_second_ends_by_its_deadline(shop: Shop) -> None:
    """A start within a second is rounded up, in the quote as in the booking, and never past the deadline."""
    shop.clock.move(timedelta(microseconds=1))
    by = NOON + timedelta(hours=1, seconds=1)
    made = shop.quote(hours=1, finish_by=by.isoformat())
    shop.clock.move(timedelta(milliseconds=400))
    booked = shop.book(made).body
    assert booked["end"] == made.proposal.end.isoformat().replace("+00:00", "Z")
    late = shop.quote(hours=1, finish_by=(by + timedelta(seconds=2)).isoformat())
    shop.clock.move(timedelta(seconds=4))
    with pytest.raises(QuoteExpired):
        shop.book(late)


def test_a_device_that_another_process_drained_is_not_booked(database_url: str) -> None:
    """The board here is stale: the place that it chooses was sold when the quote was made, and is no more."""
    pool = small_pool(partitioned=0, whole=0, l4=2)
    shop = open_shop(database_url, pool)
    other, made = join_shop(database_url, shop.secret), shop.quote("1 x l4/full")
    first, second = pool.devices
    load_pool(other.context, replace(pool, devices=(replace(first, healthy=False), second)), {})
    assert [place["device"] for place in shop.book(made).body["places"]] == [second.index]
    with pytest.raises(NoCapacity):
        shop.buy("1 x l4/full")
    for each in (shop, other):
        each.context.database.close()


def test_a_booking_beyond_the_budget_is_refused_and_changes_nothing(database_url: str) -> None:
    shop = open_shop(database_url, budget=1)
    made = shop.quote("1 x a100-40g/full", 4)
    with pytest.raises(OverBudget) as refused:
        shop.book(made)
    assert "lacks 3.80 EUR" in refused.value.detail
    assert all(each.total <= MICROS for each in refused.value.alternatives)
    with shop.context.database.read() as session:
        assert bookings.live_allocations(session, 0) == {}
        assert ledger.imbalances(session) == []
    shop.context.database.close()
