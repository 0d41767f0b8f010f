"""Where a broker may listen, and files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.security import check_listening, is_loopback, write_private
from broker.settings import InvalidSettings, Settings

BEYOND = ["0.0.0.0", "::", "[::]", "192.168.1.5", "10.0.0.1", "fe80::1", "broker.lan", "localhost.example.org", "",
          "127.0.0.1.example.org", "0x7f.1", "2130706433", "0", "*", "::ffff:10.0.0.1"]  # fmt: skip
HERE = ["127.0.0.1", "127.255.255.254", "::1", "[::1]", "localhost"]


def _settings(tmp_path: Path, **given: object) -> Settings:
    return Settings(data_dir=tmp_path, **given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("host", BEYOND)
def test_plaintext_beyond_this_machine_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        check_listening(_settings(tmp_path, host=host))
    assert "--tls-cert" in refused.value.detail
    assert "--external-url" in refused.value.detail


@pytest.mark.parametrize("host", HERE)
def test_plaintext_on_this_machine_is_allowed(tmp_path: Path, host: str) -> None:
    check_listening(_settings(tmp_path, host=host))
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "broker.lan"])
def test_a_proxy_that_speaks_https_opens_the_way(tmp_path: Path, host: str) -> None:
    check_listening(_settings(tmp_path, host=host, external_url="https://gpu.example.org"))


@pytest.mark.parametrize(
    "url",
    [
        "http://gpu.example.org",
        "gpu.example.org",
        "",
        "ftp://gpu",
        "HTTP://gpu",
        "https://",
        "https:///path",
        "https:gpu",
    ],
)
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_an_external_url_that_is_not_https_opens_nothing(tmp_path: Path, host: str, url: str) -> None:
    with pytest.raises(InvalidSettings, match="https://"):
        check_listening(_settings(tmp_path, host=host, external_url=url))


@pytest.mark.parametrize("given", [("tls_cert",), ("tls_key",)])
def test_half_a_certificate_is_none(tmp_path: Path, given: tuple[str, ...]) -> None:
    path = tmp_path / "x.pem"
    path.write_text("x")
    with pytest.raises(InvalidSettings, match="go together"):
        check_listening(_settings(tmp_path, host="0.0.0.0", **dict.fromkeys(given, path)))


@pytest.mark.parametrize("text", [None, "", "not PEM"])
def test_a_certificate_that_cannot_be_used_is_refused_before_anybody_is_served(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "x.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidSettings, match=r"x\.pem"):
        check_listening(_settings(tmp_path, host="0.0.0.0", tls_cert=path, tls_key=path))


def test_a_private_file_is_its_owners_alone_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    before = os.umask(0)
    try:
        write_private(path, "secret\n")
    finally:
        os.umask(before)
    assert path.read_text() == "secret\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_with_wider_rights_becomes_private_and_who_has_it_open_reads_on_in_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o666)
    with path.open() as held:
        write_private(path, "secret")
        assert held.read() == "old"
    assert path.read_text() == "secret"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere, path = tmp_path / "public", tmp_path / "token"
    elsewhere.write_text("old")
    path.symlink_to(elsewhere)
    write_private(path, "secret")
    assert elsewhere.read_text() == "old"
    assert not path.is_symlink()


def test_a_file_that_cannot_be_put_in_place_leaves_no_secret_behind(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(OSError, match="token"):
        write_private(tmp_path / "token", "secret")
    assert [each.name for each in tmp_path.iterdir()] == ["token"]
