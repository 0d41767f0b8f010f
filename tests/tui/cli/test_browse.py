"""Looking around: stdout is data, stderr is words, and what is cut says so."""

from __future__ import annotations

import json

import pytest

from broker.client.chart import curve_lines
from broker.client.listings import offer_lines
from broker.wire.lists import CostCenterPage
from broker.wire.market import CurveView, OffersView, PoolView
from tests.broker.client import samples
from tests.tui.cli.conftest import Cli, FakeBroker
from tests.tui.cli.test_golden import BERLIN
from tui.cli.exits import ExitCode


def test_offers_are_a_table_on_stdout_and_words_beside_it(logged_in: FakeBroker, cli: Cli) -> None:
    logged_in.answer("GET /v1/offers", samples.offers())
    ran = cli("offers", "1 x at least 20 GB", "--tier", "economy")
    assert ran.code == ExitCode.OK
    assert ran.out.splitlines() == offer_lines(samples.offers(), BERLIN)
    assert "SIMULATED: nothing here is a real GPU" in ran.err
    assert logged_in.asked[-1].query == {"need": "1 x at least 20 GB", "tier": "economy"}


@pytest.mark.parametrize(
    ("arguments", "call", "message", "model"),
    [
        (["offers"], "GET /v1/offers", samples.offers(), OffersView),
        (["curve", "a100-40g/full"], "GET /v1/curves/a100-40g/full", samples.curve(), CurveView),
        (["pool"], "GET /v1/pool", samples.pool(), PoolView),
    ],
)
def test_json_is_the_answer_and_nothing_else(
    logged_in: FakeBroker, cli: Cli, arguments: list[str], call: str, message: OffersView, model: type[OffersView]
) -> None:
    logged_in.answer(call, message)
    ran = cli(*arguments, "--json")
    assert model.model_validate_json(ran.out) == message
    assert ran.err == ""


def test_a_curve_is_drawn_within_the_terminal(logged_in: FakeBroker, cli: Cli) -> None:
    logged_in.answer("GET /v1/curves/a100-40g/full", samples.curve())
    ran = cli("curve", "A100-40g/full", "--hours", "24")
    assert ran.out.splitlines() == curve_lines(samples.curve(), BERLIN, 80)
    assert logged_in.asked[-1].query == {"hours": "24"}


def test_what_is_no_sku_is_said_before_anything_is_asked(logged_in: FakeBroker, cli: Cli) -> None:
    ran = cli("curve", "a100")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "a100-40g/3g.20gb" in ran.err
    assert logged_in.asked == []


def test_a_cut_pool_says_how_much_is_missing_and_how_to_go_on(logged_in: FakeBroker, cli: Cli) -> None:
    logged_in.answer("GET /v1/pool", samples.pool("n2"))
    ran = cli("pool", "--limit", "2")
    assert "2 of 3,120 nodes shown, 12,480 devices" in ran.err
    assert "gputide pool --limit 2 --cursor n2" in ran.err


def test_the_brokers_zone_serves_where_the_machine_tells_none(
    logged_in: FakeBroker, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.cli.session.personal_zone", lambda _configured: None)
    logged_in.answer("GET /v1/offers", samples.offers())
    assert "times in Europe/Berlin" in cli("offers").err
    assert "GET /v1/me" in logged_in.calls()


def test_what_others_wrote_cannot_move_the_cursor(logged_in: FakeBroker, cli: Cli) -> None:
    node = samples.pool().nodes[0].model_copy(update={"name": "evil\x1b[2Jnode\n"})
    logged_in.answer("GET /v1/pool", samples.pool().model_copy(update={"nodes": [node]}))
    ran = cli("pool")
    assert "\x1b" not in ran.out
    assert r"evil\x1b[2Jnode\x0a" in ran.out
    json_shown = json.loads(cli("pool", "--json").out)
    assert json_shown["nodes"][0]["name"] == "evil\x1b[2Jnode\n"


def test_what_is_left_of_the_budgets(logged_in: FakeBroker, cli: Cli) -> None:
    logged_in.answer("GET /v1/cost-centers", samples.cost_centers())
    assert "935.22 EUR" in cli("budget").out
    assert json.loads(cli("budget", "--json").out)["items"][0]["name"] == "lab"
    logged_in.answer("GET /v1/cost-centers", CostCenterPage(items=[], next_cursor=None))
    nothing = cli("budget")
    assert (nothing.out, nothing.code) == ("", ExitCode.OK)
    assert "ask an operator" in nothing.err
