"""Login and settings: the token comes from a prompt or a pipe, is tried before it is saved, and is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.client.credentials import credentials_file, data_dir, load_saved
from tests.broker.client import samples
from tests.broker.client.samples import TOKEN
from tests.tui.cli.conftest import Cli, FakeBroker
from tui.cli.exits import ExitCode


def test_a_login_is_tried_and_saved(broker: FakeBroker, cli: Cli) -> None:
    ran = cli("login", "--url", f"{broker.url}/", "--token-stdin", typed=f"{TOKEN}\n")
    assert ran.code == ExitCode.OK
    assert "as anna, member of campus" in ran.err
    assert (load_saved().url, load_saved().token) == (broker.url, TOKEN)
    assert TOKEN not in ran.out + ran.err
    assert broker.asked[-1].headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_refused_login_saves_nothing(broker: FakeBroker, cli: Cli) -> None:
    broker.answer("GET /v1/me", samples.problem("not_authenticated", 401, "a valid token is needed"))
    ran = cli("login", "--url", broker.url, "--token-stdin", typed=f"{TOKEN}\n")
    assert ran.code == ExitCode.NOT_LOGGED_IN
    assert not credentials_file().exists()
    assert TOKEN not in ran.out + ran.err


@pytest.mark.parametrize(
    ("url", "arguments", "code"),
    [
        ("http://gpu.example.org", ["--token-stdin"], ExitCode.USAGE),
        ("https://gpu.example.org", [], ExitCode.USAGE),
        ("https://gpu.example.org", ["--token", TOKEN], ExitCode.USAGE),
    ],
)
def test_an_unsafe_way_to_log_in_is_refused_before_the_token_is_read(
    cli: Cli, url: str, arguments: list[str], code: ExitCode
) -> None:
    assert cli("login", "--url", url, *arguments, typed=f"{TOKEN}\n").code == code


def test_a_prompt_hides_the_token(broker: FakeBroker, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.cli.account.has_terminal", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: TOKEN)
    assert cli("login", "--url", broker.url).code == ExitCode.OK
    assert load_saved().token == TOKEN


def test_an_empty_token_is_no_login(broker: FakeBroker, cli: Cli) -> None:
    assert cli("login", "--url", broker.url, "--token-stdin").code == ExitCode.NOT_LOGGED_IN


def test_before_a_login_every_command_says_how_to_begin(cli: Cli) -> None:
    ran = cli("offers")
    assert ran.code == ExitCode.NOT_LOGGED_IN
    assert "gputide up" in ran.err
    assert "gputide login" in ran.err


@pytest.mark.parametrize("arguments", [["config"], ["config", "show"], ["config", "show", "--json"]])
def test_config_never_shows_the_token(logged_in: FakeBroker, cli: Cli, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.code == ExitCode.OK
    assert logged_in.url in ran.out
    assert TOKEN not in ran.out + ran.err


def test_config_json_says_that_there_is_a_token(logged_in: FakeBroker, cli: Cli) -> None:
    shown = json.loads(cli("config", "show", "--json").out)
    assert shown == {"url": logged_in.url, "zone": None, "cost_center": None, "ca_bundle": None, "token": True}


def test_config_says_that_the_environment_wins(
    logged_in: FakeBroker, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTIDE_TOKEN", "other-token")
    ran = cli("config")
    assert "GPUTIDE_TOKEN is set in this shell and wins" in ran.err
    assert "other-token" not in ran.out + ran.err


def test_config_path_prints_the_places(cli: Cli, home: Path) -> None:
    assert cli("config", "path").out.splitlines() == [str(credentials_file()), str(data_dir())]
    assert str(credentials_file()).startswith(str(home))


def test_config_set_changes_and_removes(cli: Cli) -> None:
    assert cli("config", "set", "zone", "Asia/Tokyo").code == ExitCode.OK
    assert load_saved().zone == "Asia/Tokyo"
    assert "not set" in cli("config", "set", "zone", "").err
    assert load_saved().zone is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("zones", "UTC", "nearest is zone"),
        ("zone", "Berlin", "Europe/Berlin"),
        ("url", "http://a.example.org", "https://"),
    ],
)
def test_config_set_refuses_what_cannot_be(cli: Cli, key: str, value: str, said: str) -> None:
    ran = cli("config", "set", key, value)
    assert ran.code == ExitCode.USAGE
    assert said in ran.err
    assert not credentials_file().exists()


def test_a_new_url_forgets_the_token_and_says_so(logged_in: FakeBroker, cli: Cli) -> None:
    assert "is forgotten" in cli("config", "set", "url", "https://gpu.example.org").err
    assert load_saved().token is None
