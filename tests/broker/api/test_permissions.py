"""Who may what: tokens, scopes, roles, and that somebody else's things do not exist for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from broker.context import Principal
from broker.services import people, tokens
from broker.wire.people import Role, Scope, TokenIn
from tests.support.api import Api, contents, problem

OPERATORS_ONLY = [
    ("GET", "/v1/people", None),
    ("POST", "/v1/people", {"name": "eve"}),
    ("POST", "/v1/cost-centers", {"name": "mine", "owner": "bob"}),
    ("POST", "/v1/cost-centers/lab/budgets", {"amount": 10**9}),
    ("POST", "/v1/cost-centers/lab/members", {"person": "bob"}),
    ("POST", "/v1/tariffs", {"document": "name = 'x'"}),
    ("POST", "/v1/tariffs/1/approve", {}),
]
FOR_EVERYBODY = [
    "me", "offers", "curves/l4/full", "pool", "price-books", "tariffs", "tokens", "bookings", "cost-centers",
    "events?follow=false",
]  # fmt: skip
BUYS = [("/v1/quotes", {"need": "1 x l4/full", "seconds": 3600}), ("/v1/bookings", {"quote_id": "q_" + "0" * 24})]


Scopes = frozenset[Scope]
OTHERS: list[tuple[Role, Scopes]] = [
    *[(role, frozenset(Scope)) for role in Role],
    *[(Role.OPERATOR, frozenset(Scope) - {scope}) for scope in Scope],
]


@dataclass(frozen=True, slots=True)
class Guests:
    """The standing broker with the operator ada, two members, and a booking and a quote of ada's."""

    api: Api
    bob: str
    bob_principal: Principal
    booking: str
    quote: str
    secrets: dict[tuple[Role, Scopes], str]
    """A token of a person of each role, with these scopes."""

    def token(self, role: Role, *scopes: Scope) -> str:
        return self.secrets[role, frozenset(scopes or Scope)]


@pytest.fixture(scope="module")
def guests(standing: Api) -> Guests:
    bob_principal, bob = standing.shop.person("bob")
    secrets: dict[tuple[Role, Scopes], str] = {}
    for role, scopes in OTHERS:
        name = f"{role}-{len(secrets)}"
        people.add(standing.shop.context, name, role)
        asked = TokenIn(label="test", scopes=sorted(scopes))
        secrets[role, scopes] = tokens.issue(standing.shop.context, name, asked).secret
    quote = standing.quote("1 x a100-40g/3g.20gb")
    booking = standing.buy("1 x a100-40g/1g.5gb", start="2026-12-02T12:00:00Z")
    return Guests(standing, bob, bob_principal, booking["id"], quote["id"], secrets)


@pytest.fixture(autouse=True)
def nothing_changes(guests: Guests) -> Iterator[None]:
    before = contents(guests.api.shop)
    yield
    assert contents(guests.api.shop) == before


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer gpt_wrong", "gpt_x", "Bearer é", "Bearer a b"]
)
def test_without_a_valid_token_nothing_is_answered(guests: Guests, header: str) -> None:
    refused = guests.api.get("/v1/offers", token=None, headers={"Authorization": header.encode()})
    body = problem(refused, 401, "not_authenticated")
    assert "gputide login" in body["detail"]
    assert refused.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", FOR_EVERYBODY)
def test_every_route_wants_a_token(guests: Guests, path: str) -> None:
    problem(guests.api.get(f"/v1/{path}", token=None), 401, "not_authenticated")
    assert guests.api.get(f"/v1/{path}", token=guests.bob).status_code == 200


def test_the_openapi_document_says_where_no_token_is_wanted(guests: Guests) -> None:
    """Every route but health answers 401 without a token, whatever else is wrong with the request."""
    document = guests.api.get("/v1/openapi.json", token=None).json()
    for path, methods in document["paths"].items():
        if path == "/healthz":
            continue
        filled = path.replace("{tariff_id}", "1").replace("{", "").replace("}", "")
        for method in methods:
            answer = guests.api.send(method.upper(), filled, token=None, **_json({} if method == "post" else None))
            problem(answer, 401, "not_authenticated")


@pytest.mark.parametrize(("method", "path", "body"), OPERATORS_ONLY)
def test_a_member_is_no_operator(guests: Guests, method: str, path: str, body: object) -> None:
    problem(guests.api.send(method, path, token=guests.bob, **_json(body)), 403, "forbidden")


@pytest.mark.parametrize("role", [Role.MEMBER, Role.OWNER, Role.AUDITOR])
def test_all_scopes_do_not_make_an_operator(guests: Guests, role: Role) -> None:
    for method, path, body in OPERATORS_ONLY:
        if (role, path) != (Role.AUDITOR, "/v1/people") or method == "POST":
            answer = guests.api.send(method, path, token=guests.token(role), **_json(body))
            if path.endswith("/members"):  # of a cost center that they may not even know
                problem(answer, 404, "not_found")
                continue
            assert role in problem(answer, 403, "forbidden")["detail"]


@pytest.mark.parametrize(("method", "path", "body"), OPERATORS_ONLY)
def test_an_operators_token_without_the_scope_is_not_enough(
    guests: Guests, method: str, path: str, body: object
) -> None:
    secret = guests.token(Role.OPERATOR, Scope.READ, Scope.BOOK)
    refused = problem(guests.api.send(method, path, token=secret, **_json(body)), 403, "forbidden")
    assert "admin" in refused["detail"]


