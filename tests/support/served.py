"""A shop behind a real server, with loops: on a thread, on a free port of loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from broker.app import create_app
from broker.serving import Server
from tests.support.brokers import Shop


@contextmanager
def served(shop: Shop) -> Iterator[str]:
    """The address of a shop that is being served; the server has ended when the block is left."""
    listening, ready, app = socket.create_server(("127.0.0.1", 0)), threading.Event(), create_app(shop.context)
    server = Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5), app, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
