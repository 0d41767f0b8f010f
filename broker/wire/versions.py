"""Versions of the protocol. A client sends its own; a broker that cannot serve it says `version_mismatch`."""

from __future__ import annotations

API_PREFIX = "/v1"
API_VERSION = "1.0"
VERSION_HEADER = "Gputide-Version"
REQUEST_ID_HEADER = "Gputide-Request-Id"
IDEMPOTENCY_HEADER = "Idempotency-Key"


def speaks(version: str) -> bool:
    """Whether a peer of that version is understood: the same major version is."""
    return version.partition(".")[0] == API_VERSION.partition(".")[0]
