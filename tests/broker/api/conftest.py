"""Brokers with an API: one a test, and one a module for requests that must not change anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import postgres
from tests.support.api import Api, contents, open_api
from tests.support.brokers import Shop, open_shop


@pytest.fixture
def api(shop: Shop) -> Iterator[Api]:
    """The API of a small broker, on each database."""
    with open_api(shop) as opened:
        yield opened


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def standing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API of a broker that a whole module asks, on each database: nothing it is asked may change it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('standing') / 'gputide.db'}"
    else:
        url = postgres.fresh_database(request.getfixturevalue("postgres_server"))
    shop = open_shop(url)
    with open_api(shop) as opened:
        opened.buy("1 x l4/full")
        yield opened
    shop.context.database.close()


@pytest.fixture
def unchanged(standing: Api) -> Iterator[Api]:
    """The standing broker; fails when the test has changed a row of it."""
    before = contents(standing.shop)
    yield standing
    assert contents(standing.shop) == before
