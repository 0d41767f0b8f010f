"""`gputide-broker`: what an operator types on the broker's own host. Each command works on the database itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from broker.app import build
from broker.context import Context
from broker.operator import PersonalBroker, assert_new, issue_token_file, put_tariff_in_force, read_pool, unpriced
from broker.services import browse, cost_centers, people, publish, tariffs
from broker.services.drain import set_drained
from broker.services.load_pool import load_pool
from broker.services.organisation import at_home
from broker.serving import serve_broker
from broker.settings import InvalidSettings, load_settings
from broker.store import migrations, pools
from broker.store import people as people_store
from broker.telemetry import configure_logging, redact
from broker.wire.people import PersonIn, Role, Scope
from market.errors import GputideError, InvalidRequest
from market.money import format_money, parse_money

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
pool_app = typer.Typer(no_args_is_help=True, help="The pool: what this broker sells.")
tariffs_app = typer.Typer(no_args_is_help=True, help="Tariffs: what people decide about prices.")
users_app = typer.Typer(no_args_is_help=True, help="People, their tokens, cost centers and budgets.")
app.add_typer(pool_app, name="pool")
app.add_typer(tariffs_app, name="tariffs")
app.add_typer(users_app, name="users")


def _new_name(text: str) -> str:
    try:
        return PersonIn(name=text).name
    except ValidationError:
        raise InvalidRequest(
            f"{text[:120]!r} is no name; one is 1 to 100 letters, digits and . _ + - @, the first a letter or digit"
        ) from None


NewName = Annotated[str, typer.Argument(callback=_new_name)]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the SQLite database.")]


@app.command()
def serve(
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; beyond loopback TLS is required.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key (PEM).")] = None,
    external_url: Annotated[str | None, typer.Option(help="https:// address of a proxy in front.")] = None,
) -> None:
    """Serve the API until SIGTERM."""
    settings = load_settings(
        data_dir=data_dir, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, external_url=external_url
    )
    configure_logging(settings.log_level)
    serve_broker(settings, ready=lambda url: _say(f"serving at {url}"))


@app.command()
def migrate(data_dir: DataDir = None) -> None:
    """Bring the database to the newest schema."""
    with _context(data_dir, migrated=False) as context:
        migrations.upgrade(context.database)
    _say("the database is at the newest schema")


@app.command()
def up(
    data_dir: DataDir = None,
    port: Annotated[int | None, typer.Option(help="Port on loopback; 0 takes a free one.")] = None,
    pool: Annotated[str | None, typer.Option(help="A sample pool (campus, openb) or a pool file.")] = None,
    attached: Annotated[bool, typer.Option("--attached", hidden=True, help="Stop when stdin ends.")] = False,
) -> None:
    """Serve a personal broker on loopback, with the devices of this machine or a sample pool."""
    settings = load_settings(data_dir=data_dir, host="127.0.0.1", port=port)
    if settings.database_url is not None:
        raise InvalidSettings("database_url: a personal broker keeps its own SQLite file; for this one use serve")
    configure_logging("warning")
    if attached:
        threading.Thread(target=_stop_with_stdin, daemon=True).start()
    personal = PersonalBroker(pool)
    serve_broker(settings, personal.prepare, lambda url: print(personal.announcement(url), flush=True))


@pool_app.command("load")
def pool_load(
    source: Annotated[str, typer.Argument(help="A pool file, or the name of a sample: campus, openb.")],
    data_dir: DataDir = None,
) -> None:
    """Load a pool file, with the forecast of its demand."""
    pool, forecast = read_pool(source)
    with _context(data_dir) as context:
        revision = load_pool(context, pool, forecast)
        kind = "simulated" if pool.simulated else "real"
        _say(f"pool {pool.name} ({kind}): {len(pool.nodes)} nodes, {len(pool.devices)} devices, revision {revision}")
        _warn(context)


@pool_app.command("drain")
def pool_drain(
    node: str,
    index: Annotated[int | None, typer.Argument(help="The device's place on the node; all of them if none.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Promise nothing more of a device or a node; what is booked on it stays."""
    with _context(data_dir) as context:
        _say(f"{_devices(set_drained(context, node, index, drained=True))} of {node} drained")
        _warn(context)


