"""`gputide-broker`: bad input is one line on stderr and exit status 1, never a traceback, and changes nothing."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from broker.__main__ import main
from broker.ids import digest
from tests.support.brokers import TARIFF
from tests.support.processes import SMALL_POOL, broker

Run = tuple[int, str, str]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("GPUTIDE_"):
            monkeypatch.delenv(name)


class Host:
    """The operator's own host: a data folder, and the command run in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.data, self._capsys = folder, folder / "data", capsys

    def file(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def run(self, *arguments: str) -> Run:
        """Its exit status, stdout and stderr; what comes after `--` are no options."""
        options = ("--data-dir", str(self.data))
        place = arguments.index("--") if "--" in arguments else len(arguments)
        self._capsys.readouterr()
        try:
            main([*arguments[:place], *options, *arguments[place:]])
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def done(self, *arguments: str) -> str:
        status, out, err = self.run(*arguments)
        assert status == 0, err
        return out + err

    def refused(self, *arguments: str) -> str:
        """The one line of a refusal, which must change nothing."""
        before = self.contents()
        status, out, err = self.run(*arguments)
        assert (status, out) == (1, ""), (out, err)
        assert err.startswith("gputide-broker: "), err
        assert err.count("\n") == 1, err
        assert self.contents() == before
        return err

    def contents(self) -> list[str]:
        path = self.data / "gputide.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as database:
            return list(database.iterdump())


@pytest.fixture
def empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Host:
    """A host with a migrated database and nothing in it."""
    host = Host(tmp_path, capsys)
    host.done("migrate")
    return host


@pytest.fixture
def host(empty: Host) -> Host:
    """A host whose broker has a pool, an operator and a tariff."""
    empty.done("users", "add", "ada", "--role", "operator")
    empty.done("pool", "load", empty.file("pool.toml", SMALL_POOL))
    empty.done("tariffs", "put", empty.file("tariff.toml", TARIFF), "--approve-as", "ada")
    return empty


def test_the_way_from_nothing_to_a_broker_that_sells(host: Host) -> None:
    assert host.done("pool", "show") == "l4\t2\t0 out of service\n"
    assert "round\tin force" in host.done("tariffs", "list")
    host.done("users", "cost-center", "lab", "--owner", "ada", "--budget", "100.50", "--member", "ada")
    dump = "\n".join(host.contents())
    assert "100500000" in dump


def test_migrating_twice_changes_nothing(empty: Host) -> None:
    before = empty.contents()
    empty.done("migrate")
    assert empty.contents() == before


@pytest.mark.parametrize("command", [("pool", "show"), ("users", "add", "bob"), ("tariffs", "list")])
def test_before_the_schema_is_made_every_command_says_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    status, _, err = Host(tmp_path, capsys).run(*command)
    assert (status, err.count("\n")) == (1, 1)
    assert "gputide-broker migrate" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("= 1", "not TOML"),
        (b"\xff", "UTF-8"),
        ("", "models"),
        (SMALL_POOL.replace('model = "l4"', 'model = "l5"'), "use one of l4"),
        (SMALL_POOL.replace("count = 2", "count = 0"), "count"),
        ('"a\\nb" = 1\n' + SMALL_POOL, "unknown key"),
    ],
)
def test_a_corrupt_pool_file_is_one_line(host: Host, content: str | bytes, words: str) -> None:
    assert words in host.refused("pool", "load", host.file("bad.toml", content))


def test_a_pool_that_is_not_there_is_one_line(host: Host) -> None:
    assert "none.toml" in host.refused("pool", "load", str(host.folder / "none.toml"))
    assert "campsu" in host.refused("pool", "load", "campsu")


@pytest.mark.parametrize(
    ("content", "words"),
    [("= 1", "not TOML"), (b"\xff", "utf-8"), ("", "name"), ("a = " + "[" * 9999, "not TOML"),
     (TARIFF.replace("EUR", "USD"), "EUR"), (TARIFF.replace('"round"', r'"a\u0000"'), "name")],
)  # fmt: skip
def test_a_corrupt_tariff_is_one_line(host: Host, content: str | bytes, words: str) -> None:
    assert words in host.refused("tariffs", "put", host.file("bad.toml", content), "--approve-as", "ada")


def test_only_an_operator_approves(host: Host) -> None:
    host.done("users", "add", "bob")
    tariff = str(host.folder / "tariff.toml")
    assert "operator" in host.refused("tariffs", "put", tariff, "--approve-as", "bob")
    assert "zoe" in host.refused("tariffs", "put", tariff, "--approve-as", "zoe")
    assert "none.toml" in host.refused("tariffs", "put", str(host.folder / "none.toml"), "--approve-as", "ada")


def test_a_person_is_added_once(host: Host) -> None:
    assert "already_exists" in host.refused("users", "add", "ada")


