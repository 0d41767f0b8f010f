"""The composition root, the only file that names concrete adapters: `build` makes parts, `create_app` the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.concurrency import run_in_threadpool

from broker.api import bookings, cost_centers, events, market, people, problems, tokens
from broker.api.limits import MAX_BODY, BodyLimit
from broker.api.news import News
from broker.cache import MarketCache
from broker.clock import FileClock, SystemClock
from broker.context import Context
from broker.failpoints import kill_at, never
from broker.ids import Kind, new_id
from broker.loops.keeper import Keeper
from broker.settings import Settings
from broker.store.database import Database
from broker.telemetry import Metrics
from broker.version import VERSION
from broker.wire.errors import NotReady, VersionMismatch
from broker.wire.versions import API_PREFIX, API_VERSION, REQUEST_ID_HEADER, VERSION_HEADER, speaks

Next = Callable[[Request], Awaitable[Response]]
STALE = timedelta(hours=2)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def build(settings: Settings) -> Context:
    """The parts of a broker, without server and loops; commands of `gputide-broker` use it too."""
    trip = kill_at(settings.failpoint) if settings.failpoint else never
    database = Database(settings.database, trip)
    clock = FileClock(settings.clock) if settings.clock else SystemClock()
    return Context(
        database=database, cache=MarketCache(database), clock=clock, zone_name=settings.organisation_zone or "UTC"
    )


def create_app(context: Context, *, loops: bool = True) -> FastAPI:
    """The application. With `loops`, the keeper runs as long as the application does."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        news, loop = News(), asyncio.get_running_loop()
        app.state.news = news
        keeper = Keeper(context, metrics, lambda: asyncio.run_coroutine_threadsafe(news.publish(), loop) and None)
        app.state.context = replace(context, wake=keeper.wake)
        if loops:
            await run_in_threadpool(keeper.turn)
            keeper.start()
        yield
        await news.close()
        if loops:
            await run_in_threadpool(keeper.stop)

    # A redirect names the scheme that the broker speaks, which behind a proxy is not the one that the client should.
    app = FastAPI(
        title="gputide",
        version=API_VERSION,
        lifespan=lifespan,
        openapi_url=f"{API_PREFIX}/openapi.json",
        redirect_slashes=False,
    )
    app.state.context, app.state.metrics = context, metrics
    problems.install(app)
    app.add_middleware(BodyLimit)  # within the other, whose task group would wrap what it raises
    app.middleware("http")(_each_request)
    _add_operations(app, metrics)
    api = APIRouter(prefix=API_PREFIX, responses=problems.DECLARED)
    for room in (market, bookings, people, tokens, cost_centers, events):
        api.include_router(room.router)
    app.include_router(api)
    return app


async def _each_request(request: Request, call_next: Next) -> Response:
    """Gives each request an id, checks the client's version and the body's size, and counts."""
    request.state.request_id = new_id(Kind.REQUEST)
    started = time.perf_counter()
    try:
        response = await _checked(request, call_next)
    except Exception as error:  # noqa: BLE001 - a fault is answered, logged and counted like any other answer
        response = problems.fault(request, error)
    response.headers[REQUEST_ID_HEADER] = request.state.request_id
    response.headers[VERSION_HEADER] = API_VERSION
    route = getattr(request.scope.get("route"), "path", "none")
    metrics: Metrics = request.app.state.metrics
    method = request.method if request.method in METHODS else "other"  # a label must not be what anybody may write
    metrics.requests.labels(method, route, response.status_code).inc()
    metrics.seconds.labels(method, route).observe(time.perf_counter() - started)
    return response


async def _checked(request: Request, call_next: Next) -> Response:
    client = request.headers.get(VERSION_HEADER)
    if client is not None and not speaks(client):
        detail = f"this broker speaks {API_VERSION}, the client {client[:20]!r}; upgrade the older one"
        return problems.respond(problems.problem_of(VersionMismatch(detail), request))
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length[:20]) > MAX_BODY:
        return problems.respond(problems.too_large(request))
    return await call_next(request)


def _add_operations(app: FastAPI, metrics: Metrics) -> None:
    @app.get("/healthz", tags=["operations"], responses=problems.DECLARED)
    def healthz(request: Request) -> dict[str, str]:
        """Whether the broker can sell: 200 with its version, else 503 with what is missing."""
        context: Context = request.app.state.context
        context.database.assert_answers()
        with context.market() as (now, market):
            if now - market.curves.book.computed_at > STALE:
                raise NotReady("no price book was published for two hours; see the log of the broker")
            return {"status": "ok", "version": VERSION}

    @app.get("/metrics", tags=["operations"], include_in_schema=False)
    def metrics_page() -> Response:
        """Prometheus metrics; they name no person."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    del healthz, metrics_page
