"""Publish: computes a price book from the tariff in force and the load as it stands, and stores it for good."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlmodel import Session

from broker.cache import PRICED_SLOTS, read_book
from broker.context import Context
from broker.failpoints import Work
from broker.inputs.tariffs import parse_tariff
from broker.store import events, pools, prices
from broker.store.database import ATTEMPTS, Duplicate
from broker.store.tables import PriceBookRow
from broker.wire.errors import Contention, NotReady
from market.board import Board
from market.forecast import forecast_slots, still_to_come
from market.instants import slot_of, whole_second, zone_named
from market.pricing import ModelLoad, PriceBook, PriceCurves


def publish(context: Context) -> PriceBook:
    """Publishes the next price book and puts it in force here (`NotReady` without a pool or a tariff)."""
    for _ in range(ATTEMPTS):
        with suppress(Duplicate):  # another book, or another tariff, came meanwhile: once more from what is so now
            book = _publish(context)
            context.cache.install(book)
            context.wake()
            return book
    raise Contention


def _publish(context: Context) -> PriceBook:
    moment = context.now()
    now = whole_second(moment)
    with context.database.read() as session:
        tariff_row = prices.tariff_in_force(session, moment)
        forecasts = pools.forecasts(session)
        revision, latest = pools.revision(session), prices.latest_book_number(session)
    if tariff_row is None or not forecasts:
        raise NotReady
    assert tariff_row.id is not None
    zone = zone_named(parse_tariff(tariff_row.document).zone)
    if context.cache.is_behind(revision, latest):  # else it has heard of every booking, and a large board takes a while
        context.cache.refresh(now)
    with context.cache.locked_board(now) as board:
        sold = (model.name for model in board.pool.models if model.name in forecasts)
        loads = {model: _load(board, model, forecasts[model], zone, slot_of(now)) for model in sold}
    row = PriceBookRow(
        number=latest + 1,
        tariff_id=tariff_row.id,
        pool_revision=revision,
        first_slot=slot_of(now),
        computed_at=now,
        digest="",
        loads={
            model: {"promised": load.promised, "still_to_come": load.still_to_come} for model, load in loads.items()
        },
    )
    book = read_book(row, tariff_row.document)
    row.digest = book.digest()
    context.database.write(lambda session: _store(session, row, moment), Work.PUBLISH)
    return book


def _store(session: Session, row: PriceBookRow, now: datetime) -> None:
    """`Duplicate` when the number is taken by now or the tariff is no longer the one in force."""
    tariff = prices.tariff_in_force(session, now)
    if tariff is None or tariff.id != row.tariff_id:
        raise Duplicate
    session.add(PriceBookRow(**row.model_dump()))  # a copy: a unit of work may be run again
    events.tell(session, "price_book.published", subject=str(row.number), at=now)
    session.flush()


def _load(board: Board, model: str, hours: list[int], zone: ZoneInfo, first_slot: int) -> ModelLoad:
    promised = board.promised_ppm(model)[:PRICED_SLOTS]
    to_come = still_to_come(forecast_slots(PriceCurves.array(tuple(hours)), zone, first_slot, PRICED_SLOTS), promised)
    return ModelLoad(promised=tuple(promised.tolist()), still_to_come=tuple(to_come.tolist()))
