"""What must hold of every price, whatever the tariff and the load."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import PPM, TIERS_BY_PRICE, Tier, footprint
from market.errors import BeyondHorizon, PriceMissing, WindowInPast
from market.instants import Window, slot_start
from market.money import charge
from market.pricing import ModelLoad, PriceCurves, scarcity_ppm
from market.tariff import MAX_BASE_RATE
from tests.market.boards import legal_sets
from tests.market.snapshots import FIRST, NOON, SLOTS, TARIFF, book, renumbered
from tests.support.brokers import A100

LOADS = st.integers(0, 3 * PPM)
SHARES = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)
RATES = st.integers(1, MAX_BASE_RATE)


def curves(load: int = 0, base: int = 2_000_000) -> PriceCurves:
    return PriceCurves(book(replace(TARIFF, base={"a100-40g": base}), load))


@pytest.mark.parametrize(
    ("load", "factor"),
    [(0, 600_000), (300_000, 800_000), (450_000, 900_000), (600_000, PPM), (800_000, 1_500_000), (2 * PPM, 4_200_000)],
)
def test_scarcity_is_the_table_of_the_design(load: int, factor: int) -> None:
    assert scarcity_ppm(TARIFF, np.array([load])).tolist() == [factor]


@given(LOADS, LOADS, RATES, SHARES, st.sampled_from(list(Tier)))
def test_a_higher_load_never_lowers_a_rate(one: int, other: int, base: int, share: Fraction, tier: Tier) -> None:
    low, high = (curves(load, base).rates("a100-40g", share, tier)[0] for load in sorted((one, other)))
    assert low <= high


@given(LOADS, RATES, SHARES)
def test_a_dearer_tier_is_never_cheaper(load: int, base: int, share: Fraction) -> None:
    rates = [int(curves(load, base).rates("a100-40g", share, tier)[0]) for tier in TIERS_BY_PRICE]
    assert rates == sorted(rates)


@given(LOADS, RATES, st.sampled_from(list(Tier)), legal_sets(A100.board))
def test_slices_never_cost_less_than_the_card_for_the_cells_they_block(
    load: int, base: int, tier: Tier, placed: list[tuple[str, int]]
) -> None:
    """`placed` is a legal set of (profile, mask) on one board."""
    priced = curves(load, base)
    card = int(priced.rates("a100-40g", Fraction(1), tier)[0])
    slices = sum(int(priced.rates("a100-40g", footprint(A100, name).share, tier)[0]) for name, _ in placed)
    blocked = sum(mask.bit_count() for _, mask in placed)
    assert slices >= Fraction(card * blocked, 8)


def test_a_rate_is_an_integer_of_micros_and_never_nothing() -> None:
    rates = curves(0, 1).rates("a100-40g", Fraction(1, 1000), Tier.SPOT)
    assert rates.dtype == np.int64
    assert rates.min() >= 1


@given(st.lists(LOADS, min_size=SLOTS, max_size=SLOTS), st.integers(1, 10**6))
def test_books_are_deterministic(loads: list[int], number: int) -> None:
    one, other = book(loads=loads), book(loads=list(loads))
    assert one.digest() == other.digest() == renumbered(other, number).digest()
    window = Window(NOON, NOON + timedelta(hours=3))
    rates = {PriceCurves(each).window_rate("l4", Fraction(1), Tier.STANDARD, window) for each in (one, other)}
    assert len(rates) == 1


def test_another_load_is_another_book() -> None:
    assert book(loads=0).digest() != book(loads=1).digest()


@given(st.lists(LOADS, min_size=SLOTS, max_size=SLOTS), st.integers(0, 86_400), st.integers(300, 172_800))
def test_the_rate_of_a_window_is_the_mean_of_its_seconds_rounded_up(loads: list[int], start: int, seconds: int) -> None:
    priced = PriceCurves(book(loads=loads))
    begin = NOON + timedelta(seconds=start)
    window = Window(begin, begin + timedelta(seconds=seconds))
    rates = priced.rates("l4", Fraction(1), Tier.STANDARD)
    exact = sum(int(rates[slot - FIRST]) * window.slot_seconds(slot) for slot in window.slots)
    assert priced.window_rate("l4", Fraction(1), Tier.STANDARD, window) == ceil(Fraction(exact, seconds))


@given(loads=st.lists(LOADS, min_size=SLOTS, max_size=SLOTS), slot=st.integers(0, SLOTS - 5))
def test_slices_never_cost_less_than_the_card_they_fill(loads: list[int], slot: int) -> None:
    """To the micro, over a window of several slots: each rate is rounded up, so parts never undercut the whole."""
    priced = PriceCurves(book(loads=loads))
    window = Window(slot_start(FIRST + slot), slot_start(FIRST + slot) + timedelta(minutes=37))
    whole = priced.window_rate("l4", Fraction(1), Tier.STANDARD, window)
    for parts in (2, 3, 4, 7):
        assert parts * priced.window_rate("l4", Fraction(1, parts), Tier.STANDARD, window) >= whole


def test_a_book_has_one_digest_in_every_process() -> None:
    """Sets are ordered by hashes, which differ from process to process: two of them, with other seeds."""
    child = """if True:
        from dataclasses import replace
        from datetime import date
        from tests.market.snapshots import TARIFF, book
        from market.tariff import Band
        days = frozenset({"weekday", "weekend", "holiday"})
        bands = (Band(name="day", start=540, end=1080, days=days, factor_ppm=1_500_000),)
        holidays = frozenset({date(2026, 12, 25), date(2026, 12, 26), date(2027, 1, 1)})
        print(replace(book(), tariff=replace(TARIFF, bands=bands, holidays=holidays)).digest())
    """
    command = [sys.executable, "-c", child]
    seeds = ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2", "3"))
    digests = {
        subprocess.run(command, env=seed, text=True, stdout=subprocess.PIPE, check=True).stdout for seed in seeds
    }
    assert len(digests) == 1


def test_a_window_outside_the_book_has_no_price() -> None:
    priced = curves()
    end = slot_start(FIRST + SLOTS)
    with pytest.raises(WindowInPast):
        priced.window_rate("a100-40g", Fraction(1), Tier.STANDARD, Window(NOON - timedelta(seconds=1), end))
    with pytest.raises(BeyondHorizon):
        priced.window_rate("a100-40g", Fraction(1), Tier.STANDARD, Window(NOON, end + timedelta(seconds=1)))


def test_a_model_without_load_or_rate_is_not_sold() -> None:
    priced = PriceCurves(replace(book(), loads={"t4": ModelLoad(promised=(0,), still_to_come=(0,))}))
    for model in ("t4", "l4"):
        with pytest.raises(PriceMissing):
            priced.rates(model, Fraction(1), Tier.STANDARD)


@given(LOADS, st.integers(300, 14 * 86_400), st.integers(1, 64))
def test_a_total_is_the_locked_rate_times_length(load: int, seconds: int, count: int) -> None:
    rate = int(curves(load).rates("a100-40g", Fraction(1, 2), Tier.STANDARD)[0])
    assert charge(rate=rate, seconds=seconds, count=count) == round(Fraction(rate * seconds * count, 3600))
