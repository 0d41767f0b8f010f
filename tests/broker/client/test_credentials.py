"""The file with the token: for its owner alone, whole or not at all, and a token goes only where it was saved for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.client import credentials
from broker.client.credentials import Credentials
from broker.client.errors import InvalidCredentials, UnknownSetting, UnsafeCredentials, UnsafeUrl
from market.errors import InvalidZone
from tests.broker.client.samples import TOKEN

URL = "https://gpu.example.org"
SAVED = Credentials(url=URL, token=TOKEN, cost_center="physics")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"GPUTIDE_CONFIG_DIR": str(tmp_path / "new" / "config"), "GPUTIDE_DATA_DIR": str(tmp_path / "data")}


def test_nothing_is_known_before_a_login(environ: dict[str, str]) -> None:
    assert credentials.load(environ) == Credentials()


def test_what_is_saved_comes_back_and_is_the_owners_alone(environ: dict[str, str]) -> None:
    path = credentials.save(SAVED, environ)
    assert credentials.load(environ) == SAVED
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(path.read_text()) == {"url": URL, "token": TOKEN, "cost_center": "physics"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_file_open_to_others_is_refused_with_the_command_that_mends_it(environ: dict[str, str], mode: int) -> None:
    path = credentials.save(SAVED, environ)
    path.chmod(mode)
    with pytest.raises(UnsafeCredentials, match=f"run: chmod 600 {path}") as refused:
        credentials.load(environ)
    assert TOKEN not in str(refused.value)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = credentials.save(SAVED, environ)

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(credentials.os, "fsync", fail)
    with pytest.raises(InvalidCredentials, match="cannot be written: No space left on device"):
        credentials.save(Credentials(url="https://other.example.org"), environ)
    monkeypatch.undo()
    assert credentials.load(environ) == SAVED
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "unknown key"),
        ('{"tokem": "x"}', "unknown key 'tokem'"),
        ('{"url": 5}', "url is no text"),
    ],
)
def test_a_file_that_is_not_ours_is_named(environ: dict[str, str], text: str, message: str) -> None:
    path = credentials.save(SAVED, environ)
    path.write_text(text)
    with pytest.raises(InvalidCredentials, match=message):
        credentials.load(environ)


def test_the_environment_wins(environ: dict[str, str]) -> None:
    credentials.save(SAVED, environ)
    told = credentials.load({**environ, "GPUTIDE_URL": "https://b.example.org", "GPUTIDE_TOKEN": "t"})
    assert (told.url, told.token, told.cost_center) == ("https://b.example.org", "t", None)


def test_a_saved_token_does_not_follow_another_url(environ: dict[str, str]) -> None:
    credentials.save(SAVED, environ)
    assert credentials.load({**environ, "GPUTIDE_URL": "https://b.example.org"}).token is None
    assert credentials.load({**environ, "GPUTIDE_URL": f"{URL}/"}).token == TOKEN
    assert SAVED.with_setting("url", "https://b.example.org").token is None
    assert SAVED.with_setting("url", f"{URL}/") == SAVED


def test_settings_change_and_go(tmp_path: Path) -> None:
    assert SAVED.with_setting("zone", "Europe/Berlin").zone == "Europe/Berlin"
    assert SAVED.with_setting("cost_center", "").cost_center is None
    assert SAVED.with_setting("ca_bundle", "ca.pem").ca_bundle == str(Path("ca.pem").resolve())
    assert SAVED.with_setting("url", "") == Credentials(cost_center="physics")


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("cost-center", "x", UnknownSetting, "nearest is cost_center"),
        ("token", "x", UnknownSetting, "there is no setting 'token'"),
        ("zone", "Berlin", InvalidZone, "Europe/Berlin"),
        ("url", "http://gpu.example.org", UnsafeUrl, "use https://"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, value: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SAVED.with_setting(name, value)


def test_folders_are_those_of_the_system_unless_moved(environ: dict[str, str]) -> None:
    assert credentials.data_dir(environ) == Path(environ["GPUTIDE_DATA_DIR"])
    assert credentials.config_dir({}).name == "gputide"
