"""The board: what is promised of each device in each slot, a cache of the table of allocations.

The truth is that table; a stale board leads to a refused insert, never to a double booking. Promises are made in whole
slots, so that both can agree exactly. Nothing here decides where a slice goes, and no clock enters.
A board is not thread-safe, not even for reading, since `advance` moves rows in place: the caller locks, and a long
read works on a `copy`.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from market.catalog import PPM, WHOLE, Device, DeviceKind, Footprint, Pool
from market.columns import Columns
from market.errors import InvalidLength, InvalidNeed, InvalidShape, InvalidWindow, NoCapacity, NoSuchCapacity
from market.geometry import BUSY_MASKS, units_table

Promised = NDArray[np.uint8 | np.int16]

_JOIN: dict[DeviceKind, np.ufunc] = {DeviceKind.MIG: np.bitwise_or, DeviceKind.SHARED: np.maximum}
_DTYPE: dict[DeviceKind, type[np.uint8] | type[np.int16]] = {DeviceKind.MIG: np.uint8, DeviceKind.SHARED: np.int16}
_TAKEN = {DeviceKind.MIG: BUSY_MASKS - 1, DeviceKind.SHARED: WHOLE}


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Allocation:
    """A promised place: cells or thousandths of one device over the slots `[first_slot, end_slot)`.

    `mask` is 0 on a shared device and `thousandths` is 0 on a partitioned one (`InvalidShape` otherwise).
    """

    device_id: int
    mask: int
    thousandths: int
    first_slot: int
    end_slot: int

    def __post_init__(self) -> None:
        if not (0 <= self.mask < BUSY_MASKS and 0 <= self.thousandths <= WHOLE):
            raise InvalidShape(f"no device has cells {self.mask:#b} or {self.thousandths} thousandths")
        if bool(self.mask) == bool(self.thousandths):
            raise InvalidShape("an allocation takes either cells or thousandths of a device")
        if self.end_slot <= self.first_slot:
            raise InvalidWindow(f"an allocation must end after it starts: slots {self.first_slot} to {self.end_slot}")

    @property
    def kind(self) -> DeviceKind:
        return DeviceKind.MIG if self.mask else DeviceKind.SHARED

    @property
    def amount(self) -> int:
        """What it adds to a cell of the board: its mask or its thousandths."""
        return self.mask or self.thousandths


class Board:
    """Promises over the slots `[first_slot, first_slot + slots)`; a slot outside of it is never free.

    `promised` has one slot-major array a kind: `mig` uint8[slots, columns], a bit a busy cell, and `shared`
    int16[slots, columns], thousandths. Legal promises are disjoint, so adding and subtracting serve both kinds.
    """

    def __init__(self, pool: Pool, *, first_slot: int, slots: int) -> None:
        self.pool = pool
        self.first_slot = first_slot
        self.slots = slots
        self.columns = {kind: Columns.of(pool, kind) for kind in DeviceKind}
        self.promised: dict[DeviceKind, Promised] = {
            kind: np.zeros((slots, columns.ids.size), dtype=_DTYPE[kind]) for kind, columns in self.columns.items()
        }
        self._beyond: Counter[Allocation] = Counter()  # what ends after the last slot, for `advance` to lay

    @classmethod
    def of(cls, pool: Pool, allocations: Iterable[Allocation], *, first_slot: int, slots: int) -> Board:
        """A board on which these allocations are promised (errors of `promise`)."""
        board = cls(pool, first_slot=first_slot, slots=slots)
        for allocation in allocations:
            board.promise(allocation)
        return board

    @property
    def end_slot(self) -> int:
        return self.first_slot + self.slots

    def promise(self, allocation: Allocation) -> None:
        """Promise a place, on an unhealthy device too; `NoCapacity` where it overlaps, `NoSuchCapacity` off the pool.

        What lies before the board is dropped, what lies after it waits for `advance`.
        """
        self._lay(allocation, self.first_slot)
        if allocation.end_slot > self.end_slot:
            self._beyond[allocation] += 1

    def release(self, allocation: Allocation) -> None:
        """Take a promise back. One that was not made is the caller's bug: `ValueError`, and nothing changes."""
        place = self._place(allocation, self.first_slot)
        held = place & allocation.mask == allocation.mask if allocation.mask else place >= allocation.thousandths
        beyond = allocation.end_slot > self.end_slot
        if not held.all() or (beyond and not self._beyond[allocation]):
            raise ValueError(f"{allocation} is not promised")
        place -= place.dtype.type(allocation.amount)
        if beyond:
            self._beyond -= Counter([allocation])

    def fits(self, allocation: Allocation) -> bool:
        """Whether a place could be promised and sold as it stands: healthy, within the board and free throughout."""
        if allocation.first_slot < self.first_slot or allocation.end_slot > self.end_slot:
            return False
        if not self.columns[allocation.kind].sells(allocation.device_id, allocation.thousandths):
            return False
        return not _overlaps(self._place(allocation, self.first_slot), allocation)

    def advance(self, first_slot: int) -> None:
        """Drop the slots before `first_slot` and append as many, with what is promised there; back is a `ValueError`.

        What ends beyond the board is kept by the board itself; bookings end within the horizon, so it is little.
        """
        gone, old_end = first_slot - self.first_slot, self.end_slot
        if gone < 0:
            raise ValueError(f"a board does not go back from slot {self.first_slot} to {first_slot}")
        kept = max(0, self.slots - gone)
        for promised in self.promised.values():
            promised[:kept] = promised[self.slots - kept :]
            promised[kept:] = 0
        self.first_slot = first_slot
        for allocation in self._beyond.elements():
            self._lay(allocation, old_end)
        self._beyond = Counter({each: n for each, n in self._beyond.items() if each.end_slot > self.end_slot})

    def copy(self) -> Board:
        """A board of its own with the same promises."""
        twin = copy.copy(self)
        twin.promised = {kind: promised.copy() for kind, promised in self.promised.items()}
        twin._beyond = self._beyond.copy()
        return twin

    def same_as(self, other: Board) -> bool:
        """Whether both promise the same of the same devices in the same slots, and beyond them."""
        return (self.first_slot, self.slots, self._beyond) == (other.first_slot, other.slots, other._beyond) and all(
            np.array_equal(self.columns[kind].ids, other.columns[kind].ids)
            and np.array_equal(self.promised[kind], other.promised[kind])
            for kind in DeviceKind
        )

    def peak(self, model: str, taken: Footprint, slots: range) -> Promised:
        """What a window has promised at most, of each column of `serving`: the OR of the masks or the most thousandths.

        Outside of the board everything is promised. Errors: `UnknownModel`, `InvalidWindow` when empty.
        """
        if not slots:
            raise InvalidWindow("a window has at least one slot")
        serving = self.serving(model, taken)
        promised = self.promised[taken.kind]
        if slots.start < self.first_slot or slots.stop > self.end_slot:
            return np.full_like(promised[0, serving], _TAKEN[taken.kind])
        rows = promised[slots.start - self.first_slot : slots.stop - self.first_slot, serving]
        return cast("Promised", _JOIN[taken.kind].reduce(rows, axis=0))

    def serving(self, model: str, taken: Footprint) -> slice:
        """The columns of the healthy devices of a model that take a footprint (`UnknownModel`)."""
        return self.columns[taken.kind].serving(self.pool.model(model).name, taken.thousandths)

    def free_units(self, model: str, taken: Footprint, slots: range) -> int:
        """How many slices of a footprint could be had at once throughout a window (errors of `peak`)."""
        return int(units_table(taken)[self.peak(model, taken, slots)].sum())

    def capacity(self, model: str, taken: Footprint) -> int:
        """How many slices of a footprint the model's healthy devices hold when nothing is promised (`UnknownModel`)."""
        serving = self.serving(model, taken)
        return int(units_table(taken)[0]) * (serving.stop - serving.start)

    def promised_now(self, device: Device) -> int:
        """What is promised of a device in the board's first slot: busy cells, or thousandths."""
        promised = int(self.promised[device.kind][0, self.columns[device.kind].column_of[device.id]])
        return promised.bit_count() if device.kind is DeviceKind.MIG else promised

    def starts(self, model: str, taken: Footprint, count: int, length: int, within: range) -> NDArray[np.bool_]:
        """For each start slot of `within`, whether `count` slices fit for `length` slots: bool[len(within)].

        Errors: `InvalidNeed`, `InvalidLength` below 1, `UnknownModel`.
        """
        if count < 1 or length < 1:
            raise InvalidNeed("a count is at least 1") if count < 1 else InvalidLength("a length is at least one slot")
        serving = self.serving(model, taken)
        first, stop = max(within.start, self.first_slot), min(within.stop, self.end_slot - length + 1)
        found = np.zeros(len(within), dtype=np.bool_)
        if first < stop:
            rows = self.promised[taken.kind][first - self.first_slot : stop - 1 + length - self.first_slot, serving]
            peaks = _sliding(_JOIN[taken.kind], rows, length)
            found[first - within.start : stop - within.start] = units_table(taken)[peaks].sum(axis=1) >= count
        return found

    def promised_ppm(self, model: str) -> NDArray[np.int64]:
        """The promised share of a model's healthy devices in parts per million, rounded down: int64[slots].

        A device counts as one whatever its kind: busy cells of its cells, or thousandths of 1000. Where no device is
        healthy there is nothing left to sell, and all of it counts as promised. (`UnknownModel`)
        """
        geometry = self.pool.model(model).board
        cells = geometry.cells if geometry else 1
        mig, shared = (self.promised[kind][:, self.columns[kind].serving(model, 0)] for kind in DeviceKind)
        devices = mig.shape[1] + shared.shape[1]
        if not devices:
            return np.full(self.slots, PPM, dtype=np.int64)
        busy = np.bitwise_count(mig).sum(axis=1, dtype=np.int64) * WHOLE + shared.sum(axis=1, dtype=np.int64) * cells
        return busy * PPM // (devices * cells * WHOLE)

    def _lay(self, allocation: Allocation, first_slot: int) -> None:
        """Add the part of an allocation that lies on the board at or after `first_slot`."""
        place = self._place(allocation, first_slot)
        if _overlaps(place, allocation):
            raise NoCapacity(f"{allocation} overlaps what is promised already")
        place += place.dtype.type(allocation.amount)

    def _place(self, allocation: Allocation, first_slot: int) -> Promised:
        """The stretch of the board that an allocation covers at or after `first_slot`, as a view; maybe empty."""
        column = self.columns[allocation.kind].column_of.get(allocation.device_id)
        if column is None:
            raise NoSuchCapacity(f"the pool has no {allocation.kind} device {allocation.device_id}")
        start = max(allocation.first_slot, first_slot, self.first_slot) - self.first_slot
        stop = max(start, min(allocation.end_slot, self.end_slot) - self.first_slot)
        return self.promised[allocation.kind][start:stop, column]


def _overlaps(place: Promised, allocation: Allocation) -> bool:
    if allocation.mask:
        return bool((place & place.dtype.type(allocation.mask)).any())
    return bool((place > WHOLE - allocation.thousandths).any())


def _sliding(join: np.ufunc, rows: Promised, length: int) -> Promised:
    """`join` over every run of `length` rows, in log2(length) passes: each doubles the run, the last one overlaps."""
    run = 1
    while run < length:
        step = min(run, length - run)
        rows = join(rows[:-step], rows[step:])
        run += step
    return rows
