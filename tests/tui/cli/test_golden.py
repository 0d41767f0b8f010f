"""Every output format against a file that is read in the diff. GPUTIDE_WRITE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from broker.client.chart import curve_lines
from broker.client.listings import booking_table, budget_table, offer_lines, pool_lines
from broker.client.views import alternative_lines, back_out_lines, booking_lines, quote_lines
from market.catalog import Tier
from market.states import BookingState
from tests.broker.client import samples
from tests.broker.client.samples import BOOKING_ID, NOW, OTHER_ID, TONIGHT
from tests.tui.cli.conftest import Cli

GOLDEN = Path(__file__).parent / "golden"
BERLIN, UTC_ZONE, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC"), ZoneInfo("America/New_York")
VERBS = ("offers", "curve", "pool", "budget", "quote", "book", "bookings", "cancel", "login", "config", "up")
INNER_WORDS = re.compile(r"\b(leases?|holds?|held|cells?|generations?)\b", re.IGNORECASE)
FALL_BACK = datetime(2026, 10, 24, 22, tzinfo=UTC)

in_advance = samples.quote(plan=samples.proposal(start=TONIGHT, total=19_200_000), starts_when_booked=False)
economy = samples.quote(plan=samples.proposal(start=TONIGHT, tier=Tier.ECONOMY), starts_when_booked=False)
started_late = samples.booking(state=BookingState.CANCELLED, charged=6_400_000, fee=640_000)

CASES: dict[str, Callable[[], list[str]]] = {
    "offers": lambda: offer_lines(samples.offers(), BERLIN),
    "curve_80": lambda: curve_lines(samples.curve(), BERLIN, 80),
    "curve_120_utc": lambda: curve_lines(samples.curve(), UTC_ZONE, 120),
    "curve_two_weeks": lambda: curve_lines(samples.curve(1344), BERLIN, 80),
    "curve_four_hours": lambda: curve_lines(samples.curve(16), BERLIN, 80),
    "curve_fall_back": lambda: curve_lines(samples.curve(36, FALL_BACK), BERLIN, 80),
    "quote_now": lambda: quote_lines(samples.quote(), BERLIN, NOW, 80),
    "quote_in_advance": lambda: quote_lines(in_advance, NEW_YORK, NOW, 80),
    "quote_economy_utc": lambda: quote_lines(economy, UTC_ZONE, NOW, 120),
    "quote_expired": lambda: quote_lines(samples.quote(), BERLIN, NOW + timedelta(hours=1), 80),
    "nearest": lambda: alternative_lines(samples.quote().alternatives, BERLIN, NOW, currency=None),
    "booking": lambda: booking_lines(samples.booking(), BERLIN, NOW, 80),
    "booking_over": lambda: booking_lines(started_late, BERLIN, NOW, 80),
    "bookings": lambda: booking_table(samples.bookings().items, BERLIN, NOW),
    "back_out_free": lambda: back_out_lines(samples.back_out(free=True), samples.booking(), BERLIN, NOW, 80),
    "back_out_with_fee": lambda: back_out_lines(samples.back_out(), samples.booking(), BERLIN, NOW, 80),
    "bookings_of_all": lambda: booking_table(samples.bookings().items, BERLIN, NOW, everybody=True),
    "pool": lambda: pool_lines(samples.pool()),
    "budget": lambda: budget_table(samples.cost_centers().items),
}


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_it_was_read_last(name: str) -> None:
    shown = "".join(f"{line}\n" for line in CASES[name]())
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("GPUTIDE_WRITE_GOLDEN") == "1":
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_brokers_inner_words_are_never_shown(name: str) -> None:
    assert not INNER_WORDS.search(" ".join(CASES[name]()))


TABLES: dict[str, Callable[[int], list[str]]] = {
    "offers": lambda width: offer_lines(samples.offers(), BERLIN, width),
    "pool": lambda width: pool_lines(samples.pool(), width),
    "budget": lambda width: budget_table(samples.cost_centers().items, width),
}


def test_a_narrow_list_of_bookings_cuts_the_ids_first() -> None:
    whole = CASES["bookings"]()
    narrow = booking_table(samples.bookings().items, BERLIN, NOW, max(map(len, whole)) - 1)
    assert [line.split()[0] for line in narrow] == ["Booking", BOOKING_ID[:10], OTHER_ID[:10]]
    assert [line.split()[1:] for line in narrow] == [line.split()[1:] for line in whole]
    assert "Left out for want of room: How long" in booking_table(samples.bookings().items, BERLIN, NOW, 60)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_leaves_columns_out_to_fit_and_says_which(name: str) -> None:
    whole = CASES[name]()
    width = len(whole[0]) - 1
    header, *rest = TABLES[name](width)
    assert len(header) <= width
    said = next(line for line in rest if line.startswith("Left out for want of room: "))
    for column in said.partition(": ")[2].split(", "):
        assert column in whole[0]
        assert column not in header
    assert TABLES[name](max(map(len, whole))) == whole


@pytest.mark.parametrize("width", [24, 40, 79, 80, 81, 120, 200])
@pytest.mark.parametrize("slots", [1, 2, 95, 96, 97, 336, 1344])
def test_a_chart_fits_its_width(slots: int, width: int) -> None:
    chart = [line for line in curve_lines(samples.curve(slots), BERLIN, width) if line[:6].strip("0123456789. ┤") == ""]
    bars = [line for line in chart if "┤" in line]
    assert len(bars) == 8
    assert max(map(len, bars)) <= width


def test_a_chart_marks_the_lowest_rate_and_names_its_hour() -> None:
    view = samples.curve()
    lines = curve_lines(view, UTC_ZONE, 120)
    lowest = view.start + timedelta(minutes=15) * view.rates.index(min(view.rates))
    assert any(line.startswith("Lowest   1.20 EUR an hour") and f"{lowest:%H:%M} until" in line for line in lines)
    assert any("^ lowest" in line or "lowest ^" in line for line in lines)


def test_a_curve_without_rates_says_so() -> None:
    assert curve_lines(samples.curve(0), BERLIN, 80)[1:] == ["No rates in this stretch of time."]


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_the_terminal_and_has_no_inner_words(verb: str, cli: Cli) -> None:
    ran = cli(*verb.split(), "--help")
    assert ran.code == 0
    assert not INNER_WORDS.search(ran.out)
    assert max(map(len, ran.out.splitlines())) <= 80
