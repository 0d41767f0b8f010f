"""From a need to a booking: the plan stands before the yes, a no buys nothing, and a yes buys what was shown."""

from __future__ import annotations

import json

import pytest

from broker.wire.people import Role
from broker.wire.quotes import BookingView, QuoteView
from market.catalog import Tier
from market.states import BookingState
from tests.broker.client import samples
from tests.broker.client.samples import BOOKING_ID, FRESH_ID, OTHER_ID, QUOTE_ID
from tests.tui.cli.conftest import Cli, FakeBroker
from tui.cli.exits import ExitCode

NEED = ("--need", "4 x A100 40GB", "--for", "4h")
BOOK, BACK_OUT = "POST /v1/bookings", f"GET /v1/bookings/{BOOKING_ID}/back-out"
CANCEL, GIVE_BACK = f"POST /v1/bookings/{BOOKING_ID}/cancel", f"POST /v1/bookings/{BOOKING_ID}/give-back"


@pytest.fixture
def shop(logged_in: FakeBroker) -> FakeBroker:
    """A broker that quotes, books and lists."""
    logged_in.answer("POST /v1/quotes", samples.quote())
    logged_in.answer(f"GET /v1/quotes/{QUOTE_ID}", samples.quote())
    logged_in.answer(BOOK, samples.booking())
    logged_in.answer("GET /v1/bookings", samples.bookings())
    logged_in.answer(f"GET /v1/bookings/{BOOKING_ID}", samples.booking())
    logged_in.answer(BACK_OUT, samples.back_out(free=True))
    logged_in.answer(CANCEL, samples.booking(state=BookingState.CANCELLED))
    logged_in.answer(GIVE_BACK, samples.booking(state=BookingState.CANCELLED, charged=6_400_000, fee=640_000))
    return logged_in


def expired(total: int) -> object:
    fresh = samples.quote(quote_id=FRESH_ID, plan=samples.proposal(total=total))
    return samples.problem("quote_expired", 410, "the quote has expired", quote=fresh.model_dump(mode="json"))


def booked(shop: FakeBroker) -> list[str]:
    return [each.body["quote_id"] for each in shop.asked if f"{each.method} {each.path}" == BOOK and each.body]


def test_a_quote_is_a_plan_on_stdout(shop: FakeBroker, cli: Cli) -> None:
    ran = cli("quote", *NEED)
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    for said in ("52.28 EUR", "947.72 EUR", "Stop early", "Why this price", "a whole GPU", f"gputide book {QUOTE_ID}"):
        assert said in ran.out


def test_what_is_typed_becomes_the_request(shop: FakeBroker, cli: Cli) -> None:
    cli(
        "quote",
        "--need",
        "1 x l4",
        "--for",
        "1h30m",
        "--by",
        "tomorrow 9:00",
        "--tier",
        "economy",
        "--urgency",
        "today",
    )
    assert shop.asked[-1].body == {
        "need": "1 x l4",
        "seconds": 5400,
        "tier": Tier.ECONOMY,
        "start": None,
        "finish_by": "2026-12-02T08:00:00Z",
        "urgency": "today",
        "cost_center": None,
        "zone": "Europe/Berlin",
    }


def test_now_is_as_soon_as_it_is_booked(shop: FakeBroker, cli: Cli) -> None:
    """And not a window that begins at this second, which has passed when it is booked."""
    cli("quote", *NEED, "--at", "now")
    assert shop.asked[-1].body
    assert shop.asked[-1].body["start"] is None


def test_no_time_is_a_mistake_and_not_the_present(shop: FakeBroker, cli: Cli) -> None:
    """As of a variable of the shell that is not set."""
    for option in ("--at", "--by"):
        assert cli("quote", *NEED, option, "").code == ExitCode.USAGE
    assert shop.asked == []


