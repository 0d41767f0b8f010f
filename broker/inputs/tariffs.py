"""Reads a tariff document (TOML) into a `Tariff`. Numbers are read as text and become exact integers: no float."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any, cast

from market.catalog import PPM, Tier
from market.errors import GputideError, InvalidTariff
from market.instants import zone_named
from market.money import currency_decimals, parse_money
from market.tariff import DEFAULT_SCARCITY, DEFAULT_TIERS, Band, Tariff

_KEYS = (
    "name", "currency", "zone", "base", "bands", "holidays", "scarcity", "tiers", "floor", "cap", "back_out_fee",
)  # fmt: skip
_BAND_KEYS = ("name", "days", "from", "to", "factor")


def parse_tariff(document: str) -> Tariff:
    """The tariff of a document (`InvalidTariff`, naming the key, when it is none)."""
    try:
        raw = tomllib.loads(document, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise InvalidTariff(f"not TOML: {error}") from error
    _known(raw, _KEYS, "tariff")
    return Tariff(
        name=_text(raw, "name"),
        currency=_checked(raw, "currency", currency_decimals),
        zone=_checked(raw, "zone", zone_named),
        base={model: _number(rate, f"base.{model}") for model, rate in _table(raw, "base").items()},
        bands=tuple(_band(each) for each in _list(raw, "bands")),
        holidays=frozenset(_date(each) for each in _list(raw, "holidays")),
        scarcity=_scarcity(_list(raw, "scarcity")) if "scarcity" in raw else DEFAULT_SCARCITY,
        tiers=DEFAULT_TIERS | _tiers(_table(raw, "tiers")) if "tiers" in raw else DEFAULT_TIERS,
        floor_ppm=_number(raw.get("floor", "0.5"), "floor"),
        cap_ppm=_number(raw.get("cap", "3"), "cap"),
        back_out_fee_ppm=_number(raw.get("back_out_fee", "0.1"), "back_out_fee"),
    )


def _band(raw: object) -> Band:
    table = _as_table(raw, "bands")
    _known(table, _BAND_KEYS, "band")
    days = _list(table, "days")
    return Band(
        name=_text(table, "name"),
        days=frozenset(str(day) for day in days),
        start=_minutes(_text(table, "from")),
        end=_minutes(_text(table, "to")),
        factor_ppm=_number(table.get("factor"), "band factor"),
    )


def _scarcity(raw: list[Any]) -> tuple[tuple[int, int], ...]:
    points: list[tuple[int, int]] = []
    for pair in raw:
        if not isinstance(pair, list) or len(cast("list[Any]", pair)) != 2:
            raise InvalidTariff("scarcity: a list of [load, factor] pairs")
        load, factor = cast("list[Any]", pair)
        points.append((_number(load, "scarcity load"), _number(factor, "scarcity factor")))
    return tuple(points)


def _tiers(raw: Mapping[str, Any]) -> dict[Tier, int]:
    _known(raw, tuple(str(tier) for tier in Tier), "tiers")
    return {Tier(tier): _number(factor, f"tiers.{tier}") for tier, factor in raw.items()}


def _number(value: object, key: str) -> int:
    """An exact decimal of at most six places, in millionths."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidTariff(f"{key}: a number such as 1.25")
    if isinstance(value, int):
        if not 0 <= value <= PPM:
            raise InvalidTariff(f"{key}: a number from 0 to 1,000,000")
        return value * PPM
    try:
        return parse_money(value)
    except GputideError as error:
        raise InvalidTariff(f"{key}: {error.detail}") from error


def _minutes(text: str) -> int:
    hour, colon, minute = text.partition(":")
    if not colon or not (text.isascii() and hour.isdigit() and minute.isdigit()) or int(minute) > 59:
        raise InvalidTariff(f"{text!r} is no time of day such as 09:00")
    return int(hour) * 60 + int(minute)


def _date(value: object) -> date:
    if type(value) is not date:
        raise InvalidTariff("holidays: a list of dates such as 2026-12-25, without quotes")
    return value


def _known(table: Mapping[str, Any], keys: tuple[str, ...], what: str) -> None:
    for key in table:
        if key not in keys:
            close = get_close_matches(key, keys, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(keys)}"
            raise InvalidTariff(f"{what}: unknown key {key!r}{hint}")


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > 100 or not value.isprintable():
        raise InvalidTariff(f"{key}: a text of 1 to 100 printable characters is needed")
    return value


def _checked(table: Mapping[str, Any], key: str, check: Callable[[str], object]) -> str:
    value = _text(table, key)
    try:
        check(value)
    except GputideError as error:
        raise InvalidTariff(f"{key}: {error.detail}") from error
    return value


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _as_table(table.get(key), key)


def _as_table(value: object, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidTariff(f"{key}: a table is needed")
    return cast("Mapping[str, Any]", value)


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise InvalidTariff(f"{key}: a list is needed")
    return cast("list[Any]", value)
