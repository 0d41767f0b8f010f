# ruff: noqa: DTZ001 - naive instants are meant here: they are refused, or are the bounds of a strategy
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.errors import InvalidInstant, InvalidLength, InvalidRequest, NaiveInstant
from market.phrases import MAX_LENGTH, format_instant, format_length, format_until, parse_length, parse_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 12, 1, 15, 30, 45, tzinfo=BERLIN)  # a Tuesday
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2039, 1, 1), timezones=st.just(UTC))


def when(text: str, now: datetime = NOW, *, zone: ZoneInfo = BERLIN, later: bool = False) -> str:
    instant = parse_when(text, now=now, zone=zone, later=later)
    assert instant.tzinfo is UTC
    return instant.astimezone(zone).isoformat()


def at(*parts: int, zone: ZoneInfo = BERLIN, fold: int = 0) -> datetime:
    return datetime(*parts, tzinfo=zone, fold=fold)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-12-01T15:30:45+01:00"),
        ("in 2h", "2026-12-01T17:30:45+01:00"),
        ("18:00", "2026-12-01T18:00:00+01:00"),
        ("at 18:00", "2026-12-01T18:00:00+01:00"),
        ("  Today   18:00 ", "2026-12-01T18:00:00+01:00"),
        ("9pm", "2026-12-01T21:00:00+01:00"),
        ("9:30 PM", "2026-12-01T21:30:00+01:00"),
        ("tomorrow 9:00", "2026-12-02T09:00:00+01:00"),
        ("tomorrow at 9am", "2026-12-02T09:00:00+01:00"),
        ("9:00 tomorrow", "2026-12-02T09:00:00+01:00"),
        ("tomorrow 12am", "2026-12-02T00:00:00+01:00"),
        ("tomorrow 12pm", "2026-12-02T12:00:00+01:00"),
        ("tonight", "2026-12-01T22:00:00+01:00"),
        ("tonight 22:15", "2026-12-01T22:15:00+01:00"),
        ("tonight 1:00", "2026-12-02T01:00:00+01:00"),
        ("monday 9:00", "2026-12-07T09:00:00+01:00"),
        ("tue 18:00", "2026-12-01T18:00:00+01:00"),
        ("Tuesday 9:00", "2026-12-08T09:00:00+01:00"),
        ("3 dec 9:00", "2026-12-03T09:00:00+01:00"),
        ("Thu 3 December 2026 09:00", "2026-12-03T09:00:00+01:00"),
        ("1 jan 9:00", "2027-01-01T09:00:00+01:00"),
        ("2026-12-03 9:00", "2026-12-03T09:00:00+01:00"),
        ("2026-12-03T09:00", "2026-12-03T09:00:00+01:00"),
        ("2026-12-03T09:00Z", "2026-12-03T10:00:00+01:00"),
        ("2026-12-03T09:00:30.999999-08:30", "2026-12-03T18:30:30+01:00"),
        ("2025-12-03 9:00", "2025-12-03T09:00:00+01:00"),
        ("midnight", "2026-12-02T00:00:00+01:00"),
        ("tomorrow 24:00", "2026-12-03T00:00:00+01:00"),
        ("tomorrow noon", "2026-12-02T12:00:00+01:00"),
    ],
)
def test_what_people_type_is_read_in_their_zone(text: str, meant: str) -> None:
    assert when(text) == meant


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "write one such as"),
        ("soon", "write one such as"),
        ("half past nine", "write one such as"),
        ("yesterday 9:00", "write one such as"),
        ("tomorrowt9:00", "write one such as"),
        ("٩:00", "write one such as"),
        ("x" * 10_000, "write one such as"),
        ("9", "9:00, 9am or 9pm"),
        ("9:00", "has passed today; write now, or tomorrow 09:00"),
        ("today 9am", "tomorrow 09:00"),
        ("tomorrow", "write tomorrow 9:00"),
        ("2026-12-03", "write 2026-12-03 9:00"),
        ("tonight 9:00", "not tonight"),
        ("25:00", "0:00 to 23:59"),
        ("9:60", "0:00 to 23:59"),
        ("13pm", "1 to 12"),
        ("0am", "1 to 12"),
        ("30 feb 9:00", "no day of the calendar"),
        ("2026-13-01 9:00", "no day of the calendar"),
        ("0000-01-01 9:00", "no day of the calendar"),
        ("fri 3 dec 9:00", "is a Thursday"),
        ("2026-12-03T09:00+25:00", "no offset"),
        ("9999-12-31T23:59-01:00", "outside the years"),
    ],
)
def test_what_is_no_time_is_refused_with_a_way_on(text: str, hint: str) -> None:
    with pytest.raises(InvalidInstant, match=hint):
        when(text)


def test_a_length_after_in_is_held_to_the_rules_of_lengths() -> None:
    with pytest.raises(InvalidLength):
        when("in 15 days")


def test_a_clock_without_offset_is_a_bug_of_the_caller() -> None:
    with pytest.raises(NaiveInstant):
        parse_when("now", now=datetime(2026, 12, 1), zone=BERLIN)


