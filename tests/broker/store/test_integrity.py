"""What the database itself refuses, tried with raw SQL on both databases: no service stands in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from broker.store import integrity, ledger, migrations
from broker.store.database import Database, OverlapRefused
from broker.wire.errors import NotReady
from market.errors import OverBudget
from market.states import TERMINAL
from tests.support import audit, postgres
from tests.support.brokers import Shop, open_shop
from tests.support.postgres import PostgresServer

MIG, WHOLE, L4 = 1, 2, 3
FAR = 10_000_000
"""A slot beyond every booking of these tests."""


@dataclass
class Raw:
    """Raw SQL on a shop that has one booking of 1 x l4/full, inside one transaction that is never committed."""

    connection: Connection
    booking_id: str

    @classmethod
    def on(cls, shop: Shop) -> Raw:
        connection = shop.context.database.engine.connect()
        connection = connection.execution_options(gputide_immediate=True)
        return cls(connection, connection.execute(text("SELECT id FROM booking")).scalar_one())

    def run(self, statement: str, **values: Any) -> None:
        """Runs a statement; one that is refused leaves nothing behind."""
        with self.connection.begin_nested():
            self.connection.execute(text(statement), values)

    def one(self, query: str, **values: Any) -> Any:
        return self.connection.execute(text(query), values).scalars().first()

    def number_events(self) -> None:
        self.run("UPDATE event SET seq = id")

    def promise(self, device: int, what: int | tuple[int, int], slots: tuple[int, int], how: str = "INSERT") -> int:
        """Inserts a promise of thousandths, or of cells `[first, end)`, and returns its id."""
        cells, thousandths = (what, 0) if isinstance(what, tuple) else ((0, 0), what)
        self.run(
            f"{how} INTO allocation"
            " (booking_id, device_id, first_cell, end_cell, thousandths, first_slot, end_slot)"
            " VALUES (:booking, :device, :first_cell, :end_cell, :thousandths, :first_slot, :end_slot)",
            booking=self.booking_id,
            device=device,
            first_cell=cells[0],
            end_cell=cells[1],
            thousandths=thousandths,
            first_slot=FAR + slots[0],
            end_slot=FAR + slots[1],
        )
        return int(self.one("SELECT max(id) FROM allocation"))

    def account(self, kind: str) -> int:
        return int(self.one("SELECT id FROM account WHERE kind = :kind ORDER BY id", kind=kind))

    def transfer(self, debit: int, credit: int, amount: int, how: str = "INSERT") -> None:
        self.run(
            f"{how} INTO transfer (debit_id, credit_id, amount, reason, at) VALUES (:debit, :credit, :amount, 'x', 0)",
            debit=debit,
            credit=credit,
            amount=amount,
        )


@pytest.fixture(scope="module")
def shops(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Shop]]:
    """A shop with one booking on each database, for all tests that commit nothing."""
    sqlite = f"sqlite:///{tmp_path_factory.mktemp('integrity') / 'gputide.db'}"
    opened = {"sqlite": open_shop(sqlite), "postgres": open_shop(postgres.fresh_database(postgres_server))}
    for each in opened.values():
        each.buy()
    yield opened
    for each in opened.values():
        each.context.database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def raw(request: pytest.FixtureRequest, shops: dict[str, Shop]) -> Iterator[Raw]:
    made = Raw.on(shops[request.param])
    yield made
    made.connection.close()


@pytest.fixture
def sqlite_raw(shops: dict[str, Shop]) -> Iterator[Raw]:
    made = Raw.on(shops["sqlite"])
    yield made
    made.connection.close()


def refused(rule: str) -> Any:
    """The database refuses, and names this rule."""
    return pytest.raises(DBAPIError, match=rule)


OVERLAP = "allocation_overlap|allocation_no_overlap"


# --- cells of a partitioned device ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "slots"),
    [
        ((0, 4), (0, 10)),
        ((3, 4), (9, 10)),
        ((0, 8), (5, 20)),
        ((0, 1), (-5, 1)),
        ((2, 3), (-5, 20)),
        ((1, 2), (4, 5)),
    ],
)
def test_cells_that_are_promised_are_not_promised_again(
    raw: Raw, cells: tuple[int, int], slots: tuple[int, int]
) -> None:
    raw.promise(MIG, (0, 4), (0, 10))
    with refused(OVERLAP):
        raw.promise(MIG, cells, slots)


@pytest.mark.parametrize(
    ("cells", "slots"), [((4, 8), (0, 10)), ((0, 4), (10, 20)), ((0, 8), (-5, 0)), ((4, 5), (-9, 9))]
)
def test_cells_beside_or_after_promised_ones_are_free(raw: Raw, cells: tuple[int, int], slots: tuple[int, int]) -> None:
    raw.promise(MIG, (0, 4), (0, 10))
    raw.promise(MIG, cells, slots)
    assert audit.overlapping(audit.live_places(raw.connection)) == []


# --- thousandths of a shared device --------------------------------------------------------------------------------


def test_the_peak_counts_and_not_the_sum(raw: Raw) -> None:
    for thousandths, slots in ((600, (0, 10)), (600, (10, 20)), (400, (0, 20))):
        raw.promise(L4, thousandths, slots)
    for slots in ((0, 1), (9, 10), (10, 11), (19, 20), (-3, 1), (19, 23), (0, 20), (5, 15)):
        with refused(OVERLAP):
            raw.promise(L4, 1, slots)
    raw.promise(L4, 1000, (20, 30))
    raw.promise(L4, 1000, (-10, 0))


def test_a_peak_within_the_window_of_a_newcomer_is_seen(raw: Raw) -> None:
    """It is free at both ends and full in between, where two promises that start later meet."""
    raw.promise(L4, 500, (2, 6))
    raw.promise(L4, 500, (4, 8))
    with refused(OVERLAP):
        raw.promise(L4, 1, (0, 10))
    raw.promise(L4, 500, (0, 4))


# --- UPDATE is no way around ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["cells", "thousandths"])
@pytest.mark.parametrize(
    "change",
    [
        "first_slot = first_slot - 1",
        "first_slot = first_slot - 10, end_slot = end_slot - 10",
        "first_slot = first_slot - 30, end_slot = end_slot + 30",
    ],
)
def test_a_promise_is_not_moved_onto_another(raw: Raw, what: str, change: str) -> None:
    device, extent = (MIG, (0, 4)) if what == "cells" else (L4, 600)
    raw.promise(device, extent, (0, 10))
    later = raw.promise(device, extent, (10, 20))
    with refused(OVERLAP):
        raw.run(f"UPDATE allocation SET {change} WHERE id = :id", id=later)


def test_a_promise_does_not_grow_into_another(raw: Raw) -> None:
    raw.promise(MIG, (0, 4), (0, 10))
    cells = raw.promise(MIG, (4, 8), (0, 10))
    with refused(OVERLAP):
        raw.run("UPDATE allocation SET first_cell = 3 WHERE id = :id", id=cells)
    raw.promise(L4, 600, (0, 10))
    part = raw.promise(L4, 400, (0, 10))
    with refused(OVERLAP):
        raw.run("UPDATE allocation SET thousandths = 401 WHERE id = :id", id=part)


def test_a_promise_is_not_moved_to_a_device_that_is_full(raw: Raw) -> None:
    raw.promise(L4, 1000, (0, 10))
    elsewhere = raw.promise(L4 + 1, 500, (0, 10))
    with refused(OVERLAP):
        raw.run("UPDATE allocation SET device_id = :device WHERE id = :id", device=L4, id=elsewhere)


@pytest.mark.parametrize(("device", "extent"), [(MIG, (0, 4)), (L4, 600)])
def test_a_released_promise_does_not_come_back_over_another(raw: Raw, device: int, extent: Any) -> None:
    first = raw.promise(device, extent, (0, 10))
    raw.run("UPDATE allocation SET released_at = 1 WHERE id = :id", id=first)
    raw.promise(device, extent, (5, 15))
    with refused(OVERLAP):
        raw.run("UPDATE allocation SET released_at = NULL WHERE id = :id", id=first)


def test_a_promise_may_be_changed_where_it_stands(raw: Raw) -> None:
    """A row does not overlap itself."""
    cells, part = raw.promise(MIG, (0, 8), (0, 10)), raw.promise(L4, 1000, (0, 10))
    for each in (cells, part):
        raw.run("UPDATE allocation SET first_slot = first_slot + 1, end_slot = end_slot + 1 WHERE id = :id", id=each)
        raw.run("UPDATE allocation SET released_at = 1 WHERE id = :id", id=each)
        raw.run("UPDATE allocation SET released_at = NULL WHERE id = :id", id=each)


# --- kinds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("device", "extent"), [(MIG, 500), (WHOLE, (0, 4)), (L4, (0, 1))])
def test_a_promise_of_the_wrong_kind_is_refused(raw: Raw, device: int, extent: Any) -> None:
    with refused("allocation_kind"):
        raw.promise(device, extent, (0, 10))


def test_a_promise_does_not_become_one_of_the_wrong_kind(raw: Raw) -> None:
    made = raw.promise(L4, 500, (0, 10))
    with refused("allocation_kind"):
        raw.run("UPDATE allocation SET device_id = :device WHERE id = :id", device=MIG, id=made)


def test_a_promise_is_released_even_if_its_device_has_become_another_kind(raw: Raw) -> None:
    """Else a booking whose device was cut anew after its window could never expire, and its hold stayed open."""
    made = raw.promise(L4, 500, (0, 10))
    raw.run("UPDATE device SET kind = 'mig' WHERE id = :id", id=L4)
    raw.run("UPDATE allocation SET released_at = 1 WHERE id = :id", id=made)
    with refused("allocation_kind"):
        raw.run("UPDATE allocation SET released_at = NULL WHERE id = :id", id=made)


@pytest.mark.parametrize("extent", [0, 1001, -1, (4, 4), (-1, 2), (4, 9)])
def test_an_extent_that_no_device_has_is_refused(raw: Raw, extent: Any) -> None:
    with refused("allocation_extent|allocation_kind|allocation_overlap"):
        raw.promise(L4 if isinstance(extent, int) else MIG, extent, (0, 10))


def test_a_promise_of_no_time_is_refused(raw: Raw) -> None:
    for slots in ((5, 5), (5, 4)):
        with refused("allocation_slots"):
            raw.promise(L4, 500, slots)


def test_a_promise_of_no_booking_and_one_of_no_device_are_refused(raw: Raw) -> None:
    with refused("(?i)foreign key"):
        raw.promise(999, 500, (0, 10))
    raw.booking_id = "b_none"
    with refused("(?i)foreign key"):
        raw.promise(L4, 500, (0, 10))


# --- SQLite: INSERT OR REPLACE and its kin -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["INSERT OR REPLACE", "INSERT OR IGNORE"])
def test_no_conflict_clause_slips_a_promise_past(sqlite_raw: Raw, how: str) -> None:
    sqlite_raw.promise(MIG, (0, 4), (0, 10))
    sqlite_raw.promise(L4, 600, (0, 10))
    for device, extent in ((MIG, (3, 5)), (L4, 401)):
        with refused(OVERLAP):
            sqlite_raw.promise(device, extent, (9, 12), how)


@pytest.mark.parametrize(
    ("table", "key", "change", "rule"),
    [
        ("transfer", "id", "amount = amount + 1", "transfer_append_only"),
        ("price_book", "number", "digest = 'x'", "price_book_append_only"),
        ("tariff", "id", "document = 'x'", "tariff_frozen"),
        ("event", "id", "seq = seq + 100", "event_frozen"),
        ("booking", "id", "state = 'confirmed'", "booking_final"),
    ],
)
def test_a_row_that_is_final_is_not_replaced(sqlite_raw: Raw, table: str, key: str, change: str, rule: str) -> None:
    """A replacement is a deletion and an insertion: without `recursive_triggers` and a rule for it, it slips past."""
    sqlite_raw.run("UPDATE booking SET state = 'cancelled'")
    sqlite_raw.number_events()
    row = dict(sqlite_raw.connection.execute(text(f"SELECT * FROM {table} ORDER BY {key}")).mappings().first() or {})
    assert row
    column, _, value = change.partition(" = ")
    names = ", ".join(row)
    values = ", ".join(value if name == column else name for name in row)
    with refused(rule):
        replacement = f"REPLACE INTO {table} ({names}) SELECT {values} FROM {table} WHERE {key} = :key"
        sqlite_raw.run(replacement, key=row[key])


def test_no_conflict_clause_slips_a_debit_past_the_cap(sqlite_raw: Raw) -> None:
    """With OR IGNORE, SQLite skips a statement of a trigger that fails a check: the debit, but not the credit."""
    budget, held = sqlite_raw.account("budget"), sqlite_raw.account("held")
    left = sqlite_raw.one("SELECT balance FROM account WHERE id = :id", id=budget)
    for how in ("INSERT OR IGNORE", "INSERT OR REPLACE"):
        with refused("account_balance"):
            sqlite_raw.transfer(budget, held, left + 1, how)
    assert audit.faults(sqlite_raw.connection) == []


# --- append-only and final -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfer SET amount = amount + 1",
        "UPDATE transfer SET at = at",
        "DELETE FROM transfer",
        "UPDATE price_book SET digest = 'x'",
        "UPDATE price_book SET number = number + 1",
        "DELETE FROM price_book",
    ],
)
def test_transfers_and_price_books_are_only_added(raw: Raw, statement: str) -> None:
    with refused("_append_only"):
        raw.run(statement)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tariff SET document = 'x'",
        "UPDATE tariff SET in_force_from = in_force_from + 1",
        "UPDATE tariff SET approved_by = NULL, in_force_from = NULL",
        "UPDATE tariff SET name = 'other'",
        "DELETE FROM tariff",
    ],
)
def test_an_approved_tariff_never_changes(raw: Raw, change: str) -> None:
    with refused("tariff_frozen"):
        raw.run(change)


def test_a_proposed_tariff_may_be_approved(raw: Raw) -> None:
    raw.run("INSERT INTO tariff (name, document, proposed_at) VALUES ('next', 'x', 0)")
    approve = "UPDATE tariff SET approved_by = (SELECT id FROM person), in_force_from = 9 WHERE name = 'next'"
    raw.run(approve)
    with refused("tariff_frozen"):
        raw.run(approve)


@pytest.mark.parametrize(
    "change", ["seq = seq + 100", "seq = NULL", "kind = 'x'", "data = '{}'", "subject = 'x'", "at = at + 1"]
)
def test_a_numbered_event_never_changes(raw: Raw, change: str) -> None:
    raw.number_events()
    with refused("event_frozen"):
        raw.run(f"UPDATE event SET {change}")
    with refused("event_frozen"):
        raw.run("DELETE FROM event")


@pytest.mark.parametrize(
    "change", ["kind = 'x'", "data = '{}'", "subject = 'x'", "at = at + 1", "seq = 10, data = '{}'", "person_id = NULL"]
)
def test_of_an_event_without_a_number_only_that_may_be_set(raw: Raw, change: str) -> None:
    which = raw.one("SELECT id FROM event WHERE seq IS NULL AND person_id IS NOT NULL AND data <> '{}'")
    with refused("event_frozen"):
        raw.run(f"UPDATE event SET {change} WHERE id = :id", id=which)
    raw.run("UPDATE event SET seq = 1 WHERE id = :id", id=which)


def test_two_events_never_have_one_number(raw: Raw) -> None:
    with refused("(?i)unique"):
        raw.run("UPDATE event SET seq = 1 WHERE seq IS NULL")


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_terminal_state_is_final(raw: Raw, state: str) -> None:
    raw.run("UPDATE booking SET state = :state", state=state)
    for other in ("confirmed", "cancelled" if state != "cancelled" else "ended"):
        with refused("booking_final"):
            raw.run("UPDATE booking SET state = :other", other=other)
    for change in ("charged = total", "fee = 0", "rate = 0", "person_id = 'x'"):
        with refused("booking_final"):
            raw.run(f"UPDATE booking SET {change}")


def test_a_promise_in_force_is_released_and_not_deleted(raw: Raw) -> None:
    made = raw.promise(L4, 500, (0, 10))
    with refused("allocation_live"):
        raw.run("DELETE FROM allocation WHERE id = :id", id=made)
    raw.run("UPDATE allocation SET released_at = 1 WHERE id = :id", id=made)
    raw.run("DELETE FROM allocation WHERE id = :id", id=made)


@pytest.mark.parametrize(
    "change",
    ["authorised = authorised + 1", "captured = captured - 1", "released = released - 1", "period_start = 0"],
)
def test_what_a_hold_has_captured_and_released_only_grows(raw: Raw, change: str) -> None:
    raw.run("UPDATE hold SET captured = 10, released = 10")
    with refused("hold_forward"):
        raw.run(f"UPDATE hold SET {change}")
    with refused("hold_forward"):
        raw.run("DELETE FROM hold")
    raw.run("UPDATE hold SET captured = captured + 1, released = released + 1")


@pytest.mark.parametrize("table", ["transfer", "price_book", "event", "booking", "hold", "allocation", "tariff"])
def test_truncating_is_no_way_around(shops: dict[str, Shop], table: str) -> None:
    """PostgreSQL alone has it, and fires no trigger of a row."""
    made = Raw.on(shops["postgres"])
    with refused(f"(?i){table}_no_truncate|foreign key"):
        made.run(f"TRUNCATE {table}")
    with refused("_no_truncate"):
        made.run(f"TRUNCATE {table} CASCADE")
    assert f"{table}_no_truncate" not in integrity.missing(made.connection)
    made.connection.close()


def test_there_is_one_account_of_grants(raw: Raw) -> None:
    with refused("(?i)unique"):
        raw.run("INSERT INTO account (kind) VALUES ('grants')")


# --- money ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["budget", "held", "revenue"])
def test_no_account_but_the_grants_goes_below_zero(raw: Raw, kind: str) -> None:
    account, grants = raw.account(kind), raw.account("grants")
    balance = raw.one("SELECT balance FROM account WHERE id = :id", id=account)
    with refused("account_balance"):
        raw.transfer(account, grants, balance + 1)
    assert raw.one("SELECT balance FROM account WHERE id = :id", id=account) == balance
    raw.transfer(grants, account, 10)
    raw.transfer(account, grants, balance + 10)
    with Session(raw.connection) as session:
        assert ledger.imbalances(session) == []


def test_a_transfer_of_nothing_and_one_to_itself_are_refused(raw: Raw) -> None:
    budget, held = raw.account("budget"), raw.account("held")
    for amount in (0, -5):
        with refused("transfer_amount"):
            raw.transfer(budget, held, amount)
    with refused("transfer_accounts"):
        raw.transfer(budget, budget, 5)


def test_a_transfer_is_reversed_once(raw: Raw) -> None:
    first = int(raw.one("SELECT min(id) FROM transfer"))
    budget, held = raw.account("budget"), raw.account("held")
    statement = (
        "INSERT INTO transfer (debit_id, credit_id, amount, reason, reverses_id, at)"
        " VALUES (:budget, :held, 1, 'x', :first, 0)"
    )
    raw.run(statement, budget=budget, held=held, first=first)
    with refused("(?i)unique"):
        raw.run(statement, budget=budget, held=held, first=first)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("captured = authorised + 1", "hold_authorised"),
        ("captured = authorised, released = 1", "hold_authorised"),
        ("released = authorised + 1", "hold_authorised"),
        ("captured = -1", "hold_parts|hold_forward"),
        ("released = -1, captured = 1", "hold_parts|hold_forward"),
        ("authorised = 0", "hold_parts|hold_authorised|hold_forward"),
    ],
)
def test_of_a_hold_never_more_is_taken_than_was_authorised(raw: Raw, change: str, rule: str) -> None:
    with refused(rule):
        raw.run(f"UPDATE hold SET {change}")


@pytest.mark.parametrize("change", ["charged = total + 1", "charged = -1", "charged = 1, fee = 2", "fee = -1"])
def test_a_booking_never_charges_more_than_its_total_nor_a_fee_above_its_charge(raw: Raw, change: str) -> None:
    with refused("booking_charge"):
        raw.run(f"UPDATE booking SET {change}")


# --- the refusals as the broker names them -------------------------------------------------------------------------


def test_a_refused_promise_reaches_the_broker_as_one(shop: Shop) -> None:
    booking = shop.buy().body["id"]
    slots = {"booking_id": booking, "first_slot": FAR, "end_slot": FAR + 4}
    for values in (
        {"device_id": MIG, "first_cell": 0, "end_cell": 4, "thousandths": 0},
        {"device_id": L4, "first_cell": 0, "end_cell": 0, "thousandths": 501},
    ):
        _write(shop, "allocation", {**values, **slots})
        with pytest.raises(OverlapRefused):
            _write(shop, "allocation", {**values, **slots})


def test_a_promise_of_the_wrong_kind_reaches_the_broker_as_a_stale_board(shop: Shop) -> None:
    """Another process cut the device anew; the broker reads its board again, as for any other place that is gone."""
    slots = {"booking_id": shop.buy().body["id"], "first_slot": FAR, "end_slot": FAR + 4}
    with pytest.raises(OverlapRefused):
        _write(shop, "allocation", {"device_id": MIG, "first_cell": 0, "end_cell": 0, "thousandths": 500, **slots})


def test_a_debit_beyond_the_cap_reaches_the_broker_as_over_budget(shop: Shop) -> None:
    with shop.context.database.read() as session:
        accounts = {kind: number for number, kind in session.connection().execute(text("SELECT id, kind FROM account"))}
    values = {"debit_id": accounts["revenue"], "credit_id": accounts["held"], "amount": 1, "reason": "x", "at": 0}
    with pytest.raises(OverBudget):
        _write(shop, "transfer", values)


def _write(shop: Shop, table: str, values: dict[str, Any]) -> None:
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    statement = text(f"INSERT INTO {table} ({names}) VALUES ({marks})")
    shop.context.database.write(lambda session: session.connection().execute(statement, values))


# --- two writers at once, without the broker's own order -------------------------------------------------------------


@pytest.mark.parametrize(("device", "extent"), [(MIG, (0, 4)), (L4, 600)])
def test_a_writer_waits_for_another_of_the_same_device_and_is_refused_then(
    postgres_server: PostgresServer, device: int, extent: Any
) -> None:
    """On PostgreSQL a promise that is not committed yet is invisible, so the rule itself must wait for it."""
    shop = open_shop(postgres.fresh_database(postgres_server))
    booking, engine = shop.buy().body["id"], shop.context.database.engine
    with engine.connect() as first, engine.connect() as second:
        Raw(first, booking).promise(device, extent, (0, 10))
        second.execute(text("SET lock_timeout = '100ms'"))
        with refused("lock timeout"):
            Raw(second, booking).promise(device, extent, (5, 15))
        first.commit()
        with refused(OVERLAP):
            Raw(second, booking).promise(device, extent, (5, 15))
    shop.context.database.close()


# --- start-up ------------------------------------------------------------------------------------------------------


def test_a_broker_does_not_start_without_one_of_the_rules(shop: Shop) -> None:
    database = shop.context.database
    for name, drop in _every_rule(database).items():
        with database.engine.begin() as connection:
            connection.execute(text(drop))
        with pytest.raises(NotReady, match=name):
            migrations.assert_current(database)
        migrations.upgrade(database)
        migrations.assert_current(database)


def _every_rule(database: Database) -> dict[str, str]:
    """The statement that drops each rule, as this database lists its rules itself."""
    if database.is_sqlite:
        query = "SELECT name, 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = (
            "SELECT tgname, 'DROP TRIGGER ' || tgname || ' ON ' || tgrelid::regclass"
            " FROM pg_trigger WHERE NOT tgisinternal UNION"
            " SELECT conname, 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || conname"
            " FROM pg_constraint WHERE contype = 'x'"
        )
    with database.engine.connect() as connection:
        found = {str(name): str(drop) for name, drop in connection.execute(text(query))}
    assert len(found) > 5
    return found


def test_the_audit_of_these_tests_sees_an_overlap(shop: Shop) -> None:
    """With the rules dropped by hand, what they refuse goes in, and the audit must find it."""
    database = shop.context.database
    assert audit.faults(database.engine) == []
    booking = shop.buy().body["id"]
    with database.engine.begin() as connection:
        for drop in _every_rule(database).values():
            connection.execute(text(drop))
        raw = Raw(connection, booking)
        raw.promise(MIG, (0, 4), (0, 10))
        raw.promise(MIG, (3, 8), (9, 12))
        raw.promise(L4, 600, (0, 10))
        raw.promise(L4, 401, (9, 12))
        raw.run("UPDATE account SET balance = balance + 1 WHERE kind = 'held'")
        raw.run("UPDATE hold SET released = 1")
        found = "\n".join(audit.faults(connection))
    for part in (f"device {MIG}: cells", f"device {L4}: 1001 thousandths", "the holds say", "places instead of"):
        assert part in found
    assert "do not fit" in found


# --- rules that were weakened ---------------------------------------------------------------------------------------

EXCLUSION = "ALTER TABLE allocation ADD CONSTRAINT allocation_no_overlap EXCLUDE USING gist ("
CELLS = "int8range(device_id, device_id, '[]') WITH &&, int4range(first_cell, end_cell) WITH &&, "
FINAL = "CREATE TRIGGER booking_final {} ON {} FOR EACH ROW {} EXECUTE FUNCTION booking_final()"


@pytest.mark.parametrize(
    ("rule", "weakened"),
    [
        ("booking_final", ["ALTER TABLE booking DISABLE TRIGGER booking_final"]),
        ("booking_final", ["ALTER TABLE booking ENABLE REPLICA TRIGGER booking_final"]),
        ("booking_final", ["DROP TRIGGER booking_final ON booking", FINAL.format("BEFORE UPDATE", "hold", "")]),
        ("booking_final", ["DROP TRIGGER booking_final ON booking", FINAL.format("BEFORE INSERT", "booking", "")]),
        (
            "booking_final",
            ["DROP TRIGGER booking_final ON booking", FINAL.format("BEFORE UPDATE", "booking", "WHEN (false)")],
        ),
        (
            "booking_final",
            ["DROP TRIGGER booking_final ON booking", FINAL.format("BEFORE UPDATE OF state", "booking", "")],
        ),
        (
            "booking_final",
            ["CREATE OR REPLACE FUNCTION booking_final() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"],
        ),
        (
            "allocation_no_overlap",
            [
                "ALTER TABLE allocation DROP CONSTRAINT allocation_no_overlap",
                f"{EXCLUSION}{CELLS}int8range(first_slot, end_slot) WITH &&) WHERE (false)",
            ],
        ),
        ("account_balance", ["ALTER TABLE account DROP CONSTRAINT account_balance"]),
    ],
)
def test_a_rule_that_was_weakened_is_missing_and_made_anew(
    shops: dict[str, Shop], rule: str, weakened: list[str]
) -> None:
    made = Raw.on(shops["postgres"])
    assert integrity.missing(made.connection) == set()
    for statement in weakened:
        made.run(statement)
    assert integrity.missing(made.connection) == {rule}
    if rule != "account_balance":
        integrity.ensure(made.connection)
        assert integrity.missing(made.connection) == set()
    made.connection.close()


def test_a_trigger_of_sqlite_that_says_something_else_is_missing(sqlite_raw: Raw) -> None:
    sqlite_raw.run("DROP TRIGGER booking_final")
    sqlite_raw.run("CREATE TRIGGER booking_final BEFORE UPDATE ON booking BEGIN SELECT 1; END")
    assert integrity.missing(sqlite_raw.connection) == {"booking_final"}


@pytest.mark.parametrize(("table", "key"), [("transfer", "id"), ("price_book", "number"), ("tariff", "id")])
def test_a_plain_shell_replaces_nothing_either(shops: dict[str, Shop], table: str, key: str) -> None:
    """Without the broker's settings a REPLACE fires no trigger of the deletion that it is."""
    path = shops["sqlite"].context.database.engine.url.database
    with closing(sqlite3.connect(str(path))) as plain:
        columns = [row[1] for row in plain.execute(f"PRAGMA table_info({table})")]
        names = ", ".join(columns)
        with pytest.raises(sqlite3.IntegrityError, match=r"append_only|frozen"):
            plain.execute(
                f"INSERT OR REPLACE INTO {table} ({names}) SELECT {names} FROM {table} ORDER BY {key} LIMIT 1"
            )
        plain.rollback()
