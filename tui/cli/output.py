"""stdout is data, stderr is words. What others wrote cannot move the cursor, and a closed pipe ends quietly."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

_PIPE_CLOSED = 141
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def prepare() -> None:
    """A terminal that cannot show a block character gets a `?` instead of a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def emit(lines: Iterable[str], *, header: bool = False) -> None:
    """Writes lines of data to stdout, the first one bold where it is a table's header and colour is wanted."""
    shown = [printable(line) for line in lines]
    if header and shown and _styled(sys.stdout):
        shown[0] = f"{_BOLD}{shown[0]}{_PLAIN}"
    _write(sys.stdout, "".join(f"{line}\n" for line in shown))


def emit_json(message: BaseModel) -> None:
    """Writes a message of the API to stdout as JSON."""
    _write(sys.stdout, message.model_dump_json(indent=2) + "\n")


def emit_value(value: dict[str, str | bool | None]) -> None:
    """Writes plain values to stdout as JSON."""
    import json

    _write(sys.stdout, json.dumps(value, indent=2) + "\n")


def say(*lines: str) -> None:
    """Writes words for a person to stderr."""
    _write(sys.stderr, "".join(f"{printable(line)}\n" for line in lines))


def ask(question: str) -> bool:
    """Asks on stderr; no answer is a no."""
    _write(sys.stderr, f"{printable(question)} [y/N] ")
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""  # ctrl-C is a no, too
    if not (answer and sys.stdin.isatty()):
        say("")  # nobody typed the line's end
    return answer.strip().lower() in ("y", "yes")


def width() -> int:
    """Columns of the terminal, 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def table_width() -> int | None:
    """What a table has to fit in: the terminal's columns, or nothing where a program reads it."""
    return width() if sys.stdout.isatty() else None


def printable(text: str) -> str:
    """Text whose control characters are shown instead of obeyed."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)


def _styled(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # or the interpreter complains when it flushes at its end
        raise typer.Exit(_PIPE_CLOSED) from None
