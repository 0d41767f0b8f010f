"""Ids and secrets. An id says what it names; a secret is shown once and stored only as its sha256."""

from __future__ import annotations

import hashlib
import secrets
from enum import StrEnum

SECRET_PREFIX = "gpt_"  # noqa: S105 - what secrets begin with, none itself


class Kind(StrEnum):
    ORGANISATION = "org"
    PERSON = "p"
    TOKEN = "t"  # noqa: S105 - the prefix of ids of tokens
    COST_CENTER = "cc"
    QUOTE = "q"
    BOOKING = "b"
    REQUEST = "r"


def new_id(kind: Kind) -> str:
    """A fresh id such as `b_0123456789abcdef01234567`: 96 random bits."""
    return f"{kind}_{secrets.token_hex(12)}"


def new_secret() -> str:
    """A fresh token: 32 random bytes behind a prefix that scanners can find."""
    return SECRET_PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is stored of a secret: its sha256. The secret has 256 random bits, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()
