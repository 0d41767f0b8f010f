"""The table of a booking's life, walked as a whole: nothing is stranded and everything comes to an end."""

from __future__ import annotations

from itertools import product

import pytest

from market.errors import IllegalMove
from market.states import MOVES, TERMINAL, BookingEvent, BookingState, HoldEffect, move

PAIRS = list(product(BookingState, BookingEvent))


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_every_pair_is_in_the_table_or_refused(state: BookingState, event: BookingEvent) -> None:
    if (state, event) in MOVES:
        assert move(state, event) == MOVES[state, event]
        return
    with pytest.raises(IllegalMove) as refused:
        move(state, event)
    for legal in (each for at, each in MOVES if at is state):
        assert legal in refused.value.detail


@pytest.mark.parametrize(("state", "event"), MOVES)
def test_a_move_empties_cells_and_hold_exactly_when_it_ends_the_booking(
    state: BookingState, event: BookingEvent
) -> None:
    made = MOVES[state, event]
    ends = made.to in TERMINAL
    assert made.releases_cells is ends
    assert (made.hold is HoldEffect.KEEP) is not ends


@pytest.mark.parametrize(("state", "event"), MOVES)
def test_only_a_booking_that_was_sold_can_cost_anything(state: BookingState, event: BookingEvent) -> None:
    if MOVES[state, event].hold is HoldEffect.SETTLE:
        assert state is BookingState.ACTIVE or event is BookingEvent.GIVE_BACK


def test_the_terminal_states_are_those_of_the_design() -> None:
    assert {
        BookingState.ENDED,
        BookingState.CANCELLED,
        BookingState.EXPIRED,
        BookingState.PREEMPTED,
        BookingState.FAILED,
    } == TERMINAL


@pytest.mark.parametrize("state", BookingState)
def test_every_state_can_reach_a_terminal_one(state: BookingState) -> None:
    assert reachable(state) & TERMINAL


def test_every_state_can_be_reached_from_the_first() -> None:
    assert reachable(BookingState.HELD) == set(BookingState)


def test_no_booking_comes_back_to_a_state_that_it_has_left() -> None:
    for (state, _), made in MOVES.items():
        assert state not in reachable(made.to)


def reachable(state: BookingState) -> set[BookingState]:
    """The state itself and all that some sequence of events leads to from it."""
    found, waiting = {state}, [state]
    while waiting:
        here = waiting.pop()
        following = {made.to for (at, _), made in MOVES.items() if at is here} - found
        found |= following
        waiting += following
    return found
