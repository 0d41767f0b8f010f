"""Small pools, and the plainest possible reckoning of what is promised on them, to hold the board against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from market.board import Allocation
from market.catalog import WHOLE, Device, DeviceKind, DeviceModel, Footprint, Node, Pool, device_serves, footprint
from market.mig import MigBoard

A100 = DeviceModel(name="a100-40g", title="A100", memory_gb=40, mig_board="A100-40GB")
A30 = DeviceModel(name="a30", title="A30", memory_gb=24, mig_board="A30-24GB")
L4 = DeviceModel(name="l4", title="L4", memory_gb=24)
MODELS = {model.name: model for model in (A100, A30, L4)}

MIG, SHARED = DeviceKind.MIG, DeviceKind.SHARED
SHAPES = {MIG: ("1g.5gb",), SHARED: ("full", "half")}
DEVICE_SORTS = (
    ("a100-40g", MIG, SHAPES[MIG]),
    ("a30", MIG, SHAPES[MIG]),
    ("a100-40g", SHARED, ("full",)),
    ("a100-40g", SHARED, SHAPES[SHARED]),
    ("l4", SHARED, SHAPES[SHARED]),
)
SKUS = (
    ("a100-40g", "1g.5gb"),
    ("a100-40g", "1g.10gb"),
    ("a100-40g", "2g.10gb"),
    ("a100-40g", "3g.20gb"),
    ("a100-40g", "4g.20gb"),
    ("a100-40g", "7g.40gb"),
    ("a30", "1g.6gb"),
    ("a30", "2g.12gb"),
    ("a100-40g", "full"),
    ("a100-40g", "half"),
    ("l4", "full"),
    ("l4", "half"),
    ("l4", "0.470"),
    ("l4", "0.125"),
)


def node(name: str, *topology: str, site: str = "site") -> Node:
    return Node(name=name, site=site, topology=topology, cpu_milli=64_000, memory_mib=512_000)


def device(
    number: int,
    on: str,
    model: DeviceModel = L4,
    kind: DeviceKind = SHARED,
    *,
    nvlink: str | None = None,
    healthy: bool = True,
    shapes: tuple[str, ...] = (),
) -> Device:
    return Device(
        id=number,
        node=on,
        index=number,
        model=model.name,
        kind=kind,
        shapes=shapes or SHAPES[kind],
        nvlink=nvlink,
        healthy=healthy,
    )


def pool_of(nodes: Iterable[Node], devices: Iterable[Device]) -> Pool:
    return Pool(name="test", simulated=True, models=tuple(MODELS.values()), nodes=tuple(nodes), devices=tuple(devices))


def taken(model: str, shape: str) -> Footprint:
    return footprint(MODELS[model], shape)


def cut(device_id: int, first: int, end: int, *, mask: int = 0, thousandths: int = 0) -> Allocation:
    return Allocation(device_id=device_id, mask=mask, thousandths=thousandths, first_slot=first, end_slot=end)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """One to six nodes of one to three devices, mixed models, kinds, health and NVLink, on leaves of two sites."""
    nodes: list[Node] = []
    devices: list[Device] = []
    for number in range(draw(st.integers(1, 6))):
        path = draw(st.lists(st.sampled_from(("a", "b")), max_size=2))
        nodes.append(node(f"node-{number}", *path, site=draw(st.sampled_from(("north", "south")))))
        for sort in draw(st.lists(st.sampled_from(DEVICE_SORTS), min_size=1, max_size=3)):
            model, kind, shapes = sort
            nvlink, healthy = draw(st.sampled_from((None, "x"))), draw(st.sampled_from((True, True, True, False)))
            devices.append(
                device(
                    len(devices) + 1, nodes[-1].name, MODELS[model], kind, nvlink=nvlink, healthy=healthy, shapes=shapes
                )
            )
    return pool_of(nodes, devices)


def some_allocations(pool: Pool, first: int, end: int) -> st.SearchStrategy[Allocation]:
    """Any legal place of any device of the pool, sold or not, within `[first, end)`."""

    def of(sort: tuple[Device, int, int, int]) -> Allocation:
        owner, number, one, other = sort
        start, stop = min(one, other), max(one, other) + 1
        if owner.kind is SHARED:
            return cut(owner.id, start, stop, thousandths=(125, 333, 500, WHOLE)[number % 4])
        geometry = MODELS[owner.model].board
        assert geometry is not None
        masks = [mask for profile in geometry.profiles for mask in profile.masks]
        return cut(owner.id, start, stop, mask=masks[number % len(masks)])

    slot = st.integers(first, end - 1)
    return st.tuples(st.sampled_from(pool.devices), st.integers(0, 100), slot, slot).map(of)


def promised_at(allocations: Iterable[Allocation], device_id: int, slot: int) -> int:
    """Busy mask or promised thousandths of a device in a slot; what overlaps shows as more than the device has."""
    here = [each for each in allocations if each.device_id == device_id and each.first_slot <= slot < each.end_slot]
    return sum(each.mask or each.thousandths for each in here)


def is_free(allocations: Iterable[Allocation], wanted: Allocation) -> bool:
    """Whether a place is free of these allocations in every slot of it."""
    peaks = [promised_at(allocations, wanted.device_id, slot) for slot in range(wanted.first_slot, wanted.end_slot)]
    if wanted.mask:
        return not any(peak & wanted.mask for peak in peaks)
    return max(peaks) + wanted.thousandths <= WHOLE


def legal(allocations: Iterable[Allocation]) -> list[Allocation]:
    """Those of the allocations that can be promised one after the other without an overlap."""
    kept: list[Allocation] = []
    for each in allocations:
        if is_free(kept, each):
            kept.append(each)
    return kept


def units_of(owner: Device, allocations: Iterable[Allocation], model: str, want: Footprint, slots: range) -> int:
    """How many slices of a footprint a device has room for throughout a window, counted by trying."""
    if owner.model != model or not owner.healthy or not device_serves(owner, want):
        return 0
    rows = [promised_at(allocations, owner.id, slot) for slot in slots]
    if owner.kind is SHARED:
        return (WHOLE - max(rows)) // want.thousandths
    busy = 0
    for row in rows:
        busy |= row
    return most_disjoint(want.masks, busy)


def most_disjoint(masks: Sequence[int], busy: int) -> int:
    """The greatest number of masks that touch neither each other nor what is busy, by trying every subset."""
    if not masks:
        return 0
    without = most_disjoint(masks[1:], busy)
    return without if busy & masks[0] else max(without, 1 + most_disjoint(masks[1:], busy | masks[0]))


@st.composite
def legal_sets(draw: st.DrawFn, board: MigBoard | None) -> list[tuple[str, int]]:
    """Any set of (profile, mask) that may stand on one board together."""
    assert board is not None
    wanted = draw(st.lists(st.sampled_from([(p.name, mask) for p in board.profiles for mask in p.masks]), max_size=12))
    busy, placed = 0, list[tuple[str, int]]()
    for name, mask in wanted:
        if not busy & mask:
            busy |= mask
            placed.append((name, mask))
    return placed
