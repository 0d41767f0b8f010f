"""What the database itself refuses, and that a column constraint cannot say.

Alembic's autogenerate sees neither triggers nor exclusion constraints, and its batch mode deletes triggers; so this
one module makes them after every migration (`ensure`) and the broker asserts them at start (`missing`).

- allocation: no overlap. PostgreSQL: an exclusion constraint for cells (the device as a one-value range, so that no
  extension is needed). Shared devices there, and both kinds on SQLite: triggers, on the peak over time of what is
  promised, not on its sum. On PostgreSQL the trigger first takes the device's row, so that writers queue up.
- transfer, price_book: append-only. tariff: immutable once approved. event: only its number may be set, once.
- account.balance: moved by the insertion of a transfer, in ascending account order, so that balances cannot drift.
- booking: a terminal state is final.
What is final cannot be deleted either: on SQLite a REPLACE is a deletion, and would slip past a rule on UPDATE.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from market.states import TERMINAL

_PEAK = """
SELECT 1 FROM (
  SELECT NEW.first_slot AS slot UNION
  SELECT a.first_slot FROM allocation a WHERE a.device_id = NEW.device_id AND a.released_at IS NULL
    AND a.first_slot > NEW.first_slot AND a.first_slot < NEW.end_slot AND a.id <> {own}
) p WHERE NEW.thousandths + (
  SELECT COALESCE(SUM(b.thousandths), 0) FROM allocation b WHERE b.device_id = NEW.device_id
    AND b.released_at IS NULL AND b.id <> {own} AND b.first_slot <= p.slot AND b.end_slot > p.slot) > 1000
"""
_CELLS = """
SELECT 1 FROM allocation a WHERE a.device_id = NEW.device_id AND a.released_at IS NULL AND a.thousandths = 0
  AND a.id <> {own} AND a.first_slot < NEW.end_slot AND a.end_slot > NEW.first_slot
  AND a.first_cell < NEW.end_cell AND a.end_cell > NEW.first_cell
"""
_KIND = """
SELECT 1 FROM device d WHERE d.id = NEW.device_id
  AND d.kind <> CASE WHEN NEW.thousandths = 0 THEN 'mig' ELSE 'shared' END