@pytest.mark.parametrize("name", ["", " ", "a b", "bob\n", "-x", "ü", "a\0b", "x" * 101, "../bob"])
def test_a_name_that_the_api_could_not_say_is_refused(host: Host, name: str) -> None:
    """Else there would be people and cost centers that nobody can name in a request."""
    for command in (("users", "add", "--", name), ("users", "cost-center", "--owner", "ada", "--", name)):
        assert "no name" in host.refused(*command)


def test_a_token_of_nobody_is_not_issued(host: Host) -> None:
    path = host.folder / "token"
    assert "zoe" in host.refused("users", "token", "zoe", "--token-file", str(path))
    assert not path.exists()


def test_a_token_file_is_private(host: Host) -> None:
    path = host.folder / "token"
    said = host.done("users", "token", "ada", "--token-file", str(path))
    secret = path.read_text().strip()
    assert secret.startswith("gpt_")
    assert path.stat().st_mode & 0o777 == 0o600
    dump = "\n".join(host.contents())
    assert digest(secret) in dump
    assert secret not in dump + said


def test_a_file_that_may_hold_somebodys_token_is_not_written_over(host: Host) -> None:
    path = host.folder / "token"
    path.write_text("old")
    for command in (("token", "ada"), ("add", "bob")):
        assert "is there already" in host.refused("users", *command, "--token-file", str(path))
    assert path.read_text() == "old"


def test_a_token_file_that_cannot_be_written_is_one_line(host: Host) -> None:
    (host.folder / "token").mkdir()
    status, _, err = host.run("users", "token", "ada", "--token-file", str(host.folder / "token"))
    assert (status, err.count("\n")) == (1, 1)
    assert "gpt_" not in err


@pytest.mark.parametrize("budget", ["abc", "-1", "1,000", "1e3", "nan", "0.0000001", "", "1000000000001"])
def test_a_budget_that_is_no_amount_leaves_no_cost_center(host: Host, budget: str) -> None:
    words = host.refused("users", "cost-center", "lab", "--owner", "ada", f"--budget={budget}")
    assert "invalid_amount" in words


def test_a_cost_center_of_or_with_somebody_unknown_is_not_made(host: Host) -> None:
    assert "zoe" in host.refused("users", "cost-center", "lab", "--owner", "zoe")
    assert "zoe" in host.refused("users", "cost-center", "lab", "--owner", "ada", "--member", "ada", "--member", "zoe")


def test_a_cost_center_before_there_is_a_currency_is_not_made(empty: Host) -> None:
    empty.done("users", "add", "ada")
    assert "not_ready" in empty.refused("users", "cost-center", "lab", "--owner", "ada", "--budget", "1")


UNKNOWN = [
    ("users", "add", "bob", "--role", "king"),
    ("users", "token", "ada", "--token-file", "x", "--days", "0"),
    ("brew",),
    ("users", "add"),
]


@pytest.mark.parametrize("arguments", UNKNOWN)
def test_what_the_command_line_does_not_know_is_a_usage_error(host: Host, arguments: tuple[str, ...]) -> None:
    before = host.contents()
    status, _, err = host.run(*arguments)
    assert status == 2
    assert "Traceback" not in err
    assert host.contents() == before


def test_a_database_that_does_not_answer_is_one_line_without_its_password(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUTIDE_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:1/gputide")
    for command in (("migrate",), ("pool", "show"), ("users", "add", "bob")):
        words = host.refused(*command)
        assert "127.0.0.1" in words
        assert "hunter2" not in words


@pytest.mark.parametrize("url", ["hunter2", "mysql://me:hunter2@h/d", "postgresql://me:hunter2@h:x/d"])
def test_a_database_url_that_is_none_is_one_line_without_its_password(
    host: Host, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("GPUTIDE_DATABASE_URL", url)
    words = host.refused("pool", "show")
    assert "database_url" in words
    assert "hunter2" not in words


def test_a_database_file_that_is_none_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host(tmp_path, capsys)
    host.data.mkdir()
    (host.data / "gputide.db").write_bytes(b"no database " * 1000)
    for command in (("migrate",), ("pool", "show"), ("users", "add", "bob")):
        status, _, err = host.run(*command)
        assert (status, err.count("\n")) == (1, 1), err
        assert "not a database" in err


def test_a_data_folder_that_is_a_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host(tmp_path, capsys)
    host.data.write_text("a file")
    status, _, err = host.run("migrate")
    assert (status, err.count("\n")) == (1, 1), err


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("serve", "--host", "0.0.0.0")])
def test_a_broker_that_cannot_serve_says_so_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/gputide"
    refused = broker(*command, "--data-dir", str(tmp_path / "data"), GPUTIDE_DATABASE_URL=url)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), refused.stderr
    assert "hunter2" not in refused.stderr


