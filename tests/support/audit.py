"""An audit of a database by its rows alone: it shares no query, trigger or array with what it audits.

`faults` reads the tables with plain SQL and sweeps them in Python, so that a rule that the database fails to enforce,
or a service that loses a hold, is seen by somebody who did not write it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, text

from broker.store.tables import TABLES

OPEN_STATES = ("held", "confirmed", "active")


class Place(NamedTuple):
    """A live allocation as its row says it."""

    device: int
    first_cell: int
    end_cell: int
    thousandths: int
    first_slot: int
    end_slot: int


def faults(at: Engine | Connection) -> list[str]:
    """What is wrong with the promises and the money of a database, in words; empty when nothing is."""
    if isinstance(at, Engine):
        with at.connect() as connection:
            return faults(connection)
    return [*overlapping(live_places(at)), *_stranded(at), *_false_balances(at), *_false_holds(at)]


def live_places(connection: Connection) -> list[Place]:
    """Every allocation that is in force."""
    query = "SELECT device_id, first_cell, end_cell, thousandths, first_slot, end_slot FROM allocation"
    return [Place(*row) for row in connection.execute(text(f"{query} WHERE released_at IS NULL"))]


def contents(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table: what a refused or undone request must leave as it was."""
    with engine.connect() as connection:
        return {
            table: sorted((tuple(row) for row in connection.execute(text(f"SELECT * FROM {table}"))), key=repr)
            for table in sorted(TABLES.tables)
        }


def overlapping(places: Iterable[Place]) -> list[str]:
    """Devices that are promised twice somewhere: a sweep over time, cell by cell and thousandth by thousandth."""
    by_device: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        by_device[place.device].append(place)
    return [f"device {device}: {what}" for device, held in sorted(by_device.items()) for what in _conflicts(held)]


def _conflicts(held: list[Place]) -> Iterator[str]:
    edges = sorted({edge for place in held for edge in (place.first_slot, place.end_slot)})
    for start, _ in pairwise(edges):
        here = [place for place in held if place.first_slot <= start < place.end_slot]
        cells = [cell for place in here for cell in range(place.first_cell, place.end_cell)]
        if len(cells) != len(set(cells)):
            yield f"cells {sorted(cells)} in slot {start}"
        if (promised := sum(place.thousandths for place in here)) > 1000:
            yield f"{promised} thousandths in slot {start}"
        if cells and promised:
            yield f"cells and thousandths in slot {start}"


def _stranded(connection: Connection) -> Iterator[str]:
    """Bookings whose places are not those of their state, one for each slice while open and none after."""
    places = "SELECT count(*) FROM allocation a WHERE a.booking_id = b.id AND a.released_at IS NULL"
    for row in _rows(connection, f"SELECT b.id, b.state, b.slices, ({places}) AS places FROM booking b"):
        wanted = row["slices"] if row["state"] in OPEN_STATES else 0
        if row["places"] != wanted:
            yield f"booking {row['id']} is {row['state']} with {row['places']} places instead of {wanted}"


def _false_holds(connection: Connection) -> Iterator[str]:
    """Bookings whose holds are not their total, are still open after the end, or captured another charge."""
    sums = "coalesce(sum(h.authorised), 0) AS authorised, coalesce(sum(h.captured), 0) AS captured"
    sums += ", coalesce(sum(h.released), 0) AS released"
    columns = "b.id, b.state, b.total, b.charged"
    query = f"SELECT {columns}, {sums} FROM booking b LEFT JOIN hold h ON h.booking_id = b.id GROUP BY {columns}"
    for row in _rows(connection, query):
        settled = row["captured"] + row["released"]
        wanted = 0 if row["state"] in OPEN_STATES else row["total"]
        if (row["authorised"], settled, row["captured"]) != (row["total"], wanted, row["charged"]):
            yield f"holds of booking {dict(row)} do not fit it"


def _false_balances(connection: Connection) -> Iterator[str]:
    """Accounts whose balance is not what their transfers say, or `held` and `revenue` not what the holds say."""
    balance: dict[int, int] = defaultdict(int)
    for row in _rows(connection, "SELECT debit_id, credit_id, amount FROM transfer"):
        balance[row["debit_id"]] -= row["amount"]
        balance[row["credit_id"]] += row["amount"]
    holds: dict[tuple[str, Any, Any], int] = defaultdict(int)
    for row in _rows(connection, "SELECT * FROM hold"):
        budget = (row["cost_center_id"], row["period_start"])
        holds["held", *budget] += row["authorised"] - row["captured"] - row["released"]
        holds["revenue", *budget] += row["captured"]
    for row in _rows(connection, "SELECT * FROM account"):
        if row["balance"] != balance[row["id"]]:
            yield f"account {row['id']} has {row['balance']}, its transfers say {balance[row['id']]}"
        wanted = holds[row["kind"], row["cost_center_id"], row["period_start"]]
        if row["kind"] in ("held", "revenue") and row["balance"] != wanted:
            yield f"account {row['id']} ({row['kind']}) has {row['balance']}, the holds say {wanted}"


def _rows(connection: Connection, query: str) -> list[Any]:
    return list(connection.execute(text(query)).mappings())
