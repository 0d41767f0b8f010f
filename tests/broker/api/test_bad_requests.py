"""What cannot be asked for: a clear problem with a stable code and the nearest thing that can, and nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.services import publish
from tests.support.api import Api, contents, open_api, problem
from tests.support.brokers import NOON, TARIFF, open_shop, small_pool

L4 = "1 x l4/full"
NUL, HUGE = "\0", "x" * 900_000

# what is wrong, the request for a quote, status, code, and a part of the words that help on
BAD_QUOTES: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("sku not sold", {"need": "1 x a100-40g/half"}, 422, "unknown_sku", "gputide offers"),
    ("shape", {"need": "1 x l4/3g.20gb"}, 422, "invalid_shape", "half"),
    ("model of a sku", {"need": "1 x h100/full"}, 422, "unknown_model", "a100-40g"),
    ("model", {"need": "4 x A10"}, 422, "unknown_model", "nearest is"),
    ("no need", {"need": "!?"}, 422, "invalid_need", "4 x A100, 40 GB each"),
    ("empty need", {"need": ""}, 422, "invalid_request", "body.need"),
    ("blank need", {"need": "   "}, 422, "invalid_need", "4 x A100, 40 GB each"),
    ("NUL", {"need": f"1 x l4{NUL}"}, 422, "invalid_request", "body.need"),
    ("lone surrogate", {"need": "1 x \ud800"}, 422, "invalid_request", "body.need"),
    ("huge need", {"need": HUGE}, 422, "invalid_request", "200"),
    ("no GPU", {"need": "0 x l4/full"}, 422, "invalid_need", "1 to 10000"),
    ("negative count", {"need": "-1 x l4/full"}, 422, "invalid_need", "4 x A100"),
    ("absurd count", {"need": "999999999 x l4/full"}, 422, "invalid_need", "1 to 10000"),
    ("fractional count", {"need": "1.5 x l4/full"}, 422, "invalid_need", "4 x A100"),
    ("more than the pool", {"need": "3 x l4/full"}, 409, "no_such_capacity", "2 x l4/full"),
    ("larger than any card", {"need": "1 x at least 41 GB"}, 409, "no_such_capacity", "40 GB"),
    ("GiB", {"need": "1 x A100 40 GiB"}, 422, "invalid_need", "40 GB"),
    ("no time", {"seconds": 0}, 422, "invalid_request", "body.seconds"),
    ("negative time", {"seconds": -3600}, 422, "invalid_request", "body.seconds"),
    ("too short", {"seconds": 299}, 422, "invalid_length", "5 minutes to 14 days"),
    ("too long", {"seconds": 14 * 86400 + 1}, 422, "invalid_length", "5 minutes to 14 days"),
    ("absurdly long", {"seconds": 10**30}, 422, "invalid_request", "body.seconds"),
    ("half a second", {"seconds": 300.5}, 422, "invalid_request", "body.seconds"),
    ("words for seconds", {"seconds": "an hour"}, 422, "invalid_request", "body.seconds"),
    ("naive start", {"start": "2026-12-01T13:00:00"}, 422, "naive_instant", "body.start"),
    ("naive deadline", {"finish_by": "2026-12-02 09:00"}, 422, "naive_instant", "body.finish_by"),
    ("no instant", {"start": "tomorrow"}, 422, "invalid_request", "body.start"),
    ("past", {"start": "2026-12-01T11:59:59Z"}, 422, "window_in_past", "2026-12-01 12:00 UTC"),
    ("epoch", {"start": 0}, 422, "window_in_past", "past"),
    ("year 1", {"start": "0001-01-01T00:00:00+14:00"}, 422, "invalid_instant", "years 1 to 9999"),
    ("beyond the horizon", {"start": "2026-12-16T12:00:00Z"}, 422, "beyond_horizon", "2026-12-15"),
    ("year 9999", {"start": "9999-12-31T23:59:59Z"}, 422, "beyond_horizon", "14 days"),
    ("last moment", {"start": "9999-12-31T23:59:59.5Z"}, 422, "beyond_horizon", "14 days"),
    ("year 9999 with a deadline", {"start": "9999-12-31T23:00:00Z", "finish_by": "9999-12-31T23:30:00Z"},
     422, "beyond_horizon", "14 days"),
    ("deadline past", {"finish_by": "2026-12-01T12:00:00Z"}, 422, "window_in_past", "finish by"),
    ("deadline too soon", {"finish_by": "2026-12-01T12:59:59Z"}, 422, "deadline_too_soon", "2026-12-01 13:00 UTC"),
    ("deadline before start", {"start": "2026-12-01T15:00:00Z", "finish_by": "2026-12-01T14:00:00Z"},
     422, "deadline_too_soon", "2026-12-01 16:00 UTC"),
    ("economy without a deadline", {"tier": "economy"}, 422, "deadline_needed", "finish by"),
    ("critical", {"tier": "critical"}, 409, "tier_unavailable", "standard or economy"),
    ("spot", {"tier": "spot", "finish_by": "2026-12-02T09:00:00Z"}, 409, "tier_unavailable", "standard or economy"),
    ("no tier", {"tier": "cheap"}, 422, "invalid_request", "economy"),
    ("no urgency", {"urgency": "asap"}, 422, "invalid_request", "body.urgency"),
    ("no cost center", {"cost_center": "labs"}, 404, "not_found", "labs"),
    ("name of a cost center", {"cost_center": "lab; drop"}, 422, "invalid_request", "body.cost_center"),
    ("unknown field", {"node": "node-01"}, 422, "invalid_request", "body.node"),
    ("unknown field that is no text", {"\ud800": 1}, 422, "invalid_request", "body"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "status", "code", "words"), [each[1:] for each in BAD_QUOTES], ids=[each[0] for each in BAD_QUOTES]
)
def test_a_bad_request_for_a_quote(unchanged: Api, asked: dict[str, Any], status: int, code: str, words: str) -> None:
    answer = unchanged.post("/v1/quotes", {"need": L4, "seconds": 3600, **asked})
    body = problem(answer, status, code)
    assert words in body["detail"]
    assert len(answer.content) < 5000


def test_a_full_pool_names_the_next_start(unchanged: Api) -> None:
    body = problem(unchanged.post("/v1/quotes", {"need": "2 x l4/full", "seconds": 3600}), 409, "no_capacity")
    soonest = body["alternatives"][0]
    assert (soonest["kind"], soonest["sku"], soonest["start"]) == ("other_start", "l4/full", "2026-12-01T13:00:00Z")
    assert soonest["total"] > 0


def test_a_missing_price_is_a_refusal_to_sell(database_url: str) -> None:
    shop = open_shop(database_url, tariff=TARIFF.replace(", l4 = 0.80", ""))
    with open_api(shop) as api:
        before = contents(shop)
        refused = api.post("/v1/quotes", {"need": L4, "seconds": 3600})
        assert "l4/full" in problem(refused, 409, "price_missing")["detail"]
        problem(api.get("/v1/curves/l4/full"), 409, "price_missing")
        assert {offer["sku"].partition("/")[0] for offer in api.get("/v1/offers").json()["offers"]} == {"a100-40g"}
        assert contents(shop) == before
    shop.context.database.close()


def test_a_booking_over_the_budget(database_url: str) -> None:
    shop = open_shop(database_url, budget=1)
    with open_api(shop) as api:
        made = api.quote("1 x a100-40g/full", 4 * 3600)
        assert made["budget_left_after"] < 0
        before = contents(shop)
        assert "budget" in problem(api.book(made), 409, "over_budget")["detail"]
        assert contents(shop) == before
    shop.context.database.close()


def test_a_month_without_a_budget(database_url: str) -> None:
    shop = open_shop(database_url)
    shop.clock.set(datetime(2027, 1, 31, 21, tzinfo=UTC))
    publish.publish(shop.context)
    with open_api(shop) as api:
        made = api.quote(L4, 3 * 3600, start="2027-01-31T22:00:00Z")
        before = contents(shop)
        assert "February 2027" in problem(api.book(made), 409, "over_budget")["detail"]
        assert contents(shop) == before
    shop.context.database.close()


def test_a_booking_that_somebody_was_faster_with(database_url: str) -> None:
    shop = open_shop(database_url, small_pool(l4=1))
    with open_api(shop) as api:
        first, second = api.quote(L4), api.quote(L4)
        assert api.book(first).status_code == 201
        before = contents(shop)
        body = problem(api.book(second), 409, "no_capacity")
        assert body["alternatives"][0]["start"] == "2026-12-01T13:00:00Z"
        assert contents(shop) == before
    shop.context.database.close()


OTHER_BAD_BODIES: list[tuple[str, str, object, int, str]] = [
    ("booking nothing", "/v1/bookings", {}, 422, "invalid_request"),
    ("booking no id", "/v1/bookings", {"quote_id": "q_1"}, 422, "invalid_request"),
    ("booking another kind of id", "/v1/bookings", {"quote_id": "q_" + "g" * 24}, 422, "invalid_request"),
    ("booking what never was", "/v1/bookings", {"quote_id": "q_" + "0" * 24}, 404, "not_found"),
    ("person without a name", "/v1/people", {"name": ""}, 422, "invalid_request"),
    ("person with a space", "/v1/people", {"name": "a b"}, 422, "invalid_request"),
    ("person with a line end", "/v1/people", {"name": "bob\n"}, 422, "invalid_request"),
    ("person with a NUL", "/v1/people", {"name": "a\0"}, 422, "invalid_request"),
    ("person of no role", "/v1/people", {"name": "bob", "role": "root"}, 422, "invalid_request"),
    ("person twice", "/v1/people", {"name": "ada"}, 409, "already_exists"),
    ("cost center twice", "/v1/cost-centers", {"name": "lab", "owner": "ada"}, 409, "already_exists"),
    ("cost center of nobody", "/v1/cost-centers", {"name": "new", "owner": "zoe"}, 404, "not_found"),
    ("budget of nothing", "/v1/cost-centers/lab/budgets", {"amount": 0}, 422, "invalid_request"),
    ("negative budget", "/v1/cost-centers/lab/budgets", {"amount": -1}, 422, "invalid_request"),
    ("absurd budget", "/v1/cost-centers/lab/budgets", {"amount": 10**19}, 422, "invalid_request"),
    ("budget as a float", "/v1/cost-centers/lab/budgets", {"amount": 0.5}, 422, "invalid_request"),
    ("budget of no cost center", "/v1/cost-centers/zoo/budgets", {"amount": 1}, 404, "not_found"),
    ("budget of year 1", "/v1/cost-centers/lab/budgets", {"amount": 1, "period": "0001-01-01T00:00:00Z"},
     422, "invalid_instant"),
    ("budget of year 9999", "/v1/cost-centers/lab/budgets", {"amount": 1, "period": "9999-12-31T23:59:59Z"},
     422, "invalid_instant"),
    ("naive month", "/v1/cost-centers/lab/budgets", {"amount": 1, "period": "2026-12-01"}, 422, "naive_instant"),
    ("member who is nobody", "/v1/cost-centers/lab/members", {"person": "zoe"}, 404, "not_found"),
    ("token without scopes", "/v1/tokens", {"label": "x", "scopes": []}, 422, "invalid_request"),
    ("token without end", "/v1/tokens", {"label": "x", "scopes": ["read"], "days": 10**9}, 422, "invalid_request"),
    ("tariff that is none", "/v1/tariffs", {"document": "="}, 422, "invalid_tariff"),
    ("tariff that is too long", "/v1/tariffs", {"document": "#" * 200_001}, 422, "invalid_request"),
    ("tariff with a NUL", "/v1/tariffs", {"document": TARIFF.replace('"round"', r'"a\u0000"')}, 422, "invalid_tariff"),
    ("tariff that falls", "/v1/tariffs", {"document": f"{TARIFF}scarcity = [[0, 2], [1, 1]]"},
     422, "non_convex_scarcity"),
    ("no such tariff", "/v1/tariffs/99/approve", {}, 404, "not_found"),
    ("tariff zero", "/v1/tariffs/0/approve", {}, 422, "invalid_request"),
    ("tariff beyond counting", f"/v1/tariffs/{10**40}/approve", {}, 422, "invalid_request"),
    ("tariff by name", "/v1/tariffs/round/approve", {}, 422, "invalid_request"),
    ("tariff in force twice", "/v1/tariffs/1/approve", {}, 409, "illegal_move"),
    ("tariff from the past", "/v1/tariffs/1/approve", {"in_force_from": "2026-12-01T11:00:00Z"}, 422, "window_in_past"),
    ("tariff from year 1", "/v1/tariffs/1/approve", {"in_force_from": "0001-01-01T00:00:00+14:00"},
     422, "invalid_instant"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "sent", "status", "code"),
    [each[1:] for each in OTHER_BAD_BODIES],
    ids=[each[0] for each in OTHER_BAD_BODIES],
)
def test_a_bad_body(unchanged: Api, path: str, sent: object, status: int, code: str) -> None:
    problem(unchanged.post(path, sent), status, code)


def test_a_tariff_from_the_last_hour_of_time_is_refused(api: Api) -> None:
    proposed = api.post("/v1/tariffs", {"document": TARIFF}).json()
    before = contents(api.shop)
    late = {"in_force_from": "9999-12-31T23:59:59-12:00"}
    problem(api.post(f"/v1/tariffs/{proposed['id']}/approve", late), 422, "invalid_instant")
    assert contents(api.shop) == before


def test_budgets_never_outgrow_what_the_market_can_count(api: Api) -> None:
    most = {"amount": 10**18}
    answers = [api.post(f"/v1/cost-centers/{name}/budgets", most) for name in _cost_centers(api) for _ in range(3)]
    refused = [each for each in answers if each.status_code != 201]
    assert {problem(each, 422, "invalid_amount")["code"] for each in refused} == {"invalid_amount"}
    granted = sum(each["limit"] for each in api.get("/v1/cost-centers").json()["items"])
    assert granted <= 2**63 - 1


def _cost_centers(api: Api) -> Iterator[str]:
    for number in range(12):
        name = f"center-{number}"
        assert api.post("/v1/cost-centers", {"name": name, "owner": "ada"}).status_code == 201
        yield name


BAD_QUERIES = [
    ("/v1/offers?need=", "invalid_request"),
    ("/v1/offers?need=%00", "invalid_need"),
    ("/v1/offers?need=4+x+H100", "unknown_model"),
    ("/v1/offers?tier=gold", "invalid_request"),
    ("/v1/offers?need=" + "x" * 201, "invalid_request"),
    ("/v1/curves/l4/full?hours=0", "invalid_request"),
    ("/v1/curves/l4/full?hours=337", "invalid_request"),
    ("/v1/curves/h100/full", "unknown_model"),
    ("/v1/curves/l4/%00", "invalid_shape"),
    ("/v1/curves/%00/full", "unknown_model"),
    ("/v1/curves/a100-40g/half", "unknown_sku"),
    ("/v1/curves/l4/0.%D9%A5", "invalid_shape"),
    ("/v1/bookings?state=lost", "invalid_request"),
    ("/v1/bookings?limit=0", "invalid_request"),
    ("/v1/bookings?limit=201", "invalid_request"),
    ("/v1/bookings?cursor=%00", "invalid_request"),
    ("/v1/bookings?cursor=abc", "invalid_cursor"),
    ("/v1/bookings?cursor=%C3%A9", "invalid_cursor"),
    ("/v1/bookings?cursor=" + "a" * 201, "invalid_request"),
    ("/v1/price-books?cursor=abc", "invalid_cursor"),
    ("/v1/price-books?cursor=-1", "invalid_cursor"),
    ("/v1/price-books?cursor=" + "9" * 40, "invalid_cursor"),
    ("/v1/tariffs?cursor=%C2%B2", "invalid_cursor"),
    ("/v1/events?follow=false&after=-1", "invalid_request"),
    ("/v1/events?follow=perhaps", "invalid_request"),
    ("/v1/events?after=1e3", "invalid_request"),
]


@pytest.mark.parametrize(("path", "code"), BAD_QUERIES)
def test_a_bad_query(unchanged: Api, path: str, code: str) -> None:
    problem(unchanged.get(path), 422, code)


@pytest.mark.parametrize(
    "inside",
    [
        b"2026-12-01T12:00:00+00:00",
        b"2026-12-01T12:00:00 b_1",
        b"0001-01-01T00:00:00+23:59 b_1",
        b"9999-12-31T23:59:59-23:59 b_1",
        b"2026-12-01T12:00:00+00:00 b_\0",
        b"2026-12-01T12:00:00+00:00 b 1",
        b"\xff b_1",
        b"",
    ],
)
def test_a_forged_cursor(unchanged: Api, inside: bytes) -> None:
    from base64 import urlsafe_b64encode

    problem(unchanged.get("/v1/bookings", params={"cursor": urlsafe_b64encode(inside).decode()}), 422, "invalid_cursor")


@pytest.mark.parametrize("event_id", ["abc", "-1", "1.5", "9" * 30, "1;2"])
def test_a_bad_last_event_id(unchanged: Api, event_id: str) -> None:
    problem(unchanged.get("/v1/events?follow=false", headers={"Last-Event-ID": event_id}), 422, "invalid_cursor")


def test_the_horizon_is_where_it_is_said_to_be(unchanged: Api) -> None:
    """The refusal names the end of the priced slots, and what ends there is sold."""
    end = NOON + timedelta(days=14, hours=2)
    late = {"need": L4, "seconds": 3600, "start": (end - timedelta(seconds=3599)).isoformat()}
    assert end.isoformat() in problem(unchanged.post("/v1/quotes", late), 422, "beyond_horizon")["detail"]
