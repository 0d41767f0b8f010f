"""Reads a pool file: the models, node groups and devices that a broker sells, and where its first forecast comes from.

Devices are numbered from 1 in the order of the file, node by node. `assets/pools/campus.toml` is an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from broker.inputs.toml_tables import MAX_COUNT, TomlTable, nearest, read_toml, repeated
from market.catalog import NAMED_FRACTIONS, PPM, Device, DeviceKind, DeviceModel, Node, Pool, footprint
from market.errors import InvalidShape
from market.mig import MIG_BOARDS

SOURCES = ("philly", "servegen")
SERVEGEN_COLUMNS = ("m-large", "m-mid", "m-small")
COOLING = ("air", "liquid")
_MODEL_NAME = r"[a-z0-9][a-z0-9.-]*"
_NODE_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]|\{n(:0[1-6])?\})*"
_NUMBER = re.compile(r"\{n(?::0(\d))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandSource:
    """Where the forecast of some models comes from: a public record, scaled so that the busiest hour is `peak_ppm`.

    `source` is one of `SOURCES`, `column` the service of a ServeGen record and None for Philly.
    """

    models: tuple[str, ...]
    source: str
    column: str | None
    peak_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFile:
    """What a pool file says."""

    pool: Pool
    demand: tuple[DemandSource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceGroup:
    model: str
    count: int
    kind: DeviceKind
    shapes: tuple[str, ...]
    nvlink: str | None


def load_pool(path: Path) -> PoolFile:
    """The pool of a TOML file; whatever is wrong with it is `InvalidPool`, with the path, the table and the key."""
    root = read_toml(path)
    root.only("name", "simulated", "models", "nodes", "demand")
    listed = [_model(table) for table in root.tables("models")]
    _refuse_repeated(root, "models", [model.name for model in listed])
    models = {model.name: model for model in listed}
    nodes: list[Node] = []
    devices: list[Device] = []
    for table in root.tables("nodes"):
        _read_group(table, models, nodes, devices)
    _refuse_repeated(root, "nodes", [node.name for node in nodes])
    pool = Pool(
        name=root.text("name"),
        simulated=root.flag("simulated", default=False),
        models=tuple(models.values()),
        nodes=tuple(nodes),
        devices=tuple(devices),
    )
    return PoolFile(pool=pool, demand=tuple(_demand(root, models)))


def _model(table: TomlTable) -> DeviceModel:
    table.only("name", "title", "memory_gb", "mig_board")
    return DeviceModel(
        name=table.identifier("name", _MODEL_NAME, example="a100-40g"),
        title=table.text("title"),
        memory_gb=table.count("memory_gb"),
        mig_board=table.word("mig_board", MIG_BOARDS) if "mig_board" in table.values else None,
    )


def _refuse_repeated(root: TomlTable, key: str, names: Sequence[str]) -> None:
    if (name := repeated(names)) is not None:
        raise root.fault(key, f"the name {name!r} is given twice")


def _read_group(table: TomlTable, models: Mapping[str, DeviceModel], nodes: list[Node], devices: list[Device]) -> None:
    """Appends the nodes and devices of one `[[nodes]]` table."""
    table.only(
        "name", "count", "numbers", "site", "topology", "cpu_milli", "memory_gib", "cooling", "labels", "devices"
    )
    names = _node_names(table)
    groups = [_device_group(each, models) for each in table.tables("devices")]
    a_node = sum(group.count for group in groups)
    if len(nodes) + len(names) > MAX_COUNT or len(devices) + len(names) * a_node > MAX_COUNT:
        raise table.fault("count", f"a pool has at most {MAX_COUNT} nodes and {MAX_COUNT} devices")
    node = _node(table)
    for name in names:
        nodes.append(replace(node, name=name))
        devices.extend(_devices(name, groups, first_id=len(devices) + 1))


def _node(table: TomlTable) -> Node:
    return Node(
        name=table.text("name"),
        site=table.text("site", default="main"),
        topology=table.texts("topology", default=[]),
        cpu_milli=table.count("cpu_milli", most=MAX_COUNT * 1000),
        memory_mib=table.count("memory_gib") * 1024,
        cooling=table.word("cooling", COOLING, default="air"),
        labels=table.labels("labels"),
    )


def _devices(node: str, groups: Sequence[_DeviceGroup], first_id: int) -> Iterator[Device]:
    places = count()
    for group in groups:
        for _ in range(group.count):
            place = next(places)
            yield Device(
                id=first_id + place,
                node=node,
                index=place,
                model=group.model,
                kind=group.kind,
                shapes=group.shapes,
                nvlink=group.nvlink,
            )


def _node_names(table: TomlTable) -> list[str]:
    """The names of a group: `{n}` or `{n:02}` stands for 1 to `count`, or for each of `numbers`, as in "0-21, 97"."""
    pattern = table.identifier("name", _NODE_NAME, example="a100-{n:02}")
    if "count" in table.values and "numbers" in table.values:
        raise table.fault("numbers", "give either count or numbers")
    numbers = _numbers(table) if "numbers" in table.values else range(1, table.count("count") + 1)
    if len(numbers) > 1 and not _NUMBER.search(pattern):
        raise table.fault("name", f"{len(numbers)} nodes need a number in their name, as in {pattern[:40]}-{{n:02}}")
    return [_NUMBER.sub(lambda found, n=number: f"{n:0{int(found[1] or 1)}}", pattern) for number in numbers]


def _numbers(table: TomlTable) -> list[int]:
    numbers: list[int] = []
    for part in table.texts("numbers"):
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part, re.ASCII)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise table.fault("numbers", f"{part!r} is no number and no range such as 0-21")
        numbers.extend(range(int(found[1]), int(found[2] or found[1]) + 1))
        if len(numbers) > MAX_COUNT:
            raise table.fault("numbers", f"a pool has at most {MAX_COUNT} nodes")
    return numbers


def _device_group(table: TomlTable, models: Mapping[str, DeviceModel]) -> _DeviceGroup:
    table.only("model", "count", "kind", "shapes", "nvlink")
    model = models[table.word("model", models)]
    kind = DeviceKind(table.word("kind", DeviceKind))
    if kind is DeviceKind.MIG and model.board is None:
        raise table.fault("kind", f"{model.name} has no mig_board, so it cannot be partitioned; use shared")
    return _DeviceGroup(
        model=model.name,
        count=table.count("count"),
        kind=kind,
        shapes=_shapes(table, model, kind),
        nvlink=table.text("nvlink") if "nvlink" in table.values else None,
    )


def _shapes(table: TomlTable, model: DeviceModel, kind: DeviceKind) -> tuple[str, ...]:
    profiles = [profile.name for profile in model.board.profiles] if model.board else []
    valid = profiles if kind is DeviceKind.MIG else ["full", *NAMED_FRACTIONS]
    shapes = table.texts("shapes")
    for shape in shapes:
        try:
            fits = shape == shape.lower() and footprint(model, shape).kind is kind
        except InvalidShape:
            fits = False
        if not fits:
            raise table.fault("shapes", f"a {kind} {model.name} has no shape {shape!r}; {nearest(shape, valid)}")
    return shapes


def _demand(root: TomlTable, models: Mapping[str, DeviceModel]) -> Iterator[DemandSource]:
    served: set[str] = set()
    for table in root.tables("demand", default=[]):
        table.only("models", "source", "column", "peak_ppm")
        source = table.word("source", SOURCES)
        for model in table.texts("models"):
            if model not in models:
                raise table.fault("models", f"{model!r} is unknown; {nearest(model, models)}")
            if model in served:
                raise table.fault("models", f"{model!r} has a source of demand already")
            served.add(model)
        if source == "philly" and "column" in table.values:
            raise table.fault("column", "only a servegen record has columns")
        yield DemandSource(
            models=table.texts("models"),
            source=source,
            column=table.word("column", SERVEGEN_COLUMNS) if source == "servegen" else None,
            peak_ppm=table.count("peak_ppm", most=2 * PPM),
        )
