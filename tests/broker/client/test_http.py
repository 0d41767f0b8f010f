"""The client against a transport that records: what is sent, what is sent again, what an answer becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest

from broker.client.errors import BrokerAway, BrokerGarbled, BrokerRefused, NotLoggedIn
from broker.client.http import Client
from broker.wire.people import BudgetIn, Scope, TokenIn
from broker.wire.quotes import QuoteRequest
from broker.wire.versions import API_VERSION, IDEMPOTENCY_HEADER, VERSION_HEADER
from market.catalog import Sku, Tier
from market.states import BookingState
from tests.broker.client import samples

Reply = httpx.Response | Exception


class Wire:
    """Answers requests with what it is given, in turn, and keeps the requests and the pauses between them."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.replies: Iterator[Reply] = iter(replies)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = next(self.replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def client(self, token: str | None = samples.TOKEN, url: str = "https://gpu.example.org") -> Client:
        return Client(url, token, transport=httpx.MockTransport(self), sleep=self.pauses.append)


def answer(message: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, text=message.model_dump_json())  # type: ignore[attr-defined]


def test_a_request_carries_token_and_version_in_headers_only() -> None:
    wire = Wire([answer(samples.me())])
    assert wire.client().me() == samples.me()
    (request,) = wire.requests
    assert request.headers["Authorization"] == f"Bearer {samples.TOKEN}"
    assert request.headers[VERSION_HEADER] == API_VERSION
    assert str(request.url) == "https://gpu.example.org/v1/me"


def test_health_is_asked_without_a_token() -> None:
    wire = Wire([httpx.Response(200, json={"status": "ok", "version": "0.1.0"})])
    assert wire.client().health().version == "0.1.0"
    assert "Authorization" not in wire.requests[0].headers


def test_without_a_token_nothing_is_sent() -> None:
    wire = Wire([])
    with pytest.raises(NotLoggedIn, match=r"gputide login --url https://gpu\.example\.org"):
        wire.client(token=None).me()
    assert wire.requests == []


def test_a_broker_may_live_under_a_path() -> None:
    wire = Wire([answer(samples.me())])
    wire.client(url="https://example.org/gpu/").me()
    assert wire.requests[0].url.path == "/gpu/v1/me"


def test_what_is_not_asked_is_not_sent() -> None:
    wire = Wire([answer(samples.offers()), answer(samples.bookings()), answer(samples.curve())])
    client = wire.client()
    client.offers(need="1 x l4", tier=Tier.ECONOMY)
    client.bookings(state=BookingState.ACTIVE)
    client.curve(Sku.parse("a100-40g/3g.20gb"))
    targets = [request.url.raw_path.decode() for request in wire.requests]
    assert targets == [
        "/v1/offers?need=1+x+l4&tier=economy",
        "/v1/bookings?state=active",
        "/v1/curves/a100-40g/3g.20gb",
    ]


def test_an_id_cannot_leave_its_place_in_the_path() -> None:
    wire = Wire([answer(samples.booking())])
    wire.client().booking("../people?x=1")
    assert wire.requests[0].url.raw_path == b"/v1/bookings/..%2Fpeople%3Fx%3D1"


@pytest.mark.parametrize(
    "fault", [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.RemoteProtocolError("no reply")]
)
def test_a_read_is_sent_again_when_the_connection_breaks(fault: Exception) -> None:
    wire = Wire([fault, fault, fault, answer(samples.me())])
    assert wire.client().me() == samples.me()
    assert wire.pauses == [0.1, 0.4, 1.2]


def test_after_three_more_tries_the_broker_is_away() -> None:
    wire = Wire([httpx.ConnectError("refused")] * 4)
    with pytest.raises(BrokerAway, match=r"gpu\.example\.org cannot be reached"):
        wire.client().me()
    assert len(wire.requests) == 4


