"""Lists: page by page, each entry comes once, in order, whatever the size of a page."""

from __future__ import annotations

from typing import Any

import pytest

from broker.services import publish
from tests.support.api import Api, open_api
from tests.support.brokers import TARIFF, open_shop, small_pool

LISTS = {
    "bookings": ("items", "id"),
    "tokens": ("items", "id"),
    "people": ("items", "name"),
    "tariffs": ("items", "id"),
    "price-books": ("items", "number"),
    "pool": ("nodes", "name"),
}


@pytest.fixture
def full(database_url: str) -> Any:
    """Five of everything and more; the bookings were all made at one instant."""
    shop = open_shop(database_url, small_pool(nodes=5))
    with open_api(shop) as api:
        for number in range(5):
            api.buy("1 x l4/half")
            api.post("/v1/tokens", {"label": f"t{number}", "scopes": ["read"]})
            api.post("/v1/people", {"name": f"person-{number}"})
            api.post("/v1/tariffs", {"document": TARIFF})
            publish.publish(shop.context)
        yield api
    shop.context.database.close()


def _pages(api: Api, path: str, key: str, limit: int) -> list[dict[str, Any]]:
    got, cursor = [], None
    while True:
        asked = {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}
        page = api.get(f"/v1/{path}", params=asked).json()
        assert 0 < len(page[key]) <= limit
        got += page[key]
        cursor = page["next_cursor"]
        if cursor is None:
            return got


@pytest.mark.parametrize("path", LISTS)
def test_pages_of_any_size_give_each_entry_once_in_order(full: Api, path: str) -> None:
    key, name = LISTS[path]
    whole = _pages(full, path, key, 200)
    assert len(whole) >= 5
    assert len({each[name] for each in whole}) == len(whole)
    for limit in (1, 2, len(whole) - 1, len(whole)):
        assert _pages(full, path, key, limit) == whole


def test_the_last_page_says_that_it_is_the_last(full: Api) -> None:
    """Even when it is exactly full."""
    assert full.get("/v1/bookings?limit=5").json()["next_cursor"] is None
    assert full.get("/v1/bookings?limit=4").json()["next_cursor"] is not None


def test_a_booking_that_comes_meanwhile_shifts_no_page(full: Api) -> None:
    first = full.get("/v1/bookings?limit=2").json()
    before = [each["id"] for each in _pages(full, "bookings", "items", 200)]
    full.buy("1 x l4/half")
    rest = full.get("/v1/bookings", params={"cursor": first["next_cursor"]}).json()["items"]
    seen = [each["id"] for each in (*first["items"], *rest)]
    assert set(before) <= set(seen)
    assert len(seen) == len(set(seen))
