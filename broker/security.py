"""What keeps others out: where the broker may listen, and files that only their owner may read."""

from __future__ import annotations

import ipaddress
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from broker.settings import InvalidSettings, Settings


def check_listening(settings: Settings) -> None:
    """`InvalidSettings` when the broker would speak plaintext to more than this machine."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise InvalidSettings("--tls-cert and --tls-key go together")
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not path.is_file():
            raise InvalidSettings(f"{path} is not there")
    if settings.tls_cert and settings.tls_key:
        _check_certificate(settings.tls_cert, settings.tls_key)
    behind_proxy = settings.external_url is not None and _is_https(settings.external_url)
    if settings.external_url is not None and not behind_proxy:
        raise InvalidSettings("--external-url is the https:// address of the proxy in front of the broker")
    if not is_loopback(settings.host) and not settings.tls_cert and not behind_proxy:
        raise InvalidSettings(
            f"listening on {settings.host} without TLS is refused; "
            "give --tls-cert and --tls-key, or --external-url when a proxy in front speaks https"
        )


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and bool(parts.hostname)
    except ValueError:
        return False


def _check_certificate(cert: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")  # no prompt for a locked key
    except (OSError, ValueError) as error:
        raise InvalidSettings(f"{cert} and {key} are no certificate with its private key, in PEM: {error}") from None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner may read, whole or not at all; it never exists with wider rights."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
