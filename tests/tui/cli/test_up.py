"""A broker of one's own: started as a process, logged in to, and stopped with the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from broker.client.credentials import Credentials, credentials_file, load_saved, save
from broker.client.http import Health
from tests.broker.client.samples import TOKEN
from tests.tui.cli.conftest import Cli, FakeBroker
from tui.cli import up
from tui.cli.exits import ExitCode

READY = {
    "url": "http://127.0.0.1:8470",
    "token": TOKEN,
    "pool": "campus",
    "devices": 48,
    "simulated": True,
    "pid": 1,
}


def broker_that(does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "broker_command", lambda *_: [sys.executable, "-c", does])


def test_it_says_what_runs_and_what_to_type_next_and_logs_in(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    broker_that(f"print({json.dumps(READY)!r})", monkeypatch)
    ran = cli("up")
    assert "sample pool campus, 48 devices, SIMULATED: nothing here is a real GPU" in ran.err
    assert "gputide offers" in ran.err
    assert (load_saved().url, load_saved().token) == (READY["url"], TOKEN)
    assert TOKEN not in ran.out + ran.err
    assert "The broker stopped by itself" in ran.err
    assert ran.code == ExitCode.BROKER_FAILED


def test_a_broker_that_does_not_start_shows_the_end_of_its_log(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    broker_that("import sys; sys.exit('the port is taken')", monkeypatch)
    ran = cli("up")
    assert ran.code == ExitCode.BROKER_FAILED
    assert "The broker did not start" in ran.err
    assert "the port is taken" in ran.err
    assert not credentials_file().exists()


def test_one_that_answers_already_is_enough(logged_in: FakeBroker, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    logged_in.answer("GET /healthz", Health(status="ok", version="0.1.0"))
    broker_that("raise SystemExit(9)", monkeypatch)
    ran = cli("up")
    assert ran.code == ExitCode.OK
    assert f"A broker answers at {logged_in.url} already" in ran.err


def test_a_login_elsewhere_is_not_replaced_unasked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Credentials(url="https://gpu.invalid", token=TOKEN)
    save(elsewhere)
    broker_that("raise SystemExit(9)", monkeypatch)
    assert cli("up", typed="n\n").code == ExitCode.DECLINED
    assert load_saved() == elsewhere


def test_the_broker_is_another_program_with_its_own_folder(tmp_path: Path) -> None:
    command = up.broker_command(tmp_path, 0, "campus")
    where = ["--data-dir", str(tmp_path), "--port", "0"]
    assert command[1:] == ["-P", "-m", "broker", "up", "--attached", *where, "--pool", "campus"]


def read_until(words: str, stream: IO[str] | None) -> str:
    assert stream is not None
    said = ""
    while words not in said:
        line = stream.readline()
        assert line, said
        said += line
    return said


@contextmanager
def upped(hangup: str = "SIG_DFL") -> Generator[tuple[subprocess.Popen[str], int]]:
    """The command as a process of its own, and the process id of its broker, which does nothing but wait."""
    child = (
        "import json, os, signal; "
        f"print(json.dumps({{**json.loads({json.dumps(READY)!r}), 'pool': str(os.getpid())}}), flush=True); "
        "signal.pause()"
    )
    parent = (
        f"import signal, sys; from tui.cli import run, up; signal.signal(signal.SIGHUP, signal.{hangup}); "
        f"up.broker_command = lambda *_: [sys.executable, '-c', {child!r}]; sys.exit(run(['up']))"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stderr=subprocess.PIPE, text=True) as process:
        try:
            said = read_until("Ctrl-C stops it", process.stderr)
            yield process, int(said.partition("sample pool ")[2].partition(",")[0])
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_stops_the_broker_and_leaves_nothing_running(number: signal.Signals) -> None:
    with upped() as (process, broker_pid):
        process.send_signal(number)
        assert "nothing is left running" in read_until("left running", process.stderr)
        assert process.wait() == ExitCode.INTERRUPTED
        with pytest.raises(ProcessLookupError):
            os.kill(broker_pid, 0)


def test_under_nohup_it_outlives_its_terminal() -> None:
    with upped("SIG_IGN") as (process, broker_pid):
        process.send_signal(signal.SIGHUP)
        os.kill(broker_pid, signal.SIGKILL)
        read_until("The broker stopped by itself", process.stderr)
        assert process.wait() == ExitCode.BROKER_FAILED
