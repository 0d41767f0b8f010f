"""Money as integers: micros of a currency's major unit. No float enters this module.

What a person reads has the currency's own number of decimals, commas between thousands and the code behind:
"-1,234.50 EUR". What a person types has a point, no commas and no code, since "13,07" means two things.
"""

from __future__ import annotations

from collections.abc import Sequence

from market.errors import InvalidAmount

MICROS = 1_000_000
SECONDS_AN_HOUR = 3600
MAX_MICROS = 10**12 * MICROS
"""The largest amount, 10^12 major units: a ninth of what a signed 64-bit column holds, so that sums fit too."""

# ISO 4217, list one as published on 2026-01-01, by decimals, without what has none (metals, SDR, testing).
_CODES_BY_DECIMALS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
        CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF
        IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK
        MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP
        SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG
        YER ZAR ZMW ZWG
    """,
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_DECIMALS = {code: decimals for decimals, codes in _CODES_BY_DECIMALS.items() for code in codes.split()}


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
    """Price `count` slices for `seconds` at `rate` micros a slice-hour; one rounding, half to even.

    `InvalidAmount` for a negative argument, or when the charge exceeds `MAX_MICROS`.
    """
    if rate < 0 or seconds < 0 or count < 0:
        raise InvalidAmount("rate, seconds and count must not be negative")
    micros = divide_half_even(rate * seconds * count, SECONDS_AN_HOUR)
    if micros > MAX_MICROS:
        raise InvalidAmount(f"a charge of {micros} micros is more than the market can hold")
    return micros


def allocate(total: int, weights: Sequence[int]) -> list[int]:
    """Split `total` in proportion to `weights` by largest remainder: the parts are integers that sum to it exactly.

    Equal remainders are served in order. A negative total is split as its positive and negated. `InvalidAmount` for
    a negative weight, or when no weight is positive.
    """
    whole = sum(weights)
    if any(weight < 0 for weight in weights) or whole == 0:
        raise InvalidAmount("weights must not be negative, and one must be positive")
    sign = -1 if total < 0 else 1
    shares = [divmod(abs(total) * weight, whole) for weight in weights]
    parts = [quotient for quotient, _ in shares]
    by_remainder = sorted(range(len(shares)), key=lambda place: -shares[place][1])
    for place in by_remainder[: abs(total) - sum(parts)]:
        parts[place] += 1
    return [sign * part for part in parts]


def currency_decimals(currency: str) -> int:
    """The ISO 4217 exponent of a currency: 2 for EUR, 0 for JPY, 3 for KWD (`InvalidAmount` for an unknown code)."""
    if currency not in _DECIMALS:
        raise InvalidAmount(f"{currency!r} is no ISO 4217 currency code; write one such as EUR")
    return _DECIMALS[currency]


def format_money(micros: int, currency: str, places: int | None = None) -> str:
    """Micros as a person reads them, "1,234.50 EUR", rounded half to even.

    `places` are the decimals, 0 to 6, by default those of the currency; what rounds to zero has no sign.
    `InvalidAmount` for an unknown currency or other places.
    """
    decimals = currency_decimals(currency)
    places = decimals if places is None else places
    if not 0 <= places <= 6:
        raise InvalidAmount(f"{places} decimals cannot be shown; micros have 0 to 6")
    units = divide_half_even(micros, 10 ** (6 - places))
    major, minor = divmod(abs(units), 10**places)
    sign = "-" if units < 0 else ""
    decimal = f".{minor:0{places}}" if places else ""
    return f"{sign}{major:,}{decimal} {currency}"


def parse_money(text: str) -> int:
    """Micros of an amount in major units as a person types it, "13.07" or "0.000001", exactly.

    `InvalidAmount` for a sign, a comma, anything but ASCII digits and one point, more than six decimals, or more than
    10^12 major units.
    """
    major, point, minor = text.strip().partition(".")
    if not _digits(major) or (point and not _digits(minor)):
        raise InvalidAmount(f"{text[:40]!r} is no amount; write one such as 1234.50, with a point and no commas")
    if len(minor) > 6:
        raise InvalidAmount(f"{text[:40]!r} has more than six decimals; the market counts in millionths")
    if len(major) > 13 or (micros := int(major + minor.ljust(6, "0"))) > MAX_MICROS:
        raise InvalidAmount(f"{text[:40]!r} is more than the market can hold")
    return micros


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
