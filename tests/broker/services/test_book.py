"""Booking through the services: what is promised, what is held, and what refuses."""

from __future__ import annotations

from datetime import timedelta

import pytest

from broker.store import bookings, ledger
from broker.wire.errors import QuoteExpired, QuoteUsed
from market.errors import NoCapacity, OverBudget
from market.money import charge
from market.proposals import ProposalKind
from tests.support.brokers import NOON, Shop, open_shop


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


def test_a_booking_beyond_the_budget_is_refused_and_changes_nothing(database_url: str) -> None:
    shop = open_shop(database_url, budget=1)
    made = shop.quote("1 x a100-40g/full", 4)
    with pytest.raises(OverBudget):
        shop.book(made)
    with shop.context.database.read() as session:
        assert bookings.live_allocations(session, 0) == {}
        assert ledger.imbalances(session) == []
    shop.context.database.close()
