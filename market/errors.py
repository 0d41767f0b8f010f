"""Every refusal of gputide, each with a stable code that the API, the CLI and the docs repeat.

GputideError
├── InvalidRequest            the request itself is malformed (HTTP 422)
│   ├── InvalidAmount, NaiveInstant, InvalidWindow, InvalidLength, InvalidZone, InvalidNeed, InvalidInstant
│   ├── WindowInPast, BeyondHorizon, DeadlineNeeded, DeadlineTooSoon, UnknownSku, UnknownModel, InvalidShape
│   ├── InvalidTariff ─ NonConvexScarcity
│   └── InvalidPool
├── Refused                   the request is understood and refused as things stand (HTTP 409)
│   ├── NoCapacity, NoSuchCapacity, PriceMissing, TierUnavailable
│   └── IllegalMove, OverBudget, HoldExceeded
Subclasses of the broker add the refusals that need a person, a token or a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from market.proposals import Proposal


class GputideError(Exception):
    """gputide refuses this request."""

    code: ClassVar[str] = "gputide_error"

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip().splitlines()[0]
        super().__init__(self.detail)


class InvalidRequest(GputideError):
    """The request is malformed."""

    code = "invalid_request"


class InvalidAmount(InvalidRequest):
    """This amount is not one that the market can hold."""

    code = "invalid_amount"


class NaiveInstant(InvalidRequest):
    """An instant needs an offset, as in 2026-12-01T09:00:00+01:00."""

    code = "naive_instant"


class InvalidInstant(InvalidRequest):
    """This is no point in time that gputide understands."""

    code = "invalid_instant"


class InvalidWindow(InvalidRequest):
    """A window must end after it starts."""

    code = "invalid_window"


class InvalidLength(InvalidRequest):
    """This is no length of time that can be booked."""

    code = "invalid_length"


class InvalidZone(InvalidRequest):
    """This is no IANA time zone."""

    code = "invalid_zone"


class WindowInPast(InvalidRequest):
    """The window has begun already."""

    code = "window_in_past"


class BeyondHorizon(InvalidRequest):
    """The window ends after the last slot that is priced."""

    code = "beyond_horizon"


class DeadlineNeeded(InvalidRequest):
    """The economy tier starts when it suits the pool, so it needs a time to finish by."""

    code = "deadline_needed"


class DeadlineTooSoon(InvalidRequest):
    """What is asked for takes longer than the time until its deadline."""

    code = "deadline_too_soon"


class InvalidNeed(InvalidRequest):
    """This is no need that gputide understands."""

    code = "invalid_need"


class InvalidShape(InvalidRequest):
    """This shape does not exist on that device model."""

    code = "invalid_shape"


class UnknownModel(InvalidRequest):
    """No device of that model is in the pool."""

    code = "unknown_model"


class UnknownSku(InvalidRequest):
    """No such SKU is sold by this pool."""

    code = "unknown_sku"


class InvalidTariff(InvalidRequest):
    """This tariff cannot be put in force."""

    code = "invalid_tariff"


class NonConvexScarcity(InvalidTariff):
    """The scarcity table must rise and be convex."""

    code = "non_convex_scarcity"


class InvalidPool(InvalidRequest):
    """This pool file does not describe a pool."""

    code = "invalid_pool"


class Refused(GputideError):
    """The request is refused as things stand."""

    code = "refused"

    def __init__(self, detail: str | None = None, alternatives: tuple[Proposal, ...] = ()) -> None:
        super().__init__(detail)
        self.alternatives = alternatives


class NoCapacity(Refused):
    """Nothing that meets the need is free in this window."""

    code = "no_capacity"


class NoSuchCapacity(Refused):
    """The pool could not meet this need even when it is empty."""

    code = "no_such_capacity"


class PriceMissing(Refused):
    """There is no price for this, so it is not sold."""

    code = "price_missing"


class TierUnavailable(Refused):
    """This tier is not sold: nothing enforces what it promises yet."""

    code = "tier_unavailable"


class IllegalMove(Refused):
    """The booking cannot do that in the state it is in."""

    code = "illegal_move"


class OverBudget(Refused):
    """The budget does not cover this."""

    code = "over_budget"


class HoldExceeded(Refused):
    """More than was authorised cannot be captured or released."""

    code = "hold_exceeded"
