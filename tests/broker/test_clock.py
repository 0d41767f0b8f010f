"""Clocks: what they say is aware UTC, and a clock file that cannot be read is a refusal with its path."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import time_machine

from broker.clock import FileClock, ManualClock, SystemClock
from market.errors import GputideError, InvalidInstant, NaiveInstant

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def test_the_systems_clock_is_utc() -> None:
    with time_machine.travel(NOON, tick=False):
        assert SystemClock().now() == NOON
        assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_manual_clock_stands_until_it_is_moved() -> None:
    clock = ManualClock(datetime(2026, 12, 1, 13, tzinfo=timezone(timedelta(hours=1))))
    assert (clock.now(), clock.now().tzinfo) == (NOON, UTC)
    clock.move(timedelta(minutes=5))
    assert clock.now() == NOON + timedelta(minutes=5)
    clock.set(NOON)
    assert clock.now() == NOON


@pytest.mark.parametrize("make", [ManualClock, ManualClock(NOON).set])
def test_a_manual_clock_takes_no_naive_time(make: object) -> None:
    with pytest.raises(NaiveInstant):
        make(datetime(2026, 12, 1, 12))  # pyright: ignore[reportCallIssue]  # noqa: DTZ001


@pytest.mark.parametrize("text", ["2026-12-01T12:00:00Z", "2026-12-01T13:00:00+01:00\n", "  2026-12-01T12:00Z  "])
def test_a_clock_file_stands(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clock"
    path.write_text(text)
    assert FileClock(path).now() == NOON


def test_a_clock_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    path.write_text("2026-12-01T12:00:00Z")
    clock = FileClock(path)
    assert clock.now() == NOON
    path.write_text("2026-12-01T12:00:01Z")
    assert clock.now() == NOON + timedelta(seconds=1)


def test_a_running_clock_file_goes_on_from_when_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    path.write_text("2026-12-01T12:00:00Z running")
    written = datetime(2030, 1, 1, tzinfo=UTC)
    os.utime(path, (written.timestamp(), written.timestamp()))
    with time_machine.travel(written + timedelta(seconds=90), tick=False):
        assert FileClock(path).now() == NOON + timedelta(seconds=90)


@pytest.mark.parametrize(
    "content",
    [b"", b"  \n", b"noon", b"2026-12-01", b"2026-12-01T12:00:00", b"2026-12-01T12:00:00Z walking", b"\xff\xfe",
     b"2026-12-01T12:00:00Z running on", b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59Z running"],
)  # fmt: skip
def test_a_clock_file_that_says_no_time(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "clock"
    path.write_bytes(content)
    os.utime(path, (0, 0))
    with pytest.raises(GputideError) as refused:
        FileClock(path).now()
    assert refused.value.code in ("invalid_instant", "naive_instant")


@pytest.mark.parametrize("name", ["none", "."])
def test_a_clock_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInstant, match="clock file"):
        FileClock(tmp_path / name).now()
