from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.errors import InvalidAmount
from market.money import charge, divide_half_even


@given(st.integers(), st.integers(min_value=1))
def test_division_agrees_with_the_exact_fraction(numerator: int, denominator: int) -> None:
    assert divide_half_even(numerator, denominator) == round(Fraction(numerator, denominator))


def test_a_whole_number_of_hours_is_charged_exactly() -> None:
    assert charge(rate=3_267_500, seconds=4 * 3600, count=1) == 13_070_000


@pytest.mark.parametrize("bad", [{"rate": -1}, {"seconds": -1}, {"count": -1}])
def test_a_negative_amount_is_refused(bad: dict[str, int]) -> None:
    with pytest.raises(InvalidAmount):
        charge(**{"rate": 1, "seconds": 1, "count": 1, **bad})
