"""What the database itself refuses, and that a column constraint cannot say.

Alembic's autogenerate sees neither triggers nor exclusion constraints, and its batch mode deletes triggers; so this
one module makes them after every migration (`ensure`) and the broker asserts them at start (`missing`).

- allocation: no overlap. PostgreSQL: an exclusion constraint for cells (the device as a one-value range, so that no
  extension is needed). Shared devices there, and both kinds on SQLite: triggers, on the peak over time of what is
  promised, not on its sum. On PostgreSQL the trigger first takes the device's row, so that writers queue up.
- transfer, price_book: append-only. tariff: immutable once approved. event: only its number may be set, once.
- account.balance: moved by the insertion of a transfer, in ascending account order.
- booking: once terminal, nothing of it changes. hold: what was captured and released only grows.
What is final cannot be deleted either, nor can an allocation before it is released. SQLite's REPLACE is a deletion that
fires triggers on some connections only, and PostgreSQL's TRUNCATE fires none of a row: each has rules of its own.
"""

from __future__ import annotations

import re

from sqlalchemy import CheckConstraint, Connection, Constraint, text

from broker.store.tables import TABLES
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
    ("booking_final", "booking", f"OLD.state IN ({_TERMINAL})"),
    (
        "hold_forward",
        "hold",
        "NEW.captured < OLD.captured OR NEW.released < OLD.released OR NEW.authorised <> OLD.authorised"
        " OR NEW.booking_id <> OLD.booking_id OR NEW.cost_center_id <> OLD.cost_center_id"
        " OR NEW.period_start <> OLD.period_start",
    ),
)
_KEPT = (
    ("tariff_frozen", "tariff", "OLD.approved_by IS NOT NULL"),
    ("event_frozen", "event", "OLD.seq IS NOT NULL"),
    ("booking_final", "booking", f"OLD.state IN ({_TERMINAL})"),
    ("hold_forward", "hold", "1 = 1"),
    ("allocation_live", "allocation", "OLD.released_at IS NULL"),
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
    final = [(f"{table}_append_only", table, "1") for table in _APPEND_ONLY]
    for name, table, condition in (*final, *_KEPT):
        key, there = ("number" if table == "price_book" else "id"), condition.replace("OLD.", "there.")
        replaces = f"EXISTS (SELECT 1 FROM {table} there WHERE there.{key} = NEW.{key} AND ({there}))"
        made[f"{name}_replace"] = _sqlite_trigger(f"{name}_replace", f"BEFORE INSERT ON {table}", replaces, name)
    return made


def _refuse(refusal: str) -> str:
    return f"RAISE EXCEPTION '{refusal}' USING ERRCODE = 'check_violation';"


def _refuse_if(condition: str, refusal: str) -> str:
    return f"IF {condition} THEN {_refuse(refusal)} END IF;"


_EXCLUSION = "allocation_no_overlap"
_EXCLUSION_RULE = (
    "EXCLUDE USING gist (int8range(device_id, device_id, '[]') WITH &&, int4range(first_cell, end_cell) WITH &&,"
    " int8range(first_slot, end_slot) WITH &&) WHERE (released_at IS NULL AND thousandths = 0)"
)


def _postgres() -> dict[str, tuple[str, str]]:
    """For each trigger when it fires and what its function does."""
    own = "COALESCE(NEW.id, -1)"
    take_device = "UPDATE device SET version = version + 1 WHERE id = NEW.device_id;"
    peak = _refuse_if(f"EXISTS ({_PEAK.format(own=own)})", _OVERLAP)
    kind = _refuse_if(f"EXISTS ({_KIND})", "allocation_kind")
    shared = f"IF NEW.thousandths > 0 THEN {take_device} {peak} END IF;"
    guard = f"IF NEW.released_at IS NULL THEN {kind} {shared} END IF; RETURN NEW;"
    least, most = "LEAST(NEW.debit_id, NEW.credit_id)", "GREATEST(NEW.debit_id, NEW.credit_id)"
    sign = "CASE WHEN id = NEW.debit_id THEN -NEW.amount ELSE NEW.amount END"
    moves = " ".join(f"UPDATE account SET balance = balance + {sign} WHERE id = {which};" for which in (least, most))
    made = {
        "allocation_guard": ("BEFORE INSERT OR UPDATE ON allocation FOR EACH ROW", guard),
        "transfer_moves": ("AFTER INSERT ON transfer FOR EACH ROW", f"{moves} RETURN NULL;"),
    }
    for table in _APPEND_ONLY:
        when = f"BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
        made[f"{table}_no_change"] = (when, _refuse(f"{table}_append_only"))
    for name, table, condition in _FROZEN:
        made[name] = (f"BEFORE UPDATE ON {table} FOR EACH ROW", f"{_refuse_if(condition, name)} RETURN NEW;")
    for name, table, condition in _KEPT:
        when = f"BEFORE DELETE ON {table} FOR EACH ROW"
        made[f"{name}_delete"] = (when, f"{_refuse_if(condition, name)} RETURN OLD;")
    for table in (*_APPEND_ONLY, *(table for _, table, _ in _KEPT)):
        when = f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT"
        made[f"{table}_no_truncate"] = (when, _refuse(f"{table}_no_truncate"))
    return made


def _source(body: str) -> str:
    return f" BEGIN {body} END "


def _postgres_trigger(name: str, when: str, body: str) -> str:
    function = f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body${_source(body)}$body$"
    return f"{function}; CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()"


def _wanted(connection: Connection) -> dict[str, str]:
    """Each rule as the database keeps it."""
    if connection.dialect.name == "sqlite":
        return _sqlite()
    made = {name: f"{_shape(when)} {_source(body)}" for name, (when, body) in _postgres().items()}
    checks = (str(each.name) for table in TABLES.tables.values() for each in table.constraints if _is_check(each))
    return made | {_EXCLUSION: _squeezed(_EXCLUSION_RULE)} | dict.fromkeys(checks, "")


def _is_check(constraint: Constraint) -> bool:
    return isinstance(constraint, CheckConstraint) and constraint.name is not None


def _shape(when: str) -> str:
    """When a trigger fires and on which table, as `pg_trigger` has it: a sum of bits."""
    events = {"ROW": 1, "BEFORE": 2, "INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}
    before_table, _, after_table = when.partition(" ON ")
    words = {*before_table.split(), *after_table.split()[1:]}
    return f"{after_table.split()[0]} {sum(bit for word, bit in events.items() if word in words)}"


def _present(connection: Connection) -> dict[str, str]:
    if connection.dialect.name == "sqlite":
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        return {str(name): str(rule) for name, rule in connection.execute(text(query))}
    triggers = (
        "SELECT tgname, relname || ' ' || tgtype || ' ' || prosrc FROM pg_trigger"
        " JOIN pg_proc ON pg_proc.oid = tgfoid JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgqual IS NULL AND tgattr = ''::int2vector"
    )
    constraints = (
        "SELECT conname, CASE contype WHEN 'x' THEN pg_get_constraintdef(oid) ELSE '' END FROM pg_constraint"
        " WHERE contype IN ('x', 'c') AND convalidated"
    )
    found = {str(name): str(rule) for name, rule in connection.execute(text(triggers))}
    return found | {str(name): _squeezed(str(rule)) for name, rule in connection.execute(text(constraints))}


def _squeezed(rule: str) -> str:
    """A constraint without what PostgreSQL adds when it tells it: casts, brackets, spaces."""
    return re.sub(r"::text|[()\s]", "", rule)


def missing(connection: Connection) -> set[str]:
    """The names of rules that this database lacks, has otherwise or has switched off; empty when all are in force."""
    present = _present(connection)
    return {name for name, rule in _wanted(connection).items() if present.get(name) != rule}


def ensure(connection: Connection) -> None:
    """Makes every rule anew, so that a changed rule reaches a database that had the old one."""
    if connection.dialect.name == "sqlite":
        for name, statement in _sqlite().items():
            connection.execute(text(f"DROP TRIGGER IF EXISTS {name}"))
            connection.exec_driver_sql(statement)
        return
    for name, (when, body) in _postgres().items():
        connection.execute(text(f"DROP FUNCTION IF EXISTS {name}() CASCADE"))
        connection.exec_driver_sql(_postgres_trigger(name, when, body))
    if _present(connection).get(_EXCLUSION) != _squeezed(_EXCLUSION_RULE):
        connection.exec_driver_sql(f"ALTER TABLE allocation DROP CONSTRAINT IF EXISTS {_EXCLUSION}")
        connection.exec_driver_sql(f"ALTER TABLE allocation ADD CONSTRAINT {_EXCLUSION} {_EXCLUSION_RULE}")