def test_a_keyed_request_is_sent_again_with_the_same_key() -> None:
    wire = Wire([httpx.ReadError("reset"), answer(samples.booking(), 201)])
    wire.client().book(samples.QUOTE_ID)
    first, second = wire.requests
    assert first.headers[IDEMPOTENCY_HEADER] == second.headers[IDEMPOTENCY_HEADER]
    assert first.content == second.content


@pytest.mark.parametrize(
    "act",
    [
        lambda client, key: client.book(samples.QUOTE_ID, key=key),
        lambda client, key: client.cancel(samples.BOOKING_ID, key=key),
        lambda client, key: client.give_back(samples.BOOKING_ID, key=key),
    ],
)
def test_every_act_on_capacity_has_a_key_of_the_caller_or_a_fresh_one(act: Callable[..., object]) -> None:
    wire = Wire([answer(samples.booking()) for _ in range(3)])
    client = wire.client()
    act(client, "my-key")
    act(client, None)
    act(client, None)
    keys = [request.headers[IDEMPOTENCY_HEADER] for request in wire.requests]
    assert keys[0] == "my-key"
    assert len(set(keys)) == 3


def test_money_for_a_budget_has_a_key_too() -> None:
    wire = Wire([httpx.Response(404)])
    with pytest.raises(BrokerGarbled):
        wire.client().add_budget("physics", BudgetIn(amount=1))
    assert IDEMPOTENCY_HEADER in wire.requests[0].headers


def test_a_post_without_a_key_is_never_sent_again() -> None:
    wire = Wire([httpx.ConnectError("refused")])
    with pytest.raises(BrokerAway):
        wire.client().quote(QuoteRequest(need="1 x l4", seconds=3600))
    assert wire.pauses == []


@pytest.mark.parametrize("fault", [httpx.ReadTimeout("slow"), httpx.ConnectTimeout("slow")])
def test_who_waited_for_a_timeout_does_not_wait_again(fault: Exception) -> None:
    wire = Wire([fault])
    with pytest.raises(BrokerAway, match="does not answer in time"):
        wire.client().me()


def test_a_certificate_that_is_not_trusted_is_said_at_once() -> None:
    wire = Wire([httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate")])
    with pytest.raises(BrokerAway, match="--ca-bundle FILE"):
        wire.client().me()


def test_a_reply_is_never_asked_for_twice_even_when_it_is_an_error() -> None:
    busy = samples.problem("contention", 503, "the database was too busy")
    wire = Wire([answer(busy, 503)])
    with pytest.raises(BrokerRefused) as refused:
        wire.client().me()
    assert refused.value.problem == busy
    assert refused.value.detail == "the database was too busy"


def test_a_redirect_does_not_carry_the_token_on() -> None:
    wire = Wire([httpx.Response(302, headers={"Location": "https://elsewhere.example.com/"})])
    with pytest.raises(BrokerGarbled, match="HTTP 302"):
        wire.client().me()
    assert len(wire.requests) == 1


def test_an_answer_of_something_else_is_garbled_and_not_repeated() -> None:
    secret = {"id": "t_1", "secret": "very-secret"}
    wire = Wire([httpx.Response(200, text="<html>"), httpx.Response(201, json=secret)])
    client = wire.client()
    with pytest.raises(BrokerGarbled, match="something else than a Me"):
        client.me()
    with pytest.raises(BrokerGarbled) as garbled:
        client.new_token(TokenIn(label="ci", scopes=[Scope.READ]))
    assert "very-secret" not in str(garbled.value)
    assert garbled.value.__suppress_context__


def test_a_newer_broker_may_say_more() -> None:
    wire = Wire([httpx.Response(200, json={**samples.me().model_dump(mode="json"), "new_field": 1})])
    assert wire.client().me() == samples.me()


def test_every_booking_is_read_page_by_page() -> None:
    wire = Wire([answer(samples.bookings("page-2")), answer(samples.bookings())])
    found = wire.client().every_booking()
    assert next(found).id == samples.BOOKING_ID
    assert len(wire.requests) == 1
    assert len(list(found)) == 3
    assert wire.requests[1].url.params["cursor"] == "page-2"