@pytest.mark.parametrize("word", ["booked", "confirmed"])
def test_a_state_may_be_said_as_the_list_says_it(shop: FakeBroker, cli: Cli, word: str) -> None:
    cli("bookings", "--state", word, "--json")
    assert shop.asked[-1].query["state"] == "confirmed"


def test_what_the_budget_does_not_cover_is_not_offered(shop: FakeBroker, cli: Cli) -> None:
    shop.answer("POST /v1/quotes", samples.quote().model_copy(update={"budget_left_after": -1_260_000}))
    assert "lacks 1.26 EUR" in cli("quote", *NEED).out
    refused = cli("book", *NEED, "--yes")
    assert refused.code == ExitCode.REFUSED
    assert "lacks 1.26 EUR" in refused.err
    assert [each.path for each in shop.asked] == ["/v1/quotes", "/v1/quotes"]


def test_the_configured_cost_center_and_zone_serve_unless_others_are_named(shop: FakeBroker, cli: Cli) -> None:
    cli("config", "set", "cost_center", "physics")
    cli("config", "set", "zone", "UTC")
    cli("quote", *NEED, "--at", "tomorrow 9:00")
    cli("quote", *NEED, "--cost-center", "chemistry")
    assert [each.body and each.body["cost_center"] for each in shop.asked] == ["physics", "chemistry"]
    assert shop.asked[0].body is not None
    assert shop.asked[0].body["start"] == "2026-12-02T09:00:00Z"


