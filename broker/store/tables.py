"""The tables. Money is BIGINT micros, a time is an instant or a slot; what must hold is a constraint.

Rules that no column constraint can say (overlap, append-only, balances) are in `integrity`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, UniqueConstraint, text
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel

from broker.store.types import JsonText, PackedJson, UtcInstant

_BigId = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only in an INTEGER PRIMARY KEY
TABLES = SQLModel.metadata


class Row(SQLModel):
    """A table named after its class: `CostCenterRow` is `cost_center`."""

    @declared_attr  # pyright: ignore[reportArgumentType] - SQLModel types the attribute, not the function
    def __tablename__(cls) -> str:  # noqa: N805  # pyright: ignore[reportIncompatibleVariableOverride]
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()


def _serial() -> Any:
    return Field(default=None, sa_column=Column(_BigId, primary_key=True, autoincrement=True))


def _big(*, index: bool = False, nullable: bool = False) -> Any:
    return Field(sa_column=Column(BigInteger, nullable=nullable, index=index))


def _instant(*, nullable: bool = False) -> Any:
    if nullable:
        return Field(default=None, sa_column=Column(UtcInstant, nullable=True))
    return Field(sa_column=Column(UtcInstant, nullable=False))


def _json() -> Any:
    return Field(sa_column=Column(JsonText, nullable=False))


def _only(condition: str) -> dict[str, Any]:
    """Makes an index one of the rows that meet a condition."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


class OrganisationRow(Row, table=True):
    id: str = Field(primary_key=True)
    name: str = Field(unique=True)
    zone: str


class PersonRow(Row, table=True):
    id: str = Field(primary_key=True)
    organisation_id: str = Field(foreign_key="organisation.id")
    name: str = Field(unique=True)
    role: str
    active: bool = True
    default_cost_center_id: str | None = None


class TokenRow(Row, table=True):
    """A token's secret is never stored, only its sha256. `parent_id` is the token that asked for it, if one did."""

    id: str = Field(primary_key=True)
    person_id: str = Field(foreign_key="person.id", index=True)
    parent_id: str | None = Field(default=None, foreign_key="token.id", index=True)
    label: str
    digest: str = Field(unique=True)
    scopes: list[str] = _json()
    created_at: datetime = _instant()
    expires_at: datetime = _instant()
    revoked_at: datetime | None = _instant(nullable=True)


class CostCenterRow(Row, table=True):
    id: str = Field(primary_key=True)
    organisation_id: str = Field(foreign_key="organisation.id")
    name: str = Field(unique=True)
    owner_id: str = Field(foreign_key="person.id")


class CostCenterMemberRow(Row, table=True):
    cost_center_id: str = Field(primary_key=True, foreign_key="cost_center.id")
    person_id: str = Field(primary_key=True, foreign_key="person.id")


class AccountRow(Row, table=True):
    """Where money is. `balance` is kept by the database as transfers are inserted; only `grants` goes below zero."""

    __table_args__ = (
        CheckConstraint("kind = 'grants' OR balance >= 0", name="account_balance"),
        UniqueConstraint("kind", "cost_center_id", "period_start"),
        Index("account_grants", "kind", unique=True, **_only("kind = 'grants'")),
    )
    id: int | None = _serial()
    kind: str
    cost_center_id: str | None = Field(default=None, foreign_key="cost_center.id", index=True)
    period_start: datetime | None = _instant(nullable=True)
    period_end: datetime | None = _instant(nullable=True)
    balance: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))


class TransferRow(Row, table=True):
    __table_args__ = (
        CheckConstraint("amount > 0", name="transfer_amount"),
        CheckConstraint("debit_id <> credit_id", name="transfer_accounts"),
    )
    id: int | None = _serial()
    debit_id: int = Field(sa_type=BigInteger, foreign_key="account.id")
    credit_id: int = Field(sa_type=BigInteger, foreign_key="account.id")
    amount: int = _big()
    reason: str
    booking_id: str | None = Field(default=None, foreign_key="booking.id", index=True)
    reverses_id: int | None = Field(default=None, sa_type=BigInteger, foreign_key="transfer.id", unique=True)
    at: datetime = _instant()


class PoolRow(Row, table=True):
    id: int = Field(default=1, primary_key=True)
    name: str
    simulated: bool
    revision: int


class ModelRow(Row, table=True):
    name: str = Field(primary_key=True)
    title: str
    memory_gb: int
    mig_board: str | None
    forecast: list[int] = _json()
    """Load by hour of the week (168 values, ppm of capacity, hour 0 is Monday 00:00 local)."""


class NodeRow(Row, table=True):
    name: str = Field(primary_key=True)
    site: str
    topology: list[str] = _json()
    cpu_milli: int = _big()
    memory_mib: int = _big()
    cooling: str
    labels: dict[str, str] = _json()


