"""Which window and SKU a request gets, what else is named, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.board import Allocation
from market.catalog import PPM, Sku, Tier
from market.errors import (
    BeyondHorizon,
    DeadlineNeeded,
    DeadlineTooSoon,
    InvalidLength,
    InvalidShape,
    NoCapacity,
    NoSuchCapacity,
    PriceMissing,
    TierUnavailable,
    UnknownSku,
    WindowInPast,
)
from market.instants import slot_ceiling
from market.money import charge
from market.needs import parse_need
from market.proposals import ProposalKind
from market.quoting import Request, Urgency, plan
from market.tariff import MAX_BASE_RATE
from tests.market.snapshots import FIRST, NOON, SLOTS, TARIFF, snapshot, with_load_at
from tests.support.brokers import small_pool

HOUR = timedelta(hours=1)
MARKET = snapshot()


def asking(need: str = "1 x l4/full", hours: float = 1, **more: object) -> Request:
    return replace(Request(need=parse_need(need), seconds=int(hours * 3600)), **more)


def taken(device_id: int, first: int, end: int) -> Allocation:
    return Allocation(device_id=device_id, mask=0, thousandths=1000, first_slot=FIRST + first, end_slot=FIRST + end)


@given(
    st.sampled_from(["1 x l4/full", "2 x l4/half", "1 x at least 20 GB", "1 x A100 40GB", "3 x a100-40g/1g.5gb"]),
    st.integers(300, 2 * 86_400),
    st.integers(0, 86_400),
    st.sampled_from([None, timedelta(days=3)]),
)
def test_a_total_is_the_locked_rate_times_length_and_the_window_is_as_asked(
    need: str, seconds: int, after: int, within: timedelta | None
) -> None:
    start = NOON + timedelta(seconds=after)
    finish_by = NOON + within if within else None
    found = plan(Request(need=parse_need(need), seconds=seconds, start=start, finish_by=finish_by), MARKET, NOON)
    chosen = found.proposal
    assert chosen.total == charge(rate=chosen.rate, seconds=seconds, count=chosen.count)
    assert chosen.window.seconds == seconds
    assert chosen.window.start >= start
    assert chosen.window.start == start if finish_by is None else chosen.window.end <= finish_by


def test_a_flexible_request_runs_in_the_valley() -> None:
    valley = range(40, 48)
    market = snapshot(loads=with_load_at(valley, 0, elsewhere=900_000))
    chosen = plan(asking(hours=2, finish_by=NOON + timedelta(hours=24)), market, NOON).proposal
    assert chosen.window.slots == range(FIRST + valley.start, FIRST + valley.stop)


def test_a_flexible_request_takes_the_least_cost_of_all_free_starts() -> None:
    loads = [(slot * 7919) % PPM for slot in range(SLOTS)]
    market = snapshot(loads=loads, allocations=[taken(3, 8, 20), taken(4, 8, 20)])
    asked = asking(hours=1.1, finish_by=NOON + timedelta(hours=12))
    chosen = plan(asked, market, NOON).proposal
    fixed: list[int] = []
    for start in range(FIRST, slot_ceiling(NOON + timedelta(hours=12)) - 4):
        at = NOON + (start - FIRST) * timedelta(minutes=15)
        try:
            fixed.append(plan(replace(asked, start=at, finish_by=None), market, NOON).proposal.total)
        except NoCapacity:
            continue
    assert chosen.total == min(fixed)


def test_waiting_has_a_price_when_it_is_urgent() -> None:
    market = snapshot(loads=with_load_at(range(40, 48), 500_000, elsewhere=600_000))
    asked = asking(hours=1, finish_by=NOON + timedelta(hours=24))
    assert plan(replace(asked, urgency=Urgency.NOW), market, NOON).proposal.window.start == NOON
    assert plan(asked, market, NOON).proposal.window.start > NOON


def test_the_cheapest_sku_that_meets_the_need_is_chosen_and_the_next_are_named() -> None:
    found = plan(asking("1 x at least 20 GB"), MARKET, NOON)
    assert found.proposal.sku == Sku("l4", "full")
    others = [each for each in found.alternatives if each.kind is ProposalKind.OTHER_SKU]
    assert [str(each.sku) for each in others] == ["a100-40g/3g.20gb", "a100-40g/4g.20gb"]


def test_now_against_tonight_is_shown() -> None:
    market = snapshot(loads=with_load_at(range(40, 48), 0, elsewhere=900_000))
    found = plan(asking(), market, NOON)
    later, economy = found.alternatives
    assert (later.kind, economy.kind) == (ProposalKind.OTHER_START, ProposalKind.OTHER_TIER)
    assert economy.total < later.total < found.proposal.total


def test_a_full_pool_names_the_next_free_start_and_other_skus() -> None:
    market = snapshot(allocations=[taken(3, 0, 10), taken(4, 0, 12)])
    with pytest.raises(NoCapacity) as refused:
        plan(asking(), market, NOON)
    soonest, *others = refused.value.alternatives
    assert (soonest.kind, soonest.window.slots.start) == (ProposalKind.OTHER_START, FIRST + 10)
    assert {each.kind for each in others} == {ProposalKind.OTHER_SKU}


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (asking("1 x l4/full", 0.01), InvalidLength),
        (asking("1 x l4/full", 400), InvalidLength),
        (asking(tier=Tier.CRITICAL), TierUnavailable),
        (asking(tier=Tier.SPOT), TierUnavailable),
        (asking(tier=Tier.ECONOMY), DeadlineNeeded),
        (asking(start=NOON - HOUR), WindowInPast),
        (asking(finish_by=NOON), WindowInPast),
        (asking(hours=2, finish_by=NOON + HOUR), DeadlineTooSoon),
        (asking(start=NOON + timedelta(days=5)), BeyondHorizon),
        (asking("3 x l4/full"), NoSuchCapacity),
        (asking("1 x at least 80 GB"), NoSuchCapacity),
        (asking("1 x a100-40g/half"), UnknownSku),
        (asking("1 x l4/3g.20gb"), InvalidShape),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(asked: Request, error: type[Exception]) -> None:
    with pytest.raises(error):
        plan(asked, MARKET, NOON)


def test_what_has_no_price_is_not_sold() -> None:
    market = snapshot(tariff=replace(TARIFF, base={"a100-40g": 1}))
    with pytest.raises(PriceMissing):
        plan(asking(), market, NOON)


def test_a_start_within_a_slot_is_taken_to_the_second() -> None:
    now = NOON + timedelta(seconds=61, microseconds=7)
    chosen = plan(asking(), snapshot(small_pool()), now).proposal
    assert chosen.window.start == NOON + timedelta(seconds=61)
    assert chosen.window.seconds == 3600


def test_the_dearest_tariff_stays_within_64_bits() -> None:
    """The longest flexible request at the highest rates that a tariff may have: its cost is what integers say."""
    dearest = replace(
        TARIFF,
        base={"l4": MAX_BASE_RATE},
        cap_ppm=10 * PPM,
        scarcity=((0, 100 * PPM), (PPM, 100 * PPM)),
        tiers=dict.fromkeys(Tier, 10 * PPM),
    )
    asked = asking(hours=90, finish_by=NOON + timedelta(hours=95), urgency=Urgency.NOW)
    chosen = plan(asked, snapshot(tariff=dearest), NOON).proposal
    assert (chosen.window.start, chosen.rate) == (NOON, MAX_BASE_RATE * 100)
