"""What tests of the broker share beside a shop: the logs as a broker writes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO

import pytest
import structlog

from broker.telemetry import configure_logging


@pytest.fixture
def logs() -> Iterator[StringIO]:
    """Everything that a broker logs, on what it takes for stderr."""
    root, written = logging.getLogger(), StringIO()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    with redirect_stderr(written):
        configure_logging("debug")
    yield written
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
