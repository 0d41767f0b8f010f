"""A broker's API without a network: requests go to the application itself, on an event loop of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from sqlalchemy import select

from broker.app import create_app
from broker.store.tables import TABLES
from broker.wire.versions import IDEMPOTENCY_HEADER, REQUEST_ID_HEADER
from tests.support.brokers import Shop

PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Api:
    """The API of a shop. A request is the operator's and has a fresh Idempotency-Key unless it says otherwise."""

    shop: Shop
    app: FastAPI
    portal: BlockingPortal
    client: httpx.AsyncClient

    def send(
        self, method: str, path: str, *, token: str | None = "", key: str | None = "", **more: Any
    ) -> httpx.Response:
        """Sends a request; `token=None` goes without one, and `key=None` without an Idempotency-Key."""
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.shop.secret}"
        if key is not None:
            headers[IDEMPOTENCY_HEADER] = key or uuid4().hex
        return self.portal.call(partial(self.client.request, method, path, headers=headers, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, key=None, **more)

    def post(self, path: str, body: object = None, **more: Any) -> httpx.Response:
        if body is not None:
            more["headers"] = {"Content-Type": "application/json", **more.get("headers", {})}
            more["content"] = json.dumps(body)
        return self.send("POST", path, **more)

    def quote(
        self, need: str = "1 x l4/full", seconds: int = 3600, *, token: str = "", **more: object
    ) -> dict[str, Any]:
        """A quote, which must be made."""
        made = self.post("/v1/quotes", {"need": need, "seconds": seconds, **more}, token=token)
        assert made.status_code == 201, made.text
        return made.json()

    def book(self, quote: dict[str, Any], **more: Any) -> httpx.Response:
        return self.post("/v1/bookings", {"quote_id": quote["id"]}, **more)

    def buy(self, need: str = "1 x l4/full", seconds: int = 3600, *, token: str = "", **more: object) -> dict[str, Any]:
        """A booking, which must be made."""
        made = self.book(self.quote(need, seconds, token=token, **more), token=token)
        assert made.status_code == 201, made.text
        return made.json()

    def balance(self) -> dict[str, int]:
        """The budget of `lab` this month."""
        (found,) = (each for each in self.get("/v1/cost-centers").json()["items"] if each["name"] == "lab")
        return {key: found[key] for key in ("limit", "spent", "held", "left")}


@contextmanager
def open_api(shop: Shop) -> Iterator[Api]:
    """The API of a shop, without loops: prices stand, and events are numbered when a test says so."""
    app = create_app(shop.context, loops=False)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(app.router.lifespan_context(app)),
        portal.wrap_async_context_manager(httpx.AsyncClient(transport=transport, base_url="http://broker")) as client,
    ):
        yield Api(shop, app, portal, client)


def contents(shop: Shop) -> dict[str, list[str]]:
    """Every row of every table, except the answers that are kept for their keys (a refusal is kept as well)."""
    with shop.context.database.engine.connect() as connection:
        tables = [table for table in TABLES.sorted_tables if table.name != "idempotency"]
        return {table.name: sorted(repr(row) for row in connection.execute(select(table))) for table in tables}


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The body of a refusal, which must be a whole problem of that status and code."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["code"], body["type"]) == (status, code, f"urn:gputide:problem:{code}"), body
    assert body["title"]
    assert body["detail"]
    assert body["request_id"].startswith("r_")
    assert answer.headers[REQUEST_ID_HEADER].startswith("r_")
    return body
