"""What people type and read about time: "tonight 22:15", "1h30m", "until tomorrow 09:00".

English only and from tables, so that no locale changes what a screen says. Neither clock nor zone is read here: both
are arguments. A wall time without an offset is a person's, so it is read in their zone; the API refuses such texts.
Everything is in whole seconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from market.errors import InvalidInstant, InvalidLength
from market.instants import HORIZON_SLOTS, SLOT_SECONDS, gap_end, require_utc, whole_second

MAX_LENGTH = HORIZON_SLOTS * SLOT_SECONDS
_TONIGHT = time(22)
_EVENING_HOUR, _MORNING_HOUR = 17, 6
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("january", "february", "march", "april", "may", "june",
           "july", "august", "september", "october", "november", "december")  # fmt: skip
_WEEKDAY_AT = {name[:3]: place for place, name in enumerate(_WEEKDAYS)}
_MONTH_AT = {name[:3]: place for place, name in enumerate(_MONTHS, start=1)}


def _any_of(names: Sequence[str]) -> str:
    return "|".join(f"{name[:3]}(?:{name[3:]})?" for name in names)


_DATE = r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<dom>\d{1,2})"
_SPOKEN_DATE = rf"(?P<dom>\d{{1,2}}) (?P<month>{_any_of(_MONTHS)})(?: (?P<year>\d{{4}}))?"
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?)?(?: ?(?P<half>am|pm))?"
_OFFSET = r"(?P<offset>z|utc|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})?)"
_DAY = (
    rf"(?P<day>today|tonight|tomorrow|\d{{4}}-\d{{1,2}}-\d{{1,2}}|{_any_of(_WEEKDAYS)}"
    rf"|(?:(?:{_any_of(_WEEKDAYS)}) )?\d{{1,2}} (?:{_any_of(_MONTHS)})(?: \d{{4}})?)"
)
_ISO = re.compile(rf"{_DATE}[t ]{_CLOCK} ?{_OFFSET}", re.ASCII)
_DAY_FIRST = re.compile(rf"(?:{_DAY}(?:$|(?<=\d)t(?=\d)| at | )|at )?(?:{_CLOCK})?", re.ASCII)
_CLOCK_FIRST = re.compile(rf"{_CLOCK} {_DAY}", re.ASCII)
_DAY_WITH_DATE = re.compile(rf"(?:(?P<weekday>{_any_of(_WEEKDAYS)}) )?{_SPOKEN_DATE}", re.ASCII)

_NUMBERS = {"a": "1", "an": "1", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
            "seven": "7", "eight": "8", "nine": "9", "ten": "10", "twelve": "12", "sixteen": "16"}  # fmt: skip
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})(?= )", re.ASCII)
_CLOCK_LENGTH = re.compile(r"(\d+)(?:h|:)(\d{2})", re.ASCII)

_UNITS = (
    (604_800, "w|weeks?"),
    (86_400, "d|days?"),
    (3600, "h|hrs?|hours?"),
    (60, "m|mins?|minutes?"),
    (1, "s|secs?|seconds?"),
)
_LENGTH = re.compile(" ?".join(rf"(?:(\d+(?:\.\d+)?) ?(?:{names}))?" for _, names in _UNITS), re.ASCII)


def parse_when(text: str, *, now: datetime, zone: ZoneInfo, later: bool = False) -> datetime:
    """The instant, in UTC, that a person means.

    Understood are "now", "in 2h", "9:00", "9am", "noon", "midnight" (the end of a day, as "24:00"), "today 9:00",
    "tomorrow 9:00", "tonight" (22:00), "tonight 22:15", "monday 9:00" and "3 dec 9:00" (the next ones),
    "2026-12-03 9:00", and ISO 8601 with an offset or Z.
    A wall time that comes twice when the clocks go back is the first one still ahead: right for a start. With
    `later` it is the second: right for a deadline.

    `InvalidInstant` for anything else, for a time today that has passed, and for a wall time that the clocks skip.
    `InvalidLength` for what follows "in". A full date may lie in the past: whether it may is not known here.
    """
    now = whole_second(now)
    words = re.sub("noon$", "12:00", re.sub("midnight$", "24:00", _words(text)))
    if words == "now":
        return now
    if words.endswith("24:00"):  # the end of a day: a minute after its last one
        last = words.removesuffix("24:00") + "23:59"
        return parse_when(last, now=now, zone=zone, later=later) + timedelta(minutes=1)
    if words.startswith("in "):
        return now + timedelta(seconds=parse_length(words[3:]))
    if match := _ISO.fullmatch(words):
        wall = datetime.combine(_date_of(match, match["month"]), _clock_of(match), tzinfo=_offset_of(match))
        return require_utc(wall)
    match = _DAY_FIRST.fullmatch(words) or _CLOCK_FIRST.fullmatch(words)
    if not match or not words:
        raise InvalidInstant(f"{text[:40]!r} is no time; write one such as now, in 2h, 18:00, tomorrow 9:00 or tonight")
    day = match["day"] or "today"
    if match["hour"] is None and day != "tonight":
        raise InvalidInstant(f"{text!r} needs a time of day; write {words} 9:00")
    clock = _TONIGHT if match["hour"] is None else _clock_of(match)
    return _first_ahead(day, clock, now=now, zone=zone, later=later)


def parse_length(text: str) -> int:
    """Seconds of a length such as "4h", "90m", "1h30m", "1:30", "1.5h", "2 hours", "an hour", "3 days" or "45 min".

    `InvalidLength` for anything else, for parts of a second, for nothing, and for more than 14 days.
    """
    words = in_digits(_words(text).replace("half an hour", "30 min"))
    words = _CLOCK_LENGTH.sub(r"\1h\2m", words) if _CLOCK_LENGTH.fullmatch(words) else words
    match = _LENGTH.fullmatch(words)
    if not match or not any(match.groups()):
        raise InvalidLength(f"{text[:40]!r} is no length of time; write one such as 4h, 90m, 1h30m or 2 days")
    parts = zip(match.groups(), (unit for unit, _ in _UNITS), strict=True)
    seconds = sum(_exact_seconds(number, unit) for number, unit in parts if number)
    if not 1 <= seconds <= MAX_LENGTH:
        raise InvalidLength(f"{text[:40]!r} cannot be booked; a length is more than nothing and at most 14 days")
    return seconds


def format_length(seconds: int) -> str:
    """Seconds as "4 h", "1 h 30 min", "45 s"; days from two on, "3 days 4 h". `parse_length` reads it back."""
    days, rest = divmod(abs(seconds), 86_400) if abs(seconds) >= 2 * 86_400 else (0, abs(seconds))
    minutes, second = divmod(rest, 60)
    hours, minute = divmod(minutes, 60)
    parts = [f"{days} days" * bool(days), f"{hours} h" * bool(hours)]
    parts += [f"{minute} min" * bool(minute), f"{second} s" * bool(second)]
    return "-" * (seconds < 0) + (" ".join(filter(None, parts)) or "0 s")


def format_instant(instant: datetime, zone: ZoneInfo, now: datetime) -> str:
    """An instant in a person's zone: "today 18:00", "tomorrow 09:00", "Thu 3 Dec 09:00", with the year if it is not
    this one. Seconds are left out; a wall time that comes twice says which by the zone's abbreviation."""
    local, today = require_utc(instant).astimezone(zone), require_utc(now).astimezone(zone).date()
    return f"{_day_words(local.date(), today)} {_clock_words(local)}"


