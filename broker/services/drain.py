"""Drain devices, or let them sell again: what is promised of them stays, and nothing new is promised meanwhile."""

from __future__ import annotations

from sqlmodel import Session

from broker.context import Context
from broker.store import events, pools
from broker.wire.errors import NotFound


def set_drained(context: Context, node: str, index: int | None, *, drained: bool) -> int:
    """Drains the device with an index on a node, or all of the node, and returns how many that changed (`NotFound`).

    A pool file that is loaded later leaves them drained.
    """
    now = context.now()

    def unit(session: Session) -> int:
        pools.raise_revision(session)
        found = pools.devices_of(session, node, index)
        if not found:
            raise NotFound(f"no device {index} on {node}" if index is not None else f"no node is called {node!r}")
        found = pools.otherwise_drained(session, found, drained=drained)
        pools.bump(session, found)  # so that no booking takes one meanwhile
        pools.set_drained(session, found, drained=drained)
        kind = "pool.drained" if drained else "pool.undrained"
        events.tell(session, kind, subject=node, at=now, devices=len(found))
        return len(found)

    count = context.database.write(unit)
    context.cache.refresh(now)
    context.wake()
    return count
