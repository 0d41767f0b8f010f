from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.board import Allocation, Board
from market.catalog import Pool
from market.errors import (
    InvalidLength,
    InvalidNeed,
    InvalidShape,
    InvalidWindow,
    NoCapacity,
    NoSuchCapacity,
    UnknownModel,
)
from tests.market.boards import (
    A30,
    A100,
    L4,
    MIG,
    SKUS,
    cut,
    device,
    is_free,
    legal,
    node,
    pool_of,
    pools,
    promised_at,
    some_allocations,
    taken,
    units_of,
)

FIRST, SLOTS = 100, 12
END = FIRST + SLOTS
REACH = range(FIRST - 3, END + 8)
TWO = pool_of([node("n")], [device(1, "n", A100, MIG), device(2, "n", L4)])
HALF = taken("l4", "half")


def board(pool: Pool = TWO, *allocations: Allocation) -> Board:
    return Board.of(pool, allocations, first_slot=FIRST, slots=SLOTS)


def grid(of: Board) -> dict[tuple[int, int], int]:
    """What the board says is promised, by device and slot."""
    return {
        (int(device_id), of.first_slot + row): int(of.promised[kind][row, column])
        for kind, columns in of.columns.items()
        for column, device_id in enumerate(columns.ids)
        for row in range(of.slots)
    }


@pytest.mark.parametrize(("mask", "thousandths"), [(0, 0), (1, 1), (256, 0), (-1, 0), (0, 1001), (0, -1)])
def test_an_allocation_takes_either_cells_or_thousandths(mask: int, thousandths: int) -> None:
    with pytest.raises(InvalidShape):
        cut(1, 0, 1, mask=mask, thousandths=thousandths)


def test_an_allocation_ends_after_it_starts() -> None:
    with pytest.raises(InvalidWindow):
        cut(1, 5, 5, mask=1)


@given(data=st.data(), pool=pools())
def test_a_board_is_what_its_surviving_allocations_make_it(data: st.DataObject, pool: Pool) -> None:
    changing, surviving = board(pool), list[Allocation]()
    for _ in range(data.draw(st.integers(0, 12))):
        action = data.draw(st.sampled_from(("promise", "promise", "promise", "release", "advance")))
        if action == "promise":
            wanted = data.draw(some_allocations(pool, changing.first_slot - 3, changing.end_slot + 8))
            if is_free(surviving, wanted):
                changing.promise(wanted)
                surviving.append(wanted)
        elif action == "release" and surviving:
            changing.release(surviving.pop(data.draw(st.integers(0, len(surviving) - 1))))
        elif action == "advance":
            changing.advance(changing.first_slot + data.draw(st.sampled_from((0, 1, 2, 5, SLOTS + 1))))
    rebuilt = Board.of(pool, surviving, first_slot=changing.first_slot, slots=SLOTS)
    assert changing.same_as(rebuilt)
    assert grid(changing) == {place: promised_at(surviving, *place) for place in grid(changing)}


@given(data=st.data(), pool=pools())
def test_starts_and_free_units_agree_with_a_count_by_hand(data: st.DataObject, pool: Pool) -> None:
    promised = legal(data.draw(st.lists(some_allocations(pool, REACH.start, REACH.stop), max_size=12)))
    model, shape = data.draw(st.sampled_from(SKUS))
    want, count, length = taken(model, shape), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 7))
    asked = board(pool, *promised)

    def by_hand(slots: range) -> int:
        inside = slots.start >= FIRST and slots.stop <= END
        return sum(units_of(each, promised, model, want, slots) for each in pool.devices) if inside else 0

    free = [by_hand(range(start, start + length)) for start in REACH]
    assert [asked.free_units(model, want, range(start, start + length)) for start in REACH] == free
    assert asked.starts(model, want, count, length, REACH).tolist() == [units >= count for units in free]


@given(data=st.data(), pool=pools())
def test_fits_is_a_free_place_of_a_device_on_sale(data: st.DataObject, pool: Pool) -> None:
    promised = legal(data.draw(st.lists(some_allocations(pool, REACH.start, REACH.stop), max_size=12)))
    wanted = data.draw(some_allocations(pool, REACH.start, REACH.stop))
    owner = next(each for each in pool.devices if each.id == wanted.device_id)
    sold = owner.healthy and (wanted.thousandths in (0, 1000) or "half" in owner.shapes)
    inside = wanted.first_slot >= FIRST and wanted.end_slot <= END
    assert board(pool, *promised).fits(wanted) == (sold and inside and is_free(promised, wanted))


@pytest.mark.parametrize("place", [cut(1, 104, 106, mask=0b0110), cut(2, 104, 106, thousandths=501)])
def test_an_overlap_is_refused_and_changes_nothing(place: Allocation) -> None:
    held = (cut(1, 105, 107, mask=0b0011), cut(2, 105, 107, thousandths=500))
    asked = board(TWO, *held)
    with pytest.raises(NoCapacity):
        asked.promise(place)
    assert asked.same_as(board(TWO, *held))


