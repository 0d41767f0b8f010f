"""Where slices go: the best fit on one device, and for a gang the smallest subtree of the topology that holds it.

Deterministic and blind to names. It only proposes: the caller promises the places, and the database has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from market.board import Allocation, Board, Promised
from market.catalog import DeviceKind, Footprint, Pool
from market.columns import ALONE, DOMAIN, NODE
from market.errors import InvalidNeed, NoCapacity
from market.geometry import best_masks, units_table
from market.mig import MigBoard

Ints = NDArray[np.int64]


def place(
    board: Board, pool: Pool, *, model: str, taken: Footprint, count: int, slots: range
) -> tuple[Allocation, ...]:
    """Places for `count` slices of a model throughout a window, ascending by device id; slices may share a device.

    Of devices that hold all of it, the fullest; else all of it in the smallest subtree that holds it (NVLink domain,
    node, each level of `Node.topology` from the leaf up, site, pool), of these the one with the fewest units left.
    Ties go to the subtree whose surroundings have the fewest units left, so that whole nodes stay free for gangs, then
    to the lowest device id. It refuses (`NoCapacity`) exactly when `board.free_units` is less than `count`.
    Other errors: `InvalidNeed` below 1, `UnknownModel`, `InvalidWindow`.
    """
    if count < 1:
        raise InvalidNeed("a count is at least 1")
    peak = board.peak(model, taken, slots)
    units = units_table(taken)[peak].astype(np.int64)
    if units.sum() < count:
        raise NoCapacity(f"{count} slices of {model} asked for, {units.sum()} are free throughout the window")
    columns, serving = board.columns[taken.kind], board.serving(model, taken)
    ids = columns.ids[serving]
    shares = _shares(units, _fullness(peak, taken.kind), columns.levels[:, serving], ids, count)
    geometry = pool.model(model).board
    return tuple(
        sorted(
            Allocation(
                device_id=int(ids[column]),
                mask=mask,
                thousandths=taken.thousandths,
                first_slot=slots.start,
                end_slot=slots.stop,
            )
            for column in np.flatnonzero(shares)
            for mask in _masks(geometry, taken, int(peak[column]), int(shares[column]))
        )
    )


def _fullness(peak: Promised, kind: DeviceKind) -> Ints:
    busy = np.bitwise_count(peak) if kind is DeviceKind.MIG else peak
    return busy.astype(np.int64)


def _shares(units: Ints, fullness: Ints, levels: Ints, ids: Ints, count: int) -> Ints:
    """How many of `count` slices each column takes, int64[columns], given how many it has room for.

    Above the node no child of the chosen subtree holds the rest, so the largest child is taken whole and the rest
    looks for its own smallest subtree in what is left: a gang ends up on few nodes, and its tail is a best fit.
    """
    shares = np.zeros_like(units)
    while True:
        free = np.array([np.bincount(level, weights=units)[level] for level in levels], dtype=np.int64)
        level, inside = _smallest(free, fullness, levels, ids, count)
        units = np.where(inside, units, 0)
        if level <= NODE:
            return shares + _filled(units, fullness, free[DOMAIN], ids, count)
        largest = _first(np.flatnonzero(inside), [-free[level - 1]], ids)
        child = levels[level - 1] == levels[level - 1, largest]
        shares += np.where(child, units, 0)
        count -= int(units[child].sum())
        units = np.where(child, 0, units)


def _smallest(free: Ints, fullness: Ints, levels: Ints, ids: Ints, count: int) -> tuple[int, NDArray[np.bool_]]:
    """The lowest level with a subtree that holds `count`, and which columns are in the best of these subtrees."""
    level = int((free.max(axis=1) >= count).argmax())
    fit = -fullness if level == ALONE else free[level]
    chosen = _first(np.flatnonzero(free[level] >= count), [fit, *free[level + 1 :]], ids)
    return level, levels[level] == levels[level, chosen]


def _first(columns: Ints, keys: list[Ints], ids: Ints) -> int:
    """The column with the least keys, compared in turn, then the least id: a lexicographic minimum without a sort."""
    for key in [*keys, ids]:
        values = key[columns]
        columns = columns[values == values.min()]
    return int(columns[0])


def _filled(units: Ints, fullness: Ints, domain: Ints, ids: Ints, count: int) -> Ints:
    """`count` slices over the columns with room: the fullest first, then of the widest NVLink domain, then by id."""
    order = np.lexsort((ids, -domain, -fullness))
    before = np.cumsum(units[order]) - units[order]
    shares = np.zeros_like(units)
    shares[order] = np.clip(count - before, 0, units[order])
    return shares


def _masks(geometry: MigBoard | None, taken: Footprint, busy: int, share: int) -> Iterator[int]:
    """The cells of each of `share` slices on one device; 0 on a shared one, which has no cells."""
    for _ in range(share):
        mask = int(best_masks(geometry, taken.masks)[busy]) if geometry and taken.masks else 0
        busy |= mask
        yield mask
