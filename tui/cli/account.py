"""Which broker this is about and as whom: login and settings. A token is never an argument and never shown."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tui.cli import output
from tui.cli.browse import JsonOption

app = typer.Typer()
config = typer.Typer(help="Show and change url, zone, cost_center and ca_bundle.", rich_markup_mode=None)
app.add_typer(config, name="config")


@app.command()
def login(
    url: Annotated[str, typer.Option(help="The broker, as https://gputide.example.org.")],
    token_stdin: Annotated[bool, typer.Option("--token-stdin", help="Read the token from stdin; for scripts.")] = False,
    ca_bundle: Annotated[str | None, typer.Option(help="The CA that signed the broker's certificate.")] = None,
) -> None:
    """Log in to a broker: asks for a token, tries it, then saves it for you alone."""
    from pathlib import Path

    from broker.client.credentials import load_saved, save
    from broker.client.errors import NotLoggedIn
    from broker.client.http import Client

    bundle = str(Path(ca_bundle).expanduser().resolve()) if ca_bundle else None
    with Client(url):  # an unsafe URL is refused before a token is asked for
        token = _read_token(token_stdin)
    if not token:
        raise NotLoggedIn("no token was given, so nothing was saved")
    with Client(url, token, ca_bundle=bundle) as client:
        me = client.me()
        path = save(load_saved().at(client.url, token, bundle))
        output.say(f"Logged in to {client.url} as {me.name}, {me.role} of {me.organisation}. Saved in {path}.")
    _say_what_the_environment_overrides()


@config.callback(invoke_without_command=True)
def config_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show()


@config.command()
def show(json: JsonOption = False) -> None:
    """The settings in force. Whether there is a token is said, never the token."""
    from broker.client.credentials import SETTINGS, load
    from broker.client.tables import fact_lines

    in_force = load()
    values: dict[str, str | None] = {name: getattr(in_force, name) for name in SETTINGS}
    if json:
        output.emit_value({**values, "token": in_force.token is not None})
    else:
        facts = [*values.items(), ("token", "saved" if in_force.token else None)]
        output.emit(fact_lines([(name, value or "(not set)") for name, value in facts], output.width()))
        _say_what_the_environment_overrides()


@config.command()
def path() -> None:
    """Where the settings and the token are kept, and what your own broker keeps."""
    from broker.client.credentials import credentials_file, data_dir

    output.emit([str(credentials_file()), str(data_dir())])


@config.command("set")
def set_(
    key: Annotated[str, typer.Argument(help="url, zone, cost_center or ca_bundle.")],
    value: Annotated[str, typer.Argument(help='What it is from now on; "" removes it.')],
) -> None:
    """Change a setting. A new url forgets the token, which belongs to the old one."""
    from broker.client.credentials import load_saved, save

    before = load_saved()
    after = before.with_setting(key, value)
    save(after)
    output.say(f"{key} is now {getattr(after, key) or 'not set'}.")
    if before.token and not after.token:
        output.say("The token belonged to the broker before and is forgotten; log in: gputide login --url URL")


def _read_token(token_stdin: bool) -> str:
    if token_stdin:
        return sys.stdin.readline().strip()
    if not has_terminal():
        raise typer.BadParameter("there is no terminal to ask for the token; pipe it in", param_hint="--token-stdin")
    import getpass

    return getpass.getpass("Token (not shown): ").strip()


def has_terminal() -> bool:
    """Whether a person sits at stdin, so that they can be asked."""
    return sys.stdin.isatty()


def _say_what_the_environment_overrides() -> None:
    import os

    for name in ("GPUTIDE_URL", "GPUTIDE_TOKEN"):
        if os.environ.get(name):
            output.say(f"{name} is set in this shell and wins over what is saved.")