"""
_TERMINAL = ", ".join(f"'{state}'" for state in sorted(TERMINAL))
_APPEND_ONLY = ("transfer", "price_book")
_OVERLAP = "allocation_overlap"
_UNLIKE = " OR ".join(f"OLD.{column} <> NEW.{column}" for column in ("kind", "subject", "data", "at"))
_FROZEN = (
    ("tariff_frozen", "tariff", "OLD.approved_by IS NOT NULL"),
    (
        "event_frozen",
        "event",
        f"OLD.seq IS NOT NULL OR {_UNLIKE} OR COALESCE(OLD.person_id, '') <> COALESCE(NEW.person_id, '')",
    ),
    ("booking_final", "booking", f"OLD.state IN ({_TERMINAL}) AND NEW.state <> OLD.state"),
)
_KEPT = (
    ("tariff_frozen", "tariff", "OLD.approved_by IS NOT NULL"),
    ("event_frozen", "event", "OLD.seq IS NOT NULL"),
    ("booking_final", "booking", f"OLD.state IN ({_TERMINAL})"),
)


def _sqlite_trigger(name: str, when: str, condition: str, refusal: str) -> str:
    return f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, '{refusal}') WHERE {condition}; END"


def _sqlite() -> dict[str, str]:
    made: dict[str, str] = {}
    for event, own in (("INSERT", "-1"), ("UPDATE", "OLD.id")):
        for what, query, thousandths in (("cells", _CELLS, "= 0"), ("peak", _PEAK, "> 0")):
            name = f"allocation_{what}_{event.lower()}"
            when = f"BEFORE {event} ON allocation WHEN NEW.released_at IS NULL AND NEW.thousandths {thousandths}"
            made[name] = _sqlite_trigger(name, when, f"EXISTS ({query.format(own=own)})", _OVERLAP)
        name = f"allocation_kind_{event.lower()}"
        when = f"BEFORE {event} ON allocation WHEN NEW.released_at IS NULL"
        made[name] = _sqlite_trigger(name, when, f"EXISTS ({_KIND})", "allocation_kind")
    for table in _APPEND_ONLY:
        for event in ("UPDATE", "DELETE"):
            name = f"{table}_no_{event.lower()}"
            made[name] = _sqlite_trigger(name, f"BEFORE {event} ON {table}", "1", f"{table}_append_only")
    # OR IGNORE would skip a debit that fails the check of its account, and not the credit: so the cap is asked first.
    made["transfer_moves"] = (
        "CREATE TRIGGER transfer_moves AFTER INSERT ON transfer BEGIN"
        " SELECT RAISE(ABORT, 'account_balance') FROM account"
        " WHERE id = NEW.debit_id AND kind <> 'grants' AND balance < NEW.amount;"
        " UPDATE account SET balance = balance - NEW.amount WHERE id = NEW.debit_id;"
        " UPDATE account SET balance = balance + NEW.amount WHERE id = NEW.credit_id; END"
    )
    for name, table, condition in _FROZEN:
        made[name] = _sqlite_trigger(name, f"BEFORE UPDATE ON {table}", condition, name)
    for name, table, condition in _KEPT:
        made[f"{name}_delete"] = _sqlite_trigger(f"{name}_delete", f"BEFORE DELETE ON {table}", condition, name)
    return made


def _function(name: str, body: str) -> str:
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN {body} END $body$"


def _refuse_if(condition: str, refusal: str) -> str:
    return f"IF {condition} THEN RAISE EXCEPTION '{refusal}' USING ERRCODE = 'check_violation'; END IF;"


def _postgres() -> dict[str, str]:
    own = "COALESCE(NEW.id, -1)"
    take_device = "UPDATE device SET version = version + 1 WHERE id = NEW.device_id;"
    peak = _refuse_if(f"EXISTS ({_PEAK.format(own=own)})", _OVERLAP)
    kind = _refuse_if(f"EXISTS ({_KIND})", "allocation_kind")
    shared = f"IF NEW.thousandths > 0 THEN {take_device} {peak} END IF;"
    guard = f"IF NEW.released_at IS NULL THEN {kind} {shared} END IF; RETURN NEW;"
    least, most = "LEAST(NEW.debit_id, NEW.credit_id)", "GREATEST(NEW.debit_id, NEW.credit_id)"
    sign = "CASE WHEN id = NEW.debit_id THEN -NEW.amount ELSE NEW.amount END"
    moves = " ".join(f"UPDATE account SET balance = balance + {sign} WHERE id = {which};" for which in (least, most))
    bodies = {
        "allocation_guard": ("BEFORE INSERT OR UPDATE ON allocation", guard),
        "transfer_moves": ("AFTER INSERT ON transfer", f"{moves} RETURN NULL;"),
    }
    for table in _APPEND_ONLY:
        refusal = f"RAISE EXCEPTION '{table}_append_only' USING ERRCODE = 'check_violation';"
        bodies[f"{table}_no_change"] = (f"BEFORE UPDATE OR DELETE ON {table}", refusal)
    for name, table, condition in _FROZEN:
        bodies[name] = (f"BEFORE UPDATE ON {table}", f"{_refuse_if(condition, name)} RETURN NEW;")
    for name, table, condition in _KEPT:
        bodies[f"{name}_delete"] = (f"BEFORE DELETE ON {table}", f"{_refuse_if(condition, name)} RETURN OLD;")
    made = {
        name: f"{_function(name, body)}; CREATE TRIGGER {name} {when} FOR EACH ROW EXECUTE FUNCTION {name}()"
        for name, (when, body) in bodies.items()
    }
    made["allocation_no_overlap"] = (
        "ALTER TABLE allocation ADD CONSTRAINT allocation_no_overlap EXCLUDE USING gist ("
        "int8range(device_id, device_id, '[]') WITH &&, int4range(first_cell, end_cell) WITH &&, "
        "int8range(first_slot, end_slot) WITH &&) WHERE (released_at IS NULL AND thousandths = 0)"
    )
    return made


def _present(connection: Connection) -> set[str]:
    if connection.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = (
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
            " UNION SELECT conname FROM pg_constraint WHERE contype = 'x'"
        )
    return set(connection.execute(text(query)).scalars())


def _wanted(connection: Connection) -> dict[str, str]:
    return _sqlite() if connection.dialect.name == "sqlite" else _postgres()


def missing(connection: Connection) -> set[str]:
    """The names of rules that this database lacks; empty when all are in force."""
    return set(_wanted(connection)) - _present(connection)


def ensure(connection: Connection) -> None:
    """Makes every rule anew, so that a changed rule reaches a database that had the old one."""
    present = _present(connection)
    for name, statement in _wanted(connection).items():
        if connection.dialect.name == "sqlite":
            connection.execute(text(f"DROP TRIGGER IF EXISTS {name}"))
        elif name == "allocation_no_overlap":
            if name in present:
                continue
        else:
            connection.execute(text(f"DROP FUNCTION IF EXISTS {name}() CASCADE"))
        connection.exec_driver_sql(statement)
