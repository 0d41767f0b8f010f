"""The price: `rate(sku, tier, slot) = base x clamp(band x scarcity(load), floor, cap) x tier`, all in integers.

The card's own rate is computed first and a slice's rate is its share of it rounded up, so a set of slices never
costs less than the card's rate for what they block: sum(ceil(R x share)) >= R x sum(share). Every step rounds
monotonically, hence a higher load never lowers a rate and a dearer tier is never cheaper.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from market.catalog import PPM, Tier
from market.errors import BeyondHorizon, PriceMissing, WindowInPast
from market.instants import SLOT_SECONDS, Window, slot_start, zone_named
from market.money import divide_half_even
from market.tariff import Tariff

Ppm = NDArray[np.int64]
Rates = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    """Load of one device model, a value a slot in ppm of its sellable capacity: promised, and still to come."""

    promised: tuple[int, ...]
    still_to_come: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """One tariff + one load snapshot, numbered, immutable: same book, same request, same price."""

    number: int
    tariff: Tariff
    first_slot: int
    computed_at: datetime
    loads: Mapping[str, ModelLoad]

    @property
    def slots(self) -> range:
        return range(self.first_slot, self.first_slot + len(next(iter(self.loads.values())).promised))

    def digest(self) -> str:
        """A fingerprint of everything that a price depends on (hex sha256)."""
        parts = (self.tariff.canonical(), self.first_slot, sorted(self.loads.items()))
        return hashlib.sha256(repr(parts).encode()).hexdigest()


class PriceCurves:
    """The rates of one price book. Arrays are computed once a (model, tier, share) and kept."""

    def __init__(self, book: PriceBook) -> None:
        self.book = book
        self._bands = band_ppm(book.tariff, book.slots)
        self._cards: dict[tuple[str, Tier], Rates] = {}

    def load_ppm(self, model: str) -> Ppm:
        """int64[slots]: promised + still to come, in ppm of the model's sellable capacity."""
        load = self.book.loads.get(model)
        if load is None:
            raise PriceMissing(f"price book {self.book.number} has no load for {model}, so it is not sold")
        return self.array(load.promised) + self.array(load.still_to_come)

    @staticmethod
    def array(values: tuple[int, ...]) -> Ppm:
        return np.asarray(values, dtype=np.int64)

    def band_ppm(self) -> Ppm:
        return self._bands

    def card_rates(self, model: str, tier: Tier) -> Rates:
        """int64[slots]: micros an hour of a whole card of a model."""
        key = (model, tier)
        if key not in self._cards:
            tariff = self.book.tariff
            factor = clamped_ppm(tariff, self._bands, scarcity_ppm(tariff, self.load_ppm(model)))
            card = -(-tariff.base_rate(model) * factor // PPM)
            self._cards[key] = -(-card * tariff.tiers[tier] // PPM)
        return self._cards[key]

    def rates(self, model: str, share: Fraction, tier: Tier) -> Rates:
        """int64[slots]: micros a slice-hour of a slice that pays for `share` of a card."""
        return -(-self.card_rates(model, tier) * share.numerator // share.denominator)

    def window_rate(self, model: str, share: Fraction, tier: Tier, window: Window) -> int:
        """The mean rate of a window, weighted by its seconds in each slot, rounded up once, as a slice's share is."""
        rates, seconds = self._rates_and_seconds(model, share, tier, window)
        return -(-int((rates * seconds).sum()) // window.seconds)

    def mean_over(self, values: Ppm, window: Window) -> int:
        """The mean over a window of any array of this book, weighted by seconds."""
        self.check_window(window)
        seconds = window_seconds(window)
        return divide_half_even(int((self._cut(values, window) * seconds).sum()), window.seconds)

    def check_window(self, window: Window) -> None:
        """`WindowInPast` or `BeyondHorizon` when a window leaves the slots that are priced."""
        if window.slots.start < self.book.slots.start:
            raise WindowInPast(f"the window starts before {slot_start(self.book.slots.start).isoformat()}")
        if window.slots.stop > self.book.slots.stop:
            raise BeyondHorizon(f"prices reach until {slot_start(self.book.slots.stop).isoformat()}; ask for less")

    def _rates_and_seconds(self, model: str, share: Fraction, tier: Tier, window: Window) -> tuple[Rates, Rates]:
        self.check_window(window)
        return self._cut(self.rates(model, share, tier), window), window_seconds(window)

    def _cut(self, values: NDArray[np.int64], window: Window) -> NDArray[np.int64]:
        first = self.book.first_slot
        return values[window.slots.start - first : window.slots.stop - first]


def window_seconds(window: Window) -> NDArray[np.int64]:
    """int64[slots of the window]: how many of its seconds lie in each slot."""
    seconds = np.full(len(window.slots), SLOT_SECONDS, dtype=np.int64)
    seconds[0] = window.slot_seconds(window.slots[0])
    seconds[-1] = window.slot_seconds(window.slots[-1])
    return seconds


def scarcity_ppm(tariff: Tariff, load_ppm: Ppm) -> Ppm:
    """The scarcity factor at each load, on straight lines between the table's points, flat beyond the last."""
    loads = np.array([load for load, _ in tariff.scarcity], dtype=np.int64)
    factors = np.array([factor for _, factor in tariff.scarcity], dtype=np.int64)
    load = np.clip(load_ppm, 0, loads[-1])
    step = np.clip(np.searchsorted(loads, load, side="right") - 1, 0, len(loads) - 2)
    rise, run = factors[step + 1] - factors[step], loads[step + 1] - loads[step]
    return factors[step] + rise * (load - loads[step]) // run


def clamped_ppm(tariff: Tariff, band: Ppm, scarcity: Ppm) -> Ppm:
    """clamp(band x scarcity, floor, cap) in ppm."""
    return np.clip(band * scarcity // PPM, tariff.floor_ppm, tariff.cap_ppm)


def band_ppm(tariff: Tariff, slots: range) -> Ppm:
    """The band factor of each slot, read at the slot's first instant on the wall clock of the tariff's zone."""
    zone = zone_named(tariff.zone)
    factors = np.full(len(slots), PPM, dtype=np.int64)
    if not tariff.bands:
        return factors
    start = datetime.fromtimestamp(slots.start * SLOT_SECONDS, tz=UTC)
    for place in range(len(slots)):
        wall = (start + timedelta(seconds=place * SLOT_SECONDS)).astimezone(zone)
        factors[place] = band_factor(tariff, wall)
    return factors


def band_factor(tariff: Tariff, wall: datetime) -> int:
    """The band factor (ppm) at a local wall time; 1.0 where no band applies."""
    usual = "weekend" if wall.weekday() >= 5 else "weekday"
    kind = "holiday" if wall.date() in tariff.holidays else usual
    minute = wall.hour * 60 + wall.minute
    return next((b.factor_ppm for b in tariff.bands if kind in b.days and b.start <= minute < b.end), PPM)
