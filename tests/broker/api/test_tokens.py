"""Tokens live as long as they are said to, and no longer; nothing shows their secrets."""

from __future__ import annotations

from datetime import timedelta

import pytest

from broker.ids import digest
from broker.services import people, tokens
from broker.wire.errors import NotAuthenticated
from broker.wire.people import Scope, TokenIn
from tests.support.api import Api, contents, problem


def _token(api: Api, **more: object) -> dict[str, str]:
    made = api.post("/v1/tokens", {"label": "laptop", "scopes": ["read", "book"], **more})
    assert made.status_code == 201, made.text
    return made.json()


def test_a_token_ends_at_the_instant_it_says(api: Api) -> None:
    made = _token(api, days=1)
    assert made["expires_at"] == "2026-12-02T12:00:00Z"
    api.shop.clock.move(timedelta(hours=1, seconds=-1))
    assert api.get("/v1/me", token=made["secret"]).status_code == 200
    api.shop.clock.move(timedelta(hours=23) - timedelta(microseconds=1) + timedelta(seconds=1))
    assert api.get("/v1/tokens", token=made["secret"]).status_code == 200
    api.shop.clock.move(timedelta(microseconds=1))
    problem(api.get("/v1/tokens", token=made["secret"]), 401, "not_authenticated")


def test_a_token_never_outlives_the_one_that_asked_for_it(api: Api) -> None:
    short = _token(api, days=1)
    child = api.post("/v1/tokens", {"label": "longer", "scopes": ["read"], "days": 90}, token=short["secret"]).json()
    assert child["expires_at"] == short["expires_at"]


def test_with_a_token_end_those_that_it_asked_for(api: Api) -> None:
    """Else whoever stole one kept what they made with it."""
    parent, beside = _token(api), _token(api)
    asked = {"label": "child", "scopes": ["read", "book"]}
    child = api.post("/v1/tokens", asked, token=parent["secret"]).json()
    grandchild = api.post("/v1/tokens", asked, token=child["secret"]).json()
    assert api.send("DELETE", f"/v1/tokens/{parent['id']}").status_code == 204
    for each in (parent, child, grandchild):
        problem(api.get("/v1/me", token=each["secret"]), 401, "not_authenticated")
    assert api.get("/v1/me", token=beside["secret"]).status_code == 200


def test_a_token_that_is_revoked_while_it_asks_for_another_gets_none(api: Api) -> None:
    made = _token(api)
    principal = tokens.authenticate(api.shop.context, made["secret"])
    assert api.send("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
    with pytest.raises(NotAuthenticated):
        tokens.issue_own(api.shop.context, principal, TokenIn(label="kept", scopes=[Scope.READ]))


def test_a_person_who_is_no_longer_active_is_nobody(api: Api) -> None:
    _, secret = api.shop.person("bob")
    people.set_active(api.shop.context, "bob", active=False)
    problem(api.get("/v1/me", token=secret), 401, "not_authenticated")
    people.set_active(api.shop.context, "bob", active=True)
    assert api.get("/v1/me", token=secret).status_code == 200


def test_a_token_that_may_only_read_can_end_itself(api: Api) -> None:
    made = _token(api, scopes=["read"])
    assert api.send("DELETE", f"/v1/tokens/{made['id']}", token=made["secret"]).status_code == 204
    problem(api.get("/v1/me", token=made["secret"]), 401, "not_authenticated")


def test_a_revoked_token_ends_at_once_and_for_buying_too(api: Api) -> None:
    made, quote = _token(api), api.quote()
    assert api.send("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
    before = contents(api.shop)
    problem(api.get("/v1/me", token=made["secret"]), 401, "not_authenticated")
    problem(api.book(quote, token=made["secret"]), 401, "not_authenticated")
    assert contents(api.shop) == before
    assert [each["revoked"] for each in api.get("/v1/tokens").json()["items"] if each["id"] == made["id"]] == [True]


def test_revoking_twice_keeps_the_first_time(api: Api) -> None:
    made = _token(api)
    assert api.send("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
    before = contents(api.shop)
    api.shop.clock.move(timedelta(minutes=1))
    assert api.send("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
    assert contents(api.shop) == before


def test_only_the_sha256_of_a_secret_is_stored(api: Api) -> None:
    """In no row of no table, however it was used; the rows of kept answers count as well."""
    made = _token(api)
    key = made["secret"][:40]
    assert api.book(api.quote(token=made["secret"]), token=made["secret"]).status_code == 201
    api.book({"id": "q_" + "0" * 24}, token=made["secret"], key="again")
    api.post("/v1/quotes", {"need": made["secret"], "seconds": 3600}, token=made["secret"])
    stored = repr(contents(api.shop))
    with api.shop.context.database.engine.connect() as connection:
        stored += repr(connection.exec_driver_sql("SELECT * FROM idempotency").all())
    assert digest(made["secret"]) in stored
    assert key not in stored


def test_the_lists_of_tokens_have_no_secrets(api: Api) -> None:
    made = _token(api)
    assert made["secret"] not in api.get("/v1/tokens").text
    assert set(api.get("/v1/tokens").json()["items"][0]) == {
        "id", "label", "scopes", "created_at", "expires_at", "revoked",
    }  # fmt: skip