@pytest.mark.parametrize(("path", "body"), BUYS)
def test_a_token_that_may_only_read_buys_nothing(guests: Guests, path: str, body: object) -> None:
    secret = guests.token(Role.OPERATOR, Scope.READ, Scope.ADMIN)
    assert "book" in problem(guests.api.post(path, body, token=secret), 403, "forbidden")["detail"]
    problem(guests.api.post(f"/v1/bookings/{guests.booking}/cancel", token=secret), 403, "forbidden")


def test_a_token_without_read_reads_nothing(guests: Guests) -> None:
    secret = guests.token(Role.OPERATOR, Scope.BOOK, Scope.ADMIN)
    assert "read" in problem(guests.api.get("/v1/me", token=secret), 403, "forbidden")["detail"]


@pytest.mark.parametrize("asked", [["read", "book", "admin"], ["admin"]])
def test_a_token_never_begets_a_mightier_one(guests: Guests, asked: list[str]) -> None:
    refused = guests.api.post("/v1/tokens", {"label": "more", "scopes": asked}, token=guests.bob)
    assert "admin" in problem(refused, 403, "forbidden")["detail"]


def test_a_token_that_may_only_read_makes_and_ends_no_other(guests: Guests) -> None:
    secret = guests.token(Role.OPERATOR, Scope.READ, Scope.ADMIN)
    refused = guests.api.post("/v1/tokens", {"label": "more", "scopes": ["read"]}, token=secret)
    assert "book" in problem(refused, 403, "forbidden")["detail"]
    other = guests.bob_principal.token.id
    problem(guests.api.send("DELETE", f"/v1/tokens/{other}", token=secret), 403, "forbidden")


def test_who_approved_a_tariff_is_told_to_those_who_see_everybody(guests: Guests) -> None:
    def approvers(token: str) -> list[str | None]:
        return [each["approved_by"] for each in guests.api.get("/v1/tariffs", token=token).json()["items"]]

    assert approvers(guests.token(Role.AUDITOR)) == ["ada"]
    assert approvers(guests.bob) == [None]


@pytest.mark.parametrize("way", ["", "/back-out"])
def test_somebody_elses_booking_cannot_be_seen(guests: Guests, way: str) -> None:
    problem(guests.api.get(f"/v1/bookings/{guests.booking}{way}", token=guests.bob), 404, "not_found")


@pytest.mark.parametrize("way", ["cancel", "give-back"])
def test_somebody_elses_booking_cannot_be_left(guests: Guests, way: str) -> None:
    problem(guests.api.post(f"/v1/bookings/{guests.booking}/{way}", token=guests.bob), 404, "not_found")


def test_somebody_elses_quote_can_be_neither_seen_nor_booked(guests: Guests) -> None:
    problem(guests.api.get(f"/v1/quotes/{guests.quote}", token=guests.bob), 404, "not_found")
    problem(guests.api.post("/v1/bookings", {"quote_id": guests.quote}, token=guests.bob), 404, "not_found")


def test_a_refusal_says_the_same_of_what_is_hidden_and_of_what_is_not_there(guests: Guests) -> None:
    """Else a member could find out which ids exist."""
    hidden = guests.api.get(f"/v1/bookings/{guests.booking}", token=guests.bob).json()
    absent = guests.api.get(f"/v1/bookings/{'b_' + '0' * 24}", token=guests.bob).json()
    assert hidden["detail"].replace(guests.booking, "X") == absent["detail"].replace("b_" + "0" * 24, "X")


def test_a_member_lists_their_own_bookings_only(guests: Guests) -> None:
    assert guests.api.get("/v1/bookings", token=guests.bob).json()["items"] == []
    problem(guests.api.get("/v1/bookings?everybody=true", token=guests.bob), 403, "forbidden")
    everybody = guests.api.get("/v1/bookings?everybody=true", token=guests.token(Role.AUDITOR)).json()["items"]
    assert guests.booking in [each["id"] for each in everybody]
    assert len(guests.api.get("/v1/bookings").json()["items"]) == 2


def test_a_member_sees_no_other_cost_center_and_no_other_token(guests: Guests) -> None:
    assert [each["name"] for each in guests.api.get("/v1/cost-centers", token=guests.bob).json()["items"]] == ["lab"]
    tokens = guests.api.get("/v1/tokens", token=guests.bob).json()["items"]
    assert [each["id"] for each in tokens] == [guests.bob_principal.token.id]
    assert "secret" not in tokens[0]


def test_somebody_elses_token_cannot_be_revoked(guests: Guests) -> None:
    operators = guests.api.shop.operator.token.id
    problem(guests.api.send("DELETE", f"/v1/tokens/{operators}", token=guests.bob), 404, "not_found")


def test_the_pool_names_nobody(guests: Guests) -> None:
    shown = guests.api.get("/v1/pool", token=guests.bob).text + guests.api.get("/v1/offers", token=guests.bob).text
    assert "ada" not in shown
    assert "lab" not in shown


def test_seeing_everybodys_bookings_is_not_leaving_them(guests: Guests) -> None:
    """An auditor sees them all, an operator's token without `admin` too; neither leaves one, free or not."""
    path, clock = f"/v1/bookings/{guests.booking}", guests.api.shop.clock
    start = clock.now()
    for secret in (guests.token(Role.AUDITOR), guests.token(Role.OPERATOR, Scope.READ, Scope.BOOK)):
        assert guests.api.get(path, token=secret).status_code == 200
        for wait in (timedelta(0), timedelta(hours=23, minutes=30)):
            clock.set(start + wait)
            for way in ("cancel", "give-back"):
                problem(guests.api.post(f"{path}/{way}", token=secret), 404, "not_found")
        clock.set(start)


def _json(body: object) -> dict[str, object]:
    return {} if body is None else {"json": body}
