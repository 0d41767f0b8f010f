"""A quote's price: exact, the same for the same book, explained so that it can be checked, and locked for a while."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from math import prod
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.services import publish
from market.money import MICROS, divide_half_even
from tests.support.api import Api, contents, open_api, problem
from tests.support.brokers import open_shop, small_pool

NEEDS = {
    "1 x l4/full": 1, "2 x l4/half": 2, "3 x l4/0.333": 3, "1 x l4/0.001": 1, "7 x a100-40g/1g.5gb": 7,
    "1 x a100-40g/3g.20gb": 1, "1 x a100-40g/full": 1, "1 x A100 40GB": 1, "2 x at least 10 GB": 2, "1 GPU": 1,
}  # fmt: skip
TIERS = {"standard": {}, "economy": {"finish_by": "2026-12-08T00:00:00Z"}}
LINE = re.compile(
    r"(?P<total>[\d.]+) = base (?P<base>[\d.]+) x band (?P<band>[\d.]+) x (?:scarcity|limited to) (?P<scarcity>[\d.]+)"
    r" \((?P<taken>\d+) % taken, book (?P<book>\d+)\) x (?P<tier>standard|economy)(?: (?P<factor>[\d.]+))?"
    r" x (?P<length>[^x;]+?)(?: x (?P<count>\d+))?(?:; (?P<other>.+))?"
)
UNITS = {"d": 86_400, "h": 3600, "min": 60, "s": 1}


def _exact(proposal: dict[str, Any]) -> int:
    return divide_half_even(proposal["rate"] * proposal["seconds"] * proposal["count"], 3600)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("need", NEEDS)
def test_a_total_is_its_rate_times_its_length(standing: Api, need: str, tier: str) -> None:
    for seconds in (300, 301, 3599, 3600, 5400, 86_399, 3 * 86_400 + 7):
        made = standing.quote(need, seconds, tier=tier, **TIERS[tier])
        for proposal in (made["proposal"], *made["alternatives"]):
            assert proposal["total"] == _exact(proposal)
            assert proposal["count"] == NEEDS[need]
            assert proposal["seconds"] == seconds
        assert made["budget_left_after"] == standing.balance()["left"] - made["proposal"]["total"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    need=st.sampled_from(sorted(NEEDS)),
    seconds=st.integers(300, 14 * 86_400),
    wait=st.integers(0, 13 * 86_400),
    tier=st.sampled_from(sorted(TIERS)),
)
def test_the_same_book_and_request_give_the_same_price(
    sqlite_standing: Api, need: str, seconds: int, wait: int, tier: str
) -> None:
    start = (sqlite_standing.shop.clock.now() + timedelta(seconds=wait)).isoformat()
    more = {"start": start} if tier == "standard" else TIERS[tier]
    asked = {"need": need, "seconds": seconds, "tier": tier, **more}
    one, two = (sqlite_standing.post("/v1/quotes", asked) for _ in range(2))
    assert one.status_code == two.status_code
    assert one.status_code in (201, 409, 422)
    if one.status_code == 201:
        proposal = one.json()["proposal"]
        assert (proposal, one.json()["explanation"]) == (two.json()["proposal"], two.json()["explanation"])
        assert proposal["total"] == _exact(proposal)
    else:
        assert one.json()["detail"] == two.json()["detail"]


@pytest.fixture(scope="module")
def sqlite_standing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    shop = open_shop(f"sqlite:///{tmp_path_factory.mktemp('quotes') / 'gputide.db'}", small_pool(nodes=2))
    with open_api(shop) as api:
        yield api
    shop.context.database.close()


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("seconds", [300, 3600, 3661, 5400, 4 * 3600, 86_400, 5 * 86_400 + 3600])
@pytest.mark.parametrize("need", ["1 x l4/full", "2 x l4/half", "7 x a100-40g/1g.5gb", "1 x l4/0.001"])
def test_the_line_that_explains_a_price_adds_up(standing: Api, need: str, seconds: int, tier: str) -> None:
    """Each number is rounded to the digits that it is shown with, so the product may be off by as much and no more."""
    made = standing.quote(need, seconds, tier=tier, **TIERS[tier])
    explanation, proposal = made["explanation"], made["proposal"]
    found = LINE.fullmatch(explanation["text"])
    assert found, explanation["text"]
    assert int(found["book"]) == explanation["price_book"]
    assert int(found["count"] or 1) == proposal["count"]
    length = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+) ?(min|d|h|s)", found["length"]))
    assert length == seconds
    least, most = _product(found, -1, seconds), _product(found, 1, seconds)
    shown, step = Fraction(found["total"]), _half_step(found["total"])
    assert least - step <= shown <= most + step, explanation["text"]
    assert abs(shown * MICROS - proposal["total"]) <= step * MICROS


def _product(found: re.Match[str], sign: int, seconds: int) -> Fraction:
    factors = [found["base"], found["band"], found["scarcity"], found["factor"] or "1"]
    rounded = [Fraction(each) + sign * (_half_step(each) if "." in each else 0) for each in factors]
    return prod(rounded, start=Fraction(seconds * int(found["count"] or 1), 3600))


def _half_step(shown: str) -> Fraction:
    return Fraction(1, 2 * 10 ** len(shown.partition(".")[2]))


def test_the_parts_of_an_explanation_are_the_rate(standing: Api) -> None:
    made = standing.quote("1 x a100-40g/3g.20gb", 7200)
    e = made["explanation"]
    rate = Fraction(e["base"] * e["band"] * e["scarcity"] * e["tier_factor"], MICROS**3)
    assert abs(rate - made["proposal"]["rate"]) <= Fraction(e["base"], MICROS) + 2
    assert (e["band"], e["tier_factor"], e["limited"]) == (MICROS, MICROS, False)


def test_an_alternative_is_cheaper_or_nearer_and_can_be_had(api: Api) -> None:
    """Booking the cheapest start of a quote costs what the quote said."""
    for _ in range(2):
        api.buy("1 x l4/half", 3 * 3600)
    publish.publish(api.shop.context)
    made = api.quote("1 x l4/half", 3600)
    cheaper = next(each for each in made["alternatives"] if each["kind"] == "other_start")
    assert cheaper["total"] < made["proposal"]["total"]
    again = api.quote("1 x l4/half", 3600, start=cheaper["start"])
    assert again["proposal"]["total"] == cheaper["total"]


def test_a_quote_is_read_as_it_was_made(standing: Api) -> None:
    made = standing.quote()
    assert standing.get(f"/v1/quotes/{made['id']}").json() == made


def test_a_quote_holds_its_rate_when_a_new_book_is_dearer(api: Api) -> None:
    made = api.quote("1 x l4/full")
    api.buy("1 x l4/full", 4 * 3600)
    publish.publish(api.shop.context)
    booked = api.book(made).json()
    assert (booked["rate"], booked["total"]) == (made["proposal"]["rate"], made["proposal"]["total"])
    assert api.balance()["held"] > 0


def test_an_expired_quote_comes_back_fresh_and_can_be_booked(api: Api) -> None:
    made = api.quote("1 x l4/full", 3600)
    api.shop.clock.move(timedelta(minutes=15) - timedelta(microseconds=1))
    assert api.get(f"/v1/quotes/{made['id']}").status_code == 200
    api.shop.clock.move(timedelta(microseconds=1))
    before = contents(api.shop)
    body = problem(api.book(made), 410, "quote_expired")
    after = contents(api.shop)
    assert {table for table in after if after[table] != before[table]} == {"quote"}
    fresh = body["quote"]
    assert fresh["id"] != made["id"]
    assert fresh["made_at"] == "2026-12-01T12:15:00Z"
    booked = api.book(fresh)
    assert booked.status_code == 201, booked.text
    assert booked.json()["total"] == fresh["proposal"]["total"]
    assert booked.json()["start"] == "2026-12-01T12:15:00Z"


def test_a_quote_lasts_to_its_last_moment(api: Api) -> None:
    made = api.quote("1 x l4/full", 3600)
    api.shop.clock.move(timedelta(minutes=15) - timedelta(microseconds=1))
    booked = api.book(made).json()
    assert booked["start"] == "2026-12-01T12:14:59Z"
    assert (booked["seconds"], booked["total"]) == (3600, made["proposal"]["total"])


def test_an_expired_quote_whose_deadline_cannot_be_met_any_more_says_so(api: Api) -> None:
    made = api.quote("1 x l4/full", 3600, finish_by="2026-12-01T13:05:00Z", urgency="now")
    api.shop.clock.move(timedelta(minutes=16))
    before = contents(api.shop)
    body = problem(api.book(made), 410, "quote_expired")
    assert "cannot be renewed" in body["detail"]
    assert "quote" not in body
    assert contents(api.shop) == before


def test_somebody_elses_expired_quote_is_not_renewed(api: Api) -> None:
    _, bob = api.shop.person("bob")
    made = api.quote()
    api.shop.clock.move(timedelta(minutes=16))
    before = contents(api.shop)
    problem(api.book(made, token=bob), 404, "not_found")
    assert contents(api.shop) == before
