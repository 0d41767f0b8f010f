"""The first schema: organisation and people, pool, prices, quotes and bookings, ledger, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from broker.store.types import JsonText, PackedJson, UtcInstant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("memory_gb", sa.Integer(), nullable=False),
        sa.Column("mig_board", sa.String(), nullable=True),
        sa.Column("forecast", JsonText(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "node",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("site", sa.String(), nullable=False),
        sa.Column("topology", JsonText(), nullable=False),
        sa.Column("cpu_milli", sa.BigInteger(), nullable=False),
        sa.Column("memory_mib", sa.BigInteger(), nullable=False),
        sa.Column("cooling", sa.String(), nullable=False),
        sa.Column("labels", JsonText(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "organisation",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("zone", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "pool",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "device",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("shapes", JsonText(), nullable=False),
        sa.Column("nvlink", sa.String(), nullable=True),
        sa.Column("healthy", sa.Boolean(), nullable=False),
        sa.Column("drained", sa.Boolean(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("kind IN ('mig', 'shared')", name="device_kind"),
        sa.ForeignKeyConstraint(
            ["model"],
            ["model.name"],
        ),
        sa.ForeignKeyConstraint(
            ["node"],
            ["node.name"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("node", "place"),
    )
    op.create_table(
        "person",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("organisation_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("default_cost_center_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisation.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "cost_center",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("organisation_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisation.id"],
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=True),
        sa.Column("data", JsonText(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("seq"),
    )
    op.create_table(
        "idempotency",
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", JsonText(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("person_id", "key"),
    )
    op.create_table(
        "tariff",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("document", sa.String(), nullable=False),
        sa.Column("proposed_at", UtcInstant(), nullable=False),
        sa.Column("approved_by", sa.String(), nullable=True),
        sa.Column("in_force_from", UtcInstant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["approved_by"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("scopes", JsonText(), nullable=False),
        sa.Column("created_at", UtcInstant(), nullable=False),
        sa.Column("expires_at", UtcInstant(), nullable=False),
        sa.Column("revoked_at", UtcInstant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"],
            ["token.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    with op.batch_alter_table("token", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_token_parent_id"), ["parent_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_token_person_id"), ["person_id"], unique=False)

    op.create_table(
        "account",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("cost_center_id", sa.String(), nullable=True),
        sa.Column("period_start", UtcInstant(), nullable=True),
        sa.Column("period_end", UtcInstant(), nullable=True),
        sa.Column("balance", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("kind = 'grants' OR balance >= 0", name="account_balance"),
        sa.ForeignKeyConstraint(
            ["cost_center_id"],
            ["cost_center.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kind", "cost_center_id", "period_start"),
    )
    with op.batch_alter_table("account", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_account_cost_center_id"), ["cost_center_id"], unique=False)
        batch_op.create_index(
            "account_grants",
            ["kind"],
            unique=True,
            sqlite_where=sa.text("kind = 'grants'"),
            postgresql_where=sa.text("kind = 'grants'"),
        )

    op.create_table(
        "cost_center_member",
        sa.Column("cost_center_id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cost_center_id"],
            ["cost_center.id"],
        ),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("cost_center_id", "person_id"),
    )
    op.create_table(
        "price_book",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("tariff_id", sa.BigInteger(), nullable=False),
        sa.Column("pool_revision", sa.Integer(), nullable=False),
        sa.Column("first_slot", sa.BigInteger(), nullable=False),
        sa.Column("computed_at", UtcInstant(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("loads", PackedJson(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tariff_id"],
            ["tariff.id"],
        ),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "quote",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("cost_center_id", sa.String(), nullable=False),
        sa.Column("request", JsonText(), nullable=False),
        sa.Column("view", JsonText(), nullable=False),
        sa.Column("finish_by", UtcInstant(), nullable=True),
        sa.Column("made_at", UtcInstant(), nullable=False),
        sa.Column("expires_at", UtcInstant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cost_center_id"],
            ["cost_center.id"],
        ),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "booking",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("cost_center_id", sa.String(), nullable=False),
        sa.Column("quote_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("need", sa.String(), nullable=False),
        sa.Column("sku", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("slices", sa.Integer(), nullable=False),
        sa.Column("start_at", UtcInstant(), nullable=False),
        sa.Column("end_at", UtcInstant(), nullable=False),
        sa.Column("rate", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("charged", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("fee", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("isolation", sa.String(), nullable=False),
        sa.Column("booked_at", UtcInstant(), nullable=False),
        sa.CheckConstraint("charged >= 0 AND charged <= total AND fee >= 0 AND fee <= charged", name="booking_charge"),
        sa.CheckConstraint("end_at > start_at", name="booking_window"),
        sa.CheckConstraint("slices > 0 AND rate >= 0 AND total >= 0", name="booking_amounts"),
        sa.ForeignKeyConstraint(
            ["cost_center_id"],
            ["cost_center.id"],
        ),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.ForeignKeyConstraint(
            ["quote_id"],
            ["quote.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("quote_id"),
    )
    with op.batch_alter_table("booking", schema=None) as batch_op:
        batch_op.create_index("booking_of_person", ["person_id", "booked_at", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_booking_state"), ["state"], unique=False)

    op.create_table(
        "allocation",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("booking_id", sa.String(), nullable=False),
        sa.Column("device_id", sa.BigInteger(), nullable=False),
        sa.Column("first_cell", sa.Integer(), nullable=False),
        sa.Column("end_cell", sa.Integer(), nullable=False),
        sa.Column("thousandths", sa.Integer(), nullable=False),
        sa.Column("first_slot", sa.BigInteger(), nullable=False),
        sa.Column("end_slot", sa.BigInteger(), nullable=False),
        sa.Column("released_at", UtcInstant(), nullable=True),
        sa.CheckConstraint(
            "(thousandths = 0 AND first_cell >= 0 AND end_cell > first_cell AND end_cell <= 8) OR (thousandths BETWEEN 1 AND 1000 AND first_cell = 0 AND end_cell = 0)",
            name="allocation_extent",
        ),
        sa.CheckConstraint("end_slot > first_slot", name="allocation_slots"),
        sa.ForeignKeyConstraint(
            ["booking_id"],
            ["booking.id"],
        ),
        sa.ForeignKeyConstraint(
            ["device_id"],
            ["device.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("allocation", schema=None) as batch_op:
        batch_op.create_index("allocation_of_device", ["device_id", "end_slot"], unique=False)
        batch_op.create_index(
            "allocation_live",
            ["end_slot"],
            unique=False,
            sqlite_where=sa.text("released_at IS NULL"),
            postgresql_where=sa.text("released_at IS NULL"),
        )
        batch_op.create_index(batch_op.f("ix_allocation_booking_id"), ["booking_id"], unique=False)

    op.create_table(
        "hold",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("booking_id", sa.String(), nullable=False),
        sa.Column("cost_center_id", sa.String(), nullable=False),
        sa.Column("period_start", UtcInstant(), nullable=False),
        sa.Column("authorised", sa.BigInteger(), nullable=False),
        sa.Column("captured", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("released", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("authorised > 0 AND captured >= 0 AND released >= 0", name="hold_parts"),
        sa.CheckConstraint("captured + released <= authorised", name="hold_authorised"),
        sa.ForeignKeyConstraint(
            ["booking_id"],
            ["booking.id"],
        ),
        sa.ForeignKeyConstraint(
            ["cost_center_id"],
            ["cost_center.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("booking_id", "period_start"),
    )
    with op.batch_alter_table("hold", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_hold_booking_id"), ["booking_id"], unique=False)

    op.create_table(
        "transfer",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("debit_id", sa.BigInteger(), nullable=False),
        sa.Column("credit_id", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("booking_id", sa.String(), nullable=True),
        sa.Column("reverses_id", sa.BigInteger(), nullable=True),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.CheckConstraint("amount > 0", name="transfer_amount"),
        sa.CheckConstraint("debit_id <> credit_id", name="transfer_accounts"),
        sa.ForeignKeyConstraint(
            ["booking_id"],
            ["booking.id"],
        ),
        sa.ForeignKeyConstraint(
            ["credit_id"],
            ["account.id"],
        ),
        sa.ForeignKeyConstraint(
            ["debit_id"],
            ["account.id"],
        ),
        sa.ForeignKeyConstraint(
            ["reverses_id"],
            ["transfer.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("reverses_id"),
    )
    with op.batch_alter_table("transfer", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_transfer_booking_id"), ["booking_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("transfer", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_transfer_booking_id"))

    op.drop_table("transfer")
    with op.batch_alter_table("hold", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_hold_booking_id"))

    op.drop_table("hold")
    with op.batch_alter_table("allocation", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_allocation_booking_id"))
        batch_op.drop_index("allocation_live")
        batch_op.drop_index("allocation_of_device")

    op.drop_table("allocation")
    with op.batch_alter_table("booking", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_booking_state"))
        batch_op.drop_index("booking_of_person")

    op.drop_table("booking")
    op.drop_table("quote")
    op.drop_table("price_book")
    op.drop_table("cost_center_member")
    with op.batch_alter_table("account", schema=None) as batch_op:
        batch_op.drop_index("account_grants")
        batch_op.drop_index(batch_op.f("ix_account_cost_center_id"))

    op.drop_table("account")
    with op.batch_alter_table("token", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_token_person_id"))
        batch_op.drop_index(batch_op.f("ix_token_parent_id"))

    op.drop_table("token")
    op.drop_table("tariff")
    op.drop_table("idempotency")
    op.drop_table("event")
    op.drop_table("cost_center")
    op.drop_table("person")
    op.drop_table("device")
    op.drop_table("pool")
    op.drop_table("organisation")
    op.drop_table("node")
    op.drop_table("model")
