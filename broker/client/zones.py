"""The time zone a person lives in, as far as their machine says it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

from market.errors import InvalidZone
from market.instants import zone_named

LOCALTIME = Path("/etc/localtime")


def personal_zone(
    configured: str | None, environ: Mapping[str, str] | None = None, localtime: Path = LOCALTIME
) -> ZoneInfo | None:
    """The zone that was configured, else the one TZ names, else the system's; None when none of them tells.

    `InvalidZone` only for a configured one: a machine's odd TZ is no fault of the person.
    """
    if configured:
        return zone_named(configured)
    told = (os.environ if environ is None else environ).get("TZ", "").removeprefix(":")
    link = Path(told) if told.startswith("/") else localtime
    return _zone(told) or _zone(_after_database(link))


def _after_database(link: Path) -> str:
    """`Europe/Berlin` of a link to `/usr/share/zoneinfo/Europe/Berlin`, or nothing."""
    try:
        return str(link.resolve()).rpartition("zoneinfo/")[2].removeprefix("posix/")
    except (OSError, RuntimeError):
        return ""


def _zone(name: str) -> ZoneInfo | None:
    if not name or name.startswith("/"):
        return None
    try:
        return zone_named("UTC" if name == "Etc/UTC" else name)
    except InvalidZone:
        return None
