"""Every price explains itself, in numbers that a pocket calculator confirms. The documents' examples are tests here."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.catalog import PPM, Tier
from market.explanation import explain, in_one_line
from market.needs import parse_need
from market.quoting import Request, Snapshot, plan
from tests.market.snapshots import NOON, SLOTS, TARIFF, snapshot, with_load_at

ROOT = Path(__file__).parents[2]


def told(market: Snapshot | None = None, **more: object) -> str:
    request = replace(Request(need=parse_need("1 x a100-40g/full"), seconds=4 * 3600), **more)
    found = plan(request, market or snapshot(), NOON)
    return in_one_line(found, explain(found, (market or snapshot()).curves), zone="UTC", now=NOON)


def test_the_example_of_the_design() -> None:
    """82 % taken: 1.5 + 1.0 x 2/15 = 1.633; 2.00 x 1.633 x 4 h = 13.07; tonight at load 0: 2.00 x 0.6 x 4 h = 4.80."""
    tonight = range(41, 57)
    market = snapshot(loads=with_load_at(tonight, 0, elsewhere=820_000))
    line = told(market, tier=Tier.STANDARD)
    assert line.startswith("13.07 = base 2.00 x band 1.0 x scarcity 1.633 (82 % taken, book 317) x standard x 4 h; ")
    assert line.endswith("; today 22:15: 4.80")
    assert line in documented()


def test_the_cap_is_said() -> None:
    assert "limited to 3.0 (120 % taken" in told(snapshot(loads=1_200_000))


def test_several_slices_are_said() -> None:
    line = told(need=parse_need("2 x l4/half"))
    assert line.startswith("1.92 = base 0.40 x band 1.0 x scarcity 0.6 (0 % taken, book 317) x standard x 4 h x 2;")


@given(st.lists(st.integers(0, 1_200_000), min_size=SLOTS, max_size=SLOTS), st.integers(300, 86_400))
def test_the_factors_multiply_to_the_rate(loads: list[int], seconds: int) -> None:
    """To the rounding of the factors: each is shown to a millionth, so the product is off by some millionths."""
    market = snapshot(loads=loads)
    found = plan(Request(need=parse_need("1 x a100-40g/3g.20gb"), seconds=seconds), market, NOON)
    parts = explain(found, market.curves)
    product = Fraction(parts.base * parts.band * parts.scarcity * parts.tier_factor, PPM**3)
    assert abs(product - found.proposal.rate) <= 4
    assert parts.load == pytest.approx(parts.promised + parts.still_to_come, abs=2)


def test_the_forecast_is_named() -> None:
    market = snapshot()
    found = plan(Request(need=parse_need("1 x l4/full"), seconds=3600), market, NOON)
    assert explain(found, market.curves).forecast == "hour-of-week mean of the last four weeks"
    assert found.proposal.window.end == NOON + timedelta(hours=1)


def documented() -> str:
    """README and ARCHITECTURE with their line breaks folded, since a price example is a test."""
    return re.sub(r"\s+", " ", (ROOT / "README.md").read_text("utf-8") + (ROOT / "ARCHITECTURE.md").read_text("utf-8"))


def test_every_price_example_of_the_documents_multiplies_out() -> None:
    """`13.07 = base 2.00 x band 1.0 x scarcity 1.633 (...) x standard x 4 h`, wherever it stands."""
    number = r"(\d+\.\d+)"
    pattern = rf"{number} = base {number} x band {number} x scarcity {number} \([^)]*\) x (\w+)(?: {number})? x (\d+) h"
    examples = re.findall(pattern, documented())
    assert examples
    for total, base, band, scarcity, tier, factor, hours in examples:
        share = Fraction(factor) if factor else Fraction(TARIFF.tiers[Tier(tier)], PPM)
        product = Fraction(base) * Fraction(band) * Fraction(scarcity) * share * int(hours)
        assert abs(product - Fraction(total)) <= Fraction(1, 100)