def test_a_budget_of_another_month_is_added_to(host: Host) -> None:
    host.done("users", "cost-center", "lab", "--owner", "ada")
    assert "for 2030-02 is 250.00 EUR" in host.done("users", "budget", "lab", "250", "--month", "2030-02")
    assert "for 2030-02 is 260.50 EUR" in host.done("users", "budget", "lab", "10.50", "--month", "2030-02")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("lab", "5", "--month", "2019-02"), "February 2019 is over"),
     (("lab", "0"), "invalid_amount"), (("lab", "1,5"), "invalid_amount"), (("none", "1"), "none"),
     (("lab", "1000000000001"), "invalid_amount")],
)  # fmt: skip
def test_a_budget_that_cannot_be_is_refused(host: Host, arguments: tuple[str, ...], words: str) -> None:
    host.done("users", "cost-center", "lab", "--owner", "ada")
    assert words in host.refused("users", "budget", *arguments)


def test_a_member_is_added_to_a_cost_center(host: Host) -> None:
    host.done("users", "cost-center", "lab", "--owner", "ada")
    host.done("users", "add", "bob")
    assert "bob may book on lab" in host.done("users", "member", "lab", "bob")
    assert "zoe" in host.refused("users", "member", "lab", "zoe")
    assert "none" in host.refused("users", "member", "none", "bob")


def test_the_zone_of_an_organisation_stays_what_it_was(empty: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its budget months would begin at other instants else. A setting that agrees is no contradiction."""
    empty.done("users", "add", "ada")
    monkeypatch.setenv("GPUTIDE_ORGANISATION_ZONE", "Asia/Tokyo")
    assert "UTC" in empty.refused("users", "add", "bob")
    monkeypatch.setenv("GPUTIDE_ORGANISATION_ZONE", "UTC")
    empty.done("users", "add", "bob")


def test_a_zone_that_was_set_once_need_not_be_set_again(empty: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTIDE_ORGANISATION_ZONE", "Asia/Tokyo")
    empty.done("users", "add", "ada", "--role", "operator")
    monkeypatch.delenv("GPUTIDE_ORGANISATION_ZONE")
    empty.done("pool", "load", empty.file("pool.toml", SMALL_POOL))
    empty.done("tariffs", "put", empty.file("tariff.toml", TARIFF), "--approve-as", "ada")
    empty.done("users", "cost-center", "lab", "--owner", "ada")
    empty.done("users", "budget", "lab", "5", "--month", "2030-02")
    in_tokyo = datetime(2030, 2, 1, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert str(int(in_tokyo.timestamp()) * 1_000_000) in "\n".join(empty.contents())


def test_a_personal_broker_keeps_a_database_of_its_own(tmp_path: Path) -> None:
    refused = broker(
        "up", "--data-dir", str(tmp_path), GPUTIDE_DATABASE_URL="postgresql://me:hunter2@127.0.0.1:1/gputide"
    )
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), refused.stderr
    assert "database_url" in refused.stderr
    assert "hunter2" not in refused.stderr


def test_people_are_listed_let_go_and_let_in_again(host: Host) -> None:
    host.done("users", "add", "bob")
    host.done("users", "deactivate", "bob")
    assert host.run("users", "list")[1] == "ada\toperator\tactive\nbob\tmember\tno longer active\n"
    host.done("users", "activate", "bob")
    assert host.run("users", "list")[1] == "ada\toperator\tactive\nbob\tmember\tactive\n"
    assert "zoe" in host.refused("users", "deactivate", "zoe")


def test_cost_centers_are_listed_with_their_budgets(host: Host) -> None:
    host.done("users", "cost-center", "lab", "--owner", "ada", "--budget", "12.50")
    assert host.run("users", "cost-centers")[1] == "lab\tada\t12.50 EUR\t0.00 EUR\t0.00 EUR\t12.50 EUR\n"


def test_a_device_is_drained_and_sells_again(host: Host) -> None:
    host.done("pool", "drain", "n", "1")
    assert host.done("pool", "show") == "l4\t2\t1 out of service\n"
    host.done("pool", "load", str(host.folder / "pool.toml"))
    assert host.done("pool", "show") == "l4\t2\t1 out of service\n"
    assert "1 device of n drained" in host.done("pool", "drain", "n")
    assert "no devices of n drained" in host.done("pool", "drain", "n")
    assert "2 devices of n sold again" in host.done("pool", "undrain", "n")
    assert host.done("pool", "show") == "l4\t2\t0 out of service\n"


def test_what_is_not_there_is_not_drained(host: Host) -> None:
    assert "not_found" in host.refused("pool", "drain", "m")
    assert "device 7" in host.refused("pool", "drain", "n", "7")


def test_a_model_that_the_tariff_does_not_name_is_told_to_the_operator(host: Host) -> None:
    tariff = host.file("tariff.toml", TARIFF.replace(", l4 = 0.80", ""))
    assert "no rate: l4" in host.done("tariffs", "put", tariff, "--approve-as", "ada")
    assert "no rate: l4" in host.done("pool", "load", str(host.folder / "pool.toml"))
