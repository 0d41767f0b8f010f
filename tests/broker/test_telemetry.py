"""Secrets are struck out of every line, whoever writes it and wherever in it they stand."""

from __future__ import annotations

import logging
from io import StringIO

import pytest
import structlog

from broker.ids import new_secret
from broker.telemetry import redact

TOKEN = new_secret()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (TOKEN, TOKEN),
        (f"token={TOKEN},", TOKEN),
        (f"https://broker/v1?token={TOKEN}", TOKEN),
        ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ("bearer  abcdefg", "abcdefg"),
        ("postgresql+psycopg://me:hunter2@db/gputide", "hunter2"),
        ("postgresql://me:hun@ter2@db/gputide", "ter2"),
        ("postgresql://:hunter2@db/gputide", "hunter2"),
        ("postgresql://db/gputide?user=me&password=hunter2&x=1", "hunter2"),
        ("host=db password=hunter2 dbname=gputide", "hunter2"),
    ],
)
def test_a_secret_is_struck_out(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert "***" in redact(text)


@pytest.mark.parametrize(
    "text", ["quote q_0123 expired", "https://broker.example/v1/offers", "gpt_", "ada@example.org", "a://b/c@d"]
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("value", [TOKEN, [TOKEN], {"token": TOKEN}, (1, TOKEN), ValueError(TOKEN), TOKEN.encode()])
def test_no_log_line_shows_a_token(logs: StringIO, value: object) -> None:
    structlog.get_logger().warning("said", thing=value, **{TOKEN: 1})
    logged = logs.getvalue()
    assert "said" in logged
    assert TOKEN not in logged


def test_no_traceback_shows_a_token(logs: StringIO) -> None:
    try:
        raise RuntimeError(f"at {TOKEN}")
    except RuntimeError as error:
        structlog.get_logger().error("fault", exc_info=error)
        logging.getLogger("uvicorn.error").exception("fault with %s", TOKEN)
    logged = logs.getvalue()
    assert logged.count("RuntimeError: at ") == 2
    assert TOKEN not in logged


def test_lines_of_libraries_are_struck_too(logs: StringIO) -> None:
    logging.getLogger("sqlalchemy").warning("cannot reach %s", "postgresql://me:hunter2@db/gputide")
    logged = logs.getvalue()
    assert "cannot reach" in logged
    assert "hunter2" not in logged
