"""Serving: the checks before a broker listens, the socket, and the server's life."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from broker.app import build, create_app
from broker.context import Context
from broker.security import check_listening
from broker.services.organisation import at_home
from broker.settings import InvalidSettings, Settings
from broker.store import lock, migrations
from broker.wire.errors import NotReady

STOP_WITHIN_S = 5
LOCK_LOOK_S = 2.0


def serve_broker(
    settings: Settings,
    prepare: Callable[[Context], None] | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serves until SIGTERM or ctrl-C. `ready` gets the address once the broker answers there.

    Refuses plaintext beyond loopback, a second broker on the same database, and a schema that is not the newest; with
    `prepare` the schema is brought up to date instead, and `prepare` fills it, both under the lock of this broker.
    """
    check_listening(settings)
    signal.signal(signal.SIGTERM, _stop)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    context = build(settings)
    try:
        held = lock.take(context.database)
        try:
            if prepare:
                migrations.upgrade(context.database)
            migrations.assert_current(context.database)
            context = at_home(context, settings.organisation, settings.organisation_zone)
            if prepare:
                prepare(context)
            listening = _listen(settings)
            app = create_app(context)
            server = Server(_config(app, settings), app, lambda: ready and ready(_address(listening, settings)))
            with _watched(server, held):
                server.run([listening])
            if not server.started:
                raise NotReady("the broker could not start; the lines above say why")
            if not held.is_held():
                raise NotReady("the lock of the database was lost, so this broker has stopped; start it again")
        finally:
            held.give_back()
    finally:
        context.database.close()


@contextmanager
def _watched(server: uvicorn.Server, held: lock.Held) -> Generator[None]:
    """Ends the server when its lock is lost: another broker may serve this database from then on."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOCK_LOOK_S):
            if not held.is_held():
                server.should_exit = True
                return

    watcher = threading.Thread(target=watch, name="lock", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


class Server(uvicorn.Server):
    """Says when it answers, and tells those who follow events to go before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._app, self._ready = app, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.state.news.close()
        await super().shutdown(sockets)


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    """SIGTERM is how a broker is stopped, so it is no failure. The server takes it while it serves and hands it on
    when it is done."""
    raise SystemExit(0)


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level=settings.log_level,
        log_config=None,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP, since asyncio sets TCP_NODELAY only then: without it a small answer takes 40 ms (delayed acks).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listening.close()
        raise InvalidSettings(f"cannot listen on {settings.host} port {settings.port}: {error.strerror}") from None
    return listening


def _address(listening: socket.socket, settings: Settings) -> str:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_cert else 'http'}://{shown}:{port}"
