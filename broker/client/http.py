"""The API as typed calls, one method a call. What travels is `broker.wire`; how is `connection`'s matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import BaseModel, ValidationError

from broker.client.connection import RETRY_WAITS, Connection
from broker.client.errors import BrokerGarbled
from broker.wire.base import Answer, Message
from broker.wire.lists import BookingPage, CostCenterPage, PeoplePage, PriceBookPage, TariffPage, TokenPage
from broker.wire.market import CurveView, OffersView, PoolView, TariffApproval, TariffIn, TariffView
from broker.wire.people import (
    BudgetIn,
    CostCenterIn,
    CostCenterView,
    Me,
    MemberIn,
    NewToken,
    PersonIn,
    PersonView,
    TokenIn,
)
from broker.wire.quotes import BackOutView, BookingView, BookRequest, QuoteRequest, QuoteView
from broker.wire.versions import API_PREFIX, API_VERSION
from market.catalog import Sku, Tier
from market.states import BookingState

Query = Mapping[str, str | int | None]
A = TypeVar("A", bound=BaseModel)


class Health(Answer):
    """What `/healthz` answers to anyone."""

    status: str
    version: str


class Client:
    """One broker, as one person. Close it, or use it in a `with`.

    Every call raises `BrokerRefused`, `BrokerAway` or `BrokerGarbled`, and `NotLoggedIn` when it needs a token that is
    not there. `retry_waits` are the pauses in seconds before each further try; `transport` and `sleep` are for tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca_bundle: str | None = None,
        retry_waits: tuple[float, ...] = RETRY_WAITS,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = Connection(
            url, token, ca_bundle=ca_bundle, retry_waits=retry_waits, transport=transport, sleep=sleep
        )
        self.url = self._connection.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def close(self) -> None:
        self._connection.close()

    def health(self) -> Health:
        """Whether the broker serves; needs no token."""
        return self._read(self._connection.send("GET", "/healthz", signed=False), Health)

    def me(self) -> Me:
        return self._get("/me", Me)

    def tokens(self, cursor: str | None = None) -> TokenPage:
        return self._get("/tokens", TokenPage, {"cursor": cursor})

    def new_token(self, token: TokenIn) -> NewToken:
        return self._post("/tokens", NewToken, token)

    def revoke_token(self, token_id: str) -> None:
        self._connection.send("DELETE", f"{API_PREFIX}/tokens/{_segment(token_id)}")

    def people(self, cursor: str | None = None) -> PeoplePage:
        return self._get("/people", PeoplePage, {"cursor": cursor})

    def add_person(self, person: PersonIn) -> PersonView:
        return self._post("/people", PersonView, person)

    def cost_centers(self, cursor: str | None = None) -> CostCenterPage:
        return self._get("/cost-centers", CostCenterPage, {"cursor": cursor})

    def add_cost_center(self, cost_center: CostCenterIn) -> CostCenterView:
        return self._post("/cost-centers", CostCenterView, cost_center)

    def add_budget(self, cost_center: str, budget: BudgetIn, *, key: str | None = None) -> CostCenterView:
        path = f"/cost-centers/{_segment(cost_center)}/budgets"
        return self._post(path, CostCenterView, budget, key=key or new_key())

    def add_member(self, cost_center: str, member: MemberIn) -> None:
        self._send("POST", f"/cost-centers/{_segment(cost_center)}/members", member)

    def pool(self, *, cursor: str | None = None, limit: int | None = None) -> PoolView:
        """A page of the pool's nodes."""
        return self._get("/pool", PoolView, {"cursor": cursor, "limit": limit})

    def offers(self, *, need: str | None = None, tier: Tier | None = None) -> OffersView:
        return self._get("/offers", OffersView, {"need": need, "tier": tier})

    def curve(self, sku: Sku, *, tier: Tier | None = None, hours: int | None = None) -> CurveView:
        path = f"/curves/{_segment(sku.model)}/{_segment(sku.shape)}"
        return self._get(path, CurveView, {"tier": tier, "hours": hours})

    def quote(self, request: QuoteRequest) -> QuoteView:
        return self._post("/quotes", QuoteView, request)

    def quote_by_id(self, quote_id: str) -> QuoteView:
        return self._get(f"/quotes/{_segment(quote_id)}", QuoteView)

    def book(self, quote_id: str, *, key: str | None = None) -> BookingView:
        """Accepts a quote; with one key, however often it is sent, it is booked once."""
        return self._post("/bookings", BookingView, BookRequest(quote_id=quote_id), key=key or new_key())

    def bookings(
        self,
        *,
        state: BookingState | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        everybody: bool = False,
    ) -> BookingPage:
        """A page of bookings, the newest first; everybody's for roles that may see them."""
        others = {"everybody": "true"} if everybody else {}
        return self._get("/bookings", BookingPage, {"state": state, "cursor": cursor, "limit": limit, **others})

    def every_booking(self, *, state: BookingState | None = None, everybody: bool = False) -> Iterator[BookingView]:
        """All bookings, the newest first; a page is asked for once the one before it has been read."""
        page = self.bookings(state=state, everybody=everybody)
        yield from page.items
        while page.next_cursor:
            page = self.bookings(state=state, cursor=page.next_cursor, everybody=everybody)
            yield from page.items

    def booking(self, booking_id: str) -> BookingView:
        return self._get(f"/bookings/{_segment(booking_id)}", BookingView)

    def back_out(self, booking_id: str) -> BackOutView:
        """What backing out would cost now."""
        return self._get(f"/bookings/{_segment(booking_id)}/back-out", BackOutView)

    def cancel(self, booking_id: str, *, key: str | None = None) -> BookingView:
        """Backs out for free, or is refused (`back_out_not_free`)."""
        return self._post(f"/bookings/{_segment(booking_id)}/cancel", BookingView, key=key or new_key())

    def give_back(self, booking_id: str, *, key: str | None = None) -> BookingView:
        """Backs out at whatever `back_out` says that it costs."""
        return self._post(f"/bookings/{_segment(booking_id)}/give-back", BookingView, key=key or new_key())

    def price_books(self, cursor: str | None = None) -> PriceBookPage:
        return self._get("/price-books", PriceBookPage, {"cursor": cursor})

    def tariffs(self, cursor: str | None = None) -> TariffPage:
        return self._get("/tariffs", TariffPage, {"cursor": cursor})

    def propose_tariff(self, tariff: TariffIn) -> TariffView:
        return self._post("/tariffs", TariffView, tariff)

    def approve_tariff(self, tariff_id: int, approval: TariffApproval) -> TariffView:
        return self._post(f"/tariffs/{tariff_id}/approve", TariffView, approval)

    def event_stream(self, last_event_id: int | None = None) -> AbstractContextManager[Iterator[bytes]]:
        """The bytes of the event stream, from after an event on; read them by `events.follow`."""
        resume = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
        return self._connection.stream(f"{API_PREFIX}/events", {"Accept": "text/event-stream", **resume})

    def _get(self, path: str, model: type[A], query: Query | None = None) -> A:
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        return self._read(self._connection.send("GET", API_PREFIX + path, query=given), model)

    def _post(self, path: str, model: type[A], body: Message | None = None, *, key: str | None = None) -> A:
        return self._read(self._send("POST", path, body, key=key), model)

    def _send(self, method: str, path: str, body: Message | None, *, key: str | None = None) -> httpx.Response:
        return self._connection.send(method, API_PREFIX + path, body=body.model_dump_json() if body else None, key=key)

    def _read(self, response: httpx.Response, model: type[A]) -> A:
        try:
            return model.model_validate_json(response.content)
        except ValidationError:  # its text repeats the answer, which may hold a new token
            raise BrokerGarbled(
                f"{self.url} answered something else than a {model.__name__}; "
                f"is it a gputide broker, and as new as this gputide (API {API_VERSION})?"
            ) from None


def new_key() -> str:
    """A fresh Idempotency-Key."""
    return str(uuid4())


def _segment(text: str) -> str:
    """One segment of a path, whatever the text holds."""
    return quote(text, safe="")
