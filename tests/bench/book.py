"""Quoting and booking through the API on the openb fleet (1,213 nodes, 6,212 devices) with 1,000 bookings standing.

Figures: `quote_p99_ms` and `book_p99_ms` are medians over rounds of each round's 99th percentile, one client after
the other over HTTP on loopback; `bookings_per_s.*` is what 8 clients get done at once on each database, their quotes
made before; `cli_start_ratio` is `gputide offers --help` against importing httpx and typer alone.
Baselines, from the same run: `healthz_p50_ms` (a request that reads one row and the board's age), `cli_base_s`.

Learnt: a book published after each booking, made of a board that was read anew, took `book_p99_ms` to 189; clients that
all chose the same place, and were refused by the database but for one, took `bookings_per_s.sqlite` to 22.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

import httpx

from broker.operator import personal_tariff, read_pool
from tests.support import postgres
from tests.support.brokers import open_shop

STANDING = 1000
CLIENTS = 8
NEEDS = ("1 x t4/full", "2 x v100m32/full", "1 x at least 24 GB", "1 x g2/half", "8 x v100m16/full", "1 x p100/quarter")
CLI = f"{sys.prefix}/bin/gputide"


def run(*, quick: bool) -> dict[str, Any]:
    """The figures and their baselines."""
    rounds, requests, standing = (1, 30, 50) if quick else (5, 200, STANDING)
    with tempfile.TemporaryDirectory() as folder:
        with _broker(f"sqlite:///{folder}/gputide.db") as client:
            _fill(client, standing)
            figures = _latencies(client, rounds, requests)
            per_s = {"sqlite": _throughput(client, requests)}
        server = postgres.start(Path(folder) / "postgres")
        with _broker(postgres.fresh_database(server)) as client:
            _fill(client, standing)
            per_s["postgres"] = _throughput(client, requests)
        server.cleanup()
    figures |= {f"bookings_per_s.{kind}": value for kind, value in per_s.items()}
    start, base = _start_times(3 if quick else 15)
    figures["cli_start_ratio"] = round(start / base, 3)
    baselines = {"healthz_p50_ms": figures.pop("healthz_p50_ms"), "cli_base_s": round(base, 3)}
    notes = f"{standing} bookings standing, {rounds} rounds of {requests} requests, {CLIENTS} clients, openb fleet"
    return {"figures": figures, "baselines": baselines, "notes": notes}


@contextmanager
def _broker(url: str) -> Iterator[httpx.Client]:
    """A client of a broker of the openb fleet that runs as a process of its own, as in use."""
    pool, forecast = read_pool("openb")
    shop = open_shop(url, pool, forecast=forecast, tariff=personal_tariff(pool), now=datetime.now(UTC))
    shop.context.database.close()
    port = _free_port()
    environment = {**os.environ, "GPUTIDE_DATABASE_URL": url, "GPUTIDE_LOG_LEVEL": "warning"}
    command = [sys.executable, "-m", "broker", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environment) as process:
        headers, limits = {"Authorization": f"Bearer {shop.secret}"}, httpx.Limits(max_connections=CLIENTS)
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, limits=limits
            ) as client:
                _wait_until_healthy(client, process)
                yield client
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def _wait_until_healthy(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with suppress(httpx.TransportError):
            if client.get("/healthz").status_code == 200:
                return
        time.sleep(0.05)
    raise RuntimeError("the broker did not start; the lines above say why")


def _quote(client: httpx.Client, need: str, number: int) -> str:
    """Windows are spread over a week, so that the standing bookings share the fleet as they would in use."""
    hours = number % 150
    start = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() + 3600 * (2 + hours)))
    asked = {"need": need, "seconds": 3600 * (1 + number % 6), "start": start}
    answer = client.post("/v1/quotes", json=asked)
    answer.raise_for_status()
    return answer.json()["id"]


def _quote_into(made: list[str], client: httpx.Client, need: str, number: int) -> None:
    made.append(_quote(client, need, number))


def _book(client: httpx.Client, quote_id: str) -> None:
    body, key = {"quote_id": quote_id}, {"Idempotency-Key": uuid4().hex}
    client.post("/v1/bookings", json=body, headers=key).raise_for_status()


def _fill(client: httpx.Client, standing: int) -> None:
    for number, need in zip(range(standing), cycle(NEEDS), strict=False):
        _book(client, _quote(client, need, number))


def _latencies(client: httpx.Client, rounds: int, requests: int) -> dict[str, float]:
    quotes: list[float] = []
    books: list[float] = []
    floors: list[float] = []
    for turn in range(rounds):
        made: list[str] = []
        asked = zip(range(turn * requests, (turn + 1) * requests), cycle(NEEDS), strict=False)
        quotes.append(_p99([_timed(partial(_quote_into, made, client, need, number)) for number, need in asked]))
        books.append(_p99([_timed(partial(_book, client, each)) for each in made]))
        floors.append(median(_timed(partial(client.get, "/healthz")) for _ in range(requests)))
    figures = {"quote_p99_ms": median(quotes), "book_p99_ms": median(books), "healthz_p50_ms": median(floors)}
    return {name: round(value * 1000, 1) for name, value in figures.items()}


def _throughput(client: httpx.Client, requests: int) -> float:
    made = [_quote(client, "1 x t4/full", number) for number in range(requests)]
    with ThreadPoolExecutor(CLIENTS) as clients:
        spent = _timed(lambda: list(clients.map(partial(_book, client), made)))
    return round(requests / spent, 1)


def _start_times(runs: int) -> tuple[float, float]:
    """Medians of paired runs, after one of each that warms the caches of the file system."""
    base, start = [sys.executable, "-c", "import httpx, typer"], [CLI, "offers", "--help"]
    pairs = [(_process(start), _process(base)) for _ in range(runs + 1)][1:]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def _process(command: list[str]) -> float:
    return _timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _p99(spent: list[float]) -> float:
    return quantiles(spent, n=100, method="inclusive")[98]
