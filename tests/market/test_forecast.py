"""The hour-of-week forecast against the plainest reckoning of it, and over every change of the clocks."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import PPM
from market.errors import InvalidPool
from market.forecast import (
    HOURS_A_WEEK,
    Integers,
    forecast_slots,
    hour_of_week_load,
    hour_of_week_rates,
    scale_to_peak,
    still_to_come,
)
from market.instants import SLOT_SECONDS, local_day, slot_of

HOUR, DAY, WEEK = 3600, 86_400, 604_800
MONDAY = 4 * DAY
HOUR_OF_WEEK = np.arange(HOURS_A_WEEK, dtype=np.int64)
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Pacific/Chatham",
    "UTC",
)

Job = tuple[int, int, int]


def integers(*values: int) -> Integers:
    return np.array(values, dtype=np.int64)


def load_of(jobs: list[Job]) -> list[int]:
    starts, durations, gpus = zip(*jobs, strict=True)
    return hour_of_week_load(integers(*starts), integers(*durations), integers(*gpus)).tolist()


def hour_by_hour(jobs: list[Job], first: int, weeks: int) -> list[int]:
    """Each hour of each week against each job."""
    busy = [0] * HOURS_A_WEEK
    for number in range(weeks * HOURS_A_WEEK):
        opens = first + number * HOUR
        for start, duration, gpus in jobs:
            overlap = min(opens + HOUR, start + duration) - max(opens, start)
            busy[number % HOURS_A_WEEK] += gpus * max(0, overlap)
    return [seconds * PPM // (weeks * HOUR) for seconds in busy]


def clock_changes(zone: ZoneInfo) -> list[date]:
    """The local days of seven years on which the offset changes."""
    noons = [datetime(2024, 1, 1, 12, tzinfo=UTC) + timedelta(days=day) for day in range(7 * 365)]
    offsets = [noon.astimezone(zone).utcoffset() for noon in noons]
    return [noons[day].astimezone(zone).date() for day in range(1, len(noons)) if offsets[day] != offsets[day - 1]]


@given(
    st.integers(1, 6),
    st.integers(0, 3000),
    st.lists(st.tuples(st.integers(0, 6 * WEEK), st.integers(0, 3 * WEEK), st.integers(1, 128)), max_size=12),
)
def test_the_load_is_the_overlap_of_jobs_and_hours(weeks: int, age: int, jobs: list[Job]) -> None:
    first = MONDAY + age * WEEK
    last = first + weeks * WEEK
    inside = [(first + start % (weeks * WEEK), duration, gpus) for start, duration, gpus in jobs]
    record = [(first, 0, 1), *inside, (last, HOUR, 1)]
    counted = min(weeks, 4)
    assert load_of(record) == hour_by_hour(record, last - counted * WEEK, counted)


def test_a_job_counts_in_the_hours_of_its_local_clock() -> None:
    """Four GPUs on each Tuesday from 09:30 to 11:00."""
    tuesday = MONDAY + DAY + 9 * HOUR + HOUR // 2
    weekly = [(tuesday + week * WEEK, HOUR + HOUR // 2, 4) for week in range(6)]
    load = load_of([(MONDAY, 0, 1), *weekly, (MONDAY + 6 * WEEK, HOUR, 1)])
    assert {hour: ppm for hour, ppm in enumerate(load) if ppm} == {33: 2 * PPM, 34: 4 * PPM}


def test_what_is_older_than_four_whole_weeks_does_not_count() -> None:
    old = (MONDAY, WEEK, 100)
    recent = (MONDAY + 6 * WEEK + 3 * DAY, HOUR, 1)
    assert sum(load_of([old, recent])) == 0


@pytest.mark.parametrize("last", [MONDAY + 6 * DAY, MONDAY + WEEK - 1])
def test_a_record_without_a_whole_week_is_refused(last: int) -> None:
    with pytest.raises(InvalidPool, match="whole week"):
        load_of([(MONDAY, HOUR, 1), (last, HOUR, 1)])
    with pytest.raises(InvalidPool, match="whole week"):
        hour_of_week_load(integers(), integers(), integers())


def test_rates_are_the_mean_of_the_same_hour_of_both_weeks() -> None:
    seconds = np.arange(0, 2 * WEEK, HOUR // 2, dtype=np.int64)
    values = seconds // HOUR % HOURS_A_WEEK * 10 + np.where(seconds < WEEK, 0, 4)
    assert hour_of_week_rates(seconds, values).tolist() == (HOUR_OF_WEEK * 10 + 2).tolist()


def test_an_hour_without_a_rate_is_refused_and_named() -> None:
    seconds = np.array([hour * HOUR for hour in range(HOURS_A_WEEK) if hour != 77], dtype=np.int64)
    with pytest.raises(InvalidPool, match="hour 77"):
        hour_of_week_rates(seconds, seconds)


@given(st.lists(st.integers(0, 10**12), min_size=HOURS_A_WEEK, max_size=HOURS_A_WEEK), st.integers(1, 2 * PPM))
def test_the_busiest_hour_is_scaled_to_the_peak(profile: list[int], peak: int) -> None:
    scaled = scale_to_peak(integers(*profile), peak)
    assert scaled.max() == (peak if any(profile) else 0)
    assert scaled.min() >= 0
    assert np.all(np.diff(scaled[np.argsort(profile, kind="stable")]) >= 0)


@pytest.mark.parametrize("name", ZONES)
def test_a_slot_has_the_forecast_of_its_local_hour_over_every_clock_change(name: str) -> None:
    zone = ZoneInfo(name)
    for change in clock_changes(zone):
        for day in (change + timedelta(days=offset) for offset in (-1, 0, 1)):
            window = local_day(day, zone)
            first, slots = slot_of(window.start), window.seconds // SLOT_SECONDS
            hours = forecast_slots(HOUR_OF_WEEK, zone, first, slots).tolist()
            assert len(hours) == slots
            assert {hour // 24 for hour in hours} == {day.weekday()}
            odd = [hour for hour, times in Counter(hours).items() if times != 4]
            assert len(odd) <= (2 if window.seconds != DAY else 0)


def test_the_clocks_of_berlin_skip_one_hour_and_repeat_another() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    two_on_sunday = 6 * 24 + 2
    for day, times in ((date(2026, 3, 29), 0), (date(2026, 10, 25), 8), (date(2026, 11, 1), 4)):
        window = local_day(day, berlin)
        hours = forecast_slots(HOUR_OF_WEEK, berlin, slot_of(window.start), window.seconds // SLOT_SECONDS)
        assert hours.tolist().count(two_on_sunday) == times


@given(st.integers(0, 2 * PPM), st.lists(st.integers(0, 3 * PPM), min_size=2, max_size=20))
def test_the_load_rises_by_half_of_what_is_promised_at_least(forecast: int, promised: list[int]) -> None:
    promises = integers(*sorted(promised))
    coming = still_to_come(np.full_like(promises, forecast), promises)
    assert coming.min() >= 0
    assert still_to_come(integers(forecast), integers(0)) == forecast
    rises, promised_more = np.diff(promises + coming), np.diff(promises)
    assert np.all(rises >= promised_more // 2)
    assert np.all(rises <= promised_more)
