"""Settings: an unknown key or a bad value names the key and what was meant, and never a value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.settings import InvalidSettings, load_settings

SECRET = "postgresql+psycopg://me:hunter2@db.example/gputide"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith("GPUTIDE_"):
            monkeypatch.delenv(name)


def _file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "broker.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    monkeypatch.setenv("GPUTIDE_CONFIG", str(path))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GPUTIDE_PROT", "port"),
        ("GPUTIDE_DATABASEURL", "database_url"),
        ("gputide_prot", "port"),
        ("GPUTIDE_ZEBRA", "it knows clock, data_dir"),
        ("GPUTIDE_", "it knows"),
    ],
)
def test_an_unknown_variable_names_the_nearest(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setenv(name, SECRET)
    with pytest.raises(InvalidSettings) as refused:
        load_settings()
    assert name in refused.value.detail
    assert meant in refused.value.detail
    assert "hunter2" not in refused.value.detail


@pytest.mark.parametrize("name", ["URL", "TOKEN", "CONFIG_DIR", "DEBUG", "ZONE", "COST_CENTER", "CA_BUNDLE"])
def test_a_variable_of_the_client_is_no_fault(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"GPUTIDE_{name}", "gpt_something")
    assert "gpt_something" not in repr(load_settings())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", "'prot'; did you mean port?"),
        ("databse_url = 'postgresql://me:hunter2@h/d'", "'databse_url'; did you mean database_url?"),
        ("[server]\nport = 1", "unknown setting 'server'"),
        ("port = 'hunter2'", "port: "),
        ("port = 65536", "port: "),
        ("port = -1", "port: "),
        ("port = 1.5", "port: "),
        ("log_level = 'hunter2'", "log_level: "),
        ("failpoint = 'hunter2'", "failpoint: "),
        ("organisation_zone = 'Mars/Olympus'", "organisation_zone: "),
        ("host = ['127.0.0.1']", "host: "),
        ("database_url = 'hunter2'", "database_url: "),
        ("database_url = 'mysql://me:hunter2@h/d'", "database_url: "),
        ("database_url = 'postgresql://me:hunter2@h:port/d'", "database_url: "),
        ("database_url = ''", "database_url: "),
        ("database_url = 7", "database_url: "),
        ("port = ", "settings file: "),
        ("port = 1\nport = 2", "settings file: "),
        (b"\xff\xfe", "settings file: "),
    ],
)
def test_a_bad_file_names_the_key_and_never_the_value(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | bytes, words: str
) -> None:
    _file(monkeypatch, tmp_path, text)
    with pytest.raises(InvalidSettings) as refused:
        load_settings()
    assert words in refused.value.detail
    assert refused.value.code == "invalid_settings"
    assert "hunter2" not in refused.value.detail


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "eighty"), ("PORT", ""), ("LOG_LEVEL", "loud"), ("FAILPOINT", "x"), ("DATABASE_URL", "x")],
)
def test_a_bad_variable_names_its_key(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"GPUTIDE_{name}", value)
    with pytest.raises(InvalidSettings, match=name.lower()):
        load_settings()


def test_two_faults_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTIDE_PORT", "x")
    monkeypatch.setenv("GPUTIDE_LOG_LEVEL", "y")
    with pytest.raises(InvalidSettings, match=r"port.*log_level"):
        load_settings()


def test_a_settings_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUTIDE_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(InvalidSettings, match=r"none\.toml is not there"):
        load_settings()


def test_arguments_win_over_variables_and_these_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _file(monkeypatch, tmp_path, "port = 1\nhost = 'localhost'\norganisation = 'file'")
    monkeypatch.setenv("GPUTIDE_PORT", "2")
    monkeypatch.setenv("GPUTIDE_ORGANISATION", "variable")
    settings = load_settings(port=3, host=None)
    assert (settings.port, settings.host, settings.organisation) == (3, "localhost", "variable")


def test_a_password_is_not_shown_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTIDE_DATABASE_URL", SECRET)
    settings = load_settings()
    assert settings.database == SECRET
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_a_plain_postgresql_url_means_the_driver_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTIDE_DATABASE_URL", "postgresql://me@h/d")
    assert load_settings().database == "postgresql+psycopg://me@h/d"


def test_without_settings_it_is_a_private_broker_on_loopback(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path)
    assert (settings.host, settings.port) == ("127.0.0.1", 8470)
    assert settings.database == f"sqlite:///{tmp_path / 'gputide.db'}"
