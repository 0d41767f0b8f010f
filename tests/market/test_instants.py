# ruff: noqa: DTZ001 - naive instants are meant here: they are refused, or are the bounds of a strategy
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.errors import InvalidInstant, InvalidWindow, InvalidZone, NaiveInstant
from market.instants import (
    SLOT_SECONDS,
    Window,
    epoch_seconds,
    gap_end,
    local_day,
    local_midnight,
    local_months,
    require_utc,
    slot_ceiling,
    slot_of,
    slot_start,
    whole_second,
    zone_named,
)

ZONES = sorted(available_timezones())
SKIPPED = {("Pacific/Apia", date(2011, 12, 30)), ("Pacific/Kwajalein", date(1993, 8, 21))}
FIFTY_YEARS = Window(datetime(1990, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC))
INSTANTS = st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))
WINDOWS = st.builds(
    lambda start, seconds: Window(whole_second(start), whole_second(start) + timedelta(seconds=seconds)),
    INSTANTS,
    st.integers(1, 100_000),
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize("use", [require_utc, slot_of, slot_ceiling, epoch_seconds, whole_second])
def test_a_naive_instant_is_refused(use: Callable[[datetime], object]) -> None:
    with pytest.raises(NaiveInstant):
        use(datetime(2026, 12, 1, 9))
    with pytest.raises(NaiveInstant):
        Window(datetime(2026, 12, 1, 9), utc(2026, 12, 1, 10))


def test_a_window_is_whole_seconds_ends_after_it_starts_and_is_kept_in_utc() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    window = Window(datetime(2026, 10, 25, 1, tzinfo=berlin), datetime(2026, 10, 25, 4, tzinfo=berlin))
    assert (window.start, window.seconds) == (utc(2026, 10, 24, 23), 4 * 3600)
    for start, end in [(0, 0), (1, 0)]:
        with pytest.raises(InvalidWindow):
            Window(slot_start(start), slot_start(end))
    with pytest.raises(InvalidWindow):
        Window(utc(2026, 1, 1), utc(2026, 1, 1, 0, 0, 1, 5))


def test_what_leaves_the_calendar_is_refused_by_name() -> None:
    far = date(9999, 12, 31)
    with pytest.raises(InvalidInstant):
        slot_start(10**12)
    with pytest.raises(InvalidInstant):
        local_day(far, ZoneInfo("UTC"))
    with pytest.raises(InvalidInstant):
        local_midnight(date.min, ZoneInfo("Asia/Tokyo"))
    assert slot_ceiling(datetime.max.replace(tzinfo=UTC)) == slot_of(datetime.max.replace(tzinfo=UTC)) + 1


@given(INSTANTS)
def test_an_instant_lies_in_its_slot(instant: datetime) -> None:
    slot = slot_of(instant)
    assert slot_start(slot) <= instant < slot_start(slot + 1)
    assert slot_ceiling(instant) == (slot if instant == slot_start(slot) else slot + 1)


@given(WINDOWS)
def test_the_slots_of_a_window_cover_it_and_its_seconds_are_shared_out_among_them(window: Window) -> None:
    slots = window.slots
    assert slot_start(slots[0]) <= window.start
    assert window.end <= slot_start(slots[-1] + 1)
    seconds = [window.slot_seconds(slot) for slot in slots]
    assert sum(seconds) == window.seconds
    assert all(0 < each <= SLOT_SECONDS for each in seconds)
    assert window.slot_seconds(slots[0] - 1) == window.slot_seconds(slots[-1] + 1) == 0


@given(WINDOWS, st.integers(-200_000, 200_000), st.integers(1, 100_000))
def test_an_overlap_is_the_same_from_both_sides(window: Window, shift: int, seconds: int) -> None:
    start = window.start + timedelta(seconds=shift)
    other = Window(start, start + timedelta(seconds=seconds))
    shared = window.overlap_seconds(other)
    assert shared == other.overlap_seconds(window)
    assert 0 <= shared <= min(window.seconds, other.seconds)
    assert window.overlap_seconds(window) == window.seconds
    assert shared > 0 or window.end <= other.start or other.end <= window.start


@pytest.mark.parametrize("name", ["", "Mars/Base", "..", "/etc/passwd", "../../etc/passwd", "Europe", "a\0b", "x" * 999,
                                  "Europe/", ".", "é", "\ud800", "zone.tab"])  # fmt: skip
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidZone):
        zone_named(name)


