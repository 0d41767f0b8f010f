"""Leaving a booking: what it costs is said before, and is exactly what it costs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from broker.services import publish
from broker.store import bookings, ledger
from tests.support.api import Api, contents, problem

START = "2026-12-01T14:00:00Z"


@pytest.fixture
def booked(api: Api) -> dict[str, Any]:
    """A booking that starts two hours from now, hence can be left for free for one."""
    return api.buy("2 x l4/half", 3 * 3600, start=START)


def _path(booked: dict[str, Any], way: str) -> str:
    return f"/v1/bookings/{booked['id']}/{way}"


def _books_balance(api: Api) -> bool:
    with api.shop.context.database.read() as session:
        return ledger.imbalances(session) == []


@pytest.mark.parametrize("way", ["cancel", "give-back"])
def test_leaving_early_is_free_and_leaves_nothing(api: Api, booked: dict[str, Any], way: str) -> None:
    api.shop.clock.move(timedelta(hours=1))
    before = api.balance()
    told = api.get(_path(booked, "back-out")).json()
    assert (told["free"], told["charged"], told["fee"], told["released"]) == (True, 0, 0, booked["total"])
    left = api.post(_path(booked, way))
    assert left.status_code == 200
    assert (left.json()["state"], left.json()["charged"], left.json()["fee"]) == ("cancelled", 0, 0)
    after = api.balance()
    assert after["left"] - before["left"] == booked["total"]
    assert (after["held"], after["spent"]) == (0, 0)
    assert _books_balance(api)
    with api.shop.context.database.read() as session:
        assert bookings.live_allocations(session, 0) == {}


@pytest.mark.parametrize("dearer", [False, True])
def test_leaving_late_is_refused_with_the_cost_and_giving_back_costs_it(
    api: Api, booked: dict[str, Any], dearer: bool
) -> None:
    if dearer:
        api.buy("1 x l4/full", 4 * 3600, start=START)
        publish.publish(api.shop.context)
    api.shop.clock.move(timedelta(hours=1, microseconds=1))
    before = contents(api.shop)
    body = problem(api.post(_path(booked, "cancel")), 409, "back_out_not_free")
    assert contents(api.shop) == before
    cost = body["back_out"]
    assert cost == api.get(_path(booked, "back-out")).json()
    assert 0 < cost["fee"] <= cost["charged"] < booked["total"]
    assert cost["charged"] + cost["released"] == booked["total"]
    spent = api.balance()["spent"]
    left = api.post(_path(booked, "give-back")).json()
    assert (left["state"], left["charged"], left["fee"]) == ("cancelled", cost["charged"], cost["fee"])
    assert api.balance()["spent"] - spent == cost["charged"]
    assert _books_balance(api)


def test_a_place_that_was_given_back_is_sold_again(api: Api, booked: dict[str, Any]) -> None:
    api.shop.clock.move(timedelta(hours=1, minutes=30))
    publish.publish(api.shop.context)
    problem(api.post("/v1/quotes", {"need": "4 x l4/half", "seconds": 3600, "start": START}), 409, "no_capacity")
    assert api.post(_path(booked, "give-back")).status_code == 200
    assert api.book(api.quote("4 x l4/half", 3600, start=START)).status_code == 201


@pytest.mark.parametrize("way", ["cancel", "give-back"])
def test_what_was_left_cannot_be_left_again(api: Api, booked: dict[str, Any], way: str) -> None:
    assert api.post(_path(booked, "cancel")).status_code == 200
    before = contents(api.shop)
    problem(api.post(_path(booked, way)), 409, "illegal_move")
    problem(api.get(_path(booked, "back-out")), 409, "illegal_move")
    assert contents(api.shop) == before


def test_a_booking_across_two_months_gives_back_what_is_told(api: Api) -> None:
    shop = api.shop
    shop.clock.move(timedelta(days=30))
    publish.publish(shop.context)
    made = api.buy("1 x l4/full", 4 * 3600, start="2026-12-31T21:00:00Z")
    shop.clock.move(timedelta(hours=8, minutes=30))
    publish.publish(shop.context)
    cost = problem(api.post(_path(made, "cancel")), 409, "back_out_not_free")["back_out"]
    left = api.post(_path(made, "give-back")).json()
    assert (left["charged"], left["fee"]) == (cost["charged"], cost["fee"])
    assert _books_balance(api)
    with shop.context.database.read() as session:
        holds = ledger.holds_of(session, made["id"])
    assert len(holds) == 2
    assert sum(hold.captured for hold in holds) == cost["charged"]
    assert all(hold.captured + hold.released == hold.authorised for hold in holds)