def format_until(instant: datetime, zone: ZoneInfo, now: datetime) -> str:
    """An end in a person's zone: "until 18:00" today, else "until tomorrow 09:00" or "until Thu 3 Dec 09:00"."""
    return f"until {format_instant(instant, zone, now).removeprefix('today ')}"


def in_digits(words: str) -> str:
    """Lower-case words with their small numbers in digits: "two h100" is "2 h100", "an hour" is "1 hour"."""
    return _NUMBER_WORD.sub(lambda match: _NUMBERS[match[0]], words)


def _words(text: str) -> str:
    return " ".join(text.split()).lower() if len(text) <= 100 else "?"


def _exact_seconds(number: str, unit: int) -> int:
    whole, _, decimals = number.partition(".")
    seconds, rest = divmod(int(whole + decimals) * unit, 10 ** len(decimals))
    if rest:
        raise InvalidLength(f"{number} is no whole number of seconds; write hours and minutes, as in 1h20m")
    return seconds


def _date_of(match: re.Match[str], month: str | int, year: int | None = None) -> date:
    try:
        return date(year or int(match["year"]), int(month), int(match["dom"]))
    except ValueError:
        raise InvalidInstant(f"{match[0]!r} is no day of the calendar") from None


def _clock_of(match: re.Match[str]) -> time:
    hour, half = int(match["hour"]), match["half"]
    if half is None and match["minute"] is None:
        raise InvalidInstant(f"{hour} could be morning or evening; write {hour}:00, {hour}am or {hour}pm")
    if half and not 1 <= hour <= 12:
        raise InvalidInstant(f"{hour} {half} is no time of day; write {hour}:00 or an hour from 1 to 12")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        return time(hour, int(match["minute"] or 0), int(match["second"] or 0))
    except ValueError:
        raise InvalidInstant(f"{match[0]!r} is no time of day; it runs from 0:00 to 23:59") from None


