from __future__ import annotations

import csv
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import WHOLE
from market.geometry import best_masks, parts_free, units_free, units_table
from market.mig import MIG_BOARDS, MigBoard
from tests.market.boards import most_disjoint, taken
from tests.market.test_mig import TABLE

A100 = MIG_BOARDS["A100-40GB"]
runs = st.tuples(st.integers(1, 3), st.integers(0, 5)).map(lambda run: ((1 << run[0]) - 1) << run[1])
masks_sets = st.lists(runs, min_size=1, max_size=6, unique=True).map(tuple)
busy_masks = st.integers(0, 255)


def cell_filled_next(profile: str, busy: int) -> int:
    """The first cell that a profile takes on an A100 with these cells busy."""
    found = A100.profile(profile)
    assert found is not None
    mask = int(best_masks(A100, found.masks)[busy])
    return (mask & -mask).bit_length() - 1


@given(masks=masks_sets, busy=busy_masks)
def test_units_free_is_the_greatest_number_of_disjoint_placements(masks: tuple[int, ...], busy: int) -> None:
    assert units_free(masks)[busy] == most_disjoint(masks, busy)


def test_an_empty_card_holds_as_many_instances_as_nvidia_says() -> None:
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            profile = MIG_BOARDS[row["gpu"]].profile(row["profile"])
            if profile is not None:
                assert units_free(profile.masks)[0] == int(row["max_instances"]), row


@given(thousandths=st.integers(1, WHOLE), promised=st.integers(0, WHOLE))
def test_parts_free_fill_the_rest_of_a_shared_device(thousandths: int, promised: int) -> None:
    parts = int(parts_free(thousandths)[promised])
    assert promised + parts * thousandths <= WHOLE < promised + (parts + 1) * thousandths


def test_the_table_of_a_footprint_is_indexed_by_what_its_kind_promises() -> None:
    assert units_table(taken("a100-40g", "3g.20gb"))[0b1111] == 1
    assert units_table(taken("l4", "half"))[501] == 0


def test_tables_are_shared_and_so_cannot_be_written() -> None:
    for table in (units_free((1,)), parts_free(500), best_masks(A100, (1,))):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1


@pytest.mark.parametrize("board", MIG_BOARDS.values(), ids=MIG_BOARDS.keys())
def test_taking_the_best_mask_again_and_again_reaches_the_greatest_number(board: MigBoard) -> None:
    for profile, start in product(board.profiles, range(board.full_mask + 1)):
        table, busy, count = best_masks(board, profile.masks), start, 0
        while mask := int(table[busy]):
            assert mask in profile.masks
            assert busy & mask == 0
            busy, count = busy | mask, count + 1
        assert count == units_free(profile.masks)[start], (profile.name, bin(start))


@pytest.mark.parametrize("board", MIG_BOARDS.values(), ids=MIG_BOARDS.keys())
def test_no_other_mask_keeps_more_profiles_placeable(board: MigBoard) -> None:
    def placeable(rest: int) -> int:
        return sum(any(not rest & mask for mask in each.masks) for each in board.profiles)

    for profile, busy in product(board.profiles, range(board.full_mask + 1)):
        chosen = int(best_masks(board, profile.masks)[busy])
        fitting = [placeable(busy | mask) for mask in profile.masks if not busy & mask]
        assert not fitting or placeable(busy | chosen) == max(fitting), (profile.name, bin(busy))


@pytest.mark.parametrize(("profile", "cell"), [("1g.5gb", 6), ("1g.10gb", 6), ("2g.10gb", 4), ("3g.20gb", 4)])
def test_the_first_slice_of_an_empty_card_leaves_the_4g_its_place(profile: str, cell: int) -> None:
    assert cell_filled_next(profile, 0) == cell


def test_seven_small_slices_fill_a_card_from_the_top() -> None:
    cells: list[int] = []
    for _ in range(7):
        cells.append(cell_filled_next("1g.5gb", sum(1 << cell for cell in cells)))
    assert cells == [6, 5, 4, 3, 2, 1, 0]


def test_a_small_slice_fills_a_hole_before_it_breaks_a_pair() -> None:
    assert cell_filled_next("1g.5gb", 0b0001_1111) == 5
    assert cell_filled_next("1g.5gb", 0b0111_0100) == 3
