"""Logs and metrics. Secrets are struck out of every log line in one place."""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECRET = re.compile(r"gpt_[A-Za-z0-9_-]{8,}|(?<=://)[^/\s]+(?=@)|(?i:(?<=password=))[^&\s]+|(?i:bearer\s+)\S+")


class Metrics:
    """The broker's Prometheus metrics, in a registry of its own so that two brokers in one process do not clash."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "gputide_http_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "gputide_http_request_seconds", "Time to answer", ["method", "route"], registry=self.registry
        )
        self.book_number = Gauge("gputide_price_book_number", "Latest price book", registry=self.registry)
        self.load = Gauge("gputide_load_ratio", "Load of a device model now", ["model"], registry=self.registry)
        self.faults = Counter("gputide_loop_faults", "Faults of background loops", ["loop"], registry=self.registry)


def redact(text: str) -> str:
    """The text without tokens and passwords."""
    return _SECRET.sub("***", text)


def configure_logging(level: str) -> None:
    """Key-value lines on stderr, redacted."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(_Redacting("%(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[lines], force=True)
    for chatty in ("httpx", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
            _redact_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def _redact_line(_logger: Any, _name: str, line: Any) -> str:
    return redact(str(line))


class _Redacting(logging.Formatter):
    """Lines of libraries, with what they say of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
