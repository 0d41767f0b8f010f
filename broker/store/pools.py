"""Queries for the pool: models, nodes, devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import or_, update
from sqlmodel import Session, col, select

from broker.store.tables import AllocationRow, DeviceRow, ModelRow, NodeRow, PoolRow
from market.catalog import Device, DeviceKind, DeviceModel, Node, Pool

Named = TypeVar("Named", ModelRow, NodeRow)


def revision(session: Session) -> int:
    """Rises with every change of the pool; 0 when none is loaded."""
    row = session.get(PoolRow, 1)
    return row.revision if row else 0


def read(session: Session) -> Pool | None:
    """The whole pool, devices by ascending id; one that was withdrawn stays while something is promised of it."""
    row = session.get(PoolRow, 1)
    if row is None:
        return None
    promised = select(AllocationRow.device_id).where(col(AllocationRow.released_at).is_(None))
    kept = select(DeviceRow).where(or_(~col(DeviceRow.withdrawn), col(DeviceRow.id).in_(promised)))
    devices = tuple(_device(each) for each in session.exec(kept.order_by(col(DeviceRow.id))))
    models, nodes = {device.model for device in devices}, {device.node for device in devices}
    return Pool(
        name=row.name,
        simulated=row.simulated,
        models=tuple(_model(each) for each in _by_name(session.exec(select(ModelRow))) if each.name in models),
        nodes=tuple(_node(each) for each in _by_name(session.exec(select(NodeRow))) if each.name in nodes),
        devices=devices,
    )


def _by_name(rows: Iterable[Named]) -> list[Named]:
    """Sorted by code points, in whatever order the database would collate them."""
    return sorted(rows, key=lambda row: row.name)


def forecasts(session: Session) -> dict[str, list[int]]:
    """Load by hour of the week (168 values in ppm) of each device model."""
    return {row.name: row.forecast for row in session.exec(select(ModelRow))}


def save(session: Session, pool: Pool, forecast: Mapping[str, Sequence[int]]) -> int:
    """Makes the stored pool like this one and returns its revision, which is the caller's to raise before.

    A device keeps its row as long as its node and place do; one that is gone is withdrawn, its row kept for what is
    promised of it.
    """
    row = session.get(PoolRow, 1) or PoolRow(name=pool.name, simulated=pool.simulated, revision=1)
    row.name, row.simulated = pool.name, pool.simulated
    session.add(row)
    for model in pool.models:
        session.merge(
            ModelRow(
                name=model.name,
                title=model.title,
                memory_gb=model.memory_gb,
                mig_board=model.mig_board,
                forecast=list(forecast.get(model.name, [0] * 168)),
            )
        )
    for node in pool.nodes:
        session.merge(_node_row(node))
    session.flush()
    _save_devices(session, pool)
    return row.revision


def raise_revision(session: Session) -> None:
    """Takes the pool's row and counts its revision on, before anything of the pool is read: two who change the pool
    come one after the other."""
    session.connection().execute(update(PoolRow).values(revision=col(PoolRow.revision) + 1))


def bump(session: Session, device_ids: Sequence[int]) -> None:
    """Takes the rows of these devices, in ascending order, so that writers of overlapping sets never dead-lock."""
    statement = update(DeviceRow).values(version=col(DeviceRow.version) + 1)
    for device_id in sorted(set(device_ids)):
        session.connection().execute(statement.where(col(DeviceRow.id) == device_id))


def devices_of(session: Session, node: str, place: int | None) -> list[int]:
    """The ids of the devices of a node, or of the one in a place, that the pool still has."""
    query = select(DeviceRow.id).where(col(DeviceRow.node) == node, ~col(DeviceRow.withdrawn))
    found = session.exec(query if place is None else query.where(col(DeviceRow.place) == place))
    return [each for each in found if each is not None]


def otherwise_drained(session: Session, device_ids: Sequence[int], *, drained: bool) -> list[int]:
    """Those of the devices that are not yet as they are to be."""
    query = select(DeviceRow.id).where(col(DeviceRow.id).in_(device_ids), col(DeviceRow.drained) != drained)
    return [each for each in session.exec(query) if each is not None]


def set_drained(session: Session, device_ids: Sequence[int], *, drained: bool) -> None:
    """Drains devices, or lets them sell again."""
    session.connection().execute(update(DeviceRow).where(col(DeviceRow.id).in_(device_ids)).values(drained=drained))


def _save_devices(session: Session, pool: Pool) -> None:
    stored = {(row.node, row.place): row for row in session.exec(select(DeviceRow))}
    for device in pool.devices:
        row = stored.pop((device.node, device.index), None)
        if row is None:
            row = DeviceRow(node=device.node, place=device.index, model=device.model, kind=device.kind, shapes=[])
        row.shapes, row.nvlink, row.healthy = list(device.shapes), device.nvlink, device.healthy
        row.model, row.kind, row.withdrawn = device.model, device.kind, False
        session.add(row)
    for gone in stored.values():
        gone.withdrawn = True
        session.add(gone)
    session.flush()


def _model(row: ModelRow) -> DeviceModel:
    return DeviceModel(name=row.name, title=row.title, memory_gb=row.memory_gb, mig_board=row.mig_board)


def _node(row: NodeRow) -> Node:
    return Node(
        name=row.name,
        site=row.site,
        topology=tuple(row.topology),
        cpu_milli=row.cpu_milli,
        memory_mib=row.memory_mib,
        cooling=row.cooling,
        labels=row.labels,
    )


def _node_row(node: Node) -> NodeRow:
    return NodeRow(
        name=node.name,
        site=node.site,
        topology=list(node.topology),
        cpu_milli=node.cpu_milli,
        memory_mib=node.memory_mib,
        cooling=node.cooling,
        labels=dict(node.labels),
    )


def _device(row: DeviceRow) -> Device:
    assert row.id is not None
    return Device(
        id=row.id,
        node=row.node,
        index=row.place,
        model=row.model,
        kind=DeviceKind(row.kind),
        shapes=tuple(row.shapes),
        nvlink=row.nvlink,
        healthy=row.healthy and not row.drained and not row.withdrawn,
    )
