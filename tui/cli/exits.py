"""The exit codes, and the one place where an error becomes a code and words: what, why, what next, an id to quote."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum
from typing import TYPE_CHECKING

from market.errors import GputideError, InvalidRequest
from tui.cli import output

if TYPE_CHECKING:
    from broker.wire.market import ProblemView


class ExitCode(IntEnum):
    """What `gputide` ends with; 2 is also what typer gives for a line that it cannot read."""

    OK = 0
    FAULT = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND = 4
    NOT_LOGGED_IN = 5
    FORBIDDEN = 6
    BROKER_AWAY = 7
    BROKER_FAILED = 8
    DECLINED = 9
    DEARER = 10
    INTERRUPTED = 130
    PIPE_CLOSED = 141


_BY_CODE = {
    "not_logged_in": ExitCode.NOT_LOGGED_IN,
    "unsafe_credentials": ExitCode.NOT_LOGGED_IN,
    "invalid_credentials": ExitCode.NOT_LOGGED_IN,
    "unsafe_url": ExitCode.USAGE,
    "unknown_setting": ExitCode.USAGE,
    "ambiguous_id": ExitCode.USAGE,
    "unknown_id": ExitCode.NOT_FOUND,
    "broker_away": ExitCode.BROKER_AWAY,
    "broker_garbled": ExitCode.BROKER_FAILED,
}
_BY_STATUS = {
    401: ExitCode.NOT_LOGGED_IN,
    403: ExitCode.FORBIDDEN,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.REFUSED,
    410: ExitCode.REFUSED,
    422: ExitCode.USAGE,
}
_NEXT_STEPS = {
    "not_authenticated": "Log in again: gputide login --url URL",
    "over_budget": "Ask the owner of the cost center to add to its budget, or name another: --cost-center NAME",
    "quote_used": "See what came of it: gputide bookings",
    "version_mismatch": "Bring this side to the broker's version: pip install --upgrade gputide",
    "contention": "Nothing was changed; run the same command again.",
}


def report(error: Exception) -> ExitCode:
    """Says an error on stderr and gives its exit code; a traceback only with GPUTIDE_DEBUG=1."""
    debug = os.environ.get("GPUTIDE_DEBUG") == "1"
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if (problem := _problem_of(error)) is not None:
        output.say(*_problem_lines(problem))
        return _BY_STATUS.get(problem.status, ExitCode.BROKER_FAILED)
    if isinstance(error, GputideError):
        output.say(f"Error: {error.detail}", f"Code {error.code}")
        return _BY_CODE.get(error.code, ExitCode.USAGE if isinstance(error, InvalidRequest) else ExitCode.FAULT)
    if (detail := _invalid_message(error)) is not None:
        output.say(f"Error: {detail}", "Code invalid_request")
        return ExitCode.USAGE
    output.say(f"Error: gputide met a fault of its own: {type(error).__name__}: {error}")
    if not debug:
        output.say("To see where, and to report it, run the same with GPUTIDE_DEBUG=1 before it.")
    return ExitCode.FAULT


def _problem_of(error: Exception) -> ProblemView | None:
    if "broker.client.errors" not in sys.modules:
        return None  # then no request was made
    from broker.client.errors import BrokerRefused

    return error.problem if isinstance(error, BrokerRefused) else None


def _problem_lines(problem: ProblemView) -> list[str]:
    next_step = _NEXT_STEPS.get(problem.code)
    return [
        f"{'Refused' if problem.status < 500 else 'Error'}: {problem.detail}",
        *_alternatives(problem),
        *([next_step] if next_step else []),
        f"Code {problem.code}, request {problem.request_id}",
    ]


def _alternatives(problem: ProblemView) -> list[str]:
    from pydantic import ValidationError

    from broker.client.views import alternative_lines
    from broker.wire.quotes import ProposalView
    from tui.cli.session import now, zone_without_broker

    try:
        nearest = [ProposalView.model_validate(each) for each in problem.alternatives]
    except ValidationError:
        return []  # those of a newer broker: the refusal itself still stands
    if not nearest:
        return []
    zone = zone_without_broker()
    return [
        f"The nearest that can be had (times in {zone.key}):",
        *alternative_lines(nearest, zone, now(), currency=problem.currency),
    ]


def _invalid_message(error: Exception) -> str | None:
    """What a wire model refused before anything was sent."""
    if "pydantic" not in sys.modules:
        return None
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return None
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the request'}: {first['msg'].removeprefix('Value error, ')}"
