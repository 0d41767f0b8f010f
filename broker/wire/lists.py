"""Pages: every list of the API is cut and says how to go on."""

from __future__ import annotations

from broker.wire.base import Answer
from broker.wire.market import PriceBookView, TariffView
from broker.wire.people import CostCenterView, PersonView, TokenView
from broker.wire.quotes import BookingView


class BookingPage(Answer):
    items: list[BookingView]
    next_cursor: str | None


class PeoplePage(Answer):
    items: list[PersonView]
    next_cursor: str | None


class CostCenterPage(Answer):
    items: list[CostCenterView]
    next_cursor: str | None


class TokenPage(Answer):
    items: list[TokenView]
    next_cursor: str | None


class TariffPage(Answer):
    items: list[TariffView]
    next_cursor: str | None


class PriceBookPage(Answer):
    items: list[PriceBookView]
    next_cursor: str | None
