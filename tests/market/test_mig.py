"""The MIG table of the source against the rows that were read from devices, and against what slices are charged."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import DeviceModel, footprint
from market.mig import MIG_BOARDS, MigBoard

TABLE = Path(__file__).parents[1] / "data" / "mig_placement.csv"


def rows() -> list[dict[str, str]]:
    """The rows of the table; profiles with media engines allow one instance a device, which cells cannot express."""
    with TABLE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if not row["profile"].endswith("+me")]


def named(row: dict[str, str]) -> str:
    return f"{row['gpu']}/{row['profile']}"


@pytest.mark.parametrize("row", rows(), ids=named)
def test_a_profile_is_as_the_table_says(row: dict[str, str]) -> None:
    profile = MIG_BOARDS[row["gpu"]].profile(row["profile"])
    assert profile is not None
    assert profile.compute == int(row["compute_slices"])
    assert profile.cells == int(row["mem_slices"])
    assert profile.starts == tuple(int(start) for start in row["allowed_starts"].split())
    assert profile.inferred == row["placement_confidence"].startswith("INFERRED")


def test_no_profile_is_made_up() -> None:
    ours = [f"{name}/{profile.name}" for name, board in MIG_BOARDS.items() for profile in board.profiles]
    assert sorted(ours) == sorted(named(row) for row in rows())


@pytest.mark.parametrize("board", MIG_BOARDS.values(), ids=MIG_BOARDS.keys())
def test_the_whole_card_profile_takes_every_cell_and_every_compute_slice(board: MigBoard) -> None:
    whole = board.profiles[-1]
    assert whole.masks == (board.full_mask,)
    assert whole.compute == board.compute


@given(name=st.sampled_from(sorted(MIG_BOARDS)), data=st.data())
def test_slices_of_one_card_pay_for_the_cells_they_block_and_share_its_compute(name: str, data: st.DataObject) -> None:
    board = MIG_BOARDS[name]
    model = DeviceModel(name="card", title="Card", memory_gb=40, mig_board=name)
    places = [(profile, mask) for profile in board.profiles for mask in profile.masks]
    busy, compute, share = 0, 0, Fraction(0)
    for profile, mask in data.draw(st.permutations(places)):
        if busy & mask == 0:
            busy, compute = busy | mask, compute + profile.compute
            share += footprint(model, profile.name).share
        assert share >= Fraction(busy.bit_count(), board.cells)
        assert compute <= board.compute
