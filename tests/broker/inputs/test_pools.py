"""The pools that ship with gputide, and every way in which a pool file can be wrong."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.inputs.assets import asset
from broker.inputs.pools import DemandSource, load_pool
from market.catalog import DeviceKind, Isolation, Pool
from market.errors import InvalidPool

OPENB_NODES = Path(__file__).parents[2] / "data" / "openb_node_list_gpu_node.csv.gz"
SMALL = """\
name = "small"
simulated = true

[[models]]
name = "a100-40g"
title = "NVIDIA A100"
memory_gb = 40
mig_board = "A100-40GB"

[[models]]
name = "l4"
title = "NVIDIA L4"
memory_gb = 24

[[nodes]]
name = "n-{n:02}"
count = 2
site = "hall"
topology = ["spine-1", "leaf-1"]
cpu_milli = 64_000
memory_gib = 512
cooling = "liquid"
labels = { rack = "b1" }

[[nodes.devices]]
model = "a100-40g"
count = 1
kind = "mig"
shapes = ["1g.5gb", "7g.40gb"]

[[nodes.devices]]
model = "l4"
count = 2
kind = "shared"
shapes = ["full", "half", "0.470", "10gb"]
nvlink = "pair"

[[demand]]
models = ["l4"]
source = "servegen"
column = "m-mid"
peak_ppm = 800_000
"""
FAULTS = [
    ('simulated = true', 'simulated = 1', "simulated: must be true or false"),
    ('simulated = true', 'simulate = true', "simulate: unknown key; did you mean simulated?"),
    ('name = "small"', '', "name: is missing"),
    ('name = "small"', 'name = " "', "name: must be a text"),
    ('name = "small"', r'name = "small\u0007"', "name: must be a text"),
    ('name = "a100-40g"', 'name = "A100/40g"', "models[1].name: 'A100/40g' is no name"),
    ('name = "l4"', 'name = "a100-40g"', "models: the name 'a100-40g' is given twice"),
    ('memory_gb = 24', 'memory_gb = 24.0', "models[2].memory_gb: must be a whole number"),
    ('memory_gb = 24', 'memory_gb = true', "models[2].memory_gb: must be a whole number"),
    ('memory_gb = 24', 'memory = 24', "models[2].memory: unknown key; did you mean memory_gb?"),
    ('"A100-40GB"', '"A100-40G"', "models[1].mig_board: 'A100-40G' is unknown; did you mean"),
    ('mig_board = "A100-40GB"', '', "nodes[1].devices[1].kind: a100-40g has no mig_board"),
    ('count = 2\nsite', 'count = 0\nsite', "nodes[1].count: must be a whole number from 1 to 100000"),
    ('count = 2\nsite', 'count = -1\nsite', "nodes[1].count: must be"),
    ('count = 2\nsite', 'count = true\nsite', "nodes[1].count: must be"),
    ('count = 2\nsite', 'count = 100_001\nsite', "nodes[1].count: must be"),
    ('count = 2\nsite', 'count = 99_999\nsite', "nodes[1].count: a pool has at most 100000 nodes"),
    ('count = 2\nsite', 'site', "nodes[1].count: is missing"),
    ('count = 2\nsite', 'count = 2\nnumbers = ["1-2"]\nsite', "nodes[1].numbers: give either"),
    ('count = 2\nsite', 'numbers = ["2-1"]\nsite', "nodes[1].numbers: '2-1' is no number and no range"),
    ('count = 2\nsite', 'numbers = ["0-999999"]\nsite', "nodes[1].numbers: a pool has at most"),
    ('count = 2\nsite', 'numbers = ["1-3", "2"]\nsite', "nodes: the name 'n-02' is given twice"),
    ('name = "n-{n:02}"', 'name = "n"', "nodes[1].name: 2 nodes need a number in their name"),
    ('name = "n-{n:02}"', 'name = "n-{n.real}"', "nodes[1].name: 'n-{n.real}' is no name"),
    ('cpu_milli = 64_000', 'cpu_milli = 0', "nodes[1].cpu_milli: must be"),
    ('cpu_milli = 64_000', '', "nodes[1].cpu_milli: is missing"),
    ('memory_gib = 512', 'memory_gib = "512"', "nodes[1].memory_gib: must be"),
    ('"spine-1", "leaf-1"', '"spine-1", 1', "nodes[1].topology: must be a text"),
    ('["spine-1", "leaf-1"]', '"spine-1"', "nodes[1].topology: must be a list"),
    ('cooling = "liquid"', 'cooling = "liqiud"', "nodes[1].cooling: 'liqiud' is unknown; did you mean liquid?"),
    ('{ rack = "b1" }', '{ rack = 1 }', "nodes[1].labels.rack: must be a text"),
    ('{ rack = "b1" }', '"b1"', "nodes[1].labels: must be a table"),
    ('model = "a100-40g"', 'model = "a100"', "nodes[1].devices[1].model: 'a100' is unknown; did you mean a100-40g?"),
    ('kind = "mig"', 'kind = "migg"', "nodes[1].devices[1].kind: 'migg' is unknown; did you mean mig?"),
    ('kind = "shared"', 'kind = "mig"', "nodes[1].devices[2].kind: l4 has no mig_board"),
    ('"1g.5gb"', '"1g.6gb"', "nodes[1].devices[1].shapes: a mig a100-40g has no shape '1g.6gb'; did you mean 1g.5gb?"),
    ('"1g.5gb"', '"full"', "nodes[1].devices[1].shapes: a mig a100-40g has no shape 'full'"),
    ('"1g.5gb"', '"7g.40gb"', "nodes[1].devices[1].shapes: '7g.40gb' is listed twice"),
    ('"half"', '"haf"', "nodes[1].devices[2].shapes: a shared l4 has no shape 'haf'; did you mean half?"),
    ('"10gb"', '"10GB"', "nodes[1].devices[2].shapes: a shared l4 has no shape '10GB'"),
    ('"10gb"', '"25gb"', "nodes[1].devices[2].shapes: a shared l4 has no shape '25gb'"),
    ('["full", "half", "0.470", "10gb"]', '[]', "nodes[1].devices[2].shapes: must list at least one"),
    ('nvlink = "pair"', 'nvlink = ""', "nodes[1].devices[2].nvlink: must be a text"),
    ('nvlink = "pair"', 'nv_link = "pair"', "nodes[1].devices[2].nv_link: unknown key; did you mean nvlink?"),
    ('models = ["l4"]', 'models = ["l40"]', "demand[1].models: 'l40' is unknown; did you mean l4?"),
    ('source = "servegen"', 'source = "philly"', "demand[1].column: only a servegen record has columns"),
    ('source = "servegen"', 'source = "phily"', "demand[1].source: 'phily' is unknown; did you mean philly?"),
    ('column = "m-mid"', 'column = "m-midi"', "demand[1].column: 'm-midi' is unknown; did you mean m-mid?"),
    ('column = "m-mid"', '', "demand[1].column: is missing"),
    ('800_000', '2_000_001', "demand[1].peak_ppm: must be"),
    ('[[demand]]', '[demand]', "demand: must be a list"),
    ('name = "small"', 'name "small"', "is not TOML"),
    ('name = "small"', 'name = "small"\nname = "small"', "is not TOML"),
    ('name = "small"', f"name = {'[' * 100_000}", "is not TOML"),
]  # fmt: skip


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "pool.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_small_pool_is_read_as_it_is_written(tmp_path: Path) -> None:
    read = load_pool(written(tmp_path, SMALL))
    first, second = read.pool.nodes
    assert (first.name, second.name) == ("n-01", "n-02")
    assert (first.site, first.topology, first.cooling, first.labels) == (
        "hall", ("spine-1", "leaf-1"), "liquid", {"rack": "b1"},
    )  # fmt: skip
    assert (first.cpu_milli, first.memory_mib) == (64_000, 512 * 1024)
    assert [(device.id, device.node, device.index, device.model) for device in read.pool.devices] == [
        (1, "n-01", 0, "a100-40g"), (2, "n-01", 1, "l4"), (3, "n-01", 2, "l4"),
        (4, "n-02", 0, "a100-40g"), (5, "n-02", 1, "l4"), (6, "n-02", 2, "l4"),
    ]  # fmt: skip
    assert [device.nvlink for device in read.pool.devices[:3]] == [None, "pair", "pair"]
    assert read.demand == (DemandSource(models=("l4",), source="servegen", column="m-mid", peak_ppm=800_000),)


@pytest.mark.parametrize(("old", "new", "words"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_names_the_file_the_table_and_the_key(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in SMALL
    path = written(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(InvalidPool) as refused:
        load_pool(path)
    assert str(refused.value).startswith(str(path))
    assert words in str(refused.value)


def test_a_second_source_of_demand_for_a_model_is_refused(tmp_path: Path) -> None:
    demand = SMALL[SMALL.index("[[demand]]") :]
    with pytest.raises(InvalidPool, match=r"demand\[2\]\.models: 'l4' has a source of demand already"):
        load_pool(written(tmp_path, SMALL + demand))


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPool, match="cannot be read: Is a directory"):
        load_pool(tmp_path)
    with pytest.raises(InvalidPool, match="cannot be read: No such file"):
        load_pool(tmp_path / "nowhere.toml")
    with pytest.raises(InvalidPool, match="not UTF-8: invalid start byte at byte 8"):
        load_pool(written(tmp_path, b'name = "\xff"'))
    with pytest.raises(InvalidPool, match="models: is missing"):
        load_pool(written(tmp_path, ""))


JUNK = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(
        ["", "true", "nan", "[]", "[[]]", "{}", '""', '"x"', "[1]", "1979-05-27", '["l4"]', "{ n = 1 }", "'{n}'", "@"]
    ),
)
LINES = SMALL.splitlines()
KEYS = [number for number, line in enumerate(LINES) if " = " in line]


@given(number=st.sampled_from(KEYS), junk=JUNK)
def test_junk_in_place_of_any_value_is_read_or_refused_by_its_key(
    tmp_path_factory: pytest.TempPathFactory, number: int, junk: str
) -> None:
    key = LINES[number].split(" = ")[0]
    text = "\n".join([*LINES[:number], f"{key} = {junk}", *LINES[number + 1 :]])
    said = read_or_refused(written(tmp_path_factory.mktemp("junk"), text))
    hints = (key, "not TOML", "is unknown", "is given twice", "has no shape")
    assert said is None or any(word in said for word in hints)


@given(st.lists(st.sampled_from(range(len(LINES))), max_size=4), st.binary(max_size=6), st.integers(0, len(SMALL)))
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, dropped: list[int], junk: bytes, at: int
) -> None:
    text = "\n".join(line for number, line in enumerate(LINES) if number not in dropped).encode()
    path = written(tmp_path_factory.mktemp("damaged"), text[:at] + junk + text[at:])
    said = read_or_refused(path)
    assert said is None or said.startswith(str(path))


def read_or_refused(path: Path) -> str | None:
    """None for a file that is read as a sound pool, else the words of the refusal."""
    try:
        pool = load_pool(path).pool
    except InvalidPool as fault:
        return str(fault)
    assert_sound(pool)
    return None


def assert_sound(pool: Pool) -> None:
    assert [device.id for device in pool.devices] == list(range(1, len(pool.devices) + 1))
    assert len(pool.node_by_name) == len(pool.nodes)
    assert all(device.node in pool.node_by_name for device in pool.devices)
    assert all(pool.footprint(sku).memory_gb >= 0 for sku in pool.skus())


def test_the_campus_has_six_nodes_and_48_devices_of_four_models() -> None:
    pool = load_pool(asset("pools", "campus.toml")).pool
    assert_sound(pool)
    assert pool.simulated
    assert (len(pool.nodes), len(pool.devices)) == (6, 48)
    assert Counter(device.model for device in pool.devices) == {"a100-40g": 24, "h100-80g": 8, "l4": 8, "a10": 8}
    assert {pool.footprint(sku).isolation for sku in pool.skus()} == {Isolation.DEVICE, Isolation.MIG, Isolation.TIME}


def test_openb_is_the_published_list_of_nodes() -> None:
    pool = load_pool(asset("pools", "openb.toml")).pool
    assert_sound(pool)
    assert (len(pool.nodes), len(pool.devices)) == (1213, 6212)
    with gzip.open(OPENB_NODES, "rt", encoding="utf-8", newline="") as file:
        published = {
            (row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), row["model"].lower(), int(row["gpu"]))
            for row in csv.DictReader(file)
        }
    cards = Counter((device.node, device.model) for device in pool.devices)
    ours = {(name, pool.node_by_name[name].cpu_milli, pool.node_by_name[name].memory_mib, model, number)
            for (name, model), number in cards.items()}  # fmt: skip
    assert ours == published
    assert {(device.kind, device.shapes) for device in pool.devices} == {
        (DeviceKind.SHARED, ("full", "half", "quarter"))
    }
