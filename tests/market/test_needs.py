import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import Device, DeviceKind, DeviceModel, Node, Pool, Sku
from market.errors import InvalidNeed, InvalidShape, NoSuchCapacity, UnknownModel, UnknownSku
from market.needs import Need, candidates, parse_need

MODELS = (
    DeviceModel(name="a100-40g", title="NVIDIA A100 40 GB", memory_gb=40, mig_board="A100-40GB"),
    DeviceModel(name="a100-80g", title="NVIDIA A100 80 GB", memory_gb=80, mig_board="A100-80GB"),
    DeviceModel(name="l4", title="NVIDIA L4", memory_gb=24),
    DeviceModel(name="l40s", title="NVIDIA L40S", memory_gb=48),
    DeviceModel(name="v100m16", title="NVIDIA V100 16 GB", memory_gb=16),
    DeviceModel(name="v100m32", title="NVIDIA V100 32 GB", memory_gb=32),
    DeviceModel(name="t4", title="NVIDIA T4", memory_gb=16),
)
MIG, SHARED = DeviceKind.MIG, DeviceKind.SHARED
SOLD = [
    ("a100-40g", SHARED, ("full",)),
    ("a100-40g", MIG, ("1g.5gb", "3g.20gb", "7g.40gb")),
    ("a100-80g", MIG, ("3g.40gb", "7g.80gb")),
    ("l4", SHARED, ("full", "half")),
    ("l40s", SHARED, ("half",)),
    ("v100m16", SHARED, ("full",)),
    ("v100m32", SHARED, ("full",)),
    ("t4", SHARED, ("full",)),
]
POOL = Pool(
    name="test",
    simulated=True,
    models=MODELS,
    nodes=(Node(name="n1", site="here", topology=(), cpu_milli=64_000, memory_mib=512_000),),
    devices=tuple(
        Device(id=place, node="n1", index=place, model=model, kind=kind, shapes=shapes, healthy=model != "t4")
        for place, (model, kind, shapes) in enumerate(SOLD)
    ),
)
COUNTS = st.integers(1, 10_000)
NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,20}[a-z0-9]", fullmatch=True)
SKUS = st.builds(Sku, NAMES, st.from_regex(r"[a-z0-9][a-z0-9.]{0,9}", fullmatch=True))


@st.composite
def needs(draw: st.DrawFn) -> Need:
    try:
        if draw(st.booleans()):
            return Need(count=draw(COUNTS), sku=draw(SKUS))
        memory_gb = draw(st.none() | st.integers(1, 10_000))
        return Need(count=draw(COUNTS), family=draw(st.none() | NAMES), memory_gb=memory_gb)
    except InvalidNeed:  # a name such as "gpus"
        return Need()


@given(needs())
def test_a_need_is_read_back_from_what_it_prints(need: Need) -> None:
    assert parse_need(str(need)) == need
    assert parse_need(str(need).upper()) == need


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("4 x A100 40GB", "4 x a100, 40 GB each"),
        ("4 x A100, 40 GB each", "4 x a100, 40 GB each"),
        ("4× A100 with at least 40 GB", "4 x a100, 40 GB each"),
        ("1 x at least 20 GB", "1 x at least 20 GB"),
        ("20GB", "1 x at least 20 GB"),
        ("20 GB or more", "1 x at least 20 GB"),
        ("2 40gb", "2 x at least 40 GB"),
        ("4 GPUs of 40 GB each", "4 x at least 40 GB"),
        ("2 a100-40g/3g.20gb", "2 x a100-40g/3g.20gb"),
        ("A100", "1 x a100"),
        ("2x h100", "2 x h100"),
        ("2 A100 GPUs", "2 x a100"),
        ("4 xavier", "4 x xavier"),
        ("2 x RTX 4090", "2 x rtx-4090"),
        ("l4/half", "1 x l4/half"),
        ("L4/10GB", "1 x l4/10gb"),
        ("3 GPUs", "3 GPUs"),
        ("gpu", "1 GPU"),
        ("an A100", "1 x a100"),
        ("two H100", "2 x h100"),
        ("H100 x 2", "2 x h100"),
        ("NVIDIA A100", "1 x a100"),
        ("1,000 x A100", "1000 x a100"),
        ("half an L4", "1 x l4/half"),
        ("a quarter of an L4", "1 x l4/quarter"),
        ("2 x half L4", "2 x l4/half"),
        ("20 GB VRAM", "1 x at least 20 GB"),
        ("A100 with 40 GB of memory", "1 x a100, 40 GB each"),
        ("1 x at least 20.5 GB", "1 x at least 21 GB"),
    ],
)
def test_needs_are_read_as_people_say_them(text: str, canonical: str) -> None:
    assert str(parse_need(text)) == canonical


