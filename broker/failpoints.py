"""Where the broker can be killed on purpose, to prove that a crash there loses and doubles nothing.

Every unit of work of a booking's life passes two failpoints, right before and right after its commit.
They are enumerated here, so that a test can walk all of them; one is armed by `GPUTIDE_FAILPOINT`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from enum import StrEnum


class Failpoint(StrEnum):
    QUOTE_BEFORE_COMMIT = "quote.before_commit"
    QUOTE_AFTER_COMMIT = "quote.after_commit"
    BOOK_BEFORE_COMMIT = "book.before_commit"
    BOOK_AFTER_COMMIT = "book.after_commit"
    CANCEL_BEFORE_COMMIT = "cancel.before_commit"
    CANCEL_AFTER_COMMIT = "cancel.after_commit"
    GIVE_BACK_BEFORE_COMMIT = "give_back.before_commit"
    GIVE_BACK_AFTER_COMMIT = "give_back.after_commit"
    EXPIRE_BEFORE_COMMIT = "expire.before_commit"
    EXPIRE_AFTER_COMMIT = "expire.after_commit"
    PUBLISH_BEFORE_COMMIT = "publish.before_commit"
    PUBLISH_AFTER_COMMIT = "publish.after_commit"


class Work(StrEnum):
    """The units of work that pass failpoints; each has its two."""

    QUOTE = "quote"
    BOOK = "book"
    CANCEL = "cancel"
    GIVE_BACK = "give_back"
    EXPIRE = "expire"
    PUBLISH = "publish"

    @property
    def before_commit(self) -> Failpoint:
        return Failpoint(f"{self}.before_commit")

    @property
    def after_commit(self) -> Failpoint:
        return Failpoint(f"{self}.after_commit")


Trip = Callable[[Failpoint], None]


def never(_passed: Failpoint) -> None:
    """The trip of a broker that is not under test."""


def kill_at(armed: Failpoint) -> Trip:
    """A trip that kills this process with SIGKILL when it passes the armed failpoint."""

    def trip(passed: Failpoint) -> None:
        if passed is armed:
            os.kill(os.getpid(), signal.SIGKILL)

    return trip
