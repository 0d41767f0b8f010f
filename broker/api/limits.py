"""How much a request may send: counted as it comes, since a chunked one does not say its length."""

from __future__ import annotations

from fastapi import HTTPException  # FastAPI's own: it makes a 400 of any other while it reads a body
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1_000_000
TOO_LARGE = f"a request body has at most {MAX_BODY:,} bytes"


class BodyLimit:
    """Ends the reading of a body that is too large; whoever reads it gets the exception, and no more of the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BODY:
                raise HTTPException(413, TOO_LARGE)
            return message

        await self._app(scope, counted if scope["type"] == "http" else receive, send)
