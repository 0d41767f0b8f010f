"""Queries for the pool: models, nodes, devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import update
from sqlmodel import Session, col, select

from broker.store.tables import DeviceRow, ModelRow, NodeRow, PoolRow
from market.catalog import Device, DeviceKind, DeviceModel, Node, Pool


def revision(session: Session) -> int:
    """Rises with every change of the pool; 0 when none is loaded."""
    row = session.get(PoolRow, 1)
    return row.revision if row else 0


def read(session: Session) -> Pool | None:
    """The whole pool, devices by ascending id."""
    row = session.get(PoolRow, 1)
    if row is None:
        return None
    return Pool(
        name=row.name,
        simulated=row.simulated,
        models=tuple(_model(each) for each in session.exec(select(ModelRow).order_by(col(ModelRow.name)))),
        nodes=tuple(sorted(map(_node, session.exec(select(NodeRow))), key=lambda node: node.name)),  # by code points
        devices=tuple(_device(each) for each in session.exec(select(DeviceRow).order_by(col(DeviceRow.id)))),
    )


def forecasts(session: Session) -> dict[str, list[int]]:
    """Load by hour of the week (168 values in ppm) of each device model."""
    return {row.name: row.forecast for row in session.exec(select(ModelRow))}


def save(session: Session, pool: Pool, forecast: Mapping[str, Sequence[int]]) -> int:
    """Makes the stored pool like this one and returns its new revision.

    A device keeps its row as long as its node and place do; one that is gone is kept as unhealthy, for what is
    promised of it.
    """
    row = session.get(PoolRow, 1) or PoolRow(name=pool.name, simulated=pool.simulated, revision=0)
    row.name, row.simulated, row.revision = pool.name, pool.simulated, row.revision + 1
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


def bump(session: Session, device_ids: Sequence[int]) -> None:
    """Takes the rows of these devices, in ascending order, so that writers of overlapping sets never dead-lock."""
    statement = update(DeviceRow).values(version=col(DeviceRow.version) + 1)
    for device_id in sorted(set(device_ids)):
        session.connection().execute(statement.where(col(DeviceRow.id) == device_id))


def _save_devices(session: Session, pool: Pool) -> None:
    stored = {(row.node, row.place): row for row in session.exec(select(DeviceRow))}
    for device in pool.devices:
        row = stored.pop((device.node, device.index), None)
        if row is None:
            row = DeviceRow(node=device.node, place=device.index, model=device.model, kind=device.kind, shapes=[])
        row.shapes, row.nvlink, row.healthy = list(device.shapes), device.nvlink, device.healthy
        row.model, row.kind = device.model, device.kind
        session.add(row)
    for gone in stored.values():
        gone.healthy = False
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
        healthy=row.healthy,
    )
