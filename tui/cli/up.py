"""A broker of one's own on this machine, for as long as this command runs. It is a process of its own: the command
line imports none of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn, cast

import typer

from tui.cli import output
from tui.cli.exits import ExitCode

app = typer.Typer()

PORT = 8470
_STOP_SECONDS = 15
BESIDE = "To keep both, give this one a place of its own: GPUTIDE_CONFIG_DIR=... gputide up --data-dir ... --port ..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a broker says of itself in one line once it serves."""

    url: str
    token: str
    pool: str
    devices: int
    simulated: bool
    pid: int


@app.command()
def up(
    pool: Annotated[str | None, typer.Option(help="A sample pool by name, or a pool file.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"Where it listens: {PORT} if not said; 0 picks one.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where it keeps its bookings.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a saved login is replaced.")] = False,
) -> None:
    """Start a broker of your own, log in to it, and keep it running until ctrl-C."""
    from broker.client.credentials import data_dir as default_data_dir

    if _already_up(asked_otherwise=any(each is not None for each in (pool, port, data_dir))):
        return
    _may_replace_login(yes)
    _require_broker_parts()
    folder = (data_dir or default_data_dir() / "broker").expanduser().resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "broker.log"
    begins = log.stat().st_size if log.exists() else 0
    output.say("Starting a broker of your own ...")
    with _broker(broker_command(folder, PORT if port is None else port, pool), log) as process:
        assert process.stdout is not None
        ready = _parsed(process.stdout.readline())
        if ready is None:
            process.wait()
            _fail("The broker did not start.", log, begins)
        _welcome(ready, log)
        for _ in process.stdout:  # until it ends; read on, or a full pipe would stop it
            pass
    _fail("The broker stopped by itself.", log, begins)


def broker_command(folder: Path, port: int, pool: str | None) -> list[str]:
    """The command line of the broker; -P keeps a `broker` folder where one happens to stand from being run instead."""
    chosen = ["--pool", pool] if pool else []
    where = ["--data-dir", str(folder), "--port", str(port)]
    return [sys.executable, "-P", "-m", "broker", "up", "--attached", *where, *chosen]


def _already_up(*, asked_otherwise: bool) -> bool:
    """Whether the broker that is known here answers, said to the person if so; one like another is not made of it."""
    from broker.client.credentials import load
    from broker.client.errors import ClientError
    from broker.client.http import Client

    known = load()
    if known.url is None:
        return False
    try:
        with Client(known.url, ca_bundle=known.ca_bundle, retry_waits=()) as client:
            version = client.health().version
    except ClientError:
        return False
    if asked_otherwise:
        output.say(f"Error: a broker answers at {known.url} already; stop it first.", BESIDE)
        raise typer.Exit(ExitCode.USAGE)
    output.say(f"A broker answers at {known.url} already (gputide {version}). Look around: gputide offers")
    return True


def _may_replace_login(yes: bool) -> None:
    """Ends the command when a saved login is to be kept."""
    from broker.client.credentials import load_saved

    saved = load_saved()
    if yes or saved.url is None or saved.token is None or saved.url.startswith("http:"):
        return  # plain http is this machine's own
    if output.ask(f"You are logged in to {saved.url}, which does not answer. Replace that login?"):
        return
    output.say("Nothing was started.", BESIDE)
    raise typer.Exit(ExitCode.DECLINED)


def _require_broker_parts() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("fastapi", "uvicorn", "sqlmodel", "numpy") if find_spec(name) is None]
    if missing:
        output.say(f"Error: the broker's parts are not installed ({', '.join(missing)})")
        output.say('Install them: pip install "gputide[broker]"')
        raise typer.Exit(ExitCode.FAULT)


@contextmanager
def _broker(command: list[str], log: Path) -> Generator[subprocess.Popen[str]]:
    """Runs a broker; however the block is left, it is stopped. It has a session of its own, so that ctrl-C comes here
    alone and it is asked to stop just once. Nothing is written to its stdin, whose end is that of this process."""
    with (
        log.open("ab") as errors,
        subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        ends = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
        ends = {each for each in ends if signal.getsignal(each) is not signal.SIG_IGN}  # nohup means it
        before = {each: signal.signal(each, _interrupt) for each in ends}
        try:
            yield process
        except KeyboardInterrupt:
            output.say("", "Stopping the broker ...")
            _stop(process)
            output.say("Stopped. Its bookings are kept; nothing is left running.")
            raise
        finally:
            _stop(process)
            for each, handler in before.items():
                signal.signal(each, handler)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()


def _parsed(line: str) -> Ready | None:
    try:
        said = json.loads(line)
        return Ready(**cast("dict[str, str | int | bool]", said))  # pyright: ignore[reportArgumentType]
    except (ValueError, TypeError):
        return None


def _welcome(ready: Ready, log: Path) -> None:
    from broker.client.credentials import load_saved, save
    from broker.client.phrasing import SIMULATED

    save(load_saved().at(ready.url, ready.token))
    kind, note = (f"sample pool {ready.pool}", f", {SIMULATED}") if ready.simulated else (f"pool {ready.pool}", "")
    output.say(
        f"Your broker runs at {ready.url}: {kind}, {ready.devices:,} devices{note}.",
        f"You are logged in to it. Its log: {log}",
        "",
        "Next, in another terminal:",
        "  gputide offers                                   what could be had now",
        "  gputide curve SKU                                what it costs over the hours",
        '  gputide quote --need "1 x A100 40GB" --for 4h    a plan with a price',
        "",
        "Ctrl-C stops it.",
    )
    if os.environ.get("GPUTIDE_URL") or os.environ.get("GPUTIDE_TOKEN"):
        output.say("GPUTIDE_URL or GPUTIDE_TOKEN is set in this shell and wins over this login.")


def _fail(what: str, log: Path, begins: int) -> NoReturn:
    """Ends with the last lines of the log that this run has written, which begin at a byte."""
    tail = log.read_bytes()[begins:].decode("utf-8", "replace").splitlines()[-8:]
    output.say(f"Error: {what} The end of its log ({log}):", *(f"  {line}" for line in tail))
    raise typer.Exit(ExitCode.BROKER_FAILED)
