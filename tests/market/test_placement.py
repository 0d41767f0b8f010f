from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.board import Allocation, Board
from market.catalog import Device, Footprint, Pool
from market.errors import InvalidNeed, NoCapacity, UnknownModel
from market.placement import place
from tests.market.boards import (
    A100,
    MIG,
    SKUS,
    cut,
    device,
    legal,
    node,
    pool_of,
    pools,
    some_allocations,
    taken,
    units_of,
)

SLOTS = range(100, 104)
SMALL, FULL, HALF = taken("a100-40g", "1g.5gb"), taken("l4", "full"), taken("l4", "half")


def board_of(pool: Pool, *promised: Allocation) -> Board:
    return Board.of(pool, promised, first_slot=100, slots=8)


def placed(pool: Pool, model: str, want: Footprint, count: int, *promised: Allocation) -> list[int]:
    """The device of each slice."""
    found = place(board_of(pool, *promised), pool, model=model, taken=want, count=count, slots=SLOTS)
    return [each.device_id for each in found]


def full(*device_ids: int) -> list[Allocation]:
    return [cut(each, 100, 108, thousandths=1000) for each in device_ids]


def nodes_of(sizes: dict[str, int], leaves: dict[str, tuple[str, ...]] | None = None) -> Pool:
    """A pool of whole L4 nodes with so many devices each, ids ascending; `leaves` are their topology paths."""
    owners = [name for name, size in sizes.items() for _ in range(size)]
    nodes = [node(name, *(leaves or {}).get(name, ())) for name in sizes]
    return pool_of(nodes, [device(number, owner) for number, owner in enumerate(owners, start=1)])


def subtrees(pool: Pool, owner: Device) -> Iterable[Hashable]:
    """The subtrees that a device stands in, smallest first; a path shorter than the longest ends at its site."""
    host = pool.node_by_name[owner.node]
    depth = max(len(each.topology) for each in pool.nodes)
    yield owner.id
    yield owner.node, owner.nvlink or owner.id
    yield owner.node
    for up in range(depth + 1):
        yield host.site, host.topology[: max(0, len(host.topology) - up)]
    yield "pool"


@st.composite
def requests(draw: st.DrawFn) -> tuple[Pool, list[Allocation], str, str, int]:
    pool = draw(pools())
    promised = legal(draw(st.lists(some_allocations(pool, 98, 112), max_size=12)))
    return pool, promised, *draw(st.sampled_from(SKUS)), draw(st.integers(1, 8))


@given(request=requests())
def test_a_place_is_free_and_is_refused_only_where_too_few_are_free(
    request: tuple[Pool, list[Allocation], str, str, int],
) -> None:
    pool, promised, model, shape, count = request
    board, want = board_of(pool, *promised), taken(model, shape)
    if board.free_units(model, want, SLOTS) < count:
        with pytest.raises(NoCapacity):
            place(board, pool, model=model, taken=want, count=count, slots=SLOTS)
        return
    found = place(board, pool, model=model, taken=want, count=count, slots=SLOTS)
    assert board.same_as(board_of(pool, *promised))
    assert len(found) == count
    assert [each.device_id for each in found] == sorted(each.device_id for each in found)
    for each in found:
        assert range(each.first_slot, each.end_slot) == SLOTS
        assert each.mask in (want.masks or (0,))
        assert each.thousandths == want.thousandths
        assert board.fits(each)
        board.promise(each)


@given(request=requests())
def test_a_gang_takes_the_smallest_subtree_that_holds_it_and_there_the_tightest(
    request: tuple[Pool, list[Allocation], str, str, int],
) -> None:
    pool, promised, model, shape, count = request
    want = taken(model, shape)
    room = {each.id: units_of(each, promised, model, want, SLOTS) for each in pool.devices}
    if sum(room.values()) < count:
        return
    paths = {each.id: list(subtrees(pool, each)) for each in pool.devices}
    used = set(placed(pool, model, want, count, *promised))
    for level in range(len(next(iter(paths.values())))):
        free = Counter[Hashable]()
        for number, units in room.items():
            free[paths[number][level]] += units
        if max(free.values()) >= count:
            assert len(inside := {paths[number][level] for number in used}) == 1
            if level > 0:
                assert free[inside.pop()] == min(units for units in free.values() if units >= count)
            return
    pytest.fail("the pool itself is the last subtree")


@given(request=requests())
def test_names_decide_nothing(request: tuple[Pool, list[Allocation], str, str, int]) -> None:
    pool, promised, model, shape, count = request
    new = {each.name: f"{99 - number}" for number, each in enumerate(pool.nodes)}
    renamed = replace(
        pool,
        nodes=tuple(replace(each, name=new[each.name]) for each in pool.nodes),
        devices=tuple(replace(each, node=new[each.node]) for each in pool.devices),
    )
    want = taken(model, shape)
    if board_of(pool, *promised).free_units(model, want, SLOTS) >= count:
        assert placed(renamed, model, want, count, *promised) == placed(pool, model, want, count, *promised)


def test_a_small_slice_goes_to_cell_6_first() -> None:
    pool = pool_of([node("n")], [device(1, "n", A100, MIG)])
    (found,) = place(board_of(pool), pool, model="a100-40g", taken=SMALL, count=1, slots=SLOTS)
    assert found == cut(1, 100, 104, mask=1 << 6)