@pytest.mark.parametrize(
    "text",
    ["", " ", "4", "4 x", "x", "0 x a100", "-1 x a100", "10001 x a100", "9" * 150 + " x a100", "٤ x a100",
     "４ x a100", "a100/", "/full", "4 x a100,", "4 x a100 each", "each", "1.5.5 GB", "0 GB", "10001 GB",
     "gpus gpus", "1 1 a100", "a" * 201, "4 x a100; drop table", "a100/full 40 GB", "a " * 99,
     "4 x " + "a-" * 90 + "!"],
)  # fmt: skip
def test_what_is_no_need_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidNeed, match="write one such as 4 x A100, 40 GB each"):
        parse_need(text)


def test_a_need_that_says_how_long_is_told_that_it_does_not() -> None:
    with pytest.raises(InvalidNeed, match="not how long"):
        parse_need("an A100 for 2 hours")


@pytest.mark.parametrize("text", ["40 GiB", "4 x A100 40GiB", "2 TB", "500 MB"])
def test_memory_in_another_unit_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidNeed, match="in GB"):
        parse_need(text)


@given(st.text(max_size=40) | st.from_regex(r"[0-9xag ,/.-]{0,40}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        need = parse_need(text)
    except InvalidNeed:
        return
    assert parse_need(str(need)) == need


@pytest.mark.parametrize(
    "wrong",
    [{"sku": Sku("l4", "half"), "family": "l4"}, {"sku": Sku("l4", "half"), "memory_gb": 1}, {"family": "A100"},
     {"family": "rtx 4090"}, {"family": ""}, {"family": "gpus"}, {"memory_gb": 0}, {"count": 0},
     {"sku": Sku("L4", "half")}, {"sku": Sku("", "")}],
)  # fmt: skip
def test_a_need_validates_itself(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidNeed):
        Need(**wrong)


@pytest.mark.parametrize(
    ("text", "met_by"),
    [
        ("a100", "a100-40g/7g.40gb a100-40g/full a100-80g/7g.80gb"),
        ("a100-40g", "a100-40g/7g.40gb a100-40g/full"),
        ("A100-40GB", "a100-40g/7g.40gb a100-40g/full"),
        ("4 x A100 40GB", "a100-40g/7g.40gb a100-40g/full a100-80g/3g.40gb a100-80g/7g.80gb"),
        ("a100 20 GB", "a100-40g/3g.20gb a100-40g/7g.40gb a100-40g/full a100-80g/3g.40gb a100-80g/7g.80gb"),
        ("a100 41 GB", "a100-80g/7g.80gb"),
        ("v100", "v100m16/full v100m32/full"),
        ("v100 32 GB", "v100m32/full"),
        ("l4", "l4/full"),
        ("l4 12 GB", "l4/full l4/half"),
        ("32 GB", "a100-40g/7g.40gb a100-40g/full a100-80g/3g.40gb a100-80g/7g.80gb v100m32/full"),
        ("2 GPUs", "a100-40g/7g.40gb a100-40g/full a100-80g/7g.80gb l4/full v100m16/full v100m32/full"),
        ("l4/0.470", "l4/0.470"),
        ("l40s/10GB", "l40s/10gb"),
        ("a100-80g/1g.10gb", "a100-80g/1g.10gb"),
        ("a100/3g.20gb", "a100-40g/3g.20gb"),
        ("2 L4s", "l4/full"),
        ("l40s 24 GB", "l40s/half"),
    ],
)
def test_the_skus_that_meet_a_need(text: str, met_by: str) -> None:
    assert " ".join(map(str, candidates(parse_need(text), POOL))) == met_by


@pytest.mark.parametrize(
    ("text", "refusal", "says"),
    [
        ("h100", UnknownModel, "no 'h100' in this pool; the nearest is a100-40g|the nearest is v100m"),
        ("a10", UnknownModel, "the nearest is a100"),
        ("h100/full", UnknownModel, "a100-40g"),
        ("l4/3g.20gb", InvalidShape, "l4"),
        ("v100/half", UnknownSku, "no device of this pool sells v100m16/half"),
        ("a10/half", UnknownModel, "no 'a10' in this pool"),
        ("t4/full", UnknownSku, "t4/full"),
        ("90 GB", NoSuchCapacity, "no GPU of this pool has 90 GB; the largest is a100-80g/7g.80gb with 80 GB"),
        ("l4 40 GB", NoSuchCapacity, "no l4 of this pool has 40 GB; the largest is l4/full with 24 GB"),
        ("l40s", NoSuchCapacity, "sells no whole l40s, only slices; the largest is l40s/half with 24 GB"),
        ("t4", NoSuchCapacity, "no t4 of this pool is in service"),
    ],
)
def test_what_the_pool_has_not_is_refused_with_what_it_has(text: str, refusal: type[Exception], says: str) -> None:
    with pytest.raises(refusal, match=says):
        candidates(parse_need(text), POOL)
