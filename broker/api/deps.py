"""What routes are given: the context, who asks, and the key that makes a repeated request harmless."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Header, Path, Request, Response
from sqlmodel import Session

from broker.api.problems import MEDIA_TYPE, problem_of
from broker.context import Context, Principal
from broker.services.tokens import authenticate
from broker.store import answers
from broker.store.answers import Stored, Ticket
from broker.store.database import Duplicate
from broker.wire.errors import IdempotencyConflict, IdempotencyMissing, NotAuthenticated
from broker.wire.people import Scope
from broker.wire.versions import IDEMPOTENCY_HEADER
from market.errors import GputideError, Refused

MAX_KEY = 200


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def principal_of(request: Request, authorization: Annotated[str | None, Header()] = None) -> Principal:
    """The bearer of the token; a GET needs the scope `read`."""
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not secret:
        raise NotAuthenticated
    principal = authenticate(context_of(request), secret.strip())
    principal.need_scope(Scope.READ)
    return principal


def buyer_of(principal: Annotated[Principal, Depends(principal_of)]) -> Principal:
    principal.need_scope(Scope.BOOK)
    return principal


ContextDep = Annotated[Context, Depends(context_of)]
PrincipalDep = Annotated[Principal, Depends(principal_of)]
BuyerDep = Annotated[Principal, Depends(buyer_of)]
NamePath = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9@._+-]+$")]


def ticket_of(
    request: Request, principal: PrincipalDep, key: Annotated[str | None, Header(alias=IDEMPOTENCY_HEADER)] = None
) -> Callable[[object], Ticket]:
    """Makes the ticket of a request from its body (`IdempotencyMissing` without a usable key)."""
    if not key or not key.strip() or len(key) > MAX_KEY or not key.isprintable() or not key.isascii():
        raise IdempotencyMissing(f"send {IDEMPOTENCY_HEADER}: a fresh text of 1 to {MAX_KEY} printable characters")

    def ticket(body: object) -> Ticket:
        asked = json.dumps([request.method, request.url.path, body], sort_keys=True)
        return Ticket(principal.id, key, hashlib.sha256(asked.encode()).hexdigest())

    return ticket


TicketDep = Annotated[Callable[[object], Ticket], Depends(ticket_of)]


def answer_once(
    request: Request,
    ticket: Ticket,
    run: Callable[[Ticket], Stored],
    enrich: Callable[[GputideError], GputideError] | None = None,
) -> Response:
    """Runs a keyed request. A refusal is an answer too: the same key gets the same one again."""
    context = context_of(request)
    try:
        return _respond(run(ticket))
    except IdempotencyConflict:
        raise
    except GputideError as error:
        problem = problem_of(enrich(error) if enrich else error, request)
        if not isinstance(error, Refused) and problem.status != 410:
            raise
        return _respond(
            _keep_refusal(context, ticket, Stored(problem.status, problem.model_dump(mode="json", exclude_none=True)))
        )


def _keep_refusal(context: Context, ticket: Ticket, refusal: Stored) -> Stored:
    now = context.now()

    def unit(session: Session) -> Stored:
        answered = answers.find(session, ticket, now)
        if answered is None:
            answers.keep(session, ticket, refusal, now)
        return answered or refusal

    try:
        return context.database.write(unit)
    except Duplicate:
        with context.database.read() as session:
            return answers.find(session, ticket, now) or refusal


def _respond(stored: Stored) -> Response:
    """The first answer and a repeated one are the same bytes: keys are sorted as the store keeps them."""
    media = MEDIA_TYPE if stored.status >= 400 else "application/json"
    text = json.dumps(stored.body, sort_keys=True, separators=(",", ":"))
    return Response(text, status_code=stored.status, media_type=media)
