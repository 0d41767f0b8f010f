"""Money as integers: micros of a currency's major unit. No float enters this module."""

from __future__ import annotations

from market.errors import InvalidAmount

MICROS = 1_000_000
SECONDS_AN_HOUR = 3600


def divide_half_even(numerator: int, denominator: int) -> int:
    """Divide integers, rounding a tie to the even neighbour (IEEE 754 roundTiesToEven)."""
    if denominator <= 0:
        raise InvalidAmount("a denominator must be positive")
    quotient, rest = divmod(numerator, denominator)
    doubled = rest * 2
    if doubled > denominator or (doubled == denominator and quotient % 2):
        quotient += 1
    return quotient


def charge(*, rate: int, seconds: int, count: int) -> int:
    """Price `count` slices for `seconds` at `rate` micros a slice-hour; one rounding, half to even."""
    if rate < 0 or seconds < 0 or count < 0:
        raise InvalidAmount("rate, seconds and count must not be negative")
    return divide_half_even(rate * seconds * count, SECONDS_AN_HOUR)
