"""What a tariff refuses, and that its bands partition the day in every zone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import PPM, Tier
from market.errors import InvalidTariff, InvalidZone, NonConvexScarcity, PriceMissing
from market.instants import SLOT_SECONDS, slot_of
from market.pricing import band_factor, band_ppm
from market.tariff import DAY_KINDS, DEFAULT_TIERS, MAX_BASE_RATE, Band, Tariff
from tests.market.snapshots import TARIFF

OFFICE = Band(name="office", days=frozenset({"weekday"}), start=9 * 60, end=18 * 60, factor_ppm=1_200_000)
NIGHT = Band(name="night", days=frozenset(DAY_KINDS), start=0, end=6 * 60, factor_ppm=800_000)


@pytest.mark.parametrize(
    "change",
    [
        {"base": {}},
        {"base": {"l4": 0}},
        {"base": {"l4": -1}},
        {"base": {"l4": MAX_BASE_RATE + 1}},
        {"bands": (OFFICE, replace(OFFICE, name="late", start=17 * 60))},
        {"scarcity": ((0, PPM),)},
        {"scarcity": ((1, PPM), (PPM, PPM))},
        {"scarcity": ((0, PPM), (0, PPM))},
        {"scarcity": ((0, 0), (PPM, PPM))},
        {"tiers": {Tier.STANDARD: PPM}},
        {"tiers": DEFAULT_TIERS | {Tier.CRITICAL: 1}},
        {"floor_ppm": 0},
        {"floor_ppm": 4 * PPM},
        {"cap_ppm": 10 * PPM + 1},
        {"tiers": DEFAULT_TIERS | {Tier.CRITICAL: 10 * PPM + 1}},
        {"back_out_fee_ppm": PPM + 1},
    ],
)
def test_a_tariff_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidTariff):
        replace(TARIFF, **change)


@pytest.mark.parametrize(
    "points",
    [
        ((0, 1_000_000), (500_000, 900_000)),
        ((0, 600_000), (500_000, 1_000_000), (1_000_000, 1_100_000)),
    ],
)
def test_scarcity_must_rise_and_be_convex(points: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(NonConvexScarcity):
        replace(TARIFF, scarcity=points)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidZone):
        replace(TARIFF, zone="Mars/Olympus")


def test_a_model_without_a_rate_is_not_sold_for_nothing() -> None:
    with pytest.raises(PriceMissing):
        TARIFF.base_rate("b200-180g")


@pytest.mark.parametrize(("start", "end"), [(-1, 10), (10, 10), (20, 10), (0, 1441)])
def test_a_band_lies_within_the_day(start: int, end: int) -> None:
    with pytest.raises(InvalidTariff):
        replace(OFFICE, start=start, end=end)


def test_bands_follow_the_wall_clock_on_both_days_of_the_change() -> None:
    tariff = replace(TARIFF, zone="Europe/Berlin", bands=(NIGHT,))
    for day, hours in ((date(2026, 3, 29), 5), (date(2026, 10, 25), 7)):
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Berlin"))
        first = slot_of(midnight)
        factors = band_ppm(tariff, range(first, first + 23 * 4))
        assert int((factors == NIGHT.factor_ppm).sum()) == hours * 4


def test_a_holiday_is_its_own_kind_of_day() -> None:
    tariff = replace(TARIFF, bands=(OFFICE,), holidays=frozenset({date(2026, 12, 25)}))
    assert band_factor(tariff, datetime(2026, 12, 25, 10)) == PPM  # noqa: DTZ001 - a wall time
    assert band_factor(tariff, datetime(2026, 12, 24, 10)) == OFFICE.factor_ppm  # noqa: DTZ001 - a wall time


@st.composite
def band_sets(draw: st.DrawFn) -> tuple[Band, ...]:
    edges = sorted(draw(st.sets(st.integers(0, 1440), min_size=2, max_size=8)))
    return tuple(
        Band(name=f"b{n}", days=frozenset({draw(st.sampled_from(DAY_KINDS))}), start=a, end=b, factor_ppm=n * PPM)
        for n, (a, b) in enumerate(pairwise(edges), start=2)
    )


@given(band_sets(), st.sampled_from(sorted(available_timezones())), st.integers(0, 20_000))
def test_bands_partition_time_in_every_zone(bands: tuple[Band, ...], zone: str, day: int) -> None:
    """Each slot has exactly one factor: that of the one band which holds its wall time, or 1.0 where none does."""
    tariff = replace(TARIFF, zone=zone, bands=bands)
    first = slot_of(datetime(1990, 1, 1, tzinfo=UTC) + timedelta(days=day))
    factors = band_ppm(tariff, range(first, first + 100))
    assert factors.dtype == np.int64
    for place, factor in enumerate(factors.tolist()):
        wall = datetime.fromtimestamp((first + place) * SLOT_SECONDS, tz=ZoneInfo(zone))
        kind = "weekend" if wall.weekday() >= 5 else "weekday"
        minute = wall.hour * 60 + wall.minute
        holding = [band.factor_ppm for band in bands if kind in band.days and band.start <= minute < band.end]
        assert len(holding) <= 1
        assert factor == (holding[0] if holding else PPM)


def test_the_default_tariff_is_the_design() -> None:
    assert isinstance(TARIFF, Tariff)
    assert TARIFF.scarcity[3] == (800_000, 1_500_000)
    assert TARIFF.tiers[Tier.ECONOMY] == 700_000
