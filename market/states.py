"""The life of a booking as one table: what may happen in which state, and what becomes of its cells and its hold.

A move into a terminal state always releases the cells and always empties the hold, either whole (`RELEASE`) or
after what was charged is captured (`SETTLE`). Tests walk every (state, event) pair of this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from market.errors import IllegalMove


class BookingState(StrEnum):
    HELD = "held"
    CONFIRMED = "confirmed"
    ACTIVE = "active"
    ENDED = "ended"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    PREEMPTED = "preempted"
    FAILED = "failed"


class BookingEvent(StrEnum):
    CONFIRM = "confirm"
    START = "start"
    END = "end"
    CANCEL = "cancel"
    GIVE_BACK = "give_back"
    EXPIRE = "expire"
    PREEMPT = "preempt"
    FAIL = "fail"


class HoldEffect(StrEnum):
    KEEP = "keep"
    RELEASE = "release"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class Move:
    """Where an event leads, whether the cells go back to the pool, and what becomes of the hold."""

    to: BookingState
    releases_cells: bool
    hold: HoldEffect


_S, _E = BookingState, BookingEvent
_STAY = (False, HoldEffect.KEEP)
_FREE = (True, HoldEffect.RELEASE)
_PAID = (True, HoldEffect.SETTLE)

MOVES: dict[tuple[BookingState, BookingEvent], Move] = {
    (_S.HELD, _E.CONFIRM): Move(_S.CONFIRMED, *_STAY),
    (_S.HELD, _E.CANCEL): Move(_S.CANCELLED, *_FREE),
    (_S.HELD, _E.EXPIRE): Move(_S.EXPIRED, *_FREE),
    (_S.HELD, _E.FAIL): Move(_S.FAILED, *_FREE),
    (_S.CONFIRMED, _E.START): Move(_S.ACTIVE, *_STAY),
    (_S.CONFIRMED, _E.CANCEL): Move(_S.CANCELLED, *_FREE),
    (_S.CONFIRMED, _E.GIVE_BACK): Move(_S.CANCELLED, *_PAID),
    (_S.CONFIRMED, _E.EXPIRE): Move(_S.EXPIRED, *_FREE),
    (_S.CONFIRMED, _E.PREEMPT): Move(_S.PREEMPTED, *_FREE),
    (_S.CONFIRMED, _E.FAIL): Move(_S.FAILED, *_FREE),
    (_S.ACTIVE, _E.END): Move(_S.ENDED, *_PAID),
    (_S.ACTIVE, _E.GIVE_BACK): Move(_S.ENDED, *_PAID),
    (_S.ACTIVE, _E.PREEMPT): Move(_S.PREEMPTED, *_PAID),
    (_S.ACTIVE, _E.FAIL): Move(_S.FAILED, *_PAID),
}

TERMINAL = frozenset(BookingState) - {state for state, _ in MOVES}


def move(state: BookingState, event: BookingEvent) -> Move:
    """The move that an event makes from a state (`IllegalMove` when the table has none)."""
    found = MOVES.get((state, event))
    if found is None:
        legal = ", ".join(sorted(each for at, each in MOVES if at is state))
        if not legal:
            raise IllegalMove(f"this booking is over: it is {state} already")
        raise IllegalMove(f"a booking that is {state} cannot {event.replace('_', ' ')}; it can: {legal}")
    return found
