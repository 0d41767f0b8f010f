"""`gputide` in this process against a small broker that answers what a test tells it."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import BaseModel

from broker.client.credentials import Credentials, save
from broker.wire.market import ProblemView
from tests.broker.client import samples
from tui.cli import run


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any] | None


@dataclass
class FakeBroker:
    """Answers `GET /v1/me` and the like in the order told for each; the last answer stays."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[BaseModel]] = field(default_factory=dict)

    def answer(self, call: str, *messages: BaseModel) -> None:
        self.answers[call] = list(messages)

    def reply(self, request: Asked) -> BaseModel:
        self.asked.append(request)
        told = self.answers.get(f"{request.method} {request.path}")
        if not told:
            return samples.problem("not_found", 404, f"nothing at {request.path}")
        return told.pop(0) if len(told) > 1 else told[0]

    def calls(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.asked]


def _handler(fake: FakeBroker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            target = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            body = json.loads(content) if content else None
            message = fake.reply(Asked(self.command, target.path, query, dict(self.headers), body))
            self.send_response(message.status if isinstance(message, ProblemView) else 200)
            payload = message.model_dump_json().encode()
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_POST = do_GET  # noqa: N815  http.server's own name

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    fake = FakeBroker(answers={"GET /v1/me": [samples.me()]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders, zone and present of the test's own, and nothing of the shell's."""
    for name in ("GPUTIDE_URL", "GPUTIDE_TOKEN", "GPUTIDE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPUTIDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("GPUTIDE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("tui.cli.session.now", lambda: samples.NOW)
    return tmp_path


@pytest.fixture
def logged_in(broker: FakeBroker, home: Path) -> FakeBroker:
    save(Credentials(url=broker.url, token=samples.TOKEN))
    return broker


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs one command line; `typed` is what comes from stdin, which is no terminal."""

    def gputide(*arguments: str, typed: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        code = run(arguments)
        shown = capsys.readouterr()
        return Ran(code, shown.out, shown.err)

    return gputide
