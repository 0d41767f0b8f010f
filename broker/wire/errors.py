"""Stable error codes that the broker adds to those of `market.errors`, and the HTTP status of each."""

from __future__ import annotations

from market.errors import GputideError, InvalidRequest, Refused


class NotAuthenticated(GputideError):
    """A valid token is needed: gputide login."""

    code = "not_authenticated"


class Forbidden(GputideError):
    """Your role or this token's scopes do not allow that."""

    code = "forbidden"


class NotFound(GputideError):
    """There is nothing by that name that you may see."""

    code = "not_found"


class QuoteExpired(GputideError):
    """The quote has expired; a fresh one is in this answer."""

    code = "quote_expired"
    quote: dict[str, object] | None = None


class QuoteUsed(Refused):
    """This quote has been booked already."""

    code = "quote_used"


class BackOutNotFree(Refused):
    """Cancelling is no longer free; give it back to accept what that costs."""

    code = "back_out_not_free"
    back_out: dict[str, object] | None = None


class IdempotencyMissing(InvalidRequest):
    """This request moves money or capacity, so it needs an Idempotency-Key header."""

    code = "idempotency_key_missing"


class IdempotencyConflict(Refused):
    """This Idempotency-Key was used with another request."""

    code = "idempotency_key_reused"


class AlreadyExists(Refused):
    """There is one by that name already."""

    code = "already_exists"


class VersionMismatch(GputideError):
    """Client and broker speak different versions of the API."""

    code = "version_mismatch"


class NotReady(GputideError):
    """The broker has nothing to sell yet: load a pool and put a tariff in force."""

    code = "not_ready"


class Contention(GputideError):
    """The database was too busy; the request changed nothing and can be sent again."""

    code = "contention"


STATUS: dict[type[GputideError], int] = {
    NotAuthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Refused: 409,
    QuoteExpired: 410,
    InvalidRequest: 422,
    VersionMismatch: 400,
    NotReady: 503,
    Contention: 503,
}


def status_of(error: GputideError) -> int:
    """The HTTP status of an error: that of its nearest class in `STATUS`, else 500."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
