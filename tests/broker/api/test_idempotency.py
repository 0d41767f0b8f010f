"""A repeated request does nothing twice: the same key and body get the same bytes, whatever the answer was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from typing import Any

import httpx
import pytest

from broker.context import Context
from broker.services import book as book_service
from broker.services import publish
from broker.store import answers
from broker.store.answers import Stored
from tests.support.api import Api, contents, problem

Ask = Callable[[Api], Callable[[], httpx.Response]]


def _booking(api: Api) -> Callable[[], httpx.Response]:
    made = api.quote("2 x a100-40g/1g.5gb")
    return lambda: api.book(made, key="k")


def _used_quote(api: Api) -> Callable[[], httpx.Response]:
    made = api.quote()
    api.book(made)
    return lambda: api.book(made, key="k")


def _full(api: Api) -> Callable[[], httpx.Response]:
    late = api.quote("2 x l4/full")
    api.buy("1 x l4/full")
    return lambda: api.book(late, key="k")


def _expired(api: Api) -> Callable[[], httpx.Response]:
    made = api.quote()
    api.shop.clock.move(timedelta(minutes=16))
    return lambda: api.book(made, key="k")


def _cancelled(api: Api) -> Callable[[], httpx.Response]:
    booked = api.buy(start="2026-12-02T12:00:00Z")
    return lambda: api.post(f"/v1/bookings/{booked['id']}/cancel", key="k")


def _late_cancel(api: Api) -> Callable[[], httpx.Response]:
    booked = api.buy(start="2026-12-01T13:30:00Z")
    api.shop.clock.move(timedelta(minutes=45))
    return lambda: api.post(f"/v1/bookings/{booked['id']}/cancel", key="k")


def _given_back(api: Api) -> Callable[[], httpx.Response]:
    booked = api.buy(start="2026-12-01T13:30:00Z")
    api.shop.clock.move(timedelta(minutes=45))
    return lambda: api.post(f"/v1/bookings/{booked['id']}/give-back", key="k")


def _budget(api: Api) -> Callable[[], httpx.Response]:
    return lambda: api.post("/v1/cost-centers/lab/budgets", {"amount": 5}, key="k")


ASKED: dict[str, tuple[Ask, int]] = {
    "booking": (_booking, 201),
    "used quote": (_used_quote, 409),
    "full pool": (_full, 409),
    "expired quote": (_expired, 410),
    "cancel": (_cancelled, 200),
    "late cancel": (_late_cancel, 409),
    "give-back": (_given_back, 200),
    "budget": (_budget, 201),
}


@pytest.mark.parametrize(("ask", "status"), ASKED.values(), ids=ASKED.keys())
def test_the_same_key_and_body_get_the_same_bytes(api: Api, ask: Ask, status: int) -> None:
    """Also when what was refused would be possible by now."""
    send = ask(api)
    first = send()
    assert first.status_code == status, first.text
    before = contents(api.shop)
    second = send()
    api.shop.clock.move(timedelta(days=6, hours=23))
    third = send()
    assert (first.content, first.status_code) == (second.content, second.status_code)
    assert (first.content, first.status_code) == (third.content, third.status_code)
    assert first.headers["content-type"] == second.headers["content-type"]
    assert contents(api.shop) == before


def test_a_budget_is_granted_once(api: Api) -> None:
    limit = api.balance()["limit"]
    send = _budget(api)
    assert [send().json()["limit"] for _ in range(3)] == [limit + 5] * 3
    assert api.balance()["limit"] == limit + 5


@pytest.mark.parametrize("status", [201, 409])
def test_a_key_of_another_request_is_refused(api: Api, status: int) -> None:
    first, second = api.quote(), api.quote()
    if status == 409:
        api.book(first)
    assert api.book(first, key="k").status_code == status
    booked = api.buy("1 x a100-40g/1g.5gb", start="2026-12-02T12:00:00Z")
    before = contents(api.shop)
    for send in (
        lambda: api.book(second, key="k"),
        lambda: api.post(f"/v1/bookings/{booked['id']}/cancel", key="k"),
        lambda: api.post("/v1/cost-centers/lab/budgets", {"amount": 5}, key="k"),
    ):
        problem(send(), 409, "idempotency_key_reused")
    assert contents(api.shop) == before


def test_another_persons_same_key_is_another_key(api: Api) -> None:
    _, bob = api.shop.person("bob")
    mine, theirs = api.quote(), api.quote(token=bob)
    one, two = api.book(mine, key="k"), api.book(theirs, key="k", token=bob)
    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json()["id"] != two.json()["id"]
    assert two.json()["person"] == "bob"


def test_another_token_of_the_same_person_repeats_the_request(api: Api) -> None:
    made = api.quote()
    other = api.post("/v1/tokens", {"label": "other", "scopes": ["read", "book"]}).json()["secret"]
    assert api.book(made, key="k").content == api.book(made, key="k", token=other).content


def test_a_key_is_kept_for_seven_days_and_then_free(api: Api) -> None:
    send = _booking(api)
    first = send()
    api.shop.clock.move(timedelta(days=7) - timedelta(microseconds=1))
    assert send().content == first.content
    api.shop.clock.move(timedelta(microseconds=1))
    assert send().json()["code"] == "quote_used"
    assert problem(send(), 409, "quote_used")


def test_a_free_key_serves_another_request(api: Api) -> None:
    _booking(api)()
    api.shop.clock.move(timedelta(days=7))
    publish.publish(api.shop.context)
    assert api.book(api.quote(), key="k").status_code == 201


def test_what_is_malformed_or_not_found_leaves_the_key_free(api: Api) -> None:
    """Such an answer says nothing about a state that could have changed."""
    problem(api.post("/v1/bookings", {"quote_id": 3}, key="k"), 422, "invalid_request")
    problem(api.post("/v1/bookings", {"quote_id": "q_" + "0" * 24}, key="k"), 404, "not_found")
    assert api.book(api.quote(), key="k").status_code == 201


@pytest.mark.parametrize(("ask", "status"), ASKED.values(), ids=ASKED.keys())
def test_twins_in_parallel_get_one_answer_and_one_effect(api: Api, ask: Ask, status: int) -> None:
    send = ask(api)
    bookings, balance = len(contents(api.shop)["booking"]), api.balance()["limit"]
    with ThreadPoolExecutor(4) as crew:
        got = [each.result() for each in [crew.submit(send) for _ in range(4)]]
    assert [each.status_code for each in got] == [status] * 4, [each.text for each in got]
    assert all(one.content == other.content for one, other in pairwise(got))
    assert len(contents(api.shop)["booking"]) - bookings == (ask is _booking)
    assert api.balance()["limit"] - balance == (5 if ask is _budget else 0)


def test_a_twin_that_was_refused_first_answers_for_both(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """One twin finds the pool full and its refusal is kept; the other, which has found a place meanwhile, gets it."""
    made = api.quote()
    refusal = Stored(409, {"code": "no_capacity", "status": 409})
    place = book_service._place

    def refused_meanwhile(context: Context, offer: Any) -> Any:
        found = place(context, offer)
        asked = _ticket_of(made["id"], api)
        context.database.write(lambda session: answers.keep(session, asked, refusal, context.now()))
        return found

    monkeypatch.setattr(book_service, "_place", refused_meanwhile)
    before = contents(api.shop)
    answer = api.book(made, key="k")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_capacity")
    assert contents(api.shop) == before


def _ticket_of(quote_id: str, api: Api) -> answers.Ticket:
    asked = json.dumps(["POST", "/v1/bookings", {"quote_id": quote_id}], sort_keys=True)
    return answers.Ticket(api.shop.operator.id, "k", hashlib.sha256(asked.encode()).hexdigest())


def test_every_post_that_takes_a_key_says_so_in_the_openapi_document(api: Api) -> None:
    document = api.get("/v1/openapi.json").json()
    keyed = {
        path
        for path, methods in document["paths"].items()
        for each in methods.get("post", {}).get("parameters", [])
        if each["name"].lower() == "idempotency-key"
    }
    assert keyed == {
        "/v1/bookings",
        "/v1/bookings/{booking_id}/cancel",
        "/v1/bookings/{booking_id}/give-back",
        "/v1/cost-centers/{name}/budgets",
    }