def test_seven_small_slices_share_one_card() -> None:
    pool = pool_of([node("n")], [device(1, "n", A100, MIG)])
    found = place(board_of(pool), pool, model="a100-40g", taken=SMALL, count=7, slots=SLOTS)
    assert sorted(each.mask for each in found) == [1 << cell for cell in range(7)]


def test_two_small_slices_fit_a_node_with_one_card() -> None:
    pool = pool_of([node("n")], [device(1, "n", A100, MIG)])
    assert placed(pool, "a100-40g", SMALL, 2) == [1, 1]


def test_a_part_goes_to_the_shared_device_with_the_least_room() -> None:
    pool = nodes_of({"a": 2, "b": 2})
    held = [cut(2, 103, 105, thousandths=501), cut(3, 100, 101, thousandths=400), cut(4, 100, 101, thousandths=500)]
    assert placed(pool, "l4", HALF, 1, *held) == [4]


def test_a_slice_goes_to_the_fullest_partitioned_device() -> None:
    pool = pool_of([node("n")], [device(number, "n", A100, MIG) for number in (1, 2)])
    held = [cut(1, 100, 101, mask=1 << cell) for cell in (0, 2, 6)] + [cut(2, 100, 101, mask=0b0000_1111)]
    assert placed(pool, "a100-40g", taken("a100-40g", "2g.10gb"), 1, *held) == [2]


def test_a_gang_of_parts_fills_the_fullest_devices_of_a_node_first() -> None:
    held = [cut(2, 100, 101, thousandths=400), cut(3, 100, 101, thousandths=500)]
    assert placed(nodes_of({"a": 3}), "l4", HALF, 3, *held) == [1, 2, 3]


def test_places_come_by_device_id_whatever_the_devices_sell() -> None:
    devices = [device(1, "n", shapes=("full",)), device(2, "n"), device(3, "n", shapes=("full",))]
    assert placed(pool_of([node("n")], devices), "l4", FULL, 3) == [1, 2, 3]


def test_a_whole_card_is_taken_from_a_node_that_is_broken_already() -> None:
    assert placed(nodes_of({"a": 4, "b": 4}), "l4", FULL, 1, *full(5)) == [6]


def test_a_gang_stays_on_one_nvlink_domain() -> None:
    devices = [device(number, "n", nvlink="left" if number < 4 else "right") for number in range(1, 7)]
    pool = pool_of([node("n")], devices)
    assert placed(pool, "l4", FULL, 2, *full(1, 2)) == [4, 5]
    assert placed(pool, "l4", FULL, 2, *full(1, 6)) == [2, 3]


def test_domains_of_one_name_on_two_nodes_are_two() -> None:
    devices = [device(number, "ab"[number % 2], nvlink="0") for number in range(4)]
    assert placed(pool_of([node("a"), node("b")], devices), "l4", FULL, 2) == [0, 2]


def test_a_gang_that_spans_domains_takes_the_wider_one_whole() -> None:
    devices = [device(number, "n", nvlink=str(number // 2)) for number in range(6)]
    assert placed(pool_of([node("n")], devices), "l4", FULL, 3, *full(0)) == [2, 3, 4]


def test_a_gang_takes_the_node_that_it_fills_best() -> None:
    assert placed(nodes_of({"a": 4, "b": 3, "c": 2}), "l4", FULL, 2) == [8, 9]


def test_a_gang_that_no_node_holds_stays_under_one_leaf_on_few_nodes() -> None:
    leaves = {"a": ("s", "x"), "b": ("s", "y"), "c": ("s", "y"), "d": ("s", "y"), "e": ("t", "y")}
    pool = nodes_of({"a": 4, "b": 2, "c": 4, "d": 3, "e": 4}, leaves)
    assert placed(pool, "l4", FULL, 6) == [5, 6, 7, 8, 9, 10]
    assert placed(pool, "l4", FULL, 7) == [7, 8, 9, 10, 11, 12, 13]


def test_leaves_of_one_name_under_two_spines_are_two() -> None:
    pool = nodes_of({"a": 1, "b": 1, "c": 1}, {"a": ("s", "x"), "b": ("t", "x"), "c": ("s", "y")})
    assert placed(pool, "l4", FULL, 2) == [1, 3]


def test_leaves_of_one_name_on_two_sites_are_two() -> None:
    nodes = [node("a", "x", site="north"), node("b", "x", site="south"), node("c", "y", site="north")]
    assert placed(pool_of(nodes, [device(1, "a"), device(2, "b"), device(3, "c")]), "l4", FULL, 2) == [1, 3]


def test_nodes_without_a_topology_still_stand_on_their_site() -> None:
    nodes = [node("a", "spine", "leaf", site="south"), node("b", site="north"), node("c", site="south")]
    assert placed(pool_of(nodes, [device(1, "a"), device(2, "b"), device(3, "c")]), "l4", FULL, 2) == [1, 3]


def test_what_cannot_be_meant_is_refused() -> None:
    pool = nodes_of({"a": 1})
    with pytest.raises(InvalidNeed):
        placed(pool, "l4", FULL, 0)
    with pytest.raises(UnknownModel):
        placed(pool, "b300", FULL, 1)
    with pytest.raises(NoCapacity):
        place(board_of(pool), pool, model="l4", taken=FULL, count=1, slots=range(106, 109))
