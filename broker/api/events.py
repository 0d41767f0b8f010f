"""Events as server-sent events: numbered after commit, resumed by the last number seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from broker.api.deps import ContextDep, PrincipalDep
from broker.api.news import News
from broker.api.pages import number_of
from broker.context import Context, Principal
from broker.store import events, people
from broker.wire.market import EventView

router = APIRouter(tags=["events"])
LOOK_EVERY_S = 15.0
"""How long a reader waits for news before it looks for itself (another process may have committed)."""


@router.get("/events", response_class=EventSourceResponse)
async def stream(
    request: Request,
    context: ContextDep,
    principal: PrincipalDep,
    last_event_id: Annotated[str | None, Header()] = None,
    after: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    follow: bool = True,
) -> EventSourceResponse:
    """What happens from now on, or from after a number (header `Last-Event-ID` or `after`). Each comes once, in order;
    one's own and public ones, or all for roles that see everybody. `follow=false` ends with what there is."""
    start = number_of(last_event_id) if last_event_id else after
    last = await run_in_threadpool(_last, context)
    start = last if start is None else min(start, last)  # a number from before a backup was restored is no news
    return EventSourceResponse(_follow(request, context, principal, start, follow=follow), ping=LOOK_EVERY_S)


async def _follow(
    request: Request, context: Context, principal: Principal, seq: int, *, follow: bool
) -> AsyncIterator[ServerSentEvent]:
    news: News = request.app.state.news
    yield ServerSentEvent(id=str(seq))  # a cut before the first event resumes from here, too
    while True:
        edition = news.edition
        found = await run_in_threadpool(_after, context, principal, seq)
        for view in found or ():
            seq = view.seq
            yield ServerSentEvent(view.model_dump_json(), event=view.kind, id=str(view.seq))
        if found:
            continue
        if found is None or news.closed or not follow:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(news.beyond(edition), LOOK_EVERY_S)


def _last(context: Context) -> int:
    with context.database.read() as session:
        return events.last_number(session)


def _after(context: Context, principal: Principal, seq: int) -> list[EventView] | None:
    """The next events that this token may see now; None once it has expired or was revoked."""
    with context.database.read() as session:
        alive = people.by_token_digest(session, principal.token.digest, context.now())
        if alive is None:
            return None
        person_id = None if Principal(*alive).sees_everybody else principal.id
        rows = events.after(session, seq, person_id=person_id)
    return [EventView(seq=row.seq or 0, kind=row.kind, at=row.at, subject=row.subject, data=row.data) for row in rows]
