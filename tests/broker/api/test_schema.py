"""The API against its own OpenAPI document: whatever is sent, the answer is one that the document declares.

The examples are the same in every run; a finding reproduces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from broker.app import create_app
from tests.support.api import open_api
from tests.support.brokers import Shop, open_shop, small_pool

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


LATER = "2026-12-03T12:00:00Z"
OPERATIONS = 27
"""How many the document has; a new route is asked as soon as it is there, and is counted here."""


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop with some of everything, so that examples find something."""
    shop = open_shop(f"sqlite:///{tmp_path_factory.mktemp('schema') / 'gputide.db'}", small_pool(nodes=3))
    shop.buy("1 x l4/half", start="2026-12-02T12:00:00Z")
    shop.person("bob")
    yield shop
    shop.context.database.close()


@pytest.fixture(scope="module")
def operations(operated: Shop) -> list[APIOperation]:
    document = schemathesis.openapi.from_asgi("/v1/openapi.json", create_app(operated.context, loops=False))
    return [each.ok() for each in document.get_all_operations()]


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("number", range(OPERATIONS))
def test_every_answer_is_declared(
    operations: list[APIOperation], operated: Shop, number: int, mode: GenerationMode
) -> None:
    @settings(max_examples=25, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=operations[number].as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        case.headers = {**case.headers, "Authorization": f"Bearer {operated.secret}"}
        if case.path == "/v1/events":
            case.query = {**case.query, "follow": "false"}
        case.call_and_validate(checks=CHECKS)

    try:
        ask()
    except Unsatisfiable:  # what this route is asked cannot be wrong
        assert mode is GenerationMode.NEGATIVE
        asked = operations[number]
        assert not any(map(len, (asked.path_parameters, asked.query, asked.body)))


def test_every_operation_is_asked(operations: list[APIOperation]) -> None:
    assert len(operations) == OPERATIONS


def test_answers_of_a_whole_purchase_are_declared(operations: list[APIOperation], operated: Shop) -> None:
    """Examples made from the document alone rarely name something that can be bought."""
    declared = {each.label: each for each in operations}

    def ask(label: str, path: str, body: object = None, status: int = 200) -> dict[str, Any]:
        method, _, _ = label.partition(" ")
        answer = api.post(path, body) if method == "POST" else api.get(path)
        assert answer.status_code == status, answer.text
        declared[label].validate_response(answer)
        return answer.json()

    with open_api(operated) as api:
        ask("GET /v1/curves/{model}/{shape}", "/v1/curves/l4/half")
        made = ask("POST /v1/quotes", "/v1/quotes", {"need": "1 x l4/half", "seconds": 900, "start": LATER}, 201)
        ask("GET /v1/quotes/{quote_id}", f"/v1/quotes/{made['id']}")
        booked = ask("POST /v1/bookings", "/v1/bookings", {"quote_id": made["id"]}, 201)
        ask("POST /v1/bookings", "/v1/bookings", {"quote_id": made["id"]}, 409)
        one, path = "/v1/bookings/{booking_id}", f"/v1/bookings/{booked['id']}"
        ask(f"GET {one}", path)
        ask(f"GET {one}/back-out", f"{path}/back-out")
        ask(f"POST {one}/cancel", f"{path}/cancel")
        ask(f"POST {one}/cancel", f"{path}/cancel", None, 409)
        ask("POST /v1/quotes", "/v1/quotes", {"need": "9 x l4/full", "seconds": 900}, 409)
        ask("POST /v1/cost-centers/{name}/budgets", "/v1/cost-centers/lab/budgets", {"amount": 1}, 201)
        ask("GET /v1/pool", "/v1/pool?limit=1")
