"""The tariff: what people decide about prices. A value, immutable; in force it is dated, approved and stored.

Factors are integers in parts per million (1_000_000 is 1.0), base rates integers in micros a card-hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

from market.catalog import PPM, Tier
from market.errors import InvalidTariff, NonConvexScarcity, PriceMissing
from market.instants import zone_named

MINUTES_A_DAY = 24 * 60
MAX_BASE_RATE = 10**10
MAX_FACTOR = 10 * PPM
"""With these bounds the dearest card-hour is 1,000,000, and no product or sum in `pricing` or `quoting` leaves 64 bits,
not even a fortnight of it summed second by second."""
DEFAULT_SCARCITY = (
    (0, 600_000),
    (300_000, 800_000),
    (600_000, 1_000_000),
    (800_000, 1_500_000),
    (950_000, 2_500_000),
    (1_200_000, 4_200_000),
)
DEFAULT_TIERS = {Tier.CRITICAL: 1_500_000, Tier.STANDARD: PPM, Tier.ECONOMY: 700_000, Tier.SPOT: 300_000}
DAY_KINDS = ("weekday", "weekend", "holiday")


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A stretch of the local day, `[start, end)` in minutes, on some kinds of day, with its factor."""

    name: str
    days: frozenset[str]
    start: int
    end: int
    factor_ppm: int

    def __post_init__(self) -> None:
        if not self.days or not self.days <= set(DAY_KINDS):
            raise InvalidTariff(f"band {self.name!r}: days are some of {', '.join(DAY_KINDS)}")
        if not 0 <= self.start < self.end <= MINUTES_A_DAY:
            raise InvalidTariff(f"band {self.name!r} must end after it starts, between 00:00 and 24:00")
        if not 0 < self.factor_ppm <= 100 * PPM:
            raise InvalidTariff(f"band {self.name!r}: a factor lies above 0 and at most at 100")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Everything that people decide about prices (`InvalidTariff` when it cannot be put in force)."""

    name: str
    currency: str
    zone: str
    base: Mapping[str, int]
    bands: tuple[Band, ...] = ()
    holidays: frozenset[date] = frozenset()
    scarcity: tuple[tuple[int, int], ...] = DEFAULT_SCARCITY
    tiers: Mapping[Tier, int] = field(default_factory=lambda: dict(DEFAULT_TIERS))
    floor_ppm: int = 500_000
    cap_ppm: int = 3 * PPM
    back_out_fee_ppm: int = 100_000

    def __post_init__(self) -> None:
        zone_named(self.zone)
        _check_base(self.base)
        _check_bands(self.bands)
        _check_scarcity(self.scarcity)
        _check_tiers(self.tiers)
        if not 0 < self.floor_ppm <= self.cap_ppm <= MAX_FACTOR:
            raise InvalidTariff("floor and cap: 0 < floor <= cap <= 10")
        if not 0 <= self.back_out_fee_ppm <= PPM:
            raise InvalidTariff("back_out_fee lies between 0 and 1")

    def canonical(self) -> tuple[object, ...]:
        """Everything in it as sorted tuples: equal tariffs have the same `repr` in every process."""
        bands = sorted((b.start, b.end, sorted(b.days), b.factor_ppm, b.name) for b in self.bands)
        holidays = sorted(day.isoformat() for day in self.holidays)
        tables = sorted(self.base.items()), bands, holidays, self.scarcity, sorted(self.tiers.items())
        return (self.name, self.currency, self.zone, *tables, self.floor_ppm, self.cap_ppm, self.back_out_fee_ppm)

    def base_rate(self, model: str) -> int:
        """Micros a card-hour of a device model (`PriceMissing` when the tariff names none: it is not sold)."""
        rate = self.base.get(model)
        if rate is None:
            raise PriceMissing(f"tariff {self.name!r} has no base rate for {model}, so it is not sold")
        return rate


def _check_base(base: Mapping[str, int]) -> None:
    if not base:
        raise InvalidTariff("a tariff names the base rate of at least one device model")
    for model, rate in base.items():
        if not 0 < rate <= MAX_BASE_RATE:
            raise InvalidTariff(f"base rate of {model}: above 0 and at most 10,000 a card-hour")


def _check_bands(bands: tuple[Band, ...]) -> None:
    """No two bands of one kind of day overlap; what they leave open has factor 1.0, so they partition each day."""
    for kind in DAY_KINDS:
        of_day = sorted((band for band in bands if kind in band.days), key=lambda band: band.start)
        for one, other in pairwise(of_day):
            if other.start < one.end:
                raise InvalidTariff(f"bands {one.name!r} and {other.name!r} overlap on a {kind}")


def _check_scarcity(points: tuple[tuple[int, int], ...]) -> None:
    """Loads ascend from 0, factors never fall, slopes never fall (compared by cross-multiplication, exactly)."""
    if len(points) < 2 or points[0][0] != 0:
        raise InvalidTariff("the scarcity table has at least two points and starts at load 0")
    steps = [(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in pairwise(points)]
    if any(run <= 0 for run, _ in steps):
        raise InvalidTariff("loads of the scarcity table ascend")
    if points[0][1] <= 0 or points[-1][1] > 100 * PPM or points[-1][0] > 100 * PPM:
        raise InvalidTariff("scarcity factors lie above 0; loads and factors are at most 100")
    if any(rise < 0 for _, rise in steps):
        raise NonConvexScarcity("a higher load must never have a lower factor")
    for (run, rise), (next_run, next_rise) in pairwise(steps):
        if rise * next_run > next_rise * run:
            raise NonConvexScarcity("the scarcity table must be convex: each step at least as steep as the one before")


def _check_tiers(tiers: Mapping[Tier, int]) -> None:
    if set(tiers) != set(Tier):
        raise InvalidTariff(f"tiers: a factor for each of {', '.join(Tier)}")
    order = [tiers[tier] for tier in (Tier.SPOT, Tier.ECONOMY, Tier.STANDARD, Tier.CRITICAL)]
    if order != sorted(order) or order[0] <= 0 or order[-1] > MAX_FACTOR:
        raise InvalidTariff("tier factors: 0 < spot <= economy <= standard <= critical <= 10")