def test_every_zone_is_found_by_name() -> None:
    assert all(zone_named(name).key == name for name in ZONES)


def test_the_days_of_a_year_partition_it_in_every_zone() -> None:
    lengths: Counter[timedelta] = Counter()
    days = [date(2026, 1, 1) + timedelta(days=offset) for offset in range(366)]
    for name in ZONES:
        starts = [local_midnight(day, ZoneInfo(name)) for day in days]
        lengths.update(end - start for start, end in pairwise(starts))
    hours = {length / timedelta(hours=1) for length in lengths}
    assert hours >= {23, 24, 25}
    assert min(hours) >= 20
    assert max(hours) <= 28
    assert lengths.most_common(1)[0][0] == timedelta(hours=24)


@given(st.sampled_from(ZONES), st.dates(date(1990, 1, 1), date(2040, 1, 1)))
def test_a_local_day_starts_with_its_first_instant_and_ends_where_the_next_one_starts(name: str, day: date) -> None:
    zone = ZoneInfo(name)
    start, end = local_midnight(day, zone), local_midnight(day + timedelta(days=1), zone)
    assert (start - timedelta(seconds=1)).astimezone(zone).date() < day <= start.astimezone(zone).date()
    if start < end:
        assert local_day(day, zone) == Window(start, end)
        assert start.astimezone(zone).date() == day


@pytest.mark.parametrize(
    ("name", "day", "start", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), utc(2026, 3, 28, 23), 23),
        ("Europe/Berlin", date(2026, 10, 25), utc(2026, 10, 24, 22), 25),
        ("Africa/Cairo", date(2024, 4, 26), utc(2024, 4, 25, 22), 23),  # 00:00 does not exist
        ("Africa/Cairo", date(2024, 10, 31), utc(2024, 10, 30, 21), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), utc(2026, 4, 4, 13), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 4), utc(2026, 10, 3, 13, 30), 23.5),
        ("America/Sao_Paulo", date(2018, 11, 4), utc(2018, 11, 4, 3), 23),  # 00:00 does not exist
        ("America/Havana", date(2026, 11, 1), utc(2026, 11, 1, 4), 25),  # 00:00 comes twice
        ("Antarctica/Troll", date(2026, 3, 29), utc(2026, 3, 29, 0), 22),
        ("Pacific/Apia", date(2011, 12, 31), utc(2011, 12, 30, 10), 24),
    ],
)
def test_odd_days_are_as_long_as_they_were(name: str, day: date, start: datetime, hours: float) -> None:
    window = local_day(day, ZoneInfo(name))
    assert (window.start, window.seconds / 3600) == (start, hours)


@pytest.mark.parametrize(("name", "day"), sorted(SKIPPED))
def test_a_day_that_a_zone_skipped_is_refused_by_name(name: str, day: date) -> None:
    with pytest.raises(InvalidWindow, match=f"{day} does not exist in {name}"):
        local_day(day, ZoneInfo(name))
    assert local_midnight(day, ZoneInfo(name)) == local_midnight(day + timedelta(days=1), ZoneInfo(name))


def test_a_gap_ends_where_the_clocks_go_on() -> None:
    wall = datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert gap_end(wall) == gap_end(wall.replace(fold=1)) == utc(2026, 3, 29, 1)
    assert gap_end(wall.replace(hour=3)) is None
    assert gap_end(datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))) is None


def test_the_months_of_fifty_years_partition_them_in_every_zone() -> None:
    for name in ZONES:
        zone = ZoneInfo(name)
        months = local_months(FIFTY_YEARS, zone)
        assert months[0].start <= FIFTY_YEARS.start
        assert months[-1].end >= FIFTY_YEARS.end
        assert all(month.end == following.start for month, following in pairwise(months))
        assert 600 <= len(months) <= 602
        assert {month.start.astimezone(zone).day for month in months} == {1}


@given(WINDOWS, st.sampled_from(ZONES))
def test_a_window_touches_each_of_its_months(window: Window, name: str) -> None:
    months = local_months(window, ZoneInfo(name))
    assert sum(month.overlap_seconds(window) for month in months) == window.seconds
    assert all(month.overlap_seconds(window) for month in months)
