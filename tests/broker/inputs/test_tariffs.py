"""Tariff documents: what is wrong with one is `InvalidTariff`, naming the key; nothing else ever comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.inputs.assets import asset
from broker.inputs.tariffs import parse_tariff
from market.catalog import PPM, Tier
from market.errors import InvalidTariff, NonConvexScarcity
from market.tariff import Tariff

WHOLE = """\
name = "whole"
currency = "EUR"
zone = "Europe/Berlin"
holidays = [2026-12-25, 2026-12-26]
scarcity = [[0, 0.6], [0.5, 1.0], [1.0, 2.5]]
floor = 0.5
cap = 3
back_out_fee = 0.1

[base]
a100-40g = 2.00
l4 = 0.8

[[bands]]
name = "office hours"
days = ["weekday"]
from = "09:00"
to = "17:30"
factor = 1.25

[[bands]]
name = "night"
days = ["weekday", "weekend", "holiday"]
from = "22:00"
to = "24:00"
factor = 0.8

[tiers]
economy = 0.65
"""


def _with(old: str, new: str) -> str:
    assert WHOLE.count(old) == 1
    return WHOLE.replace(old, new)


def test_a_whole_document_is_read_exactly() -> None:
    tariff = parse_tariff(WHOLE)
    assert tariff.base == {"a100-40g": 2_000_000, "l4": 800_000}
    assert tariff.scarcity == ((0, 600_000), (500_000, PPM), (PPM, 2_500_000))
    assert [(band.start, band.end, band.factor_ppm) for band in tariff.bands] == [
        (540, 1050, 1_250_000),
        (1320, 1440, 800_000),
    ]
    assert (tariff.tiers[Tier.ECONOMY], tariff.tiers[Tier.STANDARD]) == (650_000, PPM)
    assert (tariff.floor_ppm, tariff.cap_ppm, tariff.back_out_fee_ppm) == (500_000, 3 * PPM, 100_000)


def test_the_sample_tariff_is_valid() -> None:
    assert parse_tariff(asset("tariffs", "campus.toml").read_text("utf-8")).currency == "EUR"


BAD: dict[str, tuple[str, str]] = {
    "not TOML": ("= 1", "not TOML"),
    "nothing": ("", "name"),
    "nesting": ("a = " + "[" * 5000, "not TOML"),
    "endless integer": (_with("cap = 3", "cap = " + "9" * 5000), "not TOML"),
    "key twice": (f"{WHOLE}\n[base]\n", "not TOML"),
    "unknown key": (_with("floor", "flor"), "did you mean 'floor'"),
    "unknown key of a band": (_with('to = "17:30"', 'too = "17:30"'), "did you mean 'to'"),
    "unknown tier": (_with("economy = 0.65", "econmy = 0.65"), "did you mean 'economy'"),
    "no name": (_with('name = "whole"\n', ""), "name"),
    "empty name": (_with('"whole"', '""'), "name"),
    "blank name": (_with('"whole"', '"  "'), "name"),
    "NUL in the name": (_with('"whole"', r'"a\u0000b"'), "name"),
    "line end in the name": (_with('"whole"', r'"a\nb"'), "name"),
    "long name": (_with('"whole"', f'"{"x" * 101}"'), "name"),
    "name that is a number": (_with('"whole"', "1"), "name"),
    "currency": (_with('"EUR"', '"EURO"'), "currency"),
    "currency in small letters": (_with('"EUR"', '"eur"'), "currency"),
    "no currency": (_with('currency = "EUR"\n', ""), "currency"),
    "gold": (_with('"EUR"', '"XAU"'), "currency"),
    "zone": (_with('"Europe/Berlin"', '"Mars/Olympus"'), "zone"),
    "zone that is a path": (_with('"Europe/Berlin"', '"../../etc/passwd"'), "zone"),
    "zone that is a folder": (_with('"Europe/Berlin"', '"Europe"'), "zone"),
    "offset for a zone": (_with('"Europe/Berlin"', '"+01:00"'), "zone"),
    "no base": (_with("a100-40g = 2.00\nl4 = 0.8\n", ""), "base"),
    "base that is no table": ('name = "x"\ncurrency = "EUR"\nzone = "UTC"\nbase = 1', "base"),
    "zero": (_with("2.00", "0.00"), "a100-40g"),
    "negative": (_with("2.00", "-2.00"), "base.a100-40g"),
    "negative integer": (_with("2.00", "-2"), "base.a100-40g"),
    "nan": (_with("2.00", "nan"), "base.a100-40g"),
    "infinity": (_with("2.00", "inf"), "base.a100-40g"),
    "1e400": (_with("2.00", "1e400"), "base.a100-40g"),
    "exponent": (_with("2.00", "2e0"), "base.a100-40g"),
    "seventh decimal": (_with("2.00", "2.0000001"), "base.a100-40g"),
    "true": (_with("2.00", "true"), "base.a100-40g"),
    "comma": (_with("2.00", '"2,00"'), "base.a100-40g"),
    "empty amount": (_with("2.00", '""'), "base.a100-40g"),
    "date for an amount": (_with("2.00", "2026-01-01"), "base.a100-40g"),
    "list for an amount": (_with("2.00", "[2]"), "base.a100-40g"),
    "absurd": (_with("2.00", "10001"), "a100-40g"),
    "absurd with a point": (_with("2.00", "10000.000001"), "a100-40g"),
    "beyond counting": (_with("2.00", "99999999999999999999.0"), "base.a100-40g"),
    "bands that overlap": (_with('from = "22:00"', 'from = "17:29"'), "overlap"),
    "band that ends before it starts": (_with('"17:30"', '"08:59"'), "office hours"),
    "band of no length": (_with('"17:30"', '"09:00"'), "office hours"),
    "band past midnight": (_with('"24:00"', '"24:01"'), "night"),
    "minute 60": (_with('"17:30"', '"17:60"'), "17:60"),
    "no time": (_with('"17:30"', '"5 pm"'), "5 pm"),
    "time without quotes": (_with('"17:30"', "17:30:00"), "to"),
    "time in other digits": (_with('"17:30"', '"١٧:٣٠"'), "no time of day"),
    "band without days": (_with('days = ["weekday"]', "days = []"), "days"),
    "unknown day": (_with('["weekday"]', '["monday"]'), "days"),
    "band without a factor": (_with("factor = 1.25\n", ""), "band factor"),
    "band of factor zero": (_with("1.25", "0"), "factor"),
    "band of factor 101": (_with("1.25", "101"), "factor"),
    "bands that are no list": ('bands = 1\nname = "x"\ncurrency = "EUR"\nzone = "UTC"\nbase = {l4 = 1}', "bands"),
    "a band that is no table": ('bands = [1]\nname = "x"\ncurrency = "EUR"\nzone = "UTC"\nbase = {l4 = 1}', "bands"),
    "holiday in quotes": (_with("2026-12-25", '"2026-12-25"'), "holidays"),
    "holiday with an hour": (_with("2026-12-25", "2026-12-25T00:00:00Z"), "holidays"),
    "day that is none": (_with("2026-12-25", "2026-02-30"), "not TOML"),
    "scarcity of triples": (_with("[0, 0.6]", "[0, 0.6, 1]"), "scarcity"),
    "scarcity of numbers": (_with("[0, 0.6]", "0"), "scarcity"),
    "scarcity of one point": (_with("[[0, 0.6], [0.5, 1.0], [1.0, 2.5]]", "[[0, 1]]"), "scarcity"),
    "no scarcity": (_with("[[0, 0.6], [0.5, 1.0], [1.0, 2.5]]", "[]"), "scarcity"),
    "scarcity from 0.1 on": (_with("[0, 0.6]", "[0.1, 0.6]"), "starts at load 0"),
    "loads that fall": (_with("[0.5, 1.0]", "[1.5, 1.0]"), "ascend"),
    "load twice": (_with("[0.5, 1.0]", "[0, 1.0]"), "ascend"),
    "scarcity of zero": (_with("[0, 0.6]", "[0, 0]"), "above 0"),
    "scarcity of 101": (_with("[1.0, 2.5]", "[1.0, 101]"), "at most 100"),
    "true for a load": (_with("[0.5, 1.0]", "[true, 1.0]"), "scarcity load"),
    "floor above the cap": (_with("floor = 0.5", "floor = 3.5"), "floor and cap"),
    "floor of zero": (_with("floor = 0.5", "floor = 0"), "floor and cap"),
    "cap of 11": (_with("cap = 3", "cap = 11"), "floor and cap"),
    "fee above 1": (_with("back_out_fee = 0.1", "back_out_fee = 1.1"), "back_out_fee"),
    "economy dearer than standard": (_with("economy = 0.65", "economy = 1.1"), "tier"),
    "economy for nothing": (_with("economy = 0.65", "spot = 0"), "tier"),
}


@pytest.mark.parametrize(("document", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_document_names_what_is_wrong(document: str, words: str) -> None:
    with pytest.raises(InvalidTariff) as refused:
        parse_tariff(document)
    assert words in refused.value.detail
    assert len(refused.value.detail) < 400


@pytest.mark.parametrize(
    "table", ["[[0, 1], [1, 0.9]]", "[[0, 1], [0.5, 2], [1, 2.5]]", "[[0, 1], [0.5, 1.000002], [1.0, 1.000003]]"]
)
def test_a_scarcity_table_that_falls_or_is_not_convex_has_its_own_code(table: str) -> None:
    with pytest.raises(NonConvexScarcity) as refused:
        parse_tariff(_with("[[0, 0.6], [0.5, 1.0], [1.0, 2.5]]", table))
    assert refused.value.code == "non_convex_scarcity"


def test_the_edges_are_valid() -> None:
    document = _with("2.00", "10000").replace("0.8\n", "0.000001\n").replace("back_out_fee = 0.1", "back_out_fee = 1")
    assert parse_tariff(document).base["a100-40g"] == 10**10


def _only_an_invalid_tariff(document: str) -> None:
    try:
        assert isinstance(parse_tariff(document), Tariff)
    except InvalidTariff as refused:
        assert refused.detail  # noqa: PT017 - any other error is the fault that is looked for


VALUES = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.sampled_from(["true", "nan", "[]", "[[]]", "{}", '""', "1e400", "[[0, 1]]", '"x"', "2026-01-01", "12:00:00",
                     "0x1F", '"\\u0000"', "[true]", "1_0.5", "'1'", '"-1"', "[[0, 1], [0, 1]]"]),
    st.text(max_size=20).map(repr),
)  # fmt: skip


@settings(max_examples=300)
@given(st.data())
def test_no_changed_line_raises_anything_else(data: st.DataObject) -> None:
    lines = WHOLE.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[place].partition(" = ")
        lines[place] = (
            f"{key} = {data.draw(VALUES)}" if equals else data.draw(st.sampled_from(["[tiers]", "[[base]]", ""]))
        )
    _only_an_invalid_tariff("\n".join(lines))


@settings(max_examples=300)
@given(st.data())
def test_no_cut_or_mixed_text_raises_anything_else(data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))))
    inserted = data.draw(
        st.one_of(st.just(""), st.text(max_size=8), st.sampled_from(["[", "]]", '"', "\0", "=", "\n[x]\n"]))
    )
    _only_an_invalid_tariff(WHOLE[:start] + inserted + WHOLE[end:])


def test_a_document_from_another_system_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(WHOLE.replace("\n", "\r\n").encode())
    assert parse_tariff(path.read_bytes().decode()).name == "whole"