def test_a_quote_as_json_is_the_answer(shop: FakeBroker, cli: Cli) -> None:
    assert QuoteView.model_validate_json(cli("quote", *NEED, "--json").out) == samples.quote()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "4h"], "--need"),
        (["--need", "1 x l4"], "--for"),
        (["--need", "1 x l4", "--for", "soon"], "is no length of time"),
        (["--need", "1 x l4", "--for", "4h", "--at", "later"], "is no time"),
        (["--need", "x" * 300, "--for", "4h"], "need: String should have at most 200 characters"),
        (["--need", "1 x l4", "--for", "4h", "--by", "in 9h", "--urgency", "soon"], "urgency: "),
        (["--need", "1 x l4", "--for", "4h", "--urgency", "now"], "--by"),
        (["--need", "1 x l4", "--for", "4h", "--tier", "gold"], "--tier"),
    ],
)
def test_what_cannot_be_asked_is_said_and_not_sent(shop: FakeBroker, cli: Cli, arguments: list[str], said: str) -> None:
    ran = cli("quote", *arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert said in ran.err
    assert shop.asked == []


@pytest.mark.parametrize("typed", ["y\n", "YES\n"])
def test_a_booking_is_made_after_the_plan_and_a_yes(shop: FakeBroker, cli: Cli, typed: str) -> None:
    ran = cli("book", *NEED, typed=typed)
    assert ran.code == ExitCode.OK
    assert "52.28 EUR" in ran.err
    assert "Book it? [y/N]" in ran.err
    assert BOOKING_ID in ran.out
    assert booked(shop) == [QUOTE_ID]
    assert shop.asked[-1].headers["Idempotency-Key"]


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yellow\n"])
def test_anything_but_a_yes_books_nothing(shop: FakeBroker, cli: Cli, typed: str) -> None:
    ran = cli("book", QUOTE_ID, typed=typed)
    assert (ran.code, ran.out) == (ExitCode.DECLINED, "")
    assert "Nothing was booked" in ran.err
    assert booked(shop) == []


def test_a_script_books_with_yes_and_reads_json(shop: FakeBroker, cli: Cli) -> None:
    ran = cli("book", QUOTE_ID, "--yes", "--json")
    assert BookingView.model_validate_json(ran.out) == samples.booking()
    assert "Book it?" not in ran.err


@pytest.mark.parametrize("beside", [NEED, ("--tier", "economy"), ("--urgency", "now"), ("--cost-center", "physics")])
def test_a_quote_or_a_need_but_not_both(shop: FakeBroker, cli: Cli, beside: tuple[str, ...]) -> None:
    assert cli("book", QUOTE_ID, *beside).code == ExitCode.USAGE
    assert shop.asked == []


def test_an_expired_quote_is_shown_afresh_and_asked_about_afresh(shop: FakeBroker, cli: Cli) -> None:
    shop.answer(BOOK, expired(60_000_000), samples.booking())
    ran = cli("book", QUOTE_ID, typed="y\ny\n")
    assert ran.code == ExitCode.OK
    assert ran.err.index("52.28 EUR") < ran.err.index("the quote has expired") < ran.err.index("60.00 EUR")
    assert booked(shop) == [QUOTE_ID, FRESH_ID]
    first, second = [each.headers["Idempotency-Key"] for each in shop.asked if each.method == "POST"]
    assert first != second


def test_a_dearer_fresh_quote_can_be_declined(shop: FakeBroker, cli: Cli) -> None:
    shop.answer(BOOK, expired(60_000_000))
    assert cli("book", QUOTE_ID, typed="y\nn\n").code == ExitCode.DECLINED
    assert booked(shop) == [QUOTE_ID]


@pytest.mark.parametrize("total", [52_280_000, 40_000_000])
def test_with_yes_a_fresh_quote_is_booked_when_it_is_no_dearer(shop: FakeBroker, cli: Cli, total: int) -> None:
    shop.answer(BOOK, expired(total), samples.booking())
    assert cli("book", QUOTE_ID, "--yes").code == ExitCode.OK
    assert booked(shop) == [QUOTE_ID, FRESH_ID]


def test_with_yes_a_dearer_fresh_quote_is_not_booked(shop: FakeBroker, cli: Cli) -> None:
    shop.answer(BOOK, expired(52_280_001))
    ran = cli("book", QUOTE_ID, "--yes")
    assert (ran.code, ran.out) == (ExitCode.DEARER, "")
    assert FRESH_ID in ran.err
    assert booked(shop) == [QUOTE_ID]


def test_a_refusal_names_code_request_and_the_nearest_that_can_be_had(shop: FakeBroker, cli: Cli) -> None:
    nearest = samples.proposal(start=samples.TONIGHT).model_dump(mode="json")
    shop.answer("POST /v1/quotes", samples.problem("no_capacity", 409, "nothing is free", alternatives=[nearest]))
    ran = cli("quote", *NEED)
    assert (ran.code, ran.out) == (ExitCode.REFUSED, "")
    assert "Refused: nothing is free" in ran.err
    assert "today 22:15 until tomorrow 02:15: 52.28" in ran.err
    assert "--at 2026-12-01T21:15Z" in ran.err
    assert "Code no_capacity, request r_42" in ran.err


def test_bookings_are_a_table_and_say_what_is_cut(shop: FakeBroker, cli: Cli) -> None:
    shop.answer("GET /v1/bookings", samples.bookings("next"))
    ran = cli("bookings", "--state", "confirmed", "--limit", "2")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["Booking", BOOKING_ID, OTHER_ID]
    assert "2 shown, there are more: --all, or gputide bookings --state confirmed --cursor next" in ran.err
    assert shop.asked[-1].query == {"state": "confirmed", "limit": "2"}


def test_all_bookings_are_read_to_the_end(shop: FakeBroker, cli: Cli) -> None:
    shop.answer("GET /v1/bookings", samples.bookings("next"), samples.bookings())
    shown = json.loads(cli("bookings", "--all", "--json").out)
    assert len(shown["items"]) == 4
    assert shown["next_cursor"] is None


def test_no_bookings_is_no_empty_table(shop: FakeBroker, cli: Cli) -> None:
    shop.answer("GET /v1/bookings", samples.bookings().model_copy(update={"items": []}))
    ran = cli("bookings")
    assert (ran.code, ran.out) == (ExitCode.OK, "")
    assert "gputide offers" in ran.err


def test_an_operator_lists_everybodys_bookings_and_names_one_by_its_start(shop: FakeBroker, cli: Cli) -> None:
    shop.answer("GET /v1/me", samples.me().model_copy(update={"role": Role.OPERATOR}))
    assert "anna" in cli("bookings", "--everybody").out
    assert shop.asked[-1].query["everybody"] == "true"
    assert cli("bookings", BOOKING_ID[:8]).code == ExitCode.OK
    assert shop.asked[-1].query["everybody"] == "true"


def test_one_booking_is_not_a_list(shop: FakeBroker, cli: Cli) -> None:
    for option in (("--state", "booked"), ("--all",), ("--everybody",)):
        assert cli("bookings", BOOKING_ID, *option).code == ExitCode.USAGE


def test_one_booking_is_shown_in_full(shop: FakeBroker, cli: Cli) -> None:
    for said in (BOOKING_ID, BOOKING_ID[2:8]):
        ran = cli("bookings", said)
        assert "a100-01 GPU" in ran.out
        assert BOOKING_ID in ran.out.splitlines()[0]
    assert cli("bookings", "b_none").code == ExitCode.NOT_FOUND
    assert json.loads(cli("bookings", BOOKING_ID, "--json").out)["id"] == BOOKING_ID


def test_all_and_a_cursor_contradict_each_other(shop: FakeBroker, cli: Cli) -> None:
    assert cli("bookings", "--all", "--cursor", "next").code == ExitCode.USAGE


@pytest.mark.parametrize("start", [BOOKING_ID, "b_c3", "c3"])
def test_a_booking_is_cancelled_by_the_start_of_its_id_once_its_cost_was_seen(
    shop: FakeBroker, cli: Cli, start: str
) -> None:
    ran = cli("cancel", start, typed="y\n")
    assert ran.code == ExitCode.OK
    assert ran.err.index("it is free") < ran.err.index("Cancel it? [y/N]")
    assert "cancelled" in ran.out
    assert shop.calls()[-1] == CANCEL


@pytest.mark.parametrize(
    ("start", "code"), [("b_", ExitCode.USAGE), ("zz", ExitCode.NOT_FOUND), ("", ExitCode.NOT_FOUND)]
)
def test_a_start_that_names_several_or_none_cancels_none(
    shop: FakeBroker, cli: Cli, start: str, code: ExitCode
) -> None:
    assert cli("cancel", start, "--yes").code == code
    assert all(each.method == "GET" for each in shop.asked)


def test_what_is_no_longer_free_is_given_back_at_the_cost_shown(shop: FakeBroker, cli: Cli) -> None:
    shop.answer(BACK_OUT, samples.back_out())
    ran = cli("cancel", BOOKING_ID, typed="y\n")
    assert "costs 6.40 EUR, a fee of 0.64 EUR in it" in ran.err
    assert "Give it back at that cost? [y/N]" in ran.err
    assert shop.calls()[-1] == GIVE_BACK


def test_a_no_cancels_nothing(shop: FakeBroker, cli: Cli) -> None:
    assert cli("cancel", BOOKING_ID, typed="n\n").code == ExitCode.DECLINED
    assert shop.calls()[-1] == BACK_OUT


@pytest.mark.parametrize(
    ("arguments", "typed", "code", "last"),
    [
        ([], "y\ny\n", ExitCode.OK, GIVE_BACK),
        ([], "y\nn\n", ExitCode.DECLINED, CANCEL),
        (["--yes"], "", ExitCode.DEARER, CANCEL),
    ],
)
def test_what_stops_being_free_meanwhile_is_asked_about_afresh(
    shop: FakeBroker, cli: Cli, arguments: list[str], typed: str, code: ExitCode, last: str
) -> None:
    cost = samples.back_out().model_dump(mode="json")
    shop.answer(CANCEL, samples.problem("back_out_not_free", 409, "no longer free", back_out=cost))
    assert cli("cancel", BOOKING_ID, *arguments, typed=typed).code == code
    assert shop.calls()[-1] == last
