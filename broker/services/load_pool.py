"""Load a pool: makes the stored pool like a pool file, without breaking what is promised of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlmodel import Session

from broker.context import Context
from broker.store import bookings, events, pools
from market.catalog import Device, Pool
from market.errors import InvalidPool
from market.instants import slot_of


def load_pool(context: Context, pool: Pool, forecast: Mapping[str, Sequence[int]]) -> int:
    """Stores a pool with its forecast by hour of the week and returns the new revision.

    `InvalidPool` when a device with bookings would become another model or kind; one that the file no longer names
    keeps its bookings and is sold no more.
    """
    now = context.now()

    def unit(session: Session) -> int:
        pools.raise_revision(session)
        if stored := pools.read(session):
            changed = _changed(stored, pool)
            pools.bump(session, [device.id for device in changed])  # so that no booking takes one meanwhile
            _check_promises(session, stored, changed, pool, slot_of(now))
        revision = pools.save(session, pool, forecast)
        events.tell(session, "pool.loaded", subject=pool.name, at=now, revision=revision)
        return revision

    revision = context.database.write(unit)
    context.cache.refresh(now)
    context.wake()
    return revision


def _changed(stored: Pool, pool: Pool) -> list[Device]:
    """The stored devices that the new pool has otherwise, or no more."""
    wanted, models = _by_place(pool.devices), {model.name: model for model in pool.models}
    return [
        device
        for device in stored.devices
        if (new := wanted.get((device.node, device.index))) is None
        or replace(new, id=device.id) != device
        or models[device.model] != stored.model(device.model)
    ]


def _check_promises(session: Session, stored: Pool, changed: list[Device], pool: Pool, from_slot: int) -> None:
    promised = {each.device_id for held in bookings.live_allocations(session, from_slot).values() for each in held}
    wanted = _by_place(pool.devices)
    for device in changed:
        new = wanted.get((device.node, device.index))
        if new is None or device.id not in promised:
            continue
        if (new.model, new.kind) != (device.model, device.kind):
            raise InvalidPool(
                f"device {device.index} of {device.node} has bookings as {device.model} ({device.kind}), "
                f"so it cannot become {new.model} ({new.kind}) before they end"
            )
        if _cut(pool, new) != _cut(stored, device):
            raise InvalidPool(f"{device.model} has bookings, so its memory and its cells stay until they end")


def _cut(pool: Pool, device: Device) -> tuple[int, str | None]:
    """What the bookings of a device were made of: its memory and its board's geometry."""
    model = pool.model(device.model)
    return model.memory_gb, model.mig_board


def _by_place(devices: Iterable[Device]) -> dict[tuple[str, int], Device]:
    return {(device.node, device.index): device for device in devices}