@pool_app.command("undrain")
def pool_undrain(
    node: str,
    index: Annotated[int | None, typer.Argument(help="The device's place on the node; all of them if none.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Let a drained device or node sell again."""
    with _context(data_dir) as context:
        _say(f"{_devices(set_drained(context, node, index, drained=False))} of {node} sold again")


@pool_app.command("show")
def pool_show(data_dir: DataDir = None) -> None:
    """Say what the pool holds."""
    with _context(data_dir) as context, context.database.read() as session:
        pool = pools.read(session)
    if pool is None:
        _say("no pool is loaded; load one with: gputide-broker pool load campus")
        return
    for model in pool.models:
        devices = [device for device in pool.devices if device.model == model.name]
        broken = sum(not device.healthy for device in devices)
        print(f"{model.name}\t{len(devices)}\t{broken} out of service")


@tariffs_app.command("put")
def tariffs_put(
    file: Annotated[Path, typer.Argument(help="A tariff file (TOML).")],
    approve_as: Annotated[str, typer.Option("--approve-as", help="The operator who approves it.")],
    data_dir: DataDir = None,
) -> None:
    """Put a tariff in force now and publish a price book from it."""
    with _context(data_dir) as context:
        view = put_tariff_in_force(context, _read_text(file), approve_as)
        _say(f"tariff {view.id} ({view.name}) is in force")
        if context.database.read_value(pools.revision):
            _say(f"price book {publish.publish(context).number} is published")
        _warn(context)


@tariffs_app.command("list")
def tariffs_list(data_dir: DataDir = None) -> None:
    """List tariffs, newest first."""
    with _context(data_dir) as context:
        for view in tariffs.listed(context, before=None, limit=200, names=True):
            print(f"{view.id}\t{view.name}\t{view.status}\t{view.in_force_from or '-'}")


@users_app.command("add")
def users_add(
    name: NewName,
    role: Annotated[Role, typer.Option(help="What the person may do.")] = Role.MEMBER,
    token_file: Annotated[Path | None, typer.Option(help="Write a token here (mode 0600).")] = None,
    data_dir: DataDir = None,
) -> None:
    """Add a person, and a token for them if asked."""
    if token_file is not None:
        assert_new(token_file)
    with _context(data_dir) as context:
        people.add(context, name, role)
        if token_file is not None:
            issue_token_file(context, name, token_file, role)
    _say(f"{name} is {role}" + (f"; the token is in {token_file}" if token_file else ""))


@users_app.command("list")
def users_list(data_dir: DataDir = None) -> None:
    """List people with their roles."""
    with _context(data_dir) as context, context.database.read() as session:
        for row in people_store.people(session, after=None, limit=None):
            print(f"{row.name}\t{row.role}\t{'active' if row.active else 'no longer active'}")


@users_app.command("deactivate")
def users_deactivate(name: str, data_dir: DataDir = None) -> None:
    """Close the door to a person; what they have booked stays."""
    with _context(data_dir) as context:
        people.set_active(context, name, active=False)
        _say(f"{name} is no longer active: none of their tokens works")
        for booking_id in browse.waiting_of(context, name):
            _say(f"booking {booking_id} of {name} stands; an operator or the cost center's owner may cancel it")


@users_app.command("activate")
def users_activate(name: str, data_dir: DataDir = None) -> None:
    """Let a person in again."""
    with _context(data_dir) as context:
        people.set_active(context, name, active=True)
    _say(f"{name} is active")


@users_app.command("token")
def users_token(
    name: str,
    token_file: Annotated[Path, typer.Option(help="Write the token here (mode 0600).")],
    scope: Annotated[list[Scope] | None, typer.Option(help="What it may be used for; repeat for more.")] = None,
    days: Annotated[int, typer.Option(min=1, max=366)] = 90,
    data_dir: DataDir = None,
) -> None:
    """Issue another token for a person."""
    with _context(data_dir) as context:
        issue_token_file(context, name, token_file, Role.MEMBER, scopes=scope, days=days)
    _say(f"the token is in {token_file}")


@users_app.command("cost-center")
def users_cost_center(
    name: NewName,
    owner: Annotated[str, typer.Option(help="Who owns it.")],
    budget: Annotated[str | None, typer.Option(help="This month's budget in the tariff's currency.")] = None,
    member: Annotated[list[str] | None, typer.Option(help="Who may book on it; repeat for more.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Add a cost center with an owner, members and this month's budget."""
    amount, members = (0 if budget is None else parse_money(budget)), member or []
    with _context(data_dir) as context:
        with context.database.read() as session:  # all are known before anything is made
            for each in members:
                people_store.person_named(session, each)
        cost_centers.add(context, name, owner)
        for each in members:
            cost_centers.add_member(context, name, each)
        if amount:
            cost_centers.grant(context, name, amount, None)
    _say(f"cost center {name} belongs to {owner}")


@users_app.command("cost-centers")
def users_cost_centers(data_dir: DataDir = None) -> None:
    """List cost centers with this month's budget: limit, spent, held, left."""
    with _context(data_dir) as context:
        for view in cost_centers.listed(context, None):
            parts = (format_money(each, view.currency) for each in (view.limit, view.spent, view.held, view.left))
            print(view.name, view.owner, *parts, sep="\t")


@users_app.command("member")
def users_member(cost_center: str, person: str, data_dir: DataDir = None) -> None:
    """Let a person book on a cost center."""
    with _context(data_dir) as context:
        cost_centers.add_member(context, cost_center, person)
    _say(f"{person} may book on {cost_center}")


@users_app.command("budget")
def users_budget(
    cost_center: str,
    amount: Annotated[str, typer.Argument(help="How much to add, in the tariff's currency.")],
    month: Annotated[datetime | None, typer.Option(formats=["%Y-%m"], help="As 2026-12; this month if none.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Add to a cost center's budget of a month."""
    with _context(data_dir) as context:
        start = month and month.replace(tzinfo=context.zone)
        view = cost_centers.grant(context, cost_center, parse_money(amount), start)
        shown = view.period_start.astimezone(context.zone)
    _say(f"the budget of {cost_center} for {shown:%Y-%m} is {format_money(view.limit, view.currency)}")


def _stop_with_stdin() -> None:
    """Whoever started this broker holds the other end, and was perhaps killed without a word."""
    while os.read(0, 4096):  # and not through sys.stdin, whose lock would be missed when Python ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _devices(count: int) -> str:
    return f"{count or 'no'} device{'s' if count != 1 else ''}"


def _warn(context: Context) -> None:
    """What an operator would want to know after a change of pool or tariff."""
    if models := unpriced(context):
        _say(f"not sold, since the tariff in force names no rate: {', '.join(models)}")
    for booking_id, person in browse.stranded(context):
        _say(f"booking {booking_id} of {person} stands on a device that sells no more")


@contextmanager
def _context(data_dir: Path | None, *, migrated: bool = True) -> Generator[Context]:
    settings = load_settings(data_dir=data_dir)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    context = build(settings)
    try:
        if migrated:
            migrations.assert_current(context.database)
            context = at_home(context, settings.organisation, settings.organisation_zone)
        yield context
    finally:
        context.database.close()


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise GputideError(f"{file}: {error}") from None


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    """The entry point: a refusal is one line on stderr and exit status 1, never a traceback."""
    try:
        app(arguments, standalone_mode=True)
    except GputideError as error:
        _fail(f"{error.detail} ({error.code})")
    except SQLAlchemyError as error:
        _fail(f"the database: {getattr(error, 'orig', None) or error}")
    except OSError as error:
        _fail(str(error))


def _fail(text: str) -> NoReturn:
    _say(redact(f"gputide-broker: {' '.join(text.split())}"))
    raise SystemExit(1) from None


if __name__ == "__main__":
    main()
