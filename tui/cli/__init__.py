"""The command line: one file a group of verbs, each a thin face of `broker.client`.

Start-up is a feature: this package loads typer and `market`'s plain values; a command loads the client when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tui.cli import account, booking, browse, exits, output, up

app = typer.Typer(
    name="gputide",
    help="Book GPUs of your organisation: say what you need, see what it costs now and tonight, and why.",
    epilog="Start a broker of your own with simulated GPUs: gputide up. Join one that runs: gputide login --url URL.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    # An option that has a value already is not coerced, and typer loads pydantic to coerce even a --help not given.
    context_settings={"help_option_names": ["-h", "--help"], "default_map": {"help": False}},
)
for group in (browse.app, booking.app, account.app, up.app):
    app.add_typer(group)


def main() -> None:
    """The entry point of `gputide`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; its exit code is one of `exits.ExitCode`, and nothing but ctrl-C twice escapes."""
    output.prepare()
    try:
        app(list(arguments), prog_name="gputide")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else exits.ExitCode.OK
    except KeyboardInterrupt:
        return exits.ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last line of defence: every error becomes words and a code
        return exits.report(error)
    return exits.ExitCode.OK


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.emit([f"gputide {version('gputide')}"])
        raise typer.Exit


@app.callback()
def _gputide(  # pyright: ignore[reportUnusedFunction]  typer calls it
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """What stands before every command."""
