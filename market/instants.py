"""Instants, half-open windows and the 15-minute slots of the booking calendar.

Everything here is aware UTC; an IANA zone enters only where a person's day or a budget's month is meant.
A slot is an integer: the number of 15-minute steps since the Unix epoch, so slots never meet a zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from market.errors import InvalidInstant, InvalidWindow, InvalidZone, NaiveInstant

SLOT_SECONDS = 900
SLOTS_A_DAY = 96
HORIZON_SLOTS = 14 * SLOTS_A_DAY


def require_utc(instant: datetime) -> datetime:
    """The same instant in UTC; a naive one is refused (`NaiveInstant`)."""
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise NaiveInstant(f"{instant.isoformat()} has no offset; write it as {instant.isoformat()}Z or with +01:00")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise InvalidInstant(f"{instant.isoformat()} is outside the years 1 to 9999") from None


def epoch_seconds(instant: datetime) -> int:
    """Whole seconds since the Unix epoch, rounded down."""
    return (require_utc(instant) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def slot_of(instant: datetime) -> int:
    """The slot that contains this instant."""
    return epoch_seconds(instant) // SLOT_SECONDS


def slot_start(slot: int) -> datetime:
    """The first instant of a slot (`InvalidInstant` beyond the year 9999)."""
    try:
        return datetime.fromtimestamp(slot * SLOT_SECONDS, tz=UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInstant(f"slot {slot} is outside the years 1 to 9999") from None


def slot_ceiling(instant: datetime) -> int:
    """The first slot that starts at or after this instant."""
    utc = require_utc(instant)
    seconds = epoch_seconds(utc) + (1 if utc.microsecond else 0)
    return -(-seconds // SLOT_SECONDS)


def whole_second(instant: datetime) -> datetime:
    """The instant without its fraction of a second: windows are whole seconds, since seconds are what is billed."""
    return require_utc(instant).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open stretch of time `[start, end)` in UTC, in whole seconds."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        start, end = require_utc(self.start), require_utc(self.end)
        if start.microsecond or end.microsecond:
            raise InvalidWindow("a window starts and ends on a whole second")
        if end <= start:
            raise InvalidWindow(f"a window must end after it starts: {start.isoformat()} to {end.isoformat()}")
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    @property
    def seconds(self) -> int:
        return (self.end - self.start) // timedelta(seconds=1)

    @property
    def slots(self) -> range:
        """Every slot that the window touches: the promise of a place is made in whole slots."""
        return range(slot_of(self.start), slot_ceiling(self.end))

    def overlap_seconds(self, other: Window) -> int:
        """How many seconds both windows share, 0 when they only touch."""
        shared = min(self.end, other.end) - max(self.start, other.start)
        return max(0, shared // timedelta(seconds=1))

    def slot_seconds(self, slot: int) -> int:
        """How many of this window's seconds lie in a slot."""
        first = max(epoch_seconds(self.start), slot * SLOT_SECONDS)
        return max(0, min(epoch_seconds(self.end), (slot + 1) * SLOT_SECONDS) - first)


def zone_named(name: str) -> ZoneInfo:
    """The IANA zone of that name (`InvalidZone` otherwise)."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidZone(f"{name!r} is no IANA time zone; write one such as Europe/Berlin or UTC") from None


def gap_end(wall: datetime) -> datetime | None:
    """When a wall time that the clocks skip is over, in UTC; None for a wall time that exists.

    In a gap, fold 0 reads the wall time with the offset before it and fold 1 with the one after; the gap's end is
    the transition between these two readings, found by halving since zoneinfo does not name it.
    """
    late = require_utc(wall.replace(fold=0))
    if late.astimezone(wall.tzinfo).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return None
    early = require_utc(wall.replace(fold=1))
    offset_before = early.astimezone(wall.tzinfo).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = whole_second(early + (late - early) / 2)
        if middle.astimezone(wall.tzinfo).utcoffset() == offset_before:
            early = middle
        else:
            late = middle
    return late


def local_midnight(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of a local day, in UTC.

    A day whose midnight does not exist starts when the gap ends, so a day that is skipped as a whole starts when the
    next one does. Where the clocks go back over midnight, the first of the two midnights counts.
    """
    wall = datetime.combine(day, time.min, tzinfo=zone)
    return gap_end(wall) or require_utc(wall)


def local_day(day: date, zone: ZoneInfo) -> Window:
    """A local calendar day as a window: 23 h, 24 h or 25 h long, or what the zone made of it.

    `InvalidWindow` for a day that the zone skipped, as Pacific/Apia did with 30 December 2011.
    """
    start, end = local_midnight(day, zone), local_midnight(_days_after(day, 1), zone)
    if start == end:
        raise InvalidWindow(f"{day.isoformat()} does not exist in {zone}: the zone skipped that day")
    return Window(start, end)


def local_months(window: Window, zone: ZoneInfo) -> list[Window]:
    """The calendar months of a zone that a window touches, in order, whole."""
    day = window.start.astimezone(zone).date().replace(day=1)
    months: list[Window] = []
    while True:
        following = _days_after(day, 32).replace(day=1)
        month = Window(local_midnight(day, zone), local_midnight(following, zone))
        if month.start >= window.end:
            return months
        if month.end > window.start:
            months.append(month)
        day = following


def _days_after(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise InvalidInstant(f"{days} days after {day.isoformat()} is outside the years 1 to 9999") from None
