"""What still fits on a device, as tables: one look-up for each of the 256 busy masks, or the 1001 promised thousandths.

Exact and computed once a footprint, so that the board can price a whole window with a single indexing step.
No pool, no slot and no promise enters here.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from market.catalog import WHOLE, DeviceKind, Footprint
from market.mig import MigBoard

BUSY_MASKS = 256

Table = NDArray[np.uint8] | NDArray[np.int16]


def units_table(taken: Footprint) -> Table:
    """How many slices still fit on a device: indexed by its busy mask (`mig`) or promised thousandths (`shared`)."""
    return units_free(taken.masks) if taken.kind is DeviceKind.MIG else parts_free(taken.thousandths)


@cache
def units_free(masks: tuple[int, ...]) -> NDArray[np.uint8]:
    """The greatest number of non-overlapping placements of `masks` for each busy mask, `uint8[256]`, read-only.

    Exact by dynamic programming: a placement only adds bits, so the larger masks are known first.
    """
    units = np.zeros(BUSY_MASKS, dtype=np.uint8)
    for busy in reversed(range(BUSY_MASKS)):
        units[busy] = max((1 + int(units[busy | mask]) for mask in masks if not busy & mask), default=0)
    units.flags.writeable = False
    return units


@cache
def parts_free(thousandths: int) -> NDArray[np.int16]:
    """How many parts of `thousandths` fit beside what is promised of a shared device, `int16[1001]`, read-only."""
    parts = (WHOLE - np.arange(WHOLE + 1, dtype=np.int16)) // np.int16(thousandths)
    parts.flags.writeable = False
    return parts


@cache
def best_masks(board: MigBoard, masks: tuple[int, ...]) -> NDArray[np.uint8]:
    """The legal mask to take next for each busy mask, `uint8[256]`, read-only; 0 where none fits.

    Of the masks that fit, the one that leaves the least fragmentation. With every profile of the board equally likely
    to be asked for, FGD ("Beware of Fragmentation", ATC'23) counts for each profile the free cells that it cannot use.
    The free cells are as many whichever mask is taken, so that is the mask whose rest has the largest sum, over the
    profiles, of cells that a profile could fill; a tie goes to the highest cells, since `4g` starts at cell 0 alone.

    On A100 and H100 this sends 1g to cell 6, where it costs the useless eighth cell and no 3g or 4g, and 3g to cell 4.
    For every board of the table it also keeps the most profiles placeable, and taking mask after mask reaches
    `units_free`, so a gang that was counted also fits; the tests try all of them.
    """
    profiles = [(units_free(profile.masks), profile.cells) for profile in board.profiles]

    def fillable(rest: int) -> int:
        return sum(int(units[rest]) * cells for units, cells in profiles)

    def best(busy: int) -> int:
        fitting = (mask for mask in masks if not busy & mask)
        return max(fitting, key=lambda mask: (fillable(busy | mask), mask), default=0)

    table = np.array([best(busy) for busy in range(BUSY_MASKS)], dtype=np.uint8)
    table.flags.writeable = False
    return table