@pytest.mark.parametrize(
    "place",
    [
        cut(1, 104, 106, mask=0b0011),
        cut(2, 104, 106, thousandths=500),
        cut(1, 104, END + 1, mask=1),
        cut(2, END, END + 1, thousandths=1),
    ],
)
def test_what_was_not_promised_is_not_released(place: Allocation) -> None:
    held = (cut(1, 104, END, mask=0b0001), cut(2, 105, END, thousandths=500))
    asked = board(TWO, *held)
    with pytest.raises(ValueError, match="not promised"):
        asked.release(place)
    assert asked.same_as(board(TWO, *held))


@pytest.mark.parametrize("place", [cut(3, 104, 105, mask=1), cut(1, 104, 105, thousandths=1), cut(2, 104, 105, mask=1)])
def test_a_place_that_the_pool_does_not_have_is_refused(place: Allocation) -> None:
    assert not board().fits(place)
    with pytest.raises(NoSuchCapacity):
        board().promise(place)


def test_a_device_that_sells_itself_whole_alone_takes_no_part() -> None:
    pool = pool_of([node("n")], [device(1, "n", shapes=("full",)), device(2, "n", shapes=("full", "half"))])
    asked = board(pool)
    assert [asked.fits(cut(number, 104, 105, thousandths=500)) for number in (1, 2)] == [False, True]
    assert asked.free_units("l4", HALF, range(104, 105)) == 2
    assert asked.free_units("l4", taken("l4", "full"), range(104, 105)) == 2


def test_an_unhealthy_device_keeps_its_promises_and_offers_nothing() -> None:
    pool = pool_of([node("n")], [device(1, "n", L4, healthy=False), device(2, "n", L4)])
    asked = board(pool, cut(1, 104, 106, thousandths=500))
    assert grid(asked)[1, 104] == 500
    assert not asked.fits(cut(1, 107, 108, thousandths=500))
    assert asked.free_units("l4", HALF, range(107, 108)) == 2


def test_advancing_brings_in_what_was_promised_beyond_the_end() -> None:
    asked = board(TWO, cut(2, END - 1, END + 2, thousandths=500), cut(1, END + 1, END + 30, mask=1))
    asked.advance(FIRST + 3)
    assert [grid(asked)[2, slot] for slot in range(END - 2, END + 3)] == [0, 500, 500, 500, 0]
    assert [grid(asked)[1, slot] for slot in range(END - 2, END + 3)] == [0, 0, 0, 1, 1]
    asked.advance(END + 10)
    assert grid(asked) == {(number, slot): 2 - number for number, slot in product((1, 2), range(END + 10, END + 22))}


def test_two_equal_promises_beyond_the_end_both_count() -> None:
    late = cut(2, END + 1, END + 2, thousandths=250)
    asked = board(TWO, late, late, late)
    asked.release(late)
    asked.advance(FIRST + 2)
    assert grid(asked)[2, END + 1] == 500


def test_a_board_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        board().advance(FIRST - 1)


def test_a_copy_has_promises_of_its_own() -> None:
    original, late = board(), cut(1, 104, END + 1, mask=1)
    twin = original.copy()
    assert twin.same_as(original)
    twin.promise(late)
    assert not twin.same_as(original)
    assert original.same_as(board())


def test_boards_differ_by_what_lies_beyond_them_too() -> None:
    assert not board(TWO, cut(1, END, END + 1, mask=1)).same_as(board())


def test_promised_ppm_weighs_every_healthy_device_alike() -> None:
    healthy = [device(1, "n", A100, MIG), device(2, "n", A100), device(3, "n", A100)]
    devices = [*healthy, device(4, "n", A100, healthy=False)]
    held = (
        cut(1, 104, 106, mask=0b1111_0000),
        cut(2, 105, 107, thousandths=1),
        cut(4, 104, 105, thousandths=1000),
    )
    asked = board(pool_of([node("n")], devices), *held)
    assert asked.promised_ppm("a100-40g")[3:8].tolist() == [0, 166_666, 167_000, 333, 0]
    assert asked.promised_ppm("a100-40g").shape == (SLOTS,)


def test_promised_ppm_counts_the_cells_that_a_board_has() -> None:
    asked = board(pool_of([node("n")], [device(1, "n", A30, MIG)]), cut(1, FIRST, END, mask=0b0011))
    assert asked.promised_ppm("a30").tolist() == [500_000] * SLOTS


def test_a_model_without_a_healthy_device_is_all_promised() -> None:
    assert board().promised_ppm("a30").tolist() == [1_000_000] * SLOTS


def test_what_cannot_be_meant_is_refused() -> None:
    asked = board()
    with pytest.raises(UnknownModel):
        asked.free_units("b300", HALF, range(104, 105))
    with pytest.raises(UnknownModel):
        asked.promised_ppm("b300")
    with pytest.raises(InvalidWindow):
        asked.free_units("l4", HALF, range(104, 104))
    with pytest.raises(InvalidLength):
        asked.starts("l4", HALF, 1, 0, range(104, 105))
    with pytest.raises(InvalidNeed):
        asked.starts("l4", HALF, 0, 1, range(104, 105))


def test_a_board_needs_one_byte_a_partitioned_and_two_a_shared_device_slot() -> None:
    asked = board()
    assert asked.promised[MIG].dtype == np.uint8
    assert sum(promised.nbytes for promised in asked.promised.values()) == 3 * SLOTS
