"""What is for sale: offers, curves, price books, tariffs, the pool."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from broker.wire.base import Answer, Instant, Message, Micros
from market.catalog import Isolation, Tier


class OfferView(Answer):
    """What could be had now: advice, no promise. Rates are micros a slice-hour."""

    sku: str
    title: str
    memory_gb: int
    isolation: Isolation
    free_now: int
    capacity: int
    rate_now: Micros
    rate_lowest: Micros
    lowest_at: Instant
    load_now: int
    inferred: bool


class OffersView(Answer):
    """Every offer under one price book, for an hour from now on."""

    offers: list[OfferView]
    tier: Tier
    price_book: int
    currency: str
    zone: str
    simulated: bool
    at: Instant


class CurveView(Answer):
    """The rate of a SKU for each slot from `start` on (`slot_seconds` apart), under one price book."""

    sku: str
    simulated: bool
    tier: Tier
    currency: str
    zone: str
    price_book: int
    start: Instant
    slot_seconds: int
    rates: list[int]
    loads: list[int]


class PriceBookView(Answer):
    """A published price book."""

    number: int
    tariff: str
    digest: str
    computed_at: Instant
    start: Instant
    end: Instant


class TariffIn(Message):
    """A tariff as the operator writes it (the TOML document as text)."""

    document: Annotated[str, Field(min_length=1, max_length=200_000)]


class TariffView(Answer):
    """A tariff: proposed, approved (dated), in force or superseded."""

    id: int
    name: str
    currency: str
    zone: str
    status: str
    in_force_from: Instant | None
    approved_by: str | None


class TariffApproval(Message):
    """Puts a proposed tariff in force from an instant on (now, when none is said)."""

    in_force_from: Instant | None = None


class NodeView(Answer):
    """A node and its devices. Only how much is promised now is shown, never to whom."""

    name: str
    site: str
    topology: list[str]
    cpu_milli: int
    memory_mib: int
    devices: list[DeviceView]


class DeviceView(Answer):
    """A device: `promised_now` in ppm of it."""

    id: int
    index: int
    model: str
    kind: str
    healthy: bool
    promised_now: int


class PoolView(Answer):
    """The pool, a page of nodes at a time."""

    name: str
    simulated: bool
    nodes: list[NodeView]
    node_count: int
    device_count: int
    next_cursor: str | None


class ProblemView(Answer):
    """RFC 9457 problem+json. `code` is stable; `request_id` is the id to quote when asking for help."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    currency: str | None = None
    alternatives: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    quote: dict[str, Any] | None = None
    back_out: dict[str, Any] | None = None
    errors: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


class EventView(Answer):
    """Something that happened, numbered after it was committed."""

    seq: int
    kind: str
    at: Instant
    subject: str
    data: dict[str, Any]
