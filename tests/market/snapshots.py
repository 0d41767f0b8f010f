"""Snapshots for tests of prices and quotes: a small pool, a board, and a book with loads set by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from market.board import Allocation, Board
from market.catalog import Pool
from market.instants import SLOTS_A_DAY, slot_of
from market.pricing import ModelLoad, PriceBook, PriceCurves
from market.quoting import Snapshot
from market.tariff import Tariff
from tests.support.brokers import small_pool

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
FIRST = slot_of(NOON)
SLOTS = 4 * SLOTS_A_DAY
TARIFF = Tariff(name="round", currency="EUR", zone="UTC", base={"a100-40g": 2_000_000, "l4": 800_000})


def book(tariff: Tariff = TARIFF, loads: Sequence[int] | int = 0, number: int = 317) -> PriceBook:
    """A price book in which every model has the same load (ppm): one value, or one a slot."""
    each = (loads,) * SLOTS if isinstance(loads, int) else tuple(loads)
    load = ModelLoad(promised=each, still_to_come=(0,) * len(each))
    return PriceBook(
        number=number, tariff=tariff, first_slot=FIRST, computed_at=NOON, loads=dict.fromkeys(tariff.base, load)
    )


def snapshot(
    pool: Pool | None = None,
    allocations: Sequence[Allocation] = (),
    tariff: Tariff = TARIFF,
    loads: Sequence[int] | int = 0,
) -> Snapshot:
    """A market at noon."""
    pool = pool or small_pool()
    board = Board.of(pool, allocations, first_slot=FIRST, slots=SLOTS)
    return Snapshot(pool=pool, board=board, curves=PriceCurves(book(tariff, loads)))


def with_load_at(slots: range, load: int, elsewhere: int) -> list[int]:
    """Loads that are different in some slots after noon."""
    return [load if slot in slots else elsewhere for slot in range(SLOTS)]


def renumbered(made: PriceBook, number: int) -> PriceBook:
    return replace(made, number=number)
