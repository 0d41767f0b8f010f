"""What a pool is made of and what it sells: models, shapes, SKUs, nodes, devices, tiers.

Values only, and the standard library only, so that a command line can load them in no time.
A device is of one of two kinds. A `mig` device is cut into cells; what is promised of it is a mask of cells.
A `shared` device is counted in thousandths; a whole card is 1000 of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from market.errors import InvalidShape, UnknownModel, UnknownSku
from market.mig import MIG_BOARDS, MigBoard

WHOLE = 1000
PPM = 1_000_000
NAMED_FRACTIONS = {"half": 500, "third": 333, "quarter": 250, "eighth": 125}


class DeviceKind(StrEnum):
    MIG = "mig"
    SHARED = "shared"


class Isolation(StrEnum):
    """What separates a slice from its neighbours, from strongest to none."""

    DEVICE = "device"
    MIG = "mig"
    MPS = "mps"
    TIME = "time"


class Tier(StrEnum):
    """The contract of a booking."""

    CRITICAL = "critical"
    STANDARD = "standard"
    ECONOMY = "economy"
    SPOT = "spot"


ISOLATION_RANK = {isolation: rank for rank, isolation in enumerate(Isolation)}
TIERS_BY_PRICE = (Tier.SPOT, Tier.ECONOMY, Tier.STANDARD, Tier.CRITICAL)
TIERS_SOLD = frozenset({Tier.STANDARD, Tier.ECONOMY})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceModel:
    """One GPU model. `memory_gb` is the size it is sold by (GB of 10^9 bytes), `mig_board` its row in the MIG table."""

    name: str
    title: str
    memory_gb: int
    mig_board: str | None = None

    @property
    def board(self) -> MigBoard | None:
        return MIG_BOARDS.get(self.mig_board) if self.mig_board else None


@dataclass(frozen=True, slots=True, order=True)
class Sku:
    """What is sold: a device model and a shape, written `a100-40g/3g.20gb`."""

    model: str
    shape: str

    @classmethod
    def parse(cls, text: str) -> Sku:
        model, slash, shape = text.strip().lower().partition("/")
        if not slash or not model or not shape:
            raise UnknownSku(f"{text!r} is no SKU; one is written like a100-40g/3g.20gb or l4/half")
        return cls(model, shape)

    def __str__(self) -> str:
        return f"{self.model}/{self.shape}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What one slice of a SKU takes of a device.

    `masks` are the legal cell masks on a `mig` device (empty on a shared one), `thousandths` the part of a shared
    device (0 on a `mig` one), `share` the part of the card that is paid for: max(compute share, memory share).
    """

    kind: DeviceKind
    masks: tuple[int, ...]
    thousandths: int
    share: Fraction
    memory_gb: int
    isolation: Isolation
    inferred: bool = False


def footprint(model: DeviceModel, shape: str) -> Footprint:
    """What a shape takes of one device of a model (`InvalidShape` when the model has no such shape)."""
    if model.board and (profile := model.board.profile(shape)):
        share = max(Fraction(profile.compute, model.board.compute), Fraction(profile.cells, model.board.cells))
        return Footprint(
            kind=DeviceKind.MIG,
            masks=profile.masks,
            thousandths=0,
            share=share,
            memory_gb=_profile_memory_gb(profile.name),
            isolation=Isolation.MIG,
            inferred=profile.inferred,
        )
    thousandths = shape_thousandths(model, shape)
    return Footprint(
        kind=DeviceKind.SHARED,
        masks=(),
        thousandths=thousandths,
        share=Fraction(thousandths, WHOLE),
        memory_gb=model.memory_gb * thousandths // WHOLE,
        isolation=Isolation.DEVICE if thousandths == WHOLE else Isolation.TIME,
    )


def shape_thousandths(model: DeviceModel, shape: str) -> int:
    """Thousandths of a shared device that `full`, `half`, `0.470` or `10GB` stands for."""
    if shape == "full":
        return WHOLE
    if shape in NAMED_FRACTIONS:
        return NAMED_FRACTIONS[shape]
    if match := re.fullmatch(r"0\.(\d{1,3})", shape, re.ASCII):
        thousandths = int(match[1].ljust(3, "0"))
    elif match := re.fullmatch(r"(\d{1,4})gb", shape.lower(), re.ASCII):
        thousandths = -(-int(match[1]) * WHOLE // model.memory_gb)
    else:
        raise InvalidShape(f"{model.name} has no shape {shape!r}; try full, half, 0.470, 10GB or a MIG profile")
    if not 1 <= thousandths <= WHOLE:
        raise InvalidShape(f"{shape!r} is not a part of one {model.name} ({model.memory_gb} GB)")
    return thousandths


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A host. `topology` is its path from the spine down, as ("spine-1", "leaf-2"); CPU in 1/1000 core, memory MiB."""

    name: str
    site: str
    topology: tuple[str, ...]
    cpu_milli: int
    memory_mib: int
    cooling: str = "air"
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One physical GPU. `id` is the broker's row id, ascending in pool order; `index` its place on the node."""

    id: int
    node: str
    index: int
    model: str
    kind: DeviceKind
    shapes: tuple[str, ...]
    nvlink: str | None = None
    healthy: bool = True


@dataclass(frozen=True, kw_only=True)
class Pool:
    """All devices that a broker sells. `simulated` is said wherever the pool is shown."""

    name: str
    simulated: bool
    models: tuple[DeviceModel, ...]
    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]

    def model(self, name: str) -> DeviceModel:
        found = self._models.get(name)
        if found is None:
            raise UnknownModel(f"no {name!r} in this pool; it has {', '.join(sorted(self._models))}")
        return found

    def footprint(self, sku: Sku) -> Footprint:
        """What a SKU takes; a SKU that no device of the pool can serve is `UnknownSku`."""
        model = self.model(sku.model)
        taken = footprint(model, sku.shape)
        if not self.serves(sku.model, taken):
            raise UnknownSku(f"no device of this pool sells {sku}; see what it sells with: gputide offers")
        return taken

    def serves(self, model: str, taken: Footprint) -> bool:
        return any(device.model == model and device_serves(device, taken) for device in self.device_classes)

    @cached_property
    def _models(self) -> dict[str, DeviceModel]:
        return {model.name: model for model in self.models}

    @cached_property
    def node_by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def device_classes(self) -> tuple[Device, ...]:
        """One healthy device of each (model, kind, shapes): what can be had depends on these alone."""
        seen = {(d.model, d.kind, d.shapes): d for d in reversed(self.devices) if d.healthy}
        return tuple(seen.values())

    def skus(self) -> Iterator[Sku]:
        """Every SKU that is listed for sale, in order; fractions may also be asked for freely."""
        listed = {Sku(device.model, shape) for device in self.device_classes for shape in device.shapes}
        return iter(sorted(listed))


def device_serves(device: Device, taken: Footprint) -> bool:
    """Whether a device can hold a footprint of its own model at all; a shared one that lists only `full` is whole."""
    if device.kind is not taken.kind:
        return False
    if taken.kind is DeviceKind.MIG:
        return True
    return taken.thousandths == WHOLE or any(shape != "full" for shape in device.shapes)


def _profile_memory_gb(profile: str) -> int:
    match = re.fullmatch(r"\d+g\.(\d+)gb", profile)
    if match is None:
        raise InvalidShape(f"{profile!r} is no MIG profile name")
    return int(match[1])
