"""What is for sale, as advice: offers, curves, the pool. Reads the market as known here and changes nothing."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from broker.context import Context
from broker.store import bookings, people, pools
from broker.wire.market import CurveView, DeviceView, NodeView, OffersView, OfferView, PoolView
from market.catalog import PPM, WHOLE, Device, DeviceKind, Sku, Tier
from market.errors import InvalidLength, PriceMissing
from market.instants import SLOT_SECONDS, SLOTS_A_DAY, Window, slot_of, slot_start, whole_second
from market.needs import candidates, parse_need
from market.quoting import Snapshot, check_tier
from market.states import BookingState

LOOK = timedelta(hours=1)
MOST_NAMED = 200


def offers(context: Context, need: str | None, tier: Tier) -> OffersView:
    """Every SKU that is priced (or that meets a need), with what is free for an hour from now and what it costs."""
    check_tier(tier)
    with context.market() as (moment, market):
        now = whole_second(moment)
        skus = candidates(parse_need(need), market.pool) if need else tuple(market.pool.skus())
        book = market.curves.book
        window = Window(now, now + LOOK)
        priced = [sku for sku in skus if sku.model in book.tariff.base and sku.model in book.loads]
        return OffersView(
            offers=[_offer(market, sku, tier, window) for sku in priced],
            tier=tier,
            price_book=book.number,
            currency=book.tariff.currency,
            zone=book.tariff.zone,
            simulated=market.pool.simulated,
            at=now,
        )


def _offer(market: Snapshot, sku: Sku, tier: Tier, window: Window) -> OfferView:
    taken = market.pool.footprint(sku)
    curves = market.curves
    first = window.slots.start - curves.book.first_slot
    day = curves.rates(sku.model, taken.share, tier)[first : first + SLOTS_A_DAY]
    lowest = int(np.argmin(day))
    return OfferView(
        sku=str(sku),
        title=market.pool.model(sku.model).title,
        memory_gb=taken.memory_gb,
        isolation=taken.isolation,
        free_now=market.board.free_units(sku.model, taken, window.slots),
        capacity=market.board.capacity(sku.model, taken),
        rate_now=int(day[0]),
        rate_lowest=int(day[lowest]),
        lowest_at=max(window.start, slot_start(window.slots.start + lowest)),
        load_now=int(curves.load_ppm(sku.model)[first]),
        inferred=taken.inferred,
    )


def curve(context: Context, sku: Sku, tier: Tier, hours: int) -> CurveView:
    """The rate of a SKU for each slot of the coming hours (`InvalidLength` beyond the horizon, `PriceMissing`)."""
    if not 1 <= hours <= 14 * 24:
        raise InvalidLength("a curve is 1 to 336 hours long")
    check_tier(tier)
    with context.market() as (now, market):
        taken, curves = market.pool.footprint(sku), market.curves
        if sku.model not in curves.book.tariff.base:
            raise PriceMissing(f"{sku} has no price, so it is not sold")
        first = slot_of(now) - curves.book.first_slot
        cut = slice(first, first + hours * 3600 // SLOT_SECONDS)
        return CurveView(
            sku=str(sku),
            simulated=market.pool.simulated,
            tier=tier,
            currency=curves.book.tariff.currency,
            zone=curves.book.tariff.zone,
            price_book=curves.book.number,
            start=slot_start(slot_of(now)),
            slot_seconds=SLOT_SECONDS,
            rates=curves.rates(sku.model, taken.share, tier)[cut].tolist(),
            loads=curves.load_ppm(sku.model)[cut].tolist(),
        )


def pool(context: Context, *, after: str | None, limit: int) -> PoolView:
    """Nodes by name, after a name, with how much of each device is promised now."""
    now = context.now()
    with context.cache.locked_board(now) as board:
        pool = board.pool
        nodes = [node for node in pool.nodes if after is None or node.name > after]
        shown: dict[str, list[DeviceView]] = {node.name: [] for node in nodes[:limit]}
        for device in pool.devices:
            if device.node in shown:
                geometry = pool.model(device.model).board
                whole = geometry.cells if geometry and device.kind is DeviceKind.MIG else WHOLE
                shown[device.node].append(_device(device, board.promised_now(device) * PPM // whole))
        return PoolView(
            name=pool.name,
            simulated=pool.simulated,
            nodes=[
                NodeView(
                    name=node.name,
                    site=node.site,
                    topology=list(node.topology),
                    cpu_milli=node.cpu_milli,
                    memory_mib=node.memory_mib,
                    devices=shown[node.name],
                )
                for node in nodes[:limit]
            ],
            node_count=len(pool.nodes),
            device_count=len(pool.devices),
            next_cursor=nodes[limit - 1].name if len(nodes) > limit else None,
        )


def waiting_of(context: Context, person: str) -> list[str]:
    """The ids of a person's bookings that have not started yet, for the operator."""
    with context.database.read() as session:
        row = people.person_named(session, person)
        found = bookings.bookings(
            session, person_id=row.id, state=BookingState.CONFIRMED, before=None, limit=MOST_NAMED
        )
        return [each.id for each in found]


def stranded(context: Context) -> list[tuple[str, str]]:
    """Bookings that stand on devices which sell no more, and whose they are: (id, person), for the operator."""
    with context.database.read() as session:
        pool = pools.read(session)
        broken = {device.id for device in pool.devices if not device.healthy} if pool else set[int]()
        held = bookings.live_allocations(session, slot_of(context.now()))
        ids = [each for each, places in held.items() if any(place.device_id in broken for place in places)]
        rows = [bookings.booking(session, each) for each in sorted(ids)]
        return [(row.id, bookings.names(session, row)[0]) for row in rows if row]


def _device(device: Device, promised_ppm: int) -> DeviceView:
    return DeviceView(
        id=device.id,
        index=device.index,
        model=device.model,
        kind=device.kind,
        healthy=device.healthy,
        promised_now=promised_ppm,
    )
