"""The first forecast of load: what the same hour of the week looked like, scaled to a pool, laid out on its slots.

Hour 0 of a week is Monday 00:00 to 01:00 on the clock of the place that is meant. Everything is an integer, loads are
ppm of a whole: of one GPU where GPUs are counted, of a model's sellable capacity where a pool is forecast.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from market.catalog import PPM
from market.errors import InvalidPool
from market.instants import slot_start

Integers: TypeAlias = NDArray[np.int64]

HOURS_A_WEEK = 168
WEEKS_OF_RECORD = 4
_HOUR = 3600
_WEEK = HOURS_A_WEEK * _HOUR
_FIRST_MONDAY = 4 * 24 * _HOUR  # the Unix epoch is a Thursday


def hour_of_week_load(starts_s: Integers, durations_s: Integers, gpus: Integers) -> Integers:
    """Mean busy GPUs in each hour of the week, in ppm of one GPU, rounded down: int64[168].

    One job a place in the three arrays of equal length: its start in seconds of the local clock since 1970-01-01
    00:00, its length in seconds, its GPUs; none is negative. The mean is over the last four whole weeks, Monday to
    Monday, before the last start (over fewer where the record is shorter), by exact overlap in seconds. What runs on
    after the last start is not counted: who came later is not known. `InvalidPool` for a record without a whole week.
    """
    weeks, end = _whole_weeks(starts_s)
    if weeks < 1:
        raise InvalidPool("a record of demand must span a whole week, Monday to Monday")
    hours = np.arange(end - weeks * _WEEK, end + 1, _HOUR, dtype=np.int64)
    busy = np.diff(_gpu_seconds_until(hours, starts_s, starts_s + durations_s, gpus))
    return busy.reshape(weeks, HOURS_A_WEEK).sum(axis=0) * PPM // (weeks * _HOUR)


def hour_of_week_rates(seconds: Integers, values: Integers) -> Integers:
    """The mean value in each hour of the week, in the values' own unit, rounded down: int64[168].

    `seconds` count from the start of the record, which is taken as Monday 00:00: ServeGen publishes neither date nor
    zone, so the days of its two weeks may be shifted against the real ones. `InvalidPool` where an hour has no value.
    """
    hours = seconds // _HOUR % HOURS_A_WEEK
    counts = np.bincount(hours, minlength=HOURS_A_WEEK)
    if not counts.all():
        raise InvalidPool(
            f"a record of demand must have a value for each hour of the week; hour {counts.argmin()} has none"
        )
    sums = np.zeros(HOURS_A_WEEK, dtype=np.int64)
    np.add.at(sums, hours, values)
    return sums // counts


def scale_to_peak(profile: Integers, peak_ppm: int) -> Integers:
    """The profile (up to 10^12) with its busiest hour at `peak_ppm`, rounded down; one that is all zero stays so."""
    return profile * peak_ppm // max(int(profile.max(initial=0)), 1)


def forecast_slots(profile_ppm: Integers, zone: ZoneInfo, first_slot: int, slots: int) -> Integers:
    """The forecast of each slot from `first_slot` on: int64[slots], the hour of the week that a clock in `zone` shows.

    Where clocks go forward an hour of the profile is left out, where they go back one counts twice.
    """
    return profile_ppm[_hours_of_week(zone, first_slot, slots)]


@lru_cache(maxsize=8)
def _hours_of_week(zone: ZoneInfo, first_slot: int, slots: int) -> Integers:
    """Kept, since all models of a pool ask for the same stretch of time."""
    local = (slot_start(slot).astimezone(zone) for slot in range(first_slot, first_slot + slots))
    hours = np.array([24 * instant.weekday() + instant.hour for instant in local], dtype=np.int64)
    hours.flags.writeable = False
    return hours


def still_to_come(forecast_ppm: Integers, promised_ppm: Integers) -> Integers:
    """The part of the forecast that is not promised yet: `max(0, forecast - promised / 2)`, in ppm, of equal shape.

    Each promised slice counts half as one that was forecast and half as new demand. Were it all forecast, the load
    would stand still until the forecast is used up, and no price would move; were it all new, each slice would count
    twice. So the load, promised + still to come, never falls and rises by half of what is promised at least.
    """
    return np.maximum(0, forecast_ppm - promised_ppm // 2)


def _whole_weeks(starts_s: Integers) -> tuple[int, int]:
    """How many weeks between the first and the last start count, and the second at which the last of them ends."""
    if not len(starts_s):
        return 0, 0
    first, end = int(starts_s.min()), _monday_before(int(starts_s.max()))
    return min(WEEKS_OF_RECORD, (end - first) // _WEEK), end


def _monday_before(second: int) -> int:
    """The last Monday 00:00 at or before a second of a local clock."""
    return second - (second - _FIRST_MONDAY) % _WEEK


def _gpu_seconds_until(times: Integers, starts: Integers, ends: Integers, gpus: Integers) -> Integers:
    """GPU seconds used from the first of `times` up to each of them.

    A job adds `gpus x (time - start)` from its start and takes `gpus x (time - end)` away from its end, so two
    cumulative sums over all starts and ends, the GPUs and the GPUs times their instants, answer any time. Jobs are cut
    to the times asked for, which keeps the sums far below 2^63.
    """
    origin, last = times[0], times[-1]
    instants = np.concatenate([starts, ends]).clip(origin, last) - origin
    order = np.argsort(instants, kind="stable")
    instants, changes = instants[order], np.concatenate([gpus, -gpus])[order]
    busy = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes)])
    moments = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes * instants)])
    past = instants.searchsorted(times - origin, side="right")
    return busy[past] * (times - origin) - moments[past]
