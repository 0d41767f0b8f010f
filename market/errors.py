"""Every refusal of the market, each with a stable code that the API, the CLI and the docs repeat."""

from __future__ import annotations

from typing import ClassVar


class MarketError(Exception):
    """The market refuses this request."""

    code: ClassVar[str] = "market_error"

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip().splitlines()[0]
        super().__init__(self.detail)


class InvalidAmount(MarketError):
    """This amount is not one that the market can hold."""

    code = "invalid_amount"
