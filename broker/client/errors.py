"""What can go wrong between a face and its broker. No text here ever holds a token.

GputideError
└── ClientError
    ├── NotLoggedIn, UnsafeUrl, UnsafeCredentials, InvalidCredentials   this side is not set up
    ├── UnknownSetting, UnknownId, AmbiguousId                          what was typed names nothing, or too much
    ├── BrokerAway                                                      no answer came
    ├── BrokerGarbled                                                   the answer is not one of a broker's
    └── BrokerRefused                                                   the broker said no, and why
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from market.errors import GputideError

if TYPE_CHECKING:
    from broker.wire.market import ProblemView


class ClientError(GputideError):
    """The broker could not be asked."""

    code = "client_error"


class NotLoggedIn(ClientError):
    """No broker is known here yet. Start one of your own: gputide up; or log in to one: gputide login --url URL"""

    code = "not_logged_in"


class UnsafeUrl(ClientError):
    """A token may only travel over https, or over http to this machine itself."""

    code = "unsafe_url"


class UnsafeCredentials(ClientError):
    """The file with the token can be read by others."""

    code = "unsafe_credentials"


class InvalidCredentials(ClientError):
    """What is saved about the broker cannot be read."""

    code = "invalid_credentials"


class UnknownSetting(ClientError):
    """There is no such setting."""

    code = "unknown_setting"


class UnknownId(ClientError):
    """Nothing of yours has an id that starts so."""

    code = "unknown_id"


class AmbiguousId(ClientError):
    """More than one id starts so."""

    code = "ambiguous_id"


class BrokerAway(ClientError):
    """The broker does not answer."""

    code = "broker_away"


class BrokerGarbled(ClientError):
    """The answer is not one that this version of gputide understands."""

    code = "broker_garbled"


class BrokerRefused(ClientError):
    """The broker refused the request; `problem` says why, with its stable code and the id to quote."""

    code = "broker_refused"

    def __init__(self, problem: ProblemView) -> None:
        super().__init__(problem.detail)
        self.problem = problem
