"""Clocks: the system's, one that a file moves, and one that a program moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from market.errors import InvalidInstant
from market.instants import require_utc


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock that stands until it is moved."""

    def __init__(self, instant: datetime) -> None:
        self._instant = require_utc(instant)

    def now(self) -> datetime:
        return self._instant

    def set(self, instant: datetime) -> None:
        self._instant = require_utc(instant)

    def move(self, by: timedelta) -> None:
        self._instant += by


class FileClock:
    """A clock shared through a file (`GPUTIDE_CLOCK`), so that broker, runner and tests see one movable time.

    The file holds an ISO instant, which stands, or an ISO instant and the word `running`, which goes on from the
    moment the file was written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> datetime:
        try:
            text, written = self._path.read_text("utf-8").split(), self._path.stat().st_mtime
            instant = require_utc(datetime.fromisoformat(text[0]))
        except (OSError, ValueError, IndexError) as error:
            raise InvalidInstant(f"clock file {self._path}: {error}") from error
        if text[1:] == ["running"]:
            try:
                return instant + (datetime.now(UTC) - datetime.fromtimestamp(written, tz=UTC))
            except OverflowError as error:
                raise InvalidInstant(f"clock file {self._path}: {error}") from error
        if text[1:]:
            raise InvalidInstant(f"clock file {self._path}: after the instant only the word 'running' may stand")
        return instant