def _offset_of(match: re.Match[str]) -> timezone:
    if not match["sign"]:
        return UTC
    offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
    if offset >= timedelta(days=1):
        raise InvalidInstant(f"{match['offset']!r} is no offset from UTC; write one such as +01:00")
    return timezone(-offset if match["sign"] == "-" else offset)


def _first_ahead(day: str, clock: time, *, now: datetime, zone: ZoneInfo, later: bool) -> datetime:
    """The first instant not before `now` among the days that a word may mean; a full date means just one, ahead or not.

    Whether a wall time has passed is asked of the end of its gap, or yesterday's gap would refuse tomorrow's time.
    """
    today = now.astimezone(zone).date()
    days, dated = _days_meant(day, clock, today)
    for candidate in days:
        for fold in (1,) if later else (0, 1):
            wall = datetime.combine(candidate, clock, tzinfo=zone).replace(fold=fold)
            over = gap_end(wall)
            if not dated and (over or require_utc(wall)) < now:
                continue
            if over:
                raise InvalidInstant(_skipped(wall, over.astimezone(zone)))
            return require_utc(wall)
    raise InvalidInstant(f"{clock:%H:%M} has passed today; write now, or tomorrow {clock:%H:%M}")


def _days_meant(day: str, clock: time, today: date) -> tuple[list[date], bool]:
    """The days that a word may mean, the nearest first, and whether it is a full date."""
    tomorrow = today + timedelta(days=1)
    if day in ("today", "tomorrow"):
        return [today if day == "today" else tomorrow], False
    if day == "tonight":
        if _MORNING_HOUR <= clock.hour < _EVENING_HOUR:
            raise InvalidInstant(f"{clock:%H:%M} is not tonight; write today {clock:%H:%M} or an hour from 17:00 on")
        return [today] if clock.hour >= _EVENING_HOUR else [today, tomorrow], False
    if match := re.fullmatch(_DATE, day):
        return [_date_of(match, match["month"])], True
    if match := _DAY_WITH_DATE.fullmatch(day):
        return _spoken_dates(match, today)
    ahead = today + timedelta(days=(_WEEKDAY_AT[day[:3]] - today.weekday()) % 7)
    return [ahead, ahead + timedelta(days=7)], False


def _spoken_dates(match: re.Match[str], today: date) -> tuple[list[date], bool]:
    """ "3 dec" is this year's or the next one's; a weekday before it has to agree."""
    month = _MONTH_AT[match["month"][:3]]
    if match["year"]:
        days = [_date_of(match, month)]
    else:
        this = _date_of(match, month, today.year)
        days = [this] if this >= today else [_date_of(match, month, today.year + 1)]
    if (weekday := match["weekday"]) and days[0].weekday() != _WEEKDAY_AT[weekday[:3]]:
        raise InvalidInstant(f"{match[0]!r} is a {_WEEKDAYS[days[0].weekday()].capitalize()}; leave the weekday out")
    return days, bool(match["year"])


def _skipped(wall: datetime, over: datetime) -> str:
    day, first = _day_words(wall.date(), None), f"{_day_words(over.date(), None)} {over:%H:%M}"
    return f"{wall:%H:%M} on {day} does not exist in {wall.tzinfo}: the clocks skip it; the first time after is {first}"


def _day_words(day: date, today: date | None) -> str:
    names = {0: "today", 1: "tomorrow", -1: "yesterday"}
    if today and (name := names.get((day - today).days)):
        return name
    weekday, month = _WEEKDAYS[day.weekday()][:3].capitalize(), _MONTHS[day.month - 1][:3].capitalize()
    year = "" if today and day.year == today.year else f" {day.year}"
    return f"{weekday} {day.day} {month}{year}"


def _clock_words(local: datetime) -> str:
    twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return f"{local:%H:%M} {local.tzname()}" if twice else f"{local:%H:%M}"
