"""A broker of one's own: what it makes by itself, and that it makes it once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from broker.app import build
from broker.clock import ManualClock
from broker.context import Context
from broker.inputs.assets import asset
from broker.operator import PERSONAL_MONTHS, PersonalBroker, put_tariff_in_force
from broker.services import browse, cost_centers, tariffs
from broker.services.organisation import at_home
from broker.settings import Settings
from broker.store import migrations
from market.catalog import Tier
from tests.support import audit
from tests.support.brokers import NOON, TARIFF
from tests.support.processes import SMALL_POOL


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    settings = Settings(data_dir=tmp_path)
    built = build(settings)
    migrations.upgrade(built.database)
    yield replace(at_home(built, settings.organisation, settings.organisation_zone), clock=ManualClock(NOON))
    built.database.close()


def pool_of(folder: Path, model: str) -> str:
    path = folder / f"{model}.toml"
    path.write_text(SMALL_POOL.replace('"l4"', f'"{model}"'))
    return str(path)


def sold(context: Context) -> set[str]:
    return {each.sku for each in browse.offers(context, None, Tier.STANDARD).offers}


def test_a_model_without_a_rate_gets_one_by_its_memory(context: Context, tmp_path: Path) -> None:
    PersonalBroker(pool_of(tmp_path, "rtx-9090")).prepare(context)
    assert sold(context) == {"rtx-9090/full", "rtx-9090/half"}


def test_another_pool_later_is_sold_as_well(context: Context, tmp_path: Path) -> None:
    for model in ("l4", "rtx-9090"):
        PersonalBroker(pool_of(tmp_path, model)).prepare(context)
        assert sold(context) == {f"{model}/full", f"{model}/half"}


def test_a_tariff_that_somebody_wrote_is_left_alone(context: Context, tmp_path: Path) -> None:
    PersonalBroker(pool_of(tmp_path, "l4")).prepare(context)
    put_tariff_in_force(context, TARIFF, "me")
    PersonalBroker(pool_of(tmp_path, "rtx-9090")).prepare(context)
    assert tariffs.listed(context, before=None, limit=1, names=True)[0].name == "round"
    assert sold(context) == set()


def test_the_sample_tariff_with_a_price_of_somebodys_own_is_left_alone_too(context: Context, tmp_path: Path) -> None:
    PersonalBroker(pool_of(tmp_path, "l4")).prepare(context)
    put_tariff_in_force(context, asset("tariffs", "campus.toml").read_text().replace("l4 = 0.80", "l4 = 3.00"), "me")
    PersonalBroker(pool_of(tmp_path, "rtx-9090")).prepare(context)
    assert sold(context) == set()


def test_a_second_start_makes_nothing_twice(context: Context, tmp_path: Path) -> None:
    def kept() -> dict[str, object]:
        every = audit.contents(context.database.engine)
        return {name: every[name] for name in ("person", "cost_center", "tariff", "account", "transfer", "device")}

    PersonalBroker(pool_of(tmp_path, "l4")).prepare(context)
    before = kept()
    PersonalBroker(None).prepare(context)
    assert kept() == before


def test_there_is_a_budget_for_each_month_that_can_be_booked_in_the_year(context: Context, tmp_path: Path) -> None:
    PersonalBroker(pool_of(tmp_path, "l4")).prepare(context)
    at, limits = NOON, []
    for _ in range(PERSONAL_MONTHS):
        month = cost_centers.show(context, "personal", at)
        limits.append(month.left)
        at = month.period_end + timedelta(days=1)
    assert limits == [1000 * 10**6] * PERSONAL_MONTHS
