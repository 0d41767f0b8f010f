from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.errors import InvalidAmount
from market.money import (
    MAX_MICROS,
    allocate,
    charge,
    currency_decimals,
    divide_half_even,
    format_money,
    parse_money,
)

WEIGHTS = st.lists(st.integers(0, 10**12), min_size=1, max_size=30).filter(any)


@given(st.integers(), st.integers(min_value=1))
def test_division_agrees_with_the_exact_fraction(numerator: int, denominator: int) -> None:
    assert divide_half_even(numerator, denominator) == round(Fraction(numerator, denominator))


def test_division_by_nothing_is_refused() -> None:
    with pytest.raises(InvalidAmount):
        divide_half_even(1, 0)


def test_a_whole_number_of_hours_is_charged_exactly() -> None:
    assert charge(rate=3_267_500, seconds=4 * 3600, count=1) == 13_070_000


@pytest.mark.parametrize("bad", [{"rate": -1}, {"seconds": -1}, {"count": -1}])
def test_a_negative_amount_is_refused(bad: dict[str, int]) -> None:
    with pytest.raises(InvalidAmount):
        charge(**{"rate": 1, "seconds": 1, "count": 1, **bad})


def test_the_largest_amount_fits_a_64_bit_column_and_no_charge_exceeds_it() -> None:
    assert MAX_MICROS < 2**63
    assert charge(rate=MAX_MICROS, seconds=3600, count=1) == MAX_MICROS
    with pytest.raises(InvalidAmount):
        charge(rate=MAX_MICROS, seconds=3601, count=1)


@given(st.integers(-MAX_MICROS, MAX_MICROS), WEIGHTS)
def test_an_allocation_sums_exactly_and_each_part_is_within_one_of_its_share(total: int, weights: list[int]) -> None:
    parts = allocate(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - Fraction(total * weight, sum(weights))) < 1


@given(st.integers(0, MAX_MICROS), WEIGHTS)
def test_the_largest_remainders_are_rounded_up(total: int, weights: list[int]) -> None:
    shares = [Fraction(total * weight, sum(weights)) for weight in weights]
    parts = allocate(total, weights)
    up = [share % 1 for share, part in zip(shares, parts, strict=True) if part > share]
    down = [share % 1 for share, part in zip(shares, parts, strict=True) if part < share]
    assert not up or not down or min(up) >= max(down)


def test_equal_remainders_are_served_in_order() -> None:
    assert allocate(100, [1, 1, 1]) == [34, 33, 33]
    assert allocate(-100, [1, 1, 1]) == [-34, -33, -33]
    assert allocate(2, [0, 1, 1, 1]) == [0, 1, 1, 0]


@pytest.mark.parametrize("weights", [[], [0], [0, 0], [2, -1]])
def test_weights_that_share_nothing_are_refused(weights: list[int]) -> None:
    with pytest.raises(InvalidAmount):
        allocate(1, weights)


@pytest.mark.parametrize(
    ("micros", "currency", "text"),
    [
        (13_070_000, "EUR", "13.07 EUR"),
        (1_234_500_000, "USD", "1,234.50 USD"),
        (-1_234_567_890_000, "EUR", "-1,234,567.89 EUR"),
        (1_234_500_000, "JPY", "1,234 JPY"),
        (1_235_500_000, "JPY", "1,236 JPY"),
        (1_234_500, "KWD", "1.234 KWD"),
        (1_234_550, "CLF", "1.2346 CLF"),
        (0, "EUR", "0.00 EUR"),
        (-4_999, "EUR", "0.00 EUR"),
        (MAX_MICROS, "EUR", "1,000,000,000,000.00 EUR"),
    ],
)
def test_money_is_shown_with_the_decimals_of_its_currency(micros: int, currency: str, text: str) -> None:
    assert format_money(micros, currency) == text


def test_the_decimals_can_be_said() -> None:
    assert format_money(3_267_500, "EUR", places=4) == "3.2675 EUR"
    assert format_money(3_267_500, "EUR", places=0) == "3 EUR"
    for places in (-1, 7):
        with pytest.raises(InvalidAmount):
            format_money(1, "EUR", places=places)


def test_each_currency_has_its_exponent() -> None:
    assert [currency_decimals(code) for code in ("EUR", "JPY", "KWD", "UYW")] == [2, 0, 3, 4]


@pytest.mark.parametrize("code", ["", "eur", "XXX", "XAU", "EURO", "ZZZ"])
def test_what_is_no_currency_is_refused(code: str) -> None:
    with pytest.raises(InvalidAmount):
        format_money(1, code)


@given(st.integers(0, MAX_MICROS))
def test_six_decimals_are_read_back_exactly(micros: int) -> None:
    shown = format_money(micros, "EUR", places=6).removesuffix(" EUR").replace(",", "")
    assert parse_money(shown) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [("13.07", 13_070_000), (" 7 ", 7_000_000), ("0.000001", 1), ("007.5", 7_500_000), ("1000000000000", MAX_MICROS)],
)
def test_an_amount_is_read_exactly(text: str, micros: int) -> None:
    assert parse_money(text) == micros


@pytest.mark.parametrize(
    "text",
    ["", ".", "5.", ".5", "-1", "+1", "13,07", "1,234.50", "1.0000000", "1.2.3", "1e3", "0x1", "1_0", "٣", "１", "²",
     "NaN",
     "1000000000000.000001", "9" * 5000, "13.07 EUR", "1 000"],
)  # fmt: skip
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InvalidAmount):
        parse_money(text)
