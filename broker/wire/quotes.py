"""Quotes and bookings: what is asked, what is promised, what it costs and why."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from broker.wire.base import Answer, Id, Instant, Message, Micros, Name, Text
from market.catalog import Isolation, Tier
from market.proposals import ProposalKind
from market.states import BookingState


class QuoteRequest(Message):
    """A request: `need` as people state it ("4 x A100 40GB"), how long, when or by when, and who pays.

    `zone` is the IANA zone of the times in the explanation's text, the tariff's if not said.
    """

    need: Text
    seconds: Annotated[int, Field(ge=1, le=10**9, description="length of the booking")]
    tier: Tier = Tier.STANDARD
    start: Instant | None = None
    finish_by: Instant | None = None
    urgency: Annotated[str, Field(pattern="^(now|today|whenever)$")] = "whenever"
    cost_center: Name | None = None
    zone: Annotated[str, Field(max_length=100)] | None = None


class ProposalView(Answer):
    """One priced way to meet a request. `rate` is micros a slice-hour, `total` micros for all slices."""

    kind: ProposalKind
    sku: str
    tier: Tier
    count: int
    start: Instant
    end: Instant
    seconds: int
    rate: Micros
    total: Micros


class ExplanationView(Answer):
    """Why a price is what it is; factors and loads in ppm, means over the window. `text` says it in one line."""

    text: str
    base: Micros
    band: int
    scarcity: int
    factor: int
    tier_factor: int
    load: int
    promised: int
    still_to_come: int
    limited: bool
    price_book: int
    forecast: str


class QuoteView(Answer):
    """A priced promise. It expires; accepted before that, its rate never rises."""

    id: Id
    need: str
    proposal: ProposalView
    isolation: Isolation
    memory_gb: int
    currency: str
    cost_center: str
    budget_left_after: int
    starts_when_booked: bool
    simulated: bool
    explanation: ExplanationView
    alternatives: list[ProposalView]
    made_at: Instant
    expires_at: Instant


class BookRequest(Message):
    """Accepts a quote."""

    quote_id: Id


class PlaceView(Answer):
    """Where one slice of a booking will run."""

    node: str
    device: int


class BookingView(Answer):
    """A booking: capacity promised for a window at a locked rate."""

    id: Id
    state: BookingState
    person: str
    need: str
    sku: str
    tier: Tier
    count: int
    start: Instant
    end: Instant
    seconds: int
    rate: Micros
    total: Micros
    charged: Micros
    fee: Micros
    currency: str
    cost_center: str
    quote_id: Id
    isolation: Isolation
    simulated: bool
    places: list[PlaceView]
    free_cancel_until: Instant
    booked_at: Instant


class BackOutView(Answer):
    """What backing out of a booking costs now: `charged` stays on the cost center (`fee` is a part of it)."""

    booking_id: Id
    free: bool
    charged: Micros
    fee: Micros
    released: Micros
    currency: str
