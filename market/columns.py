"""How the devices of one kind lie in the columns of the board, and in which subtrees of the topology they stand.

Fixed for the life of a pool, so that every question to the board reads one contiguous slice and no list of devices.
No promise enters here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from market.catalog import WHOLE, Device, DeviceKind, Node, Pool

ALONE, DOMAIN, NODE = 0, 1, 2
"""The first levels of the topology: a device alone, its NVLink domain, its node; the leaf follows, the pool is last."""

NO_COLUMNS = slice(0, 0)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one kind: `ids` int64[columns]; `levels` int64[levels, columns], the subtree it is in at a level.

    A model's columns are contiguous: first the healthy devices that sell fractions, then the other healthy ones, then
    the unhealthy, each by id; `healthy` and `divisible` are slices of them by model.
    """

    devices: tuple[Device, ...]
    ids: NDArray[np.int64]
    levels: NDArray[np.int64]
    column_of: dict[int, int]
    healthy: dict[str, slice]
    divisible: dict[str, slice]

    @classmethod
    def of(cls, pool: Pool, kind: DeviceKind) -> Columns:
        devices = sorted((device for device in pool.devices if device.kind is kind), key=_order)
        healthy: dict[str, slice] = {}
        divisible: dict[str, slice] = {}
        column = 0
        for model, group in groupby(devices, key=lambda device: device.model):
            members = list(group)
            healthy[model] = slice(column, column + sum(device.healthy for device in members))
            divisible[model] = slice(column, column + sum(device.healthy and _divisible(device) for device in members))
            column += len(members)
        return cls(
            devices=tuple(devices),
            ids=np.array([device.id for device in devices], dtype=np.int64),
            levels=_levels(devices, pool.node_by_name),
            column_of={device.id: column for column, device in enumerate(devices)},
            healthy=healthy,
            divisible=divisible,
        )

    def serving(self, model: str, thousandths: int) -> slice:
        """The healthy columns of a model that take so much of a device (0 for cells): `device_serves`, as a slice."""
        served = self.healthy if thousandths in (0, WHOLE) else self.divisible
        return served.get(model, NO_COLUMNS)

    def sells(self, device_id: int, thousandths: int) -> bool:
        """Whether a device is one of these, healthy, and takes so much of itself (0 for cells)."""
        column = self.column_of.get(device_id)
        if column is None:
            return False
        serving = self.serving(self.devices[column].model, thousandths)
        return serving.start <= column < serving.stop


def _order(device: Device) -> tuple[str, bool, bool, int]:
    return device.model, not device.healthy, not _divisible(device), device.id


def _divisible(device: Device) -> bool:
    return any(shape != "full" for shape in device.shapes)


def _levels(devices: list[Device], nodes: dict[str, Node]) -> NDArray[np.int64]:
    """Paths are compared from the site down, so that two leaves of one name stay apart; short ones end at the site."""
    paths = [(nodes[device.node].site, *nodes[device.node].topology) for device in devices]
    depth = max(map(len, paths), default=1)
    levels = [
        _numbered(device.id for device in devices),
        _numbered((device.node, device.nvlink or device.id) for device in devices),
        _numbered(device.node for device in devices),
        *(_numbered(path[: max(len(path) - up, 1)] for path in paths) for up in range(depth)),
        _numbered("" for _ in devices),
    ]
    return np.array(levels, dtype=np.int64)


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
