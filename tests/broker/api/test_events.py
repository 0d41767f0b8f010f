"""Events: each once, in the order of their numbers, one's own and what concerns all; numbered after commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from sqlmodel import Session

from broker.store import events
from tests.support import postgres
from tests.support.api import Api
from tests.support.brokers import NOON, TARIFF, Shop, open_shop
from tests.support.served import served


def _number(api: Api) -> None:
    """What the keeper does after each commit."""
    api.shop.context.database.write(events.number_new)


def _parse(text: str) -> list[dict[str, Any]]:
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            event = json.loads(fields["data"])
            assert (str(event["seq"]), event["kind"]) == (fields["id"], fields["event"])
            found.append(event)
    return found


def _read(api: Api, *, after: int | None = 0, token: str = "", **headers: str) -> list[dict[str, Any]]:
    asked = {"follow": "false"} if after is None else {"follow": "false", "after": str(after)}
    answer = api.get("/v1/events", params=asked, headers=headers, token=token)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    return _parse(answer.text)


def test_events_are_numbered_from_one_without_gaps_in_order(api: Api) -> None:
    booked = api.buy()
    _number(api)
    api.post(f"/v1/bookings/{api.buy('1 x l4/half', start='2026-12-03T00:00:00Z')['id']}/cancel")
    _number(api)
    seen = _read(api)
    assert [each["seq"] for each in seen] == list(range(1, len(seen) + 1))
    assert [each["kind"] for each in seen][-3:] == ["booking.confirmed", "booking.confirmed", "booking.cancelled"]
    assert booked["id"] in [each["subject"] for each in seen]


def test_what_is_not_numbered_yet_is_not_shown(api: Api) -> None:
    _number(api)
    api.buy()
    assert not [each for each in _read(api) if each["kind"].startswith("booking")]


@pytest.mark.parametrize("page", [1, 2, 3, 7])
def test_resuming_gives_each_event_once(api: Api, page: int) -> None:
    """A client that is cut off after every few events ends up with all of them, in order."""
    for start in range(8):
        api.buy("1 x a100-40g/1g.5gb", 900, start=f"2026-12-0{start + 2}T00:00:00Z")
    _number(api)
    everything = _read(api)
    got: list[dict[str, Any]] = []
    while True:
        last = str(got[-1]["seq"]) if got else "0"
        following = _read(api, after=None, **{"Last-Event-ID": last})
        if not following:
            break
        got += following[:page]
    assert got == everything


def test_the_header_wins_over_the_parameter(api: Api) -> None:
    """A browser resumes the address that it began with, so what it has seen last stands in the header."""
    _number(api)
    last = _read(api)[-1]["seq"]
    assert _read(api, after=0, **{"Last-Event-ID": str(last)}) == []


def test_more_events_than_fit_one_look(api: Api) -> None:
    def many(session: Session) -> None:
        for number in range(450):
            events.tell(session, "test.told", subject=str(number), at=NOON)

    api.shop.context.database.write(many)
    _number(api)
    told = [each["subject"] for each in _read(api) if each["kind"] == "test.told"]
    assert told == [str(number) for number in range(450)]


def test_without_a_number_it_begins_with_what_comes(api: Api) -> None:
    _number(api)
    assert _read(api, after=None) == []


def test_a_member_sees_what_is_theirs_and_what_concerns_all(api: Api) -> None:
    _, bob = api.shop.person("bob")
    mine, theirs = api.buy("1 x l4/half"), api.buy("1 x l4/half", token=bob)
    _number(api)
    seen = _read(api, token=bob)
    assert [each["subject"] for each in seen if each["kind"].startswith("booking")] == [theirs["id"]]
    assert {"pool.loaded", "price_book.published", "tariff.approved"} <= {each["kind"] for each in seen}
    assert "budget.granted" not in {each["kind"] for each in seen}
    assert mine["id"] not in json.dumps(seen)
    everybodys = [each["subject"] for each in _read(api) if each["kind"].startswith("booking")]
    assert everybodys == [mine["id"], theirs["id"]]


def test_a_public_event_names_nobody(api: Api) -> None:
    _, bob = api.shop.person("bob", cost_center=None)
    api.buy()
    _number(api)
    seen = json.dumps(_read(api, token=bob))
    for hidden in ("ada", api.shop.operator.id, "lab"):
        assert hidden not in seen


def test_an_event_that_is_committed_late_gets_a_later_number(postgres_server: Any) -> None:
    """Ids are given at insertion, numbers after commit: else a reader would pass the late one by."""
    shop = open_shop(postgres.fresh_database(postgres_server))
    database = shop.context.database
    database.write(events.number_new)
    with Session(database.engine) as slow:
        events.tell(slow, "test.slow", subject="slow", at=NOON)
        slow.flush()
        database.write(lambda session: events.tell(session, "test.fast", subject="fast", at=NOON))
        assert database.write(events.number_new) == 1
        with database.read() as session:
            last = events.last_number(session)
        slow.commit()
    assert database.write(events.number_new) == 1
    with database.read() as session:
        fast, late = events.after(session, last - 1, person_id=None)
    assert (fast.kind, late.kind) == ("test.fast", "test.slow")
    assert late.id is not None
    assert fast.id is not None
    assert late.id < fast.id
    assert (fast.seq, late.seq) == (last, last + 1)
    database.close()


@contextmanager
def _client(url: str, secret: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        yield client


def _buy(client: httpx.Client) -> str:
    quote = client.post("/v1/quotes", json={"need": "1 x l4/half", "seconds": 900}).json()
    booked = client.post("/v1/bookings", json={"quote_id": quote["id"]}, headers={"Idempotency-Key": quote["id"]})
    return booked.json()["id"]


def _events(lines: Iterator[str], count: int, kind: str) -> list[str]:
    """The subjects of the next events of a kind."""
    found: list[str] = []
    while len(found) < count:
        line = next(lines)
        if line.startswith("data: ") and (event := json.loads(line.removeprefix("data: ")))["kind"] == kind:
            found.append(event["subject"])
    return found


def test_a_follower_gets_what_is_booked_while_it_listens(shop: Shop) -> None:
    with served(shop) as url, _client(url, shop.secret) as client, client.stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("id: ")  # it has begun, from the last number on
        booked = [_buy(client) for _ in range(2)]
        assert _events(lines, 2, "booking.confirmed") == booked


def test_a_follower_is_let_go_when_its_token_is_revoked(shop: Shop) -> None:
    _, bob = shop.person("bob")
    with served(shop) as url, _client(url, shop.secret) as client, _client(url, bob) as bobs:
        token = bobs.get("/v1/tokens").json()["items"][0]["id"]
        with bobs.stream("GET", "/v1/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("id: ")
            booked = _buy(bobs)
            assert _events(lines, 1, "booking.confirmed") == [booked]
            assert client.delete(f"/v1/tokens/{token}").status_code == 204
            proposed = client.post("/v1/tariffs", json={"document": TARIFF}).json()["id"]
            client.post(f"/v1/tariffs/{proposed}/approve", json={})  # news for all
            assert "tariff.approved" not in "".join(lines)


def test_a_follower_is_let_go_when_the_broker_stops(shop: Shop) -> None:
    with _client("http://unused", shop.secret) as client:
        with served(shop) as url:
            stream = client.send(client.build_request("GET", f"{url}/v1/events"), stream=True)
            lines = stream.iter_lines()
            assert next(lines).startswith("id: ")
        assert not [line for line in lines if line.startswith("data")]


def test_a_number_that_was_never_given_resumes_from_the_last(api: Api) -> None:
    """As after a backup was restored: else its follower waited in silence until the numbers came round again."""
    api.buy()
    _number(api)
    last = _read(api)[-1]["seq"]
    assert f"id: {last}" in api.get("/v1/events?after=999999&follow=false").text
