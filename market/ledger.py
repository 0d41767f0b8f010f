"""Double entry: accounts, transfers, and the hold that a booking puts on a budget.

A transfer moves an amount from one account to another, so the books balance by construction. A budget's money is
in one of three places: `budget` (left), `held` (promised to bookings), `revenue` (charged). A hard cap is nothing
more than a budget account that must not go below zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from market.errors import HoldExceeded, InvalidAmount
from market.instants import Window
from market.money import allocate


class AccountKind(StrEnum):
    """`grants` is where budgets come from (it goes negative), the others never do."""

    GRANTS = "grants"
    BUDGET = "budget"
    HELD = "held"
    REVENUE = "revenue"


class TransferReason(StrEnum):
    GRANT = "grant"
    AUTHORISE = "authorise"
    CAPTURE = "capture"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Hold:
    """Money reserved on one budget period. Amounts in micros; captured + released never exceed what was authorised."""

    authorised: int
    captured: int = 0
    released: int = 0

    def __post_init__(self) -> None:
        if min(self.authorised, self.captured, self.released) < 0:
            raise InvalidAmount("a hold has no negative part")
        if self.captured + self.released > self.authorised:
            raise HoldExceeded

    @property
    def open(self) -> int:
        return self.authorised - self.captured - self.released

    def settle(self, charged: int) -> Hold:
        """Captures `charged` of what is open and releases the rest (`HoldExceeded` when it is more)."""
        captured = replace(self, captured=self.captured + charged)
        return replace(captured, released=captured.released + captured.open)


def split_by_period(total: int, window: Window, periods: Sequence[Window]) -> list[int]:
    """Shares of a total for each budget period, by the seconds of the window that lie in it; they sum exactly."""
    return allocate(total, [window.overlap_seconds(period) for period in periods])


def settle_all(holds: Iterable[Hold], charged: int) -> list[Hold]:
    """Settles the holds of one booking, in order of their periods: the charge is taken from the first ones first."""
    settled: list[Hold] = []
    for hold in holds:
        taken = min(hold.open, charged)
        settled.append(hold.settle(taken))
        charged -= taken
    if charged:
        raise HoldExceeded(f"a charge exceeds the booking's holds by {charged} micros")
    return settled
