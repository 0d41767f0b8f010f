"""Devices found by a stand-in for NVML that is told what the cards say."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pynvml
import pytest

from broker.inputs.inventory import Nvml, nvml_pool
from market.catalog import DeviceKind, Pool

MIB = 2**20


class NvmlFault(Exception):
    """Stands for pynvml.NVMLError."""


@dataclass(frozen=True)
class Card:
    """What NVML says of one card; `mig` is None where it knows no MIG, `lost` where it does not answer."""

    name: str = "NVIDIA L4"
    mib: int = 23_034
    mig: bool | None = None
    lost: bool = False

    @property
    def total(self) -> int:
        return self.mib * MIB


class FakeNvml:
    """The part of the module pynvml that the inventory uses; a handle is the card itself."""

    NVMLError: type[Exception] = NvmlFault

    def __init__(self, cards: Sequence[Card], *, driver: bool = True) -> None:
        self.cards, self.driver, self.sessions = cards, driver, 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise NvmlFault("Driver Not Loaded")
        self.sessions += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.sessions -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:  # noqa: N802
        if self.cards[index].lost:
            raise NvmlFault("GPU is lost")
        return self.cards[index]

    def nvmlDeviceGetName(self, handle: object) -> str:  # noqa: N802
        return card(handle).name

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Card:  # noqa: N802
        return card(handle)

    def nvmlDeviceGetMigMode(self, handle: object) -> list[int]:  # noqa: N802
        mig = card(handle).mig
        if mig is None:
            raise NvmlFault("Not Supported")
        return [int(mig), 0]


def card(handle: object) -> Card:
    assert isinstance(handle, Card)
    return handle


def found(*cards: Card) -> Pool:
    nvml: Nvml = FakeNvml(cards)
    pool = nvml_pool("here", nvml)
    assert pool is not None
    return pool


A100 = Card("NVIDIA A100-SXM4-40GB", 40_960, mig=False)
A100_MIG = Card("NVIDIA A100-SXM4-40GB", 40_960, mig=True)
UNKNOWN_MIG = Card("NVIDIA X900", 65_536, mig=True)


@pytest.mark.parametrize(
    ("name", "mib", "model", "memory_gb", "board"),
    [
        ("NVIDIA A100-SXM4-40GB", 40_960, "a100-40g", 40, "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", 81_920, "a100-80g", 80, "A100-80GB"),
        ("NVIDIA H100 80GB HBM3", 81_559, "h100-80g", 80, "H100-80GB"),
        ("NVIDIA H100 NVL", 95_830, "h100-nvl", 94, "H100-NVL-94GB"),
        ("NVIDIA H200", 143_771, "h200", 141, "H200-141GB"),
        ("NVIDIA A30", 24_576, "a30", 24, "A30-24GB"),
        ("NVIDIA GH200 480GB", 97_871, "gh200-96g", 96, None),
        ("NVIDIA L4", 23_034, "l4", 24, None),
        ("Tesla T4", 15_360, "t4", 16, None),
        ("Tesla V100-SXM2-16GB", 16_160, "v100-16g", 16, None),
        ("NVIDIA GeForce RTX 4090", 24_564, "rtx-4090", 24, None),
        ("NVIDIA X900", 400 * 1024, "x900", 400, None),
    ],
)
def test_a_card_is_sold_by_its_marketed_name_and_size(
    name: str, mib: int, model: str, memory_gb: int, board: str | None
) -> None:
    (only,) = found(Card(name, mib)).models
    assert (only.name, only.memory_gb, only.mig_board, only.title) == (model, memory_gb, board, name)


def test_a_card_in_mig_mode_sells_the_profiles_of_its_board_and_another_one_halves() -> None:
    pool = found(A100_MIG, A100)
    partitioned, whole = pool.devices
    assert (partitioned.kind, whole.kind) == (DeviceKind.MIG, DeviceKind.SHARED)
    assert partitioned.shapes == ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
    assert whole.shapes == ("full", "half")
    assert all(pool.footprint(sku) for sku in pool.skus())


def test_what_cannot_be_sold_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        pool = found(UNKNOWN_MIG, Card(lost=True), Card())
    assert [(device.id, device.index, device.model) for device in pool.devices] == [(1, 2, "l4")]
    assert "device 0 is left out: NVIDIA X900 is in MIG mode" in caplog.text
    assert "device 1 is left out: NVML cannot read it: GPU is lost" in caplog.text


def test_two_sizes_under_one_name_are_sold_as_the_smaller() -> None:
    pool = found(Card("NVIDIA GeForce RTX 3080", 12_288), Card("NVIDIA GeForce RTX 3080", 10_240))
    assert [(model.name, model.memory_gb) for model in pool.models] == [("rtx-3080", 10)]


@pytest.mark.parametrize("cards", [(), (Card(lost=True),), (UNKNOWN_MIG,)])
def test_no_device_to_sell_is_no_pool_and_nvml_is_closed(cards: tuple[Card, ...]) -> None:
    nvml = FakeNvml(cards)
    assert nvml_pool("here", nvml) is None
    assert nvml.sessions == 0


def test_no_driver_is_no_pool() -> None:
    assert nvml_pool("here", FakeNvml([Card()], driver=False)) is None


def test_this_machine_answers_as_its_own_nvml_does() -> None:
    """None where NVML or a device is missing; a pool of its own cards on a machine that has some."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        count = 0
    pool = nvml_pool("here")
    if count == 0:
        assert pool is None
    elif pool is not None:
        assert 1 <= len(pool.devices) <= count
        assert not pool.simulated
