"""What `gputide-broker` does beyond one service: reading a pool by name, token files, the personal broker."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from broker.context import Context, Principal
from broker.inputs.assets import asset
from broker.inputs.demand import hour_of_week
from broker.inputs.inventory import nvml_pool
from broker.inputs.pools import load_pool as load_pool_file
from broker.inputs.tariffs import parse_tariff
from broker.security import write_private
from broker.services import cost_centers, people, publish, tariffs, tokens
from broker.services.load_pool import load_pool
from broker.store import people as people_store
from broker.store import pools, prices
from broker.store.tables import TokenRow
from broker.wire.errors import AlreadyExists
from broker.wire.market import TariffView
from broker.wire.people import Role, Scope, TokenIn
from market.catalog import Pool
from market.money import MICROS

Forecast = Mapping[str, Sequence[int]]
SAMPLE = "campus"
PERSONAL = "personal"
PERSONAL_BUDGET = 1000 * MICROS
PERSONAL_MONTHS = 13
CENTS_A_GB_HOUR = 5


def read_pool(source: str) -> tuple[Pool, Forecast]:
    """A pool file by path, or a sample by name, with the forecast of its demand (`InvalidPool`)."""
    named = Path(source).suffix or os.sep in source
    path = Path(source) if named else asset("pools", f"{source}.toml")
    file = load_pool_file(path)
    return file.pool, hour_of_week(file)


def issue_token_file(
    context: Context, name: str, path: Path, role: Role, *, scopes: list[Scope] | None = None, days: int = 90
) -> None:
    """Issues a token for a person and writes it where only the owner of the file may read it.

    A file that is there already may hold somebody's token: `AlreadyExists`.
    """
    assert_new(path)
    wanted = scopes or ([*Scope] if role is not Role.MEMBER else [Scope.READ, Scope.BOOK])
    asked = TokenIn(label="from-the-host", scopes=wanted, days=days)
    write_private(path, tokens.issue(context, name, asked).secret + "\n")


def assert_new(path: Path) -> None:
    """`AlreadyExists` when there is something at a path."""
    if path.exists():
        raise AlreadyExists(f"{path} is there already; name another file, or remove it first")


def put_tariff_in_force(context: Context, document: str, operator: str) -> TariffView:
    """Proposes and approves a tariff on the authority of whoever can write to the database."""
    with context.database.read() as session:
        person = people_store.person_named(session, operator)
    on_host = TokenRow(id="", person_id=person.id, label="", digest="", scopes=[*Scope])
    principal = Principal(person, on_host)
    proposed = tariffs.propose(context, principal, document)
    return tariffs.approve(context, principal, proposed.id, None)


def unpriced(context: Context) -> list[str]:
    """Models of the pool that the tariff in force names no rate for, so that they are not sold."""
    with context.database.read() as session:
        pool, row = pools.read(session), prices.tariff_in_force(session, context.now())
    if pool is None or row is None:
        return []
    return sorted({model.name for model in pool.models} - parse_tariff(row.document).base.keys())


class PersonalBroker:
    """A broker for one person on this machine: `prepare` makes what is missing, `announcement` says what there is."""

    def __init__(self, source: str | None) -> None:
        self._source = source
        self._ready: dict[str, object] = {}

    def prepare(self, context: Context) -> None:
        """Makes person, cost center, pool and prices where they are missing; issues a fresh token."""
        name = _person(context)
        pool = _pool(context, self._source)
        if _needs_tariff(context, pool):
            put_tariff_in_force(context, personal_tariff(pool), name)
        publish.publish(context)
        _budget(context, name)
        asked = TokenIn(label="gputide-up", scopes=[*Scope], days=30)
        token = tokens.issue(context, name, asked).secret
        devices = len(pool.devices)
        self._ready = {"token": token, "pool": pool.name, "devices": devices, "simulated": pool.simulated}

    def announcement(self, url: str) -> str:
        """One line of JSON for the program that started this broker; it goes to a pipe, never to a log."""
        return json.dumps({"url": url, **self._ready, "pid": os.getpid()})


def personal_tariff(pool: Pool) -> str:
    """The sample tariff, with a rate by memory for each model of the pool that it does not name: a personal broker
    sells what it finds. The rates stand in the last table of the document, so that lines can follow."""
    document = _sample_tariff()
    named = parse_tariff(document).base
    missing = {model.name: model.memory_gb * CENTS_A_GB_HOUR for model in pool.models if model.name not in named}
    lines = [f'"{model}" = {cents // 100}.{cents % 100:02}' for model, cents in missing.items()]
    return "\n".join([document.rstrip(), *lines, ""])


def _person(context: Context) -> str:
    name = "me"
    with suppress(AlreadyExists):
        people.add(context, name, Role.OPERATOR)
    return name


def _pool(context: Context, source: str | None) -> Pool:
    stored = context.database.read_value(pools.read)
    if stored is not None and source is None:
        return stored
    found = nvml_pool("this machine") if source is None else None
    if found:
        load_pool(context, found, {})
        return found
    pool, forecast = read_pool(source or SAMPLE)
    load_pool(context, pool, forecast)
    return pool


def _needs_tariff(context: Context, pool: Pool) -> bool:
    """Whether none is in force, or one that a personal broker made and that has no rate for a model of the pool. A
    tariff that somebody wrote is left alone: what it does not name, it does not sell."""
    row = context.database.read_value(lambda session: prices.tariff_in_force(session, context.now()))
    if row is None:
        return True
    ours = row.document.startswith(_sample_tariff().rstrip())
    return ours and not {model.name for model in pool.models} <= parse_tariff(row.document).base.keys()


def _sample_tariff() -> str:
    return asset("tariffs", f"{SAMPLE}.toml").read_text("utf-8")


def _budget(context: Context, name: str) -> None:
    """A budget to play with, for this month and each of the year after it, once each."""
    with suppress(AlreadyExists):
        cost_centers.add(context, PERSONAL, name)
    month = cost_centers.show(context, PERSONAL)
    for _ in range(PERSONAL_MONTHS):
        if month.limit == 0:
            cost_centers.grant(context, PERSONAL, PERSONAL_BUDGET, month.period_start)
        month = cost_centers.show(context, PERSONAL, month.period_end)
