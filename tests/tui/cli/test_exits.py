"""Every way to end has a code and words; a traceback is shown only when it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from broker.client.credentials import Credentials, credentials_file, save
from broker.client.http import Client
from tests.broker.client import samples
from tests.tui.cli.conftest import Cli, FakeBroker
from tui.cli.exits import ExitCode


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("not_authenticated", 401, ExitCode.NOT_LOGGED_IN),
        ("forbidden", 403, ExitCode.FORBIDDEN),
        ("not_found", 404, ExitCode.NOT_FOUND),
        ("no_capacity", 409, ExitCode.REFUSED),
        ("quote_expired", 410, ExitCode.REFUSED),
        ("invalid_need", 422, ExitCode.USAGE),
        ("version_mismatch", 400, ExitCode.BROKER_FAILED),
        ("internal_error", 500, ExitCode.BROKER_FAILED),
        ("contention", 503, ExitCode.BROKER_FAILED),
    ],
)
def test_a_problem_becomes_a_code_and_words(
    logged_in: FakeBroker, cli: Cli, code: str, status: int, exit_code: ExitCode
) -> None:
    logged_in.answer("GET /v1/offers", samples.problem(code, status, "what happened"))
    ran = cli("offers")
    assert (ran.code, ran.out) == (exit_code, "")
    assert "what happened" in ran.err
    assert f"Code {code}, request r_42" in ran.err


def test_a_broker_that_is_away_is_named_with_what_to_try(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "retry_waits", ())
    save(Credentials(url="http://127.0.0.1:9", token=samples.TOKEN))
    ran = cli("offers")
    assert ran.code == ExitCode.BROKER_AWAY
    assert "nothing answers at 127.0.0.1:9; start a broker of your own: gputide up" in ran.err


def test_credentials_open_to_others_are_refused(logged_in: FakeBroker, cli: Cli) -> None:
    credentials_file().chmod(0o644)
    ran = cli("offers")
    assert ran.code == ExitCode.NOT_LOGGED_IN
    assert f"chmod 600 {credentials_file()}" in ran.err
    assert logged_in.asked == []


def test_a_fault_of_our_own_shows_a_traceback_only_on_demand(
    logged_in: FakeBroker, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[str]:
        raise RuntimeError("a bug")

    monkeypatch.setattr("broker.client.listings.offer_lines", fail)
    logged_in.answer("GET /v1/offers", samples.offers())
    ran = cli("offers")
    assert ran.code == ExitCode.FAULT
    assert "RuntimeError: a bug" in ran.err
    assert "GPUTIDE_DEBUG=1" in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("GPUTIDE_DEBUG", "1")
    assert "Traceback" in cli("offers").err


def test_ctrl_c_ends_quietly(logged_in: FakeBroker, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("broker.client.listings.offer_lines", interrupt)
    logged_in.answer("GET /v1/offers", samples.offers())
    ran = cli("offers")
    assert (ran.code, ran.out) == (ExitCode.INTERRUPTED, "")
    assert "Traceback" not in ran.err


def test_a_closed_pipe_ends_quietly(logged_in: FakeBroker) -> None:
    logged_in.answer("GET /v1/pool", samples.pool())
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-m", "tui", "pool"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert ran.returncode == ExitCode.PIPE_CLOSED
    assert "Error" not in ran.stderr
    assert "Exception" not in ran.stderr


def test_an_unknown_command_names_the_nearest(cli: Cli) -> None:
    ran = cli("offer")
    assert ran.code == ExitCode.USAGE
    assert "offers" in ran.err


def test_the_version_is_data(cli: Cli) -> None:
    ran = cli("--version")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert ran.out.startswith("gputide 0.")
