"""The frame of every request: versions, keys, methods, paths, bodies; each fault is a problem and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from io import StringIO

import pytest
from sqlalchemy import text

from broker.api.limits import MAX_BODY
from broker.services import browse
from broker.wire.versions import API_VERSION
from tests.support.api import Api, problem

QUOTE = b'{"need": "1 x l4/full", "seconds": 3600}'
JSON = {"Content-Type": "application/json"}


def test_every_answer_says_its_version_and_request(unchanged: Api) -> None:
    for answer in (unchanged.get("/v1/me"), unchanged.get("/v1/nothing"), unchanged.get("/healthz", token=None)):
        assert answer.headers["Gputide-Version"] == API_VERSION
        assert answer.headers["Gputide-Request-Id"].startswith("r_")


def test_a_problem_quotes_the_id_of_its_own_request(unchanged: Api) -> None:
    answer = unchanged.get("/v1/quotes/q_0")
    assert problem(answer, 404, "not_found")["request_id"] == answer.headers["Gputide-Request-Id"]


@pytest.mark.parametrize("version", ["1", "1.0", "1.99", "1.0.dev3"])
def test_a_client_of_the_same_major_version_is_served(unchanged: Api, version: str) -> None:
    assert unchanged.get("/v1/me", headers={"Gputide-Version": version}).status_code == 200


@pytest.mark.parametrize("version", ["2.0", "0.9", "", "one", "10.0", "1" * 5000])
def test_a_client_of_another_version_is_told_so(unchanged: Api, version: str) -> None:
    answer = unchanged.get("/v1/me", headers={"Gputide-Version": version})
    body = problem(answer, 400, "version_mismatch")
    assert API_VERSION in body["detail"]
    assert len(answer.content) < 1000


@pytest.mark.parametrize("key", [None, " ", "k" * 201, "a\tb", "naïve"])
def test_what_moves_money_or_capacity_needs_a_key(unchanged: Api, key: str | None) -> None:
    sent = None if key is None else key.encode()
    for path, body in (
        ("/v1/bookings", {"quote_id": "q_" + "0" * 24}),
        ("/v1/bookings/b_0/cancel", None),
        ("/v1/bookings/b_0/give-back", None),
        ("/v1/cost-centers/lab/budgets", {"amount": 1}),
    ):
        headers = {} if sent is None else {"Idempotency-Key": sent}
        answer = unchanged.post(path, body, key=None, headers=headers)
        assert "Idempotency-Key" in problem(answer, 422, "idempotency_key_missing")["detail"]


def test_a_key_of_200_characters_is_the_longest(unchanged: Api) -> None:
    problem(unchanged.post("/v1/bookings", {"quote_id": "q_" + "0" * 24}, key="k" * 200), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/v1/bookings"), ("DELETE", "/v1/me"), ("PATCH", "/v1/quotes"), ("BREW", "/v1/me"), ("POST", "/healthz")],
)
def test_a_wrong_method(unchanged: Api, method: str, path: str) -> None:
    answer = unchanged.send(method, path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/orders", "/v2/me", "/v1/offers/", "/v1//offers", "/v1/curves/l4"])
def test_an_unknown_path(unchanged: Api, path: str) -> None:
    """A slash too many is unknown too: a redirect would name plain http behind a proxy, and the token would follow."""
    problem(unchanged.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"not json", 422),
        (b"null", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b"3", 422),
        (QUOTE[:-1], 422),
        (b"\xff\xfe", 422),
        (b'{"need": "1 x l4/full", "seconds": NaN}', 422),
        (b'{"need": "1 x l4/full", "seconds": 1e999}', 422),
        (b'{"need": "1 x l4/full", "seconds": ' + b"9" * 5000 + b"}", 400),
        (b"[" * 200_000, 400),
        (b'{"a":' * 100_000, 400),
    ],
)
def test_a_body_that_is_no_request(unchanged: Api, body: bytes, status: int) -> None:
    problem(unchanged.send("POST", "/v1/quotes", content=body, headers=JSON), status, "invalid_request")


def test_a_body_of_another_type(unchanged: Api) -> None:
    answer = unchanged.send("POST", "/v1/quotes", content=QUOTE, headers={"Content-Type": "text/plain"})
    problem(answer, 422, "invalid_request")


def test_a_body_that_says_it_is_too_large(unchanged: Api) -> None:
    body = QUOTE.ljust(MAX_BODY + 1)
    problem(unchanged.send("POST", "/v1/quotes", content=body, headers=JSON), 413, "too_large")


def test_a_body_that_does_not_say_how_large_it_is(unchanged: Api) -> None:
    taken = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 100_000
            yield b" " * 100_000

    problem(unchanged.send("POST", "/v1/quotes", content=chunks(), headers=JSON), 413, "too_large")
    assert taken <= 12 * 100_000


@pytest.mark.parametrize("length", [b"-1", b"many", b"\xb2", b"9" * 5000])
def test_a_length_that_is_none(unchanged: Api, length: bytes) -> None:
    problem(unchanged.send("POST", "/v1/quotes", content=QUOTE, headers={"Content-Length": length}), 413, "too_large")


def test_a_body_of_the_largest_size_is_read(unchanged: Api) -> None:
    answer = unchanged.send("POST", "/v1/quotes", content=b"{}".ljust(MAX_BODY), headers=JSON)
    problem(answer, 422, "invalid_request")


def test_a_fault_of_the_brokers_own_is_a_problem_without_its_inner_life(
    standing: Api, monkeypatch: pytest.MonkeyPatch, logs: StringIO
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("postgresql://me:hunter2@db/gputide is in a bad mood")

    monkeypatch.setattr(browse, "offers", broken)
    answer = standing.get("/v1/offers")
    assert "mood" not in answer.text
    assert answer.json()["code"] == "internal_error"
    assert answer.status_code == 500
    logged = logs.getvalue()
    assert answer.json()["request_id"] in logged
    assert "mood" in logged
    assert "hunter2" not in logged


def test_an_unknown_field_is_named_but_never_at_length(unchanged: Api) -> None:
    long, secret = "x" * 100_000, unchanged.shop.secret
    answer = unchanged.post("/v1/quotes", {"need": "1 x l4/full", "seconds": 3600, long: 1, secret: 2})
    body = problem(answer, 422, "invalid_request")
    assert "body.xxx" in body["detail"]
    assert len(answer.content) < 2000
    assert secret not in answer.text


def test_no_answer_lists_more_faults_than_a_person_reads(unchanged: Api) -> None:
    answer = unchanged.post("/v1/quotes", {str(number): 1 for number in range(10_000)})
    assert len(problem(answer, 422, "invalid_request")["errors"]) <= 20


def test_health_needs_no_token_and_tells_when_the_database_is_gone(api: Api) -> None:
    assert api.get("/healthz", token=None).json()["status"] == "ok"
    api.shop.clock.move(timedelta(hours=2, seconds=1))
    assert "two hours" in problem(api.get("/healthz", token=None), 503, "not_ready")["detail"]
    with api.shop.context.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE price_book RENAME TO gone"))
    problem(api.get("/healthz", token=None), 503, "not_ready")


def test_metrics_count_and_name_nobody(unchanged: Api) -> None:
    unchanged.send("BREW", "/v1/offers")
    unchanged.get("/v1/curves/l4/full")
    shown = unchanged.get("/metrics", token=None).text
    assert 'status="200"' in shown
    for name in ("ada", "lab", "BREW", "l4/full", unchanged.shop.secret):
        assert name not in shown
