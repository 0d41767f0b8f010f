"""Finds the devices of this machine by NVML, for a pool without a file.

A card in MIG mode sells the profiles of its board as `market.mig` knows them; to learn them from NVML itself, which
would serve boards that are not in the table, is later work. NVLink domains are not looked for either.
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

from market.catalog import Device, DeviceKind, DeviceModel, Node, Pool
from market.mig import MIG_BOARDS

_LOG = logging.getLogger(__name__)
_GIB = 2**30
_MARKETED_GB = (4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 141, 180, 192, 288)
_NOISE = re.compile(r"nvidia|tesla|geforce|quadro|generation|sxm\d*|pcie|hbm\d\w*|\d+gb")


class NvmlMemory(Protocol):
    """What NVML says of a card's memory, in bytes (nvmlMemory_t)."""

    @property
    def total(self) -> int: ...


class Nvml(Protocol):
    """The part of the module pynvml that is used, in its own names (N802); each function raises `NVMLError` where NVML
    fails."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None: ...  # noqa: N802
    def nvmlShutdown(self) -> None: ...  # noqa: N802
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: N802
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...  # noqa: N802
    def nvmlDeviceGetName(self, handle: object) -> str: ...  # noqa: N802
    def nvmlDeviceGetMemoryInfo(self, handle: object) -> NvmlMemory: ...  # noqa: N802
    def nvmlDeviceGetMigMode(self, handle: object) -> list[int]: ...  # noqa: N802


@dataclass(frozen=True, slots=True)
class _Card:
    """One card as NVML shows it."""

    index: int
    model: DeviceModel
    partitioned: bool


def nvml_pool(name: str, nvml: Nvml | None = None) -> Pool | None:
    """A pool of this machine's devices, None where NVML or a device that can be sold is missing.

    A card is sold whole or by halves, or by its board's MIG profiles where MIG is on; one in MIG mode on an unknown
    board, or one that NVML cannot read, is left out with a line in the log.
    """
    nvml = nvml or _pynvml()
    cards = _cards(nvml) if nvml else []
    if not cards:
        return None
    node = _this_node()
    models: dict[str, DeviceModel] = {}
    for card in cards:
        same = models.setdefault(card.model.name, card.model)
        models[same.name] = min(same, card.model, key=lambda model: model.memory_gb)
    devices = (_device(number, node.name, card) for number, card in enumerate(cards, start=1))
    return Pool(name=name, simulated=False, models=tuple(models.values()), nodes=(node,), devices=tuple(devices))


def model_of(title: str, total_bytes: int) -> DeviceModel:
    """The model of a card by NVML's name and total memory, as "NVIDIA A100-SXM4-40GB" is a100-40g.

    The marketed size is the smallest that holds what NVML counts, since NVML's total is in GiB and lacks what ECC
    takes (an L4 of 24 GB shows 22.5 GiB). It joins the name where NVML's name has a size too.
    """
    gib = -(-total_bytes // _GIB)
    memory_gb = next((size for size in _MARKETED_GB if size >= gib), gib)
    family = "-".join(re.findall(r"[a-z0-9]+", _NOISE.sub(" ", title.lower()))) or "gpu"
    board = f"{family.upper()}-{memory_gb}GB"
    return DeviceModel(
        name=f"{family}-{memory_gb}g" if re.search(r"\d+GB", title) else family,
        title=title,
        memory_gb=memory_gb,
        mig_board=board if board in MIG_BOARDS else None,
    )


def _pynvml() -> Nvml | None:
    try:
        import pynvml
    except ImportError:
        return None
    return cast(Nvml, pynvml)


def _cards(nvml: Nvml) -> list[_Card]:
    try:
        with _session(nvml):
            found = (_card(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
            return [card for card in found if card]
    except nvml.NVMLError as fault:
        _LOG.info("no devices by NVML: %s", fault)
        return []


@contextmanager
def _session(nvml: Nvml) -> Generator[None, None, None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _card(nvml: Nvml, index: int) -> _Card | None:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        model = model_of(nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError as fault:
        _LOG.warning("device %d is left out: NVML cannot read it: %s", index, fault)
        return None
    partitioned = _mig_is_on(nvml, handle)
    if partitioned and model.board is None:
        _LOG.warning("device %d is left out: %s is in MIG mode and its profiles are not known", index, model.title)
        return None
    return _Card(index, model, partitioned)


def _mig_is_on(nvml: Nvml, handle: object) -> bool:
    """Cards without MIG answer with an error (NVML_ERROR_NOT_SUPPORTED)."""
    try:
        current, *_ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return False
    return current == 1


def _device(number: int, node: str, card: _Card) -> Device:
    board = card.model.board if card.partitioned else None
    return Device(
        id=number,
        node=node,
        index=card.index,
        model=card.model.name,
        kind=DeviceKind.MIG if board else DeviceKind.SHARED,
        shapes=tuple(profile.name for profile in board.profiles) if board else ("full", "half"),
    )


def _this_node() -> Node:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Node(
        name=platform.node() or "localhost",
        site="local",
        topology=(),
        cpu_milli=(os.cpu_count() or 1) * 1000,
        memory_mib=memory // 2**20,
    )
