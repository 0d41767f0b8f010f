"""Holds and their settlement: what was authorised is captured or released, to the micro and never beyond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.errors import HoldExceeded, InvalidAmount
from market.instants import Window, local_months
from market.ledger import Hold, settle_all, split_by_period

MICROS = st.integers(0, 10**15)
NEW_YEAR = datetime(2026, 12, 31, 23, tzinfo=UTC)
"""Midnight in Berlin."""
BERLIN = ZoneInfo("Europe/Berlin")


@st.composite
def holds(draw: st.DrawFn) -> Hold:
    """A hold of which parts may have been captured and released already."""
    captured, released, still_open = (draw(MICROS) for _ in range(3))
    return Hold(captured + released + still_open, captured, released)


@given(holds(), MICROS)
def test_a_hold_settles_once_and_exactly_or_not_at_all(hold: Hold, charged: int) -> None:
    if charged > hold.open:
        with pytest.raises(HoldExceeded):
            hold.settle(charged)
        return
    settled = hold.settle(charged)
    assert settled.open == 0
    assert settled.captured - hold.captured == charged
    assert settled.captured + settled.released == settled.authorised == hold.authorised
    assert settled.settle(0) == settled


@given(st.lists(holds(), max_size=6), st.data())
def test_a_charge_is_taken_from_the_first_periods_first(before: list[Hold], data: st.DataObject) -> None:
    charged = data.draw(st.integers(0, sum(hold.open for hold in before)))
    after = settle_all(before, charged)
    taken = [new.captured - old.captured for old, new in zip(before, after, strict=True)]
    assert sum(taken) == charged
    assert all(hold.open == 0 for hold in after)
    used_up = [part == hold.open for part, hold in zip(taken, before, strict=True)]
    for place, part in enumerate(taken):
        assert part == 0 or all(used_up[:place])


@given(st.lists(holds(), max_size=6), st.integers(1, 10**15))
def test_a_charge_beyond_all_holds_is_refused(before: list[Hold], beyond: int) -> None:
    with pytest.raises(HoldExceeded):
        settle_all(before, sum(hold.open for hold in before) + beyond)


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_a_hold_that_cannot_be_is_not_made(authorised: int, captured: int, released: int) -> None:
    if min(authorised, captured, released) < 0:
        with pytest.raises(InvalidAmount):
            Hold(authorised, captured, released)
    elif captured + released > authorised:
        with pytest.raises(HoldExceeded):
            Hold(authorised, captured, released)
    else:
        assert Hold(authorised, captured, released).open == authorised - captured - released


def test_a_negative_charge_is_refused() -> None:
    with pytest.raises(InvalidAmount):
        Hold(10).settle(-1)


@given(total=MICROS, before=st.integers(1, 40 * 86400), after=st.integers(1, 40 * 86400))
def test_shares_of_the_months_sum_to_the_total_and_follow_their_seconds(total: int, before: int, after: int) -> None:
    window = Window(NEW_YEAR - timedelta(seconds=before), NEW_YEAR + timedelta(seconds=after))
    months = local_months(window, BERLIN)
    shares = split_by_period(total, window, months)
    assert sum(shares) == total
    for month, share in zip(months, shares, strict=True):
        exact = total * window.overlap_seconds(month)
        assert abs(share * window.seconds - exact) < window.seconds


def test_an_hour_over_new_year_is_split_where_the_year_ends() -> None:
    window = Window(NEW_YEAR - timedelta(minutes=15), NEW_YEAR + timedelta(minutes=45))
    assert split_by_period(1_000_003, window, local_months(window, BERLIN)) == [250_001, 750_002]
