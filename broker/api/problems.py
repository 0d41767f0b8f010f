"""Errors as RFC 9457 problem+json: a stable code, what happened, and the nearest alternatives. Never a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from broker.api.limits import TOO_LARGE
from broker.context import Context
from broker.telemetry import redact
from broker.views import proposal_view
from broker.wire.errors import status_of
from broker.wire.market import ProblemView
from market.errors import GputideError, Refused

_HTTP_CODES = {400: "invalid_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
_MAX_WHERE = 100
_CODES_OF_TYPES = {"timezone_aware": "naive_instant"}
_log = structlog.get_logger()


def _declared(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": ProblemView.model_json_schema()}}}


MEDIA_TYPE = "application/problem+json"
DECLARED: dict[int | str, dict[str, Any]] = {
    "4XX": _declared("Refused; `code` says why, and nothing was changed."),
    "503": _declared("The broker cannot serve this now; nothing was changed."),
}
"""What every route may answer beside its own, for the OpenAPI document."""


def install(app: FastAPI) -> None:
    """Makes every error of an application a problem."""
    app.add_exception_handler(GputideError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)


def problem_of(error: GputideError, request: Request) -> ProblemView:
    """The problem that an error is; what it carries beside its text comes along."""
    alternatives = error.alternatives if isinstance(error, Refused) else ()
    quote: dict[str, Any] | None = getattr(error, "quote", None)
    back_out: dict[str, Any] | None = getattr(error, "back_out", None)
    return _problem(
        request,
        status=status_of(error),
        code=error.code,
        detail=redact(error.detail),
        currency=_currency(request) if alternatives else None,
        alternatives=[proposal_view(each).model_dump(mode="json") for each in alternatives],
        quote=quote,
        back_out=back_out,
    )


def respond(problem: ProblemView, headers: Mapping[str, str] | None = None) -> JSONResponse:
    body = problem.model_dump(mode="json", exclude_none=True)
    return JSONResponse(body, problem.status, headers, media_type=MEDIA_TYPE)


def _currency(request: Request) -> str:
    context: Context = request.app.state.context
    return context.cache.facts(context.now()).currency


def too_large(request: Request) -> ProblemView:
    return _problem(request, status=413, code="too_large", detail=TOO_LARGE)


def _problem(request: Request, *, status: int, code: str, detail: str, **more: Any) -> ProblemView:
    return ProblemView(
        type=f"urn:gputide:problem:{code}",
        title=code.replace("_", " "),
        status=status,
        detail=detail,
        code=code,
        request_id=str(getattr(request.state, "request_id", "")),
        **more,
    )


def _refused(request: Request, error: Exception) -> JSONResponse:
    refused = cast("GputideError", error)
    headers = {"WWW-Authenticate": "Bearer"} if status_of(refused) == 401 else None
    return respond(problem_of(refused, request), headers)


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    found = cast("Sequence[dict[str, Any]]", cast("RequestValidationError", error).errors())
    faults = [{"where": _where(each["loc"]), "what": redact(each["msg"])} for each in found[:20]]
    code = next((_CODES_OF_TYPES[each["type"]] for each in found if each["type"] in _CODES_OF_TYPES), "invalid_request")
    detail = "; ".join(f"{each['where']}: {each['what']}" for each in faults[:3])
    return respond(_problem(request, status=422, code=code, detail=redact(detail), errors=faults))


def _where(place: Sequence[object]) -> str:
    """Where a fault is. The name of an unknown field is whatever the client wrote, so it is cut and struck out."""
    return redact(".".join(str(part)[:_MAX_WHERE] for part in place))


async def _http(request: Request, error: Exception) -> JSONResponse:
    known = cast("HTTPException", error)
    code = _HTTP_CODES.get(known.status_code, "http_error")
    return respond(_problem(request, status=known.status_code, code=code, detail=str(known.detail)), known.headers)


def fault(request: Request, error: Exception) -> JSONResponse:
    """What nobody foresaw: logged whole, told in general."""
    _log.error("fault", path=request.url.path, request_id=request.state.request_id, exc_info=error)
    detail = (
        "the broker failed on its own account, and whether this was done is not known: "
        "send it again with the same Idempotency-Key. Quote the request id to its operator"
    )
    return respond(_problem(request, status=500, code="internal_error", detail=detail))