class DeviceRow(Row, table=True):
    """A device sells while it is healthy (as its node says), not drained (as an operator says) and not withdrawn (as
    the pool file says)."""

    __table_args__ = (
        UniqueConstraint("node", "place"),
        CheckConstraint("kind IN ('mig', 'shared')", name="device_kind"),
    )
    id: int | None = _serial()
    node: str = Field(foreign_key="node.name")
    place: int
    model: str = Field(foreign_key="model.name")
    kind: str
    shapes: list[str] = _json()
    nvlink: str | None = None
    healthy: bool = True
    drained: bool = False
    withdrawn: bool = False
    version: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))


class TariffRow(Row, table=True):
    id: int | None = _serial()
    name: str
    document: str
    proposed_at: datetime = _instant()
    approved_by: str | None = Field(default=None, foreign_key="person.id")
    in_force_from: datetime | None = _instant(nullable=True)


class PriceBookRow(Row, table=True):
    number: int | None = _serial()
    tariff_id: int = Field(sa_type=BigInteger, foreign_key="tariff.id")
    pool_revision: int
    first_slot: int = _big()
    computed_at: datetime = _instant()
    digest: str
    loads: dict[str, Any] = Field(sa_column=Column(PackedJson, nullable=False))


class QuoteRow(Row, table=True):
    """`view` is what the person was shown, word for word; the columns are what booking it needs."""

    id: str = Field(primary_key=True)
    person_id: str = Field(foreign_key="person.id")
    cost_center_id: str = Field(foreign_key="cost_center.id")
    request: dict[str, Any] = _json()
    view: dict[str, Any] = _json()
    finish_by: datetime | None = _instant(nullable=True)
    made_at: datetime = _instant()
    expires_at: datetime = _instant()


class BookingRow(Row, table=True):
    __table_args__ = (
        CheckConstraint("end_at > start_at", name="booking_window"),
        CheckConstraint("slices > 0 AND rate >= 0 AND total >= 0", name="booking_amounts"),
        CheckConstraint("charged >= 0 AND charged <= total AND fee >= 0 AND fee <= charged", name="booking_charge"),
        Index("booking_of_person", "person_id", "booked_at", "id"),
    )
    id: str = Field(primary_key=True)
    person_id: str = Field(foreign_key="person.id")
    cost_center_id: str = Field(foreign_key="cost_center.id")
    quote_id: str = Field(foreign_key="quote.id", unique=True)
    state: str = Field(index=True)
    need: str
    sku: str
    tier: str
    slices: int
    start_at: datetime = _instant()
    end_at: datetime = _instant()
    rate: int = _big()
    total: int = _big()
    charged: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    fee: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    isolation: str
    booked_at: datetime = _instant()


class HoldRow(Row, table=True):
    __table_args__ = (
        CheckConstraint("authorised > 0 AND captured >= 0 AND released >= 0", name="hold_parts"),
        CheckConstraint("captured + released <= authorised", name="hold_authorised"),
        UniqueConstraint("booking_id", "period_start"),
    )
    id: int | None = _serial()
    booking_id: str = Field(foreign_key="booking.id", index=True)
    cost_center_id: str = Field(foreign_key="cost_center.id")
    period_start: datetime = _instant()
    authorised: int = _big()
    captured: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    released: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))


class AllocationRow(Row, table=True):
    """The promise of a place: cells `[first_cell, end_cell)` of a partitioned device, or thousandths of a shared one,
    in slots `[first_slot, end_slot)`. The database refuses one that overlaps (see `integrity`)."""

    __table_args__ = (
        CheckConstraint("end_slot > first_slot", name="allocation_slots"),
        CheckConstraint(
            "(thousandths = 0 AND first_cell >= 0 AND end_cell > first_cell AND end_cell <= 8)"
            " OR (thousandths BETWEEN 1 AND 1000 AND first_cell = 0 AND end_cell = 0)",
            name="allocation_extent",
        ),
        Index("allocation_of_device", "device_id", "end_slot"),
        Index("allocation_live", "end_slot", **_only("released_at IS NULL")),
    )
    id: int | None = _serial()
    booking_id: str = Field(foreign_key="booking.id", index=True)
    device_id: int = Field(sa_type=BigInteger, foreign_key="device.id")
    first_cell: int
    end_cell: int
    thousandths: int
    first_slot: int = _big()
    end_slot: int = _big()
    released_at: datetime | None = _instant(nullable=True)


class IdempotencyRow(Row, table=True):
    """The answer given to a person's Idempotency-Key; written with the effect it answers for."""

    person_id: str = Field(primary_key=True, foreign_key="person.id")
    key: str = Field(primary_key=True)
    fingerprint: str
    status: int
    body: dict[str, Any] = _json()
    at: datetime = _instant()


class EventRow(Row, table=True):
    """Written with what it tells of; `seq` is given by one dispatcher after commit (ids are not commit order)."""

    id: int | None = _serial()
    seq: int | None = Field(default=None, sa_type=BigInteger, unique=True)
    kind: str
    subject: str
    person_id: str | None = Field(default=None, foreign_key="person.id")
    data: dict[str, Any] = _json()
    at: datetime = _instant()
