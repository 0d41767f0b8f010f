"""Where a token may go, and that no text ever holds it."""

from __future__ import annotations

import traceback
from pathlib import Path

import httpx
import pytest

from broker.client.connection import require_safe_url
from broker.client.credentials import Credentials
from broker.client.errors import BrokerAway, ClientError, InvalidCredentials, UnsafeUrl
from broker.client.http import Client
from tests.broker.client.samples import TOKEN


@pytest.mark.parametrize(
    "url", ["http://gpu.example.org", "http://10.0.0.7:8470", "http://localhost.example.org", "http://127.0.0.1.nip.io"]
)
def test_plain_http_beyond_this_machine_is_refused(url: str) -> None:
    with pytest.raises(UnsafeUrl, match="would show your token to the network; use https://"):
        Client(url, TOKEN)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8470", "http://localhost:8470", "http://[::1]:8470", "http://127.9.9.9"]
)
def test_plain_http_to_this_machine_is_fine(url: str) -> None:
    assert Client(url, TOKEN).url == url


@pytest.mark.parametrize(
    "url", ["", "gpu.example.org", "ftp://gpu.example.org", "localhost:8470", "https://", "https://[::1"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UnsafeUrl):
        require_safe_url(url)


@pytest.mark.parametrize("url", [f"https://anna:{TOKEN}@gpu.example.org", f"https://gpu.example.org/?token={TOKEN}"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UnsafeUrl) as refused:
        require_safe_url(url)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("token", [f"{TOKEN}\n", f"{TOKEN} {TOKEN}", f"{TOKEN}ß"])
def test_a_token_that_fits_no_header_is_refused_before_it_is_sent(token: str) -> None:
    with pytest.raises(InvalidCredentials) as refused:
        Client("https://gpu.example.org", token)
    assert TOKEN not in "".join(traceback.format_exception(refused.value))


def test_neither_client_nor_credentials_nor_an_error_show_the_token() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    client = Client("https://gpu.example.org", TOKEN, transport=httpx.MockTransport(refuse), retry_waits=())
    with pytest.raises(BrokerAway) as away:
        client.me()
    shown = [repr(client), repr(Credentials(token=TOKEN)), *traceback.format_exception(away.value), repr(away.value)]
    assert TOKEN not in "".join(shown)


@pytest.mark.parametrize("content", [None, "this is no certificate"])
def test_a_ca_bundle_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_text(content)
    with pytest.raises(ClientError, match=r"ca\.pem cannot be used"):
        Client("https://gpu.example.org", TOKEN, ca_bundle=str(bundle))