def test_in_two_hours_is_elapsed_time_over_a_change_of_clocks() -> None:
    assert when("in 2h", at(2026, 3, 29, 1)) == "2026-03-29T04:00:00+02:00"


def test_tonight_after_midnight_is_the_night_that_is_on() -> None:
    assert when("tonight 1:00", at(2026, 12, 1, 0, 30)) == "2026-12-01T01:00:00+01:00"


def test_a_wall_time_in_a_gap_is_refused_and_the_first_one_after_it_named() -> None:
    before = at(2026, 3, 29, 1, 45)
    for text in ("2:30", "2026-03-29 2:30", "sun 2:30"):
        for later in (False, True):
            with pytest.raises(InvalidInstant, match=r"02:30 on Sun 29 Mar 2026 does not exist.*29 Mar 2026 03:00"):
                when(text, before, later=later)
    assert when("tonight 2:30", at(2026, 3, 29, 18)) == "2026-03-30T02:30:00+02:00"
    with pytest.raises(InvalidInstant, match="Sat 31 Dec 2011 00:00"):
        when("2011-12-30 9:00", zone=ZoneInfo("Pacific/Apia"))


def test_a_wall_time_that_comes_twice_is_the_first_still_ahead_for_a_start_and_the_second_for_a_deadline() -> None:
    assert when("2:30", at(2026, 10, 25, 1)) == "2026-10-25T02:30:00+02:00"
    assert when("2:30", at(2026, 10, 25, 1), later=True) == "2026-10-25T02:30:00+01:00"
    assert when("2:30", at(2026, 10, 25, 2, 15, fold=1)) == "2026-10-25T02:30:00+01:00"
    with pytest.raises(InvalidInstant):
        when("2:30", at(2026, 10, 25, 2, 45, fold=1))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("two hours", 7200), ("an hour", 3600), ("half an hour", 1800), ("1h30", 5400), ("1:30", 5400),
     ("4h", 14_400), ("90m", 5400), ("1h30m", 5400), ("1.5h", 5400), ("2 hours", 7200), ("3 days", 259_200),
     ("45 min", 2700), ("1 H 30 Min", 5400), ("1 week", 604_800), ("2d4h", 187_200), ("45 s", 45), ("1m", 60),
     ("0h 5m", 300), ("14 days", MAX_LENGTH)],
)  # fmt: skip
def test_lengths_are_read(text: str, seconds: int) -> None:
    assert parse_length(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "4", "h", "0h", "-4h", "15 days", "14 days 1s", "1h1h", "1m1h", ".5h", "1,5h", "1.3333h", "0.1s", "٤h",
     "4 fortnights", "9" * 90 + "h", "9" * 10_000 + "h", "inf h", "1e3s"],
)  # fmt: skip
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(InvalidLength):
        parse_length(text)


@given(st.integers(1, MAX_LENGTH))
def test_a_shown_length_is_read_back(seconds: int) -> None:
    assert parse_length(format_length(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(14_400, "4 h"), (5400, "1 h 30 min"), (45, "45 s"), (0, "0 s"), (86_400, "24 h"), (172_800, "2 days"),
     (273_661, "3 days 4 h 1 min 1 s"), (-5400, "-1 h 30 min")],
)  # fmt: skip
def test_lengths_are_shown(seconds: int, text: str) -> None:
    assert format_length(seconds) == text


@pytest.mark.parametrize(
    ("instant", "text", "until"),
    [
        (at(2026, 12, 1, 18), "today 18:00", "until 18:00"),
        (at(2026, 12, 2, 9), "tomorrow 09:00", "until tomorrow 09:00"),
        (at(2026, 11, 30, 9), "yesterday 09:00", "until yesterday 09:00"),
        (at(2026, 12, 3, 9, 0, 59), "Thu 3 Dec 09:00", "until Thu 3 Dec 09:00"),
        (at(2027, 1, 1), "Fri 1 Jan 2027 00:00", "until Fri 1 Jan 2027 00:00"),
        (at(2026, 10, 25, 2, 30), "Sun 25 Oct 02:30 CEST", "until Sun 25 Oct 02:30 CEST"),
        (at(2026, 10, 25, 2, 30, fold=1), "Sun 25 Oct 02:30 CET", "until Sun 25 Oct 02:30 CET"),
    ],
)
def test_instants_are_shown_as_people_say_them(instant: datetime, text: str, until: str) -> None:
    assert format_instant(instant.astimezone(UTC), BERLIN, NOW) == text
    assert format_until(instant.astimezone(UTC), BERLIN, NOW) == until


@given(INSTANTS, st.integers(0, MAX_LENGTH), st.sampled_from(sorted(available_timezones())))
def test_a_shown_instant_ahead_is_read_back_to_the_minute(now: datetime, ahead: int, name: str) -> None:
    zone = ZoneInfo(name)
    local = (now + timedelta(seconds=ahead)).astimezone(zone).replace(second=0, microsecond=0)
    shown = format_instant(local, zone, now)
    if local < now or local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        return
    assert parse_when(shown, now=now, zone=zone) == local.astimezone(UTC)


@given(st.text(max_size=30) | st.from_regex(r"[0-9apm :tzdjn+-]{0,20}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_length, when):
        with suppress(InvalidRequest):
            parse(text)
