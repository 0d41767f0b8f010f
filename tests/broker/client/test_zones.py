"""A person's own zone, from whatever the machine tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.client.zones import personal_zone
from market.errors import InvalidZone


def key(configured: str | None, environ: dict[str, str], localtime: Path) -> str | None:
    zone = personal_zone(configured, environ, localtime)
    return zone and zone.key


@pytest.fixture
def berlin(tmp_path: Path) -> Path:
    """A link as systems have it at /etc/localtime."""
    target = tmp_path / "zoneinfo" / "Europe" / "Berlin"
    target.parent.mkdir(parents=True)
    target.touch()
    link = tmp_path / "localtime"
    link.symlink_to(target)
    return link


def test_what_is_configured_wins_over_tz_and_tz_over_the_system(berlin: Path) -> None:
    assert key("Asia/Tokyo", {"TZ": "America/New_York"}, berlin) == "Asia/Tokyo"
    assert key(None, {"TZ": "America/New_York"}, berlin) == "America/New_York"
    assert key(None, {"TZ": ":America/New_York"}, berlin) == "America/New_York"
    assert key(None, {}, berlin) == "Europe/Berlin"


def test_tz_may_be_a_path(berlin: Path, tmp_path: Path) -> None:
    assert key(None, {"TZ": f":{berlin}"}, tmp_path / "none") == "Europe/Berlin"


@pytest.mark.parametrize("odd", ["CET-1CEST,M3.5.0,M10.5.0/3", "Nowhere/City", "../../etc/passwd", "\0"])
def test_an_odd_tz_is_passed_over(odd: str, berlin: Path) -> None:
    assert key(None, {"TZ": odd}, berlin) == "Europe/Berlin"


def test_a_machine_that_tells_nothing_gives_none(tmp_path: Path) -> None:
    (tmp_path / "localtime").touch()
    assert key(None, {}, tmp_path / "localtime") is None
    assert key(None, {}, tmp_path / "none") is None


def test_utc_has_one_name() -> None:
    assert key(None, {"TZ": "Etc/UTC"}, Path("none")) == "UTC"


def test_a_configured_zone_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidZone):
        personal_zone("Berlin", {})
