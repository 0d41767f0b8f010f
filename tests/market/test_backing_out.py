"""What leaving a booking before its start costs: nothing while it is free, then the difference and a fee."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.backing_out import BackOut, back_out, free_until
from market.catalog import PPM, Tier
from market.instants import Window
from market.money import charge

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RATES = st.integers(0, 10**10)
PROMPT = (Tier.CRITICAL, Tier.STANDARD)


def leave(
    before_start: timedelta, *, tier: Tier = Tier.STANDARD, locked: int = 2_000_000, current: int = 2_000_000,
    fee_ppm: int = 100_000, seconds: int = 4 * 3600, count: int = 2,
) -> BackOut:  # fmt: skip
    return back_out(
        window=Window(START, START + timedelta(seconds=seconds)),
        tier=tier,
        count=count,
        locked_rate=locked,
        current_rate=current,
        fee_ppm=fee_ppm,
        now=START - before_start,
    )


@pytest.mark.parametrize("tier", PROMPT)
def test_leaving_is_free_up_to_an_hour_before_the_start_and_not_a_microsecond_longer(tier: Tier) -> None:
    assert leave(HOUR, tier=tier).free
    assert not leave(HOUR - timedelta(microseconds=1), tier=tier).free
    assert free_until(tier, START) == START - HOUR


@pytest.mark.parametrize("tier", [Tier.ECONOMY, Tier.SPOT])
def test_economy_and_spot_leave_free_until_they_start(tier: Tier) -> None:
    for before in (HOUR, timedelta(seconds=1), timedelta(microseconds=1), timedelta(0)):
        assert leave(before, tier=tier) == BackOut(0, 0)
    assert free_until(tier, START) == START


@pytest.mark.parametrize("tier", Tier)
@pytest.mark.parametrize("late", [timedelta(0), timedelta(seconds=1), 10 * HOUR])
def test_a_start_that_passed_without_a_start_is_the_pools_fault(tier: Tier, late: timedelta) -> None:
    assert leave(-late, tier=tier) == BackOut(0, 0)


def test_the_pool_buys_back_at_the_current_rate_less_a_fee() -> None:
    """8 slice-hours at 2.00 locked, 1.50 now: 16.00 - 12.00 + 10 % of 12.00."""
    assert leave(HOUR / 2, current=1_500_000) == BackOut(charged=5_200_000, fee=1_200_000)


def test_a_rate_that_rose_is_no_profit() -> None:
    assert leave(HOUR / 2, current=9_000_000) == leave(HOUR / 2) == BackOut(charged=1_600_000, fee=1_600_000)


def test_what_is_worth_nothing_now_is_paid_in_full() -> None:
    assert leave(HOUR / 2, current=0) == BackOut(charged=16_000_000, fee=0)


@given(
    locked=RATES,
    current=RATES,
    fee_ppm=st.integers(0, PPM),
    seconds=st.integers(300, 14 * 86400),
    count=st.integers(1, 1000),
    before_us=st.integers(-(10**10), 3 * 10**10),
    tier=st.sampled_from(Tier),
)
def test_a_back_out_never_costs_more_than_the_booking_nor_less_than_its_fee(
    locked: int, current: int, fee_ppm: int, seconds: int, count: int, before_us: int, tier: Tier
) -> None:
    before = timedelta(microseconds=before_us)
    cost = leave(before, tier=tier, locked=locked, current=current, fee_ppm=fee_ppm, seconds=seconds, count=count)
    total = charge(rate=locked, seconds=seconds, count=count)
    bought = charge(rate=min(locked, current), seconds=seconds, count=count)
    assert 0 <= cost.fee <= cost.charged <= total
    if tier in PROMPT and timedelta(0) < before < HOUR:
        assert cost.charged == total - bought + cost.fee
        assert cost.fee == bought * fee_ppm // PPM
    else:
        assert cost.free
        assert cost == BackOut(0, 0)


@given(RATES, RATES, st.integers(0, PPM))
def test_a_lower_current_rate_never_makes_leaving_cheaper(one: int, other: int, fee_ppm: int) -> None:
    low, high = sorted((one, other))
    cheap = leave(HOUR / 2, current=high, fee_ppm=fee_ppm)
    dear = leave(HOUR / 2, current=low, fee_ppm=fee_ppm)
    assert cheap.charged <= dear.charged
