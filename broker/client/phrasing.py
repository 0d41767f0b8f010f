"""Phrases that more than one view needs: windows, rates, isolation, states. Pure; zone and `now` are arguments."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from market.catalog import Isolation
from market.instants import require_utc
from market.money import currency_decimals, format_money
from market.phrases import format_instant, format_until
from market.states import BookingState

UTC_ZONE = "UTC"

ISOLATION = {
    Isolation.DEVICE: "a whole GPU",
    Isolation.MIG: "hardware partition (MIG)",
    Isolation.MPS: "shared among your own processes (MPS)",
    Isolation.TIME: "shared in turns with others, no wall between",
}

STATES = {
    BookingState.HELD: "not confirmed yet",
    BookingState.CONFIRMED: "booked",
    BookingState.ACTIVE: "running",
    BookingState.ENDED: "ended",
    BookingState.CANCELLED: "cancelled",
    BookingState.EXPIRED: "expired",
    BookingState.PREEMPTED: "ended early by a higher tier",
    BookingState.FAILED: "failed",
}

SIMULATED = "SIMULATED: nothing here is a real GPU"


def window_words(start: datetime, end: datetime, zone: ZoneInfo, now: datetime) -> str:
    """`today 18:00 until 22:00`, in a person's zone."""
    same_day = start.astimezone(zone).date() == end.astimezone(zone).date()
    return f"{format_instant(start, zone, now)} {format_until(end, zone, start if same_day else now)}"


def utc_words(start: datetime, end: datetime) -> str:
    """`2026-12-03 17:00 to 21:00 UTC`."""
    first, last = require_utc(start), require_utc(end)
    until = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M} to {until} UTC"


def both_zones(start: datetime, end: datetime, zone: ZoneInfo, now: datetime) -> str:
    """A window in a person's zone, named, with UTC beside it."""
    words = f"{window_words(start, end, zone, now)}, {zone.key}"
    return words if zone.key == UTC_ZONE else f"{words} ({utc_words(start, end)})"


def amount(micros: int, currency: str | None) -> str:
    """Money as a person reads it, with two more decimals where it is so small that they matter.

    Without a code where the message does not say which currency it is.
    """
    if currency is None:
        return amount(micros, "EUR").removesuffix(" EUR")
    decimals = currency_decimals(currency)
    small = 0 < abs(micros) < 10 ** (7 - decimals)
    return format_money(micros, currency, min(6, decimals + 2) if small else decimals)


def rate_words(rate: int, currency: str, count: int) -> str:
    """`3.2675 EUR an hour`, and `each` where there are several: exact enough to multiply by."""
    decimals = currency_decimals(currency)
    finer = decimals if rate % 10 ** (6 - decimals) == 0 else min(6, decimals + 2)
    return f"{format_money(rate, currency, finer)} an hour{' each' if count > 1 else ''}"


def percent(ppm: int) -> str:
    return f"{(ppm + 5_000) // 10_000} %"
