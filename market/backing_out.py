"""What it costs to back out of a booking before it has started.

The free back-out ends an hour before the start for critical and standard and at the start for economy and spot.
After it the pool buys the window back at the lower of the locked and the current rate, less a fee. A booking whose
start has passed without being started is the pool's fault, so leaving it is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from market.catalog import PPM, Tier
from market.instants import Window
from market.money import charge

FREE_UNTIL_BEFORE_START = {
    Tier.CRITICAL: timedelta(hours=1),
    Tier.STANDARD: timedelta(hours=1),
    Tier.ECONOMY: timedelta(0),
    Tier.SPOT: timedelta(0),
}


@dataclass(frozen=True, slots=True)
class BackOut:
    """In micros: `charged` stays on the cost center, the `fee` is a part of it and a line of its own."""

    charged: int
    fee: int

    @property
    def free(self) -> bool:
        return self.charged == 0


def free_until(tier: Tier, start: datetime) -> datetime:
    """The last instant at which backing out is free before the start."""
    return start - FREE_UNTIL_BEFORE_START[tier]


def is_free(window: Window, tier: Tier, now: datetime) -> bool:
    """Whether leaving costs nothing: early enough, or late because the pool did not start it."""
    return now <= free_until(tier, window.start) or now >= window.start


def back_out(
    *, window: Window, tier: Tier, count: int, locked_rate: int, current_rate: int, fee_ppm: int, now: datetime
) -> BackOut:
    """What backing out at `now` costs; rates in micros a slice-hour, the fee as a part of what is bought back."""
    if is_free(window, tier, now):
        return BackOut(0, 0)
    total = charge(rate=locked_rate, seconds=window.seconds, count=count)
    bought = charge(rate=min(locked_rate, current_rate), seconds=window.seconds, count=count)
    fee = bought * fee_ppm // PPM
    return BackOut(total - bought + fee, fee)
