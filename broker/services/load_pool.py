"""Load a pool: makes the stored pool like a pool file, without breaking what is promised of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmodel import Session

from broker.context import Context
from broker.store import bookings, events, pools
from market.catalog import Pool
from market.errors import InvalidPool
from market.instants import slot_of


def load_pool(context: Context, pool: Pool, forecast: Mapping[str, Sequence[int]]) -> int:
    """Stores a pool with its forecast by hour of the week and returns the new revision.

    `InvalidPool` when a device with bookings would become another model or kind; one that the file no longer names
    keeps its bookings and is sold no more.
    """
    now = context.now()

    def unit(session: Session) -> int:
        _check_promises(session, pool, slot_of(now))
        revision = pools.save(session, pool, forecast)
        events.tell(session, "pool.loaded", subject=pool.name, at=now, revision=revision)
        return revision

    revision = context.database.write(unit)
    context.cache.refresh(now)
    context.wake()
    return revision


def _check_promises(session: Session, pool: Pool, from_slot: int) -> None:
    stored = pools.read(session)
    if stored is None:
        return
    promised = {each.device_id for held in bookings.live_allocations(session, from_slot).values() for each in held}
    wanted = {(device.node, device.index): device for device in pool.devices}
    for device in stored.devices:
        new = wanted.get((device.node, device.index))
        if new and device.id in promised and (new.model, new.kind) != (device.model, device.kind):
            raise InvalidPool(
                f"device {device.index} of {device.node} has bookings as {device.model} ({device.kind}), "
                f"so it cannot become {new.model} ({new.kind}) before they end"
            )
