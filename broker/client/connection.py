"""How a request leaves and an answer arrives: where a token may go, what is sent again, and what a refusal means.

A token leaves in a header only, and only over TLS or to this machine itself. A request is sent again only when the
connection broke before an answer came, and doing it twice is the same as once: it reads, or it has its own key.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import httpx
from pydantic import ValidationError

from broker.client.errors import BrokerAway, BrokerGarbled, BrokerRefused, InvalidCredentials, NotLoggedIn, UnsafeUrl
from broker.wire.market import ProblemView
from broker.wire.versions import API_VERSION, IDEMPOTENCY_HEADER, VERSION_HEADER

RETRY_WAITS = (0.1, 0.4, 1.2)
"""Seconds before each further try."""
TIMEOUT = httpx.Timeout(30, connect=10)
QUIET_SECONDS = 45.0
"""A stream that says nothing for so long, not even a ping, is taken for cut."""

_BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError)


class Connection:
    """One broker and one token. Every request raises `BrokerRefused`, `BrokerAway` or `BrokerGarbled`."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        ca_bundle: str | None,
        retry_waits: tuple[float, ...],
        transport: httpx.BaseTransport | None,
        sleep: Callable[[float], None],
    ) -> None:
        self.url = require_safe_url(url)
        self._authorization = {"Authorization": f"Bearer {_require_sendable(token)}"} if token else {}
        self._retry_waits = retry_waits
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=self.url,
            headers={VERSION_HEADER: API_VERSION},
            timeout=TIMEOUT,
            verify=_trust(self.url, ca_bundle),
            trust_env=not _is_loopback(self.url),  # no proxy has a way to this machine's own loopback
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: str | None = None,
        key: str | None = None,
        signed: bool = True,
    ) -> httpx.Response:
        """The successful answer to a request; `body` is JSON, `key` an Idempotency-Key."""
        headers = self._signature() if signed else {}
        headers |= {IDEMPOTENCY_HEADER: key} if key else {}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        waits = iter(self._retry_waits if method == "GET" or key else ())
        while True:
            try:
                response = self._http.request(method, path, params=query, headers=headers, content=body)
            except httpx.RequestError as error:
                wait = next(waits, None) if isinstance(error, _BROKEN) and not _distrusted(error) else None
                if wait is None:
                    raise BrokerAway(self._away(error)) from error
                self._sleep(wait)
            else:
                return response if response.is_success else self._refuse(response)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Generator[Iterator[bytes]]:
        """The bytes of a long answer; a cut while they are read is `BrokerAway`."""
        timeout = httpx.Timeout(TIMEOUT.connect, read=QUIET_SECONDS)
        try:
            with self._http.stream("GET", path, headers={**self._signature(), **headers}, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                    self._refuse(response)
                yield response.iter_bytes()
        except httpx.RequestError as error:
            raise BrokerAway(self._away(error)) from error

    def _signature(self) -> dict[str, str]:
        if not self._authorization:
            raise NotLoggedIn(f"no token for {self.url} is known here; log in: gputide login --url {self.url}")
        return dict(self._authorization)

    def _refuse(self, response: httpx.Response) -> NoReturn:
        try:
            problem = ProblemView.model_validate_json(response.content)
        except ValidationError:
            raise BrokerGarbled(
                f"{self.url} answered with HTTP {response.status_code} and no reason; is it a gputide broker?"
            ) from None
        raise BrokerRefused(problem)

    def _away(self, error: httpx.RequestError) -> str:
        host = httpx.URL(self.url).netloc.decode()
        if _distrusted(error):
            return f"{host} shows a certificate that this machine does not trust; name its CA with --ca-bundle FILE"
        if isinstance(error, httpx.TimeoutException):
            return f"{host} does not answer in time; try again, or ask who runs it"
        if _is_loopback(self.url):
            return f"nothing answers at {host}; start a broker of your own: gputide up"
        return f"{host} cannot be reached ({type(error).__name__}); check the network and the url: gputide config show"


def require_safe_url(url: str) -> str:
    """The URL of a broker; `UnsafeUrl` for plain http beyond this machine, and for a secret inside it."""
    try:
        parsed = httpx.URL(url.strip())
    except httpx.InvalidURL:
        raise UnsafeUrl("this is no URL; write one such as https://gputide.example.org") from None
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise UnsafeUrl("a broker's URL has no name, password, query or fragment; a token is asked for apart")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UnsafeUrl(f"{url[:80]!r} is no URL of a broker; write one such as https://gputide.example.org")
    if parsed.scheme == "http" and not _is_loopback(str(parsed)):
        raise UnsafeUrl(f"http://{parsed.host} would show your token to the network; use https://{parsed.host}")
    return str(parsed).rstrip("/")


def _is_loopback(url: str) -> bool:
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _require_sendable(token: str) -> str:
    """A token that fits a header; httpx would repeat one that does not in its error."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidCredentials("the token has characters that no token has; log in again: gputide login --url URL")
    return token


def _distrusted(error: httpx.RequestError) -> bool:
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def _trust(url: str, ca_bundle: str | None) -> ssl.SSLContext | bool:
    if url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody and reads no file: there is no TLS on loopback
    if ca_bundle is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_bundle)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "it has no certificate"
        raise InvalidCredentials(f"the CA bundle {ca_bundle} cannot be used: {reason}") from None
